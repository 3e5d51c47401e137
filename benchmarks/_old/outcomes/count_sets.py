"""Counts of the study: drawn sets whose distributions are known.

A set is a function of a seed. Six columns are uniform on (-1, 1), of which the first four matter:

    log rate = c + sin(π x_1) + x_2 x_3 + x_4².

`poisson` has Poisson counts. `overdispersed` has negative binomial ones with variance m + m² / 1.5.
`zeros, exposure` has Poisson counts of mean exposure x rate, but for the rows that are zero
whatever their rate, with the log odds 1.5 x_1 - 0.5; exposures are log-normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import nbinom, poisson

N_TRAIN, N_TEST, N_COLUMNS = 1000, 2000, 6
DISPERSION = 1.5


@dataclass(frozen=True, kw_only=True)
class CountRows:
    """Features (n, columns), counts (n,), exposures (n,) or None, and what they were drawn from."""

    features: np.ndarray
    counts: np.ndarray
    exposure: np.ndarray | None
    truth: Any
    """A distribution with `logpmf`, `mean` and `ppf`."""


@dataclass(frozen=True, kw_only=True)
class ZeroInflated:
    """Zero with probability `zero`, otherwise Poisson with `rate`: both (n,)."""

    zero: np.ndarray
    rate: np.ndarray

    def logpmf(self, y: Any) -> np.ndarray:
        """Log probabilities of counts (n,)."""
        found = (1.0 - self.zero) * poisson.pmf(y, self.rate)
        return np.log(found + np.where(np.asarray(y) == 0, self.zero, 0.0))

    def mean(self) -> np.ndarray:
        """(n,)."""
        return (1.0 - self.zero) * self.rate

    def ppf(self, levels: Any) -> np.ndarray:
        """Quantiles (n,)."""
        inside = np.maximum((np.asarray(levels) - self.zero) / (1.0 - self.zero), 0.0)
        return np.maximum(poisson.ppf(inside, self.rate), 0.0)


CountSet = Callable[[int], tuple[CountRows, CountRows]]


def count_sets() -> dict[str, CountSet]:
    """All sets of counts by name: training and test rows of a seed."""
    return {
        "poisson": _split(_poisson),
        "overdispersed": _split(_overdispersed),
        "zeros, exposure": _split(_zeros),
    }


def _split(draw: Callable[[int, np.random.Generator], CountRows]) -> CountSet:
    def split(seed: int) -> tuple[CountRows, CountRows]:
        train = draw(N_TRAIN, np.random.default_rng([seed, 0]))
        return train, draw(N_TEST, np.random.default_rng([seed, 1]))

    return split


def _rate(x: np.ndarray, constant: float) -> np.ndarray:
    log_rate = constant + np.sin(np.pi * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] ** 2
    return np.asarray(np.exp(log_rate))


def _poisson(n: int, rng: np.random.Generator) -> CountRows:
    x = rng.uniform(-1.0, 1.0, (n, N_COLUMNS))
    rate = _rate(x, 0.5)
    return CountRows(features=x, counts=rng.poisson(rate), exposure=None, truth=poisson(rate))


def _overdispersed(n: int, rng: np.random.Generator) -> CountRows:
    x = rng.uniform(-1.0, 1.0, (n, N_COLUMNS))
    rate, r = _rate(x, 1.5), DISPERSION
    counts = rng.poisson(rate * rng.gamma(r, 1.0 / r, n))
    return CountRows(features=x, counts=counts, exposure=None, truth=nbinom(r, r / (r + rate)))


def _zeros(n: int, rng: np.random.Generator) -> CountRows:
    x = rng.uniform(-1.0, 1.0, (n, N_COLUMNS))
    exposure = rng.lognormal(0.0, 0.7, n)
    truth = ZeroInflated(zero=expit(1.5 * x[:, 0] - 0.5), rate=exposure * _rate(x, 0.5))
    counts = np.where(rng.random(n) < truth.zero, 0, rng.poisson(truth.rate))
    return CountRows(features=x, counts=counts, exposure=exposure, truth=truth)
