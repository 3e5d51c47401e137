"""The rows of a report: what a model is asked about, and the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.evaluation.checks import effective_rows
from bowtienet._old.plotting._along import sample
from bowtienet._old.plotting.fitted import open_rows


@dataclass(frozen=True, kw_only=True)
class ReportRows:
    """Rows with targets."""

    source: InMemory
    names: tuple[str, ...]
    """What each row is called."""
    n_given: int
    """Rows that count, before some were chosen."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return self.source.block.table.n_rows

    @property
    def targets(self) -> np.ndarray:
        """(n, outputs)."""
        return to_numpy(self.source.block.targets).astype(float)

    @property
    def weights(self) -> np.ndarray:
        """(n,), how many times each row counts."""
        return to_numpy(self.source.block.weights).astype(float)

    @property
    def n_effective(self) -> int:
        """The number of rows of equal weight that say as much."""
        return effective_rows(self.n_rows, self.weights)


def read_rows(
    model: EnsembleEstimator,
    X: Any,
    y: Any,
    *,
    most: int,
    sample_weight: Any = None,
    row_numbers: Any = None,
) -> ReportRows:
    """Rows of a table that count, at most `most` of them at random."""
    source = open_rows(model, X, y, sample_weight)
    n_rows = source.block.table.n_rows
    if row_numbers is None:
        row_numbers = X.index if hasattr(X, "iloc") else range(n_rows)
    names = [str(name) for name in row_numbers]
    if len(names) != n_rows:
        raise ValueError(
            f"row_numbers has {len(names)} entries, but X has {n_rows} rows: give one for each."
        )
    counted = np.flatnonzero(to_numpy(source.block.weights))
    places = counted[sample(counted.size, most)]
    return ReportRows(
        source=source.take(places),
        names=tuple(names[place] for place in places),
        n_given=counted.size,
    )
