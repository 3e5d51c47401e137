"""The rows of a report: what a model is asked about, and the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.plotting import _reading
from bowtienet.plotting._scored import effective_rows

_SEED = 0
"""Of every choice of rows: the same report every time."""


@dataclass(frozen=True, kw_only=True)
class ReportRows:
    """Rows with targets."""

    table: Any
    """The columns that the model uses, in the library of the user's table."""
    targets: np.ndarray
    """(n, outputs)."""
    weights: np.ndarray
    """(n,), how many times each row counts."""
    target_names: tuple[str, ...]
    names: tuple[str, ...]
    """What each row is called."""
    n_given: int
    """Rows that count, before some were chosen."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.targets)

    @property
    def n_effective(self) -> int:
        """The number of rows of equal weight that say as much."""
        return effective_rows(self.n_rows, self.weights)


def read_rows(
    model: BowTieRegressor,
    X: Any,
    y: Any,
    *,
    most: int,
    sample_weight: Any = None,
    row_numbers: Any = None,
) -> ReportRows:
    """Rows of a table that count, at most `most` of them at random."""
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    found = _reading.read_rows(X, y, sample_weight)
    if found.targets.shape[1] != model.n_outputs_:
        raise ValueError(
            f"y has {found.targets.shape[1]} targets, but the model was fitted to "
            f"{model.n_outputs_}: give the same ones in the same order."
        )
    names = [*map(str, _row_names(row_numbers, index, len(found.targets)))]
    counted = np.flatnonzero(found.weights)
    places = counted[sample(counted.size, most)]
    return ReportRows(
        table=_reading.take(found.features, places, getattr(model, "feature_names_in_", ())),
        targets=found.targets[places],
        weights=found.weights[places],
        target_names=found.target_names or tuple(model.target_names_),
        names=tuple(names[place] for place in places),
        n_given=counted.size,
    )


def sample(n_rows: int, most: int) -> np.ndarray:
    """Places of all rows, or of a random `most` of them, in their order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SEED).choice(n_rows, size=most, replace=False))


def _row_names(row_numbers: Any, index: Any, n_rows: int) -> Any:
    if row_numbers is None:
        return range(n_rows) if index is None else index
    found = list(row_numbers)
    if len(found) != n_rows:
        raise ValueError(
            f"row_numbers has {len(found)} entries, but X has {n_rows} rows: give one for each."
        )
    return found
