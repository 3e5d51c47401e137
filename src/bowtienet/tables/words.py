"""Free text: which words of it say something of the target.

A word is kept if rows with it differ from rows without it in the mean of a target on one half of
the rows, and alike on the other half, which had no part in finding it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_WORD = re.compile(r"[^\W\d_]{2,}")


def words_of(text: str) -> set[str]:
    """Different words of a text, in small letters."""
    return set(_WORD.findall(text.casefold()))


def word_indicators(texts: Sequence[str], words: Sequence[str]) -> Floats:
    """Zeros and ones (m, words)."""
    wanted = {word: i for i, word in enumerate(words)}
    values = np.zeros((len(texts), len(words)))
    for row, text in enumerate(texts):
        for word in words_of(text) & wanted.keys():
            values[row, wanted[word]] = 1.0
    return values


def helpful_words(
    texts: Sequence[str],
    index: NDArray[np.intp],
    targets: Floats,
    weights: Floats,
    folds: NDArray[np.intp],
) -> tuple[str, ...]:
    """At most 24 words that held-out rows confirm, the strongest first; `index` -1 is no text."""
    each = [sorted(words_of(text)) for text in texts]
    counts = np.bincount(index[index >= 0], minlength=len(texts))
    n_rows: Counter[str] = Counter()
    for words, count in zip(each, counts.tolist(), strict=True):
        n_rows.update(dict.fromkeys(words, count))
    # A word that fewer than ten rows have, or have not, tells nothing.
    vocabulary = sorted(word for word, n in n_rows.items() if 10 <= n <= len(index) - 10)
    if not vocabulary or not targets.shape[1]:
        return ()
    place = {word: i for i, word in enumerate(vocabulary)}
    pairs = [(i, place[w]) for i, words in enumerate(each) for w in words if w in place]
    entries = np.array(pairs).T
    shape = (len(texts) + 1, len(vocabulary))
    matrix = csr_array((np.ones(len(pairs)), (entries[0], entries[1])), shape=shape)[index]
    halves = [np.flatnonzero(folds % 2 == half) for half in (0, 1)]
    first, second = (_scores(matrix[rows], targets[rows], weights[rows]) for rows in halves)
    # Three standard errors where words are found, and two where they are confirmed.
    kept = np.any((np.abs(first) > 3.0) & (second * np.sign(first) > 2.0), axis=1)
    strength = np.where(kept, np.abs(first + second).max(axis=1), -np.inf)
    best = np.argsort(-strength, kind="stable")[: min(24, np.count_nonzero(kept))]
    return tuple(vocabulary[i] for i in best)


def _scores(matrix: csr_array, targets: Floats, weights: Floats) -> Floats:
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
