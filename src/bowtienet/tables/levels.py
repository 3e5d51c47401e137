"""What needs the target: a statistic of many levels that does not leak, and words that help.

For level l with weights W_l and target sums S_l, the mean shrunk to that of all rows is

    s_l = (S_l + m ȳ) / (W_l + m),        m = σ²_within / σ²_between,

with the variance components of a one-way analysis of variance. New rows have the statistic of all
training rows; a training row has that of the rows outside its fold, so that its own target is not
in it. Levels that training did not have, and missing ones, have ȳ.

A word of a free text is kept if rows with it differ from rows without it in the mean of a target on
one half of the rows, and alike on the other half, which had no part in finding it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import hash_rows

Floats = NDArray[np.float64]


def statistic_folds(values: Floats, targets: Floats) -> NDArray[np.intp]:
    """Fold of each row (n,) by a hash of its values, so that the order of rows does not matter.

    Rows of equal values are dealt out in the order of their targets: kept together, those of one
    target would leave only the others to their statistic.
    """
    order = np.lexsort((*targets.T, hash_rows(values)))
    folds = np.empty(len(values), dtype=np.intp)
    folds[order] = np.arange(len(values)) % 10
    return folds


def learn_means(
    index: NDArray[np.intp], targets: Floats, weights: Floats, folds: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Means (L + 1, T) for new rows, and (n, T) for the training rows out of fold.

    `index` (n,) is the level of each row, -1 where it is missing. Targets whose levels differ no
    more than by chance are left out.
    """
    n_levels, is_missing = int(index.max()) + 1, index < 0
    center = np.average(targets, axis=0, weights=weights)
    centred = np.where(is_missing[:, None], 0.0, targets - center)
    amounts = np.where(is_missing, 0.0, weights)
    # Weights and target sums of the levels in each fold; the first cell is for missing ones.
    cell = folds * (n_levels + 1) + index + 1
    columns = (amounts, *(amounts * target for target in centred.T))
    by_fold = [np.bincount(cell, each, 10 * (n_levels + 1)) for each in columns]
    sums = np.stack(by_fold, axis=-1).reshape(10, n_levels + 1, -1)[:, 1:]
    total = sums.sum(axis=0)
    pull = _pull(index, centred, amounts, total[:, 0], total[:, 1:])
    means = center + np.vstack([_shrunk(total, pull), 0.0 * center])
    others = _shrunk(total - sums, pull)[folds, index]
    held_out = center + np.where(is_missing[:, None], 0.0, others)
    return means[:, np.isfinite(pull)], held_out[:, np.isfinite(pull)]


def words_of(text: str) -> set[str]:
    """Different words of a text, in small letters."""
    return set(re.findall(r"[^\W\d_]{2,}", text.casefold()))


def word_indicators(texts: Sequence[str], words: Sequence[str]) -> Floats:
    """Zeros and ones (m, words)."""
    rows = [[word in each for word in words] for each in map(words_of, texts)]
    return np.array(rows, dtype=np.float64).reshape(len(texts), len(words))


def helpful_words(
    texts: Sequence[str],
    index: NDArray[np.intp],
    targets: Floats,
    weights: Floats,
    folds: NDArray[np.intp],
) -> tuple[str, ...]:
    """At most 24 words that held-out rows confirm, the strongest first; `index` -1 is no text."""
    from sklearn.feature_extraction.text import CountVectorizer  # heavy to load

    counter = CountVectorizer(analyzer=words_of, dtype=np.float64)
    matrix = counter.fit_transform([*texts, ""])[index]
    n_rows = np.ravel(matrix.sum(axis=0))
    # A word that fewer than ten rows have, or have not, tells nothing.
    telling = np.flatnonzero((n_rows >= 10) & (n_rows <= len(index) - 10))
    if not telling.size or not targets.shape[1]:
        return ()
    matrix, vocabulary = matrix[:, telling], counter.get_feature_names_out()[telling]
    halves = [np.flatnonzero(folds % 2 == half) for half in (0, 1)]
    first, second = (_scores(matrix[rows], targets[rows], weights[rows]) for rows in halves)
    # Three standard errors where words are found, and two where they are confirmed.
    kept = np.any((np.abs(first) > 3.0) & (second * np.sign(first) > 2.0), axis=1)
    strength = np.where(kept, np.abs(first + second).max(axis=1), -np.inf)
    best = np.argsort(-strength, kind="stable")[: min(24, np.count_nonzero(kept))]
    return tuple(vocabulary[best].tolist())


def _pull(
    index: NDArray[np.intp], centred: Floats, amounts: Floats, size: Floats, sums: Floats
) -> Floats:
    """m (T,) of each target; infinite where its levels do not differ."""
    total, n_levels = size.sum(), len(size)
    spare = total - n_levels
    if spare <= 0.0 or n_levels < 2:
        return np.full(centred.shape[1], np.inf)
    level_means = sums / size[:, None]
    residuals = centred - level_means[index]
    within = (amounts @ residuals**2) / spare
    grand = sums.sum(axis=0) / total
    explained = size @ (level_means - grand) ** 2
    between = (explained - (n_levels - 1) * within) / (total - size @ size / total)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > 0.0, within / between, np.inf)


def _shrunk(sums: Floats, pull: Floats) -> Floats:
    """Target sums over weights and m; zero, the mean of all rows, where there is no row."""
    size, sums = sums[..., :1], sums[..., 1:]
    # A difference of sums is rounded.
    present = size > 1e-9 * max(size.max(), 1.0)
    return np.where(present, sums / (np.where(present, size, 1.0) + pull), 0.0)


def _scores(matrix: Any, targets: Floats, weights: Floats) -> Floats:
    """Standard scores (words, targets) of the difference of means with and without a word."""
    share = weights / weights.sum()
    centred = targets - share @ targets
    deviation = np.sqrt(share @ centred**2)
    frequency = matrix.T @ share
    effect = matrix.T @ (share[:, None] * centred)
    variance = np.maximum(frequency * (1.0 - frequency), 1e-12)[:, None] * deviation**2
    n_rows = weights.sum() ** 2 / (weights @ weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.sqrt(n_rows) * effect / np.sqrt(variance)
    return np.where(np.isfinite(scores), scores, 0.0)
