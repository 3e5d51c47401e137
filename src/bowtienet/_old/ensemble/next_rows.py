"""Where to measure next: rows that would teach an ensemble most, if their targets were known.

A target y_i = f_i + noise of variance s_i changes what is known of the function at all other rows.
With the epistemic covariance C of f between rows, the variance at row j falls,

    C_jj -> C_jj - C_ij² / (C_ii + s_i),

so the first candidate is the one with the largest Σ_j C_ij² / (C_ii + s_i) over the rows j that are
to be predicted. The next ones are chosen in the same way with what is left of C: rows near one that
is chosen already, or that are noisy, teach little. For Gaussian targets and a given C this is
exact, and needs no target.

Of counts f is the logarithm of the rate m and s = 1/m + 1/r. Of classes the gain is the mutual
information of a row's class and the function, times the share of the variance of its probabilities
p that the rows chosen before have left, with s = p (1 - p). Of both, C is that of draws of whole
networks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.ensemble.class_ensemble import class_moments, draw_probabilities
from bowtienet._old.ensemble.count_ensemble import LARGEST_LOG_RATE, group_dispersions, is_counts
from bowtienet._old.ensemble.draws import draw_outputs
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    components,
    group_moments,
    outcome_of,
)
from bowtienet._old.ensemble.row_covariance import covariance
from bowtienet._old.prediction.calibration import is_discrete

N_DRAWS = 400
"""Draws of networks of classes and counts."""
MOST_CANDIDATES = 400
"""Covariances are of all pairs of rows: of more candidates a random sample is looked at,"""
MOST_TO_PREDICT = 200
"""and of more rows that are to be predicted, too."""


def next_rows(
    ensemble: Ensemble,
    inputs: Array,
    n_rows: int,
    rng: np.random.Generator,
    to_predict: Array | None = None,
) -> NDArray[np.intp]:
    """Places (n_rows,) of the encoded rows (m, E) to measure next, the most telling one first.

    Parameters
    ----------
    ensemble : Ensemble
        Of numbers or counts.
    inputs : array (m, E)
        Encoded features of candidates.
    n_rows : int
        How many, at most m.
    rng : Generator
        Of samples, and of draws for counts.
    to_predict : array (r, E), optional
        Rows whose variance should fall; the candidates themselves by default.
    """
    features = np.asarray(to_numpy(inputs), dtype=np.float64)
    looked_at = _sampled(len(features), max(MOST_CANDIDATES, n_rows), rng)
    features = features[looked_at]
    places = np.arange(len(features))
    if to_predict is not None:
        others = np.asarray(to_numpy(to_predict), dtype=np.float64)
        others = others[_sampled(len(others), MOST_TO_PREDICT, rng)]
        places = len(features) + np.arange(len(others))
        features = np.concatenate([features, others])
    epistemic, noise = uncertainty(ensemble, features, rng)
    return looked_at[telling_rows(epistemic, noise[: len(looked_at)], n_rows, places)]


def next_labels(
    ensemble: Ensemble, inputs: Array, n_rows: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Places (n_rows,) of the encoded rows (m, E) whose classes tell most of the function."""
    features = np.asarray(to_numpy(inputs), dtype=np.float64)
    looked_at = _sampled(len(features), max(MOST_CANDIDATES, n_rows), rng)
    features = features[looked_at]
    found = class_moments(ensemble, map_arrays(to_numpy, group_moments(ensemble, features)))
    information = found.entropy - found.aleatoric_entropy
    epistemic, noise = uncertainty(ensemble, features, rng)
    return looked_at[informative_rows(information, epistemic, noise, n_rows)]


def telling_rows(
    epistemic: Floats, noise: Floats, n_rows: int, to_predict: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Candidates (n_rows,) that lower Σ_jd C_jjd most, one after the other and none twice.

    Parameters
    ----------
    epistemic : array (k, k, D)
        C of the function between rows, the m candidates first.
    noise : array (m, D)
        Variances s of targets of candidates around it.
    n_rows : int
        How many, at most m.
    to_predict : array (r,)
        Places j of the rows whose variance counts.
    """

    def gains(left: Floats, total: Floats) -> Floats:
        across = left[: len(noise), to_predict]
        return np.asarray(np.sum(np.einsum("ijd,ijd->id", across, across) / total, axis=1))

    return _one_by_one(epistemic, noise, n_rows, gains)


def informative_rows(
    information: Floats, epistemic: Floats, noise: Floats, n_rows: int
) -> NDArray[np.intp]:
    """Candidates (n_rows,) by information (m,) times the share of Σ_d C_iid that is left."""
    rows = np.arange(len(noise))
    before = np.sum(epistemic[rows, rows], axis=1)
    unit = np.where(before > 0.0, before, 1.0)

    def gains(left: Floats, total: Floats) -> Floats:
        return np.asarray(information * np.sum(left[rows, rows], axis=1) / unit)

    return _one_by_one(epistemic, noise, n_rows, gains)


def _one_by_one(
    epistemic: Floats, noise: Floats, n_rows: int, gains: Callable[[Floats, Floats], Floats]
) -> NDArray[np.intp]:
    """The candidate of the largest gain, given C and C_ii + s_i, again and again."""
    left, chosen = epistemic.copy(), np.zeros(n_rows, dtype=np.intp)
    candidates, taken = np.arange(len(noise)), np.zeros(len(noise), dtype=bool)
    for place in range(n_rows):
        total = np.maximum(left[candidates, candidates], 0.0) + noise
        # Where neither function nor target vary there is nothing to learn.
        total = np.where(total > 0.0, total, np.inf)
        best = int(np.argmax(np.where(taken, -np.inf, gains(left, total))))
        chosen[place], taken[best] = best, True
        known = left[best]
        left -= known[:, None] * known[None] / total[best]
    return chosen


def uncertainty(
    ensemble: Ensemble, features: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Epistemic covariance (m, m, D) of the function and noise variances (m, D) of targets.

    Of several targets each in its own standard deviation, so that they count alike.
    """
    if is_counts(ensemble):
        logs = draw_outputs(ensemble, features, N_DRAWS, rng)[0]
        rates = np.exp(np.clip(logs, -LARGEST_LOG_RATE, LARGEST_LOG_RATE)).mean(axis=0)
        dispersion = float(np.mean(group_dispersions(ensemble)))
        return _covariance_of_draws(logs), 1.0 / rates + 1.0 / dispersion
    if is_discrete(outcome_of(ensemble)):
        draws = draw_probabilities(ensemble, features, N_DRAWS, rng, joint=True)
        return _covariance_of_draws(draws), np.mean(draws * (1.0 - draws), axis=0)
    _, own, noise = components(ensemble, features)
    found = covariance(ensemble, features)
    rows = np.arange(len(features))
    found[rows, rows] = own
    scale = np.asarray(to_numpy(ensemble.representation.target_scaling.scale)) ** 2
    return found / scale, noise / scale


def _covariance_of_draws(draws: Floats) -> Floats:
    """Covariance (m, m, D) of draws (S, m, D)."""
    away = np.moveaxis(draws - draws.mean(axis=0), -1, 0)
    return np.moveaxis(np.swapaxes(away, 1, 2) @ away / len(draws), 0, -1)


def _sampled(n_rows: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Places of all rows, or of a random sample of them, in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, most, replace=False))
