"""Conformal intervals: levels of the predictive distribution that hold a stated share of targets.

With ordered scores u_i = F_i(y_i) of n calibration rows, u_(1) <= ... <= u_(n), and coverage 1 - α,

    low = u_(r),   high = u_(n+1-r),   r = floor((n + 1) α / 2);   0 and 1 where r = 0,

and [F^{-1}(low), F^{-1}(high)] is the interval of a new row. Each tail has its own rank, so that a
forecast that is biased or skewed is corrected on the side where it is wrong. This is distributional
conformal prediction (Chernozhukov, Wuthrich and Zhu 2021) with the two tails apart, as in the
asymmetric variant of Romano, Patterson and Candes (2019).

What is guaranteed depends on which model gave the scores:

- *Split conformal.* One model, fitted and chosen without the calibration rows, gives the scores and
  forecasts the new row. If calibration rows and new row are exchangeable, the interval holds the
  new target with probability at least 1 - α, however wrong the model is; without ties with
  probability 1 - 2 r / (n + 1), which is less than 1 - α + 2 / (n + 1).
- *Out-of-fold scores, final model.* Every score comes from the fold model that was fitted without
  its row, and the levels are applied to a model fitted to all rows. This carries no guarantee for
  finite n: the plain jackknife, which is of this kind, can fail where fits are unstable. Coverage
  is near 1 - α in practice where the final model is like the fold models.
- *CV+* (Barber, Candes, Ramdas and Tibshirani 2021) has a guarantee with the same scores, but needs
  all fold models for each new row x. Its ends are the r-th smallest and the r-th largest of the n
  numbers F_{-k(i)}^{-1}(u_i | x), with F_{-k(i)} the fold model that gave u_i. Coverage is at least
  1 - 2 α, less a term of at most √(2 / n) for each tail, if folds are of one size and the fit does
  not depend on the order of rows. The numbers of one fold are in the order of their scores, so an
  end is where Σ_k #{i in fold k : u_i <= F_{-k}(y | x)} reaches its rank: a bisection over y with
  K distribution functions. Members would have to be kept by folds, which they are not.

All of this is marginal: an average over calibration sets and new rows. It says nothing of rows with
certain features, and given one calibration set coverage varies from set to set, by about
√(α (1 - α) / n). Rows whose distribution drifts, or that come in groups, are not exchangeable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import whole
from bowtienet._old.prediction.intervals import check_coverage
from bowtienet._old.prediction.mixture import Mixture

_ROUNDING = 2.0**-51
"""1 - 0.9 is a little below 0.1, but the first of 19 scores is meant; guarantees lose no more."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """How held-out rows were predicted by networks that were not fitted to them."""

    values: np.ndarray
    """u = F(y), the predictive distribution function at the target, (n, D)."""
    weights: np.ndarray
    """How many times each row counts, (n,)."""


def check_held_out(held_out: HeldOut, n_outputs: int) -> None:
    """Raise a ValueError if scores, such as those of a file, are not of so many targets."""
    if not isinstance(held_out, HeldOut):
        raise ValueError("what is known of held-out rows is none")
    values, weights = np.asarray(held_out.values), np.asarray(held_out.weights)
    if values.ndim != 2 or values.shape[1] != n_outputs or weights.shape != values.shape[:1]:
        raise ValueError("what is known of held-out rows is of other targets")
    if not np.all((values >= 0.0) & (values <= 1.0)) or not np.all(weights > 0.0):
        raise ValueError("what is known of held-out rows are no probabilities")


def conformal_interval(found: Mixture, held_out: HeldOut, coverage: Any) -> np.ndarray:
    """Intervals (n, 2), (n, 2, k), (n, D, 2) or (n, D, 2, k) of rows with these distributions."""
    if found.means.ndim == 3:
        of_targets = [
            conformal_interval(
                found.of_target(target),
                HeldOut(values=held_out.values[:, [target]], weights=held_out.weights),
                coverage,
            )
            for target in range(found.means.shape[2])
        ]
        return np.stack(of_targets, axis=1)
    levels = conformal_levels(held_out.values[:, 0], coverage, weights=held_out.weights)
    ends = found.ppf(levels.ravel())
    return ends.reshape(len(ends), *levels.shape)


def conformal_levels(scores: Any, coverage: Any, *, weights: Any = None) -> np.ndarray:
    """(u_(r), u_(n+1-r)) with r = floor((n + 1) α / 2): levels of conformal intervals.

    With weights c_i and N = Σ c_i, low is the largest score with

        1 + Σ_{u_i < low} c_i <= (N + 1) α / 2,

    and high the smallest with the like above it: whole weights are repeated rows. The guarantees
    are for N rows that are exchangeable, so weights must be counts, not shares.

    Parameters
    ----------
    scores : array (n,)
        u_i = F_i(y_i) in [0, 1], each by a model that was not fitted to the row.
    coverage : float or list of k floats
        1 - α, strictly between 0 and 1.
    weights : array (n,), optional
        How many times each row counts; once by default.

    Returns
    -------
    array (2,) or (2, k)
        Levels low <= high. With fewer than 2 / α - 1 rows they are 0 and 1, which is an infinite
        interval. So is the upper level 1, and that end infinite, where r targets or more lie so far
        above their forecast, by some 8 deviations, that F is 1 to rounding.

    Examples
    --------
    Too narrow a forecast, N(0, 1) for targets from N(0, 4), with 199 calibration rows:

    >>> import numpy as np
    >>> from bowtienet._old.prediction.mixture import build_mixture
    >>> y = 2.0 * np.random.default_rng(0).normal(size=199)
    >>> forecast = build_mixture([1.0], np.zeros((1, 199)), np.ones((1, 199)))
    >>> levels = conformal_levels(forecast.cdf(y), 0.9)
    >>> new = build_mixture([1.0], [[0.0]], [[1.0]])
    >>> new.interval(0.9).round(2)
    array([[-1.64,  1.64]])
    >>> new.ppf(levels).round(2)
    array([[-2.97,  3.17]])
    """
    shares = check_coverage(coverage)
    found, counts = _read_scores(scores, weights)
    order = np.argsort(found)
    found, counts = found[order], counts[order]
    allowed = _allowed_rank(float(np.sum(counts)), shares.ravel())
    low = _extreme(found, counts, allowed, empty=0.0)
    high = _extreme(found[::-1], counts[::-1], allowed, empty=1.0)
    return np.stack([low, high]).reshape(2, *shares.shape)


def split_coverage(n_rows: int, coverage: Any) -> np.ndarray:
    """1 - 2 r / (n + 1) with r = floor((n + 1) α / 2): coverage of split conformal intervals.

    Exact for exchangeable rows without ties, and the least with ties.

    Parameters
    ----------
    n_rows : int
        Number of calibration rows.
    coverage : float or list of k floats
        1 - α, strictly between 0 and 1.

    Examples
    --------
    >>> split_coverage(100, [0.9, 0.99]).round(4)
    array([0.901, 1.   ])
    """
    n_rows, shares = whole(n_rows, "n_rows"), check_coverage(coverage)
    ranks = np.floor(_allowed_rank(n_rows, shares))
    return 1.0 - 2.0 * ranks / (n_rows + 1.0)


def _allowed_rank(n_rows: float, coverage: np.ndarray) -> np.ndarray:
    """(n + 1) α / 2, the largest rank that a level may have from its end."""
    return 0.5 * (n_rows + 1.0) * ((1.0 - coverage) + _ROUNDING)


def _extreme(
    scores: np.ndarray, counts: np.ndarray, allowed: np.ndarray, empty: float
) -> np.ndarray:
    """For each allowed rank the last of the ordered scores with 1 + counts before it within."""
    _, first = np.unique(scores, return_index=True)
    starts = np.sort(first)
    before = np.concatenate([[0.0], np.cumsum(counts)])[starts]
    place = np.searchsorted(1.0 + before, allowed, side="right")
    return np.concatenate([[empty], scores[starts]])[place]


def _read_scores(scores: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores and weights of the rows that count."""
    found = to_numpy(scores).astype(np.float64, copy=False)
    if found.ndim != 1:
        raise ValueError(f"scores must be an array (n,), got {found.shape}.")
    wrong = found[~((found >= 0.0) & (found <= 1.0))]
    if wrong.size:
        raise ValueError(f"scores must lie between 0 and 1, as values of F do, got {wrong[0]:g}.")
    if weights is None:
        return found, np.ones(found.size)
    counts = to_numpy(weights).astype(np.float64, copy=False)
    if counts.shape != found.shape or not np.all((counts >= 0.0) & (counts < math.inf)):
        raise ValueError(
            f"weights must be {found.size} finite numbers of at least 0, one for each score, got "
            f"{counts!r}."
        )
    return found[counts > 0.0], counts[counts > 0.0]
