"""Planted tables: it is known which columns matter, and which do not.

    y = f(x_R) + noise,    Var[f] / Var[noise] = SIGNAL_TO_NOISE

with a set R of relevant columns. Given the others, every column outside R is independent of y, so
that each of them that is selected is a false discovery.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Signal = Callable[[Floats, np.random.Generator], Floats]

SIGNAL_TO_NOISE = 4.0
SIZES = (
    (100, 10),
    (200, 20),
    (300, 20),
    (500, 50),
    (1000, 100),
    (2000, 50),
    (300, 100),
    (500, 200),
)
"""Rows and columns, taken in turn."""
SHARES = (0.05, 0.1, 0.2)
"""Of relevant columns, taken in turn; there are two at least."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a planted table and the columns that matter."""

    features: Floats
    targets: Floats
    relevant: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How the columns, the signal and the noise of a table are drawn."""

    signal: Signal
    columns: Callable[[int, int, np.random.Generator], Floats]
    noise: Callable[[Floats, np.random.Generator], Floats]


def planted_table(
    kind: str,
    n_rows: int,
    n_columns: int,
    relevant_share: float,
    seed: int,
    signal_to_noise: float = SIGNAL_TO_NOISE,
) -> Table:
    """A table of a kind; a seed gives the same one again."""
    rng = np.random.default_rng((seed, n_rows, n_columns))
    parts = KINDS[kind]
    features = parts.columns(n_rows, n_columns, rng)
    count = max(2, round(relevant_share * n_columns))
    relevant = np.sort(rng.choice(n_columns, size=count, replace=False))
    seen = _standardized(features[:, relevant])
    signal = _standardized(parts.signal(seen, rng))
    noise = parts.noise(seen, rng) / np.sqrt(signal_to_noise)
    return Table(features=features, targets=signal + noise, relevant=relevant)


def table_of_study(kind: str, seed: int) -> Table:
    """The table of a seed, with the sizes and shares in turn."""
    n_rows, n_columns = SIZES[seed % len(SIZES)]
    return planted_table(kind, n_rows, n_columns, SHARES[seed % len(SHARES)], seed)


def _independent(n_rows: int, n_columns: int, rng: np.random.Generator) -> Floats:
    return rng.normal(size=(n_rows, n_columns))


def _chained(correlation: float) -> Callable[[int, int, np.random.Generator], Floats]:
    """Columns of which each is correlated with the one before."""

    def draw(n_rows: int, n_columns: int, rng: np.random.Generator) -> Floats:
        drawn = rng.normal(size=(n_rows, n_columns))
        for place in range(1, n_columns):
            drawn[:, place] *= np.sqrt(1.0 - correlation**2)
            drawn[:, place] += correlation * drawn[:, place - 1]
        return drawn

    return draw


def _skewed(n_rows: int, n_columns: int, rng: np.random.Generator) -> Floats:
    """Normal columns with neighbours correlated at 0.5, then log-normal, rounded or binary."""
    drawn = _chained(0.5)(n_rows, n_columns, rng)
    for place in range(n_columns):
        shape = place % 4
        if shape == 1:
            drawn[:, place] = np.exp(drawn[:, place])
        elif shape == 2:
            drawn[:, place] = np.clip(np.round(drawn[:, place]), -2.0, 2.0)
        elif shape == 3:
            drawn[:, place] = drawn[:, place] > 0.0
    return drawn


def _additive(x: Floats, rng: np.random.Generator) -> Floats:
    """A shape of each column: a line, a bend, a wave, a saturation."""
    shapes: tuple[Callable[[Floats], Floats], ...] = (
        lambda v: v,
        lambda v: np.maximum(v, 0.0) ** 1.5,
        lambda v: np.sin(2.0 * v),
        lambda v: np.tanh(2.0 * v),
    )
    chosen = rng.integers(len(shapes), size=x.shape[1])
    signs = rng.choice([-1.0, 1.0], size=x.shape[1])
    parts = [_standardized(shapes[c](v)) for c, v in zip(chosen, x.T, strict=True)]
    return np.asarray(np.stack(parts) * signs[:, None]).sum(axis=0)


def _linear(x: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(x @ rng.choice([-1.0, 1.0], size=x.shape[1]))


def _interactions(x: Floats, rng: np.random.Generator) -> Floats:
    """Products of pairs of columns; one column of every other pair has an effect of its own too."""
    total = np.zeros(len(x))
    for place in range(0, x.shape[1] - 1, 2):
        first, second = x[:, place], x[:, place + 1]
        total += rng.choice([-1.0, 1.0]) * _standardized(first * second)
        total += (place % 4 == 0) * rng.choice([-1.0, 1.0]) * first
    if x.shape[1] % 2:
        total += x[:, -1]
    return total


def _thresholds(x: Floats, rng: np.random.Generator) -> Floats:
    """Steps of columns, and of two together."""
    cuts = rng.uniform(-0.8, 0.8, size=x.shape[1])
    steps = (x > np.quantile(x, 0.5 + cuts / 3.0, axis=0).diagonal()).astype(float)
    total = np.zeros(len(x))
    for place, step in enumerate(steps.T):
        both = step * steps[:, place - 1] if place % 3 == 2 else step
        total += rng.choice([-1.0, 1.0]) * _standardized(both)
    return total


def _normal(x: Floats, rng: np.random.Generator) -> Floats:
    return rng.normal(size=len(x))


def _heavy(x: Floats, rng: np.random.Generator) -> Floats:
    """Student-t with 2 degrees of freedom, which has no variance; its quartiles are a normal's."""
    return rng.standard_t(2.0, size=len(x)) * (0.6745 / 0.8165)


def _uneven(x: Floats, rng: np.random.Generator) -> Floats:
    """Noise whose deviation depends on the first relevant columns, by a factor of twenty."""
    deviation = np.exp(0.75 * np.clip(x[:, 0] + x[:, 1], -2.0, 2.0))
    return rng.normal(size=len(x)) * deviation / np.sqrt(np.mean(deviation**2))


def _standardized(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


KINDS: dict[str, Kind] = {
    "additive": Kind(signal=_additive, columns=_independent, noise=_normal),
    "interactions": Kind(signal=_interactions, columns=_independent, noise=_normal),
    "thresholds": Kind(signal=_thresholds, columns=_independent, noise=_normal),
    "correlated 0.5": Kind(signal=_additive, columns=_chained(0.5), noise=_normal),
    "correlated 0.9": Kind(signal=_additive, columns=_chained(0.9), noise=_normal),
    "heavy noise": Kind(signal=_additive, columns=_independent, noise=_heavy),
    "uneven noise": Kind(signal=_additive, columns=_independent, noise=_uneven),
    "skewed columns": Kind(signal=_additive, columns=_skewed, noise=_normal),
    "linear": Kind(signal=_linear, columns=_independent, noise=_normal),
}
