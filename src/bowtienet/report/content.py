"""Everything that a report shows: numbers, texts and plots."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet import persistence
from bowtienet._validation import number, whole
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.plotting._reading import read_columns
from bowtienet.plotting.fitted import chosen_member
from bowtienet.prediction.intervals import check_coverage
from bowtienet.report import figures
from bowtienet.report.columns import ColumnSummary, summarize_features, summarize_targets
from bowtienet.report.fit import FitFacts, fit_facts, is_pruned, pruned_model
from bowtienet.report.rows import ReportRows, read_rows
from bowtienet.report.svg import Plot, page_style
from bowtienet.report.targets import Progress, TargetContent, TargetParts
from bowtienet.report.wording import clean, count

MOST_ROWS = 20_000
"""Rows that are scored: a share of them is known to 0.4 points, and more would take minutes."""
MOST_TARGETS = 12
MOST_COLUMNS = 300
_PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class NetworkContent:
    """The network before and after pruning."""

    sizes: tuple[tuple[str, int, int], ...]
    """What, before and after, of all members together."""
    rate: float | None
    """Estimated false sign rate of the kept weights, where it is known."""
    was_pruned: bool
    """Whether the model itself is a pruned one, whose earlier weights are gone."""
    n_inputs: int
    n_drawn: int
    plots: tuple[Plot, ...]


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """All of a report."""

    title: str
    model_file: str | None
    coverage: float
    targets: tuple[TargetContent, ...]
    n_targets: int
    """Of the model; at most `MOST_TARGETS` are shown."""
    columns: tuple[ColumnSummary, ...]
    n_columns: int
    """Of the table and the targets; at most `MOST_COLUMNS` are shown."""
    n_rows: int
    """Rows that were scored."""
    n_effective: int
    """Rows of equal weight that would say as much."""
    n_given: int
    """Rows that were given to be scored, those of weight 0 aside."""
    n_train: int | None
    """Training rows, where they are known."""
    is_seen: bool | None
    """Whether the rows were used in fitting; None if that is not known."""
    rows_named_by: str
    """"file", "index" or "place"."""
    fit: FitFacts
    bound: Plot | None
    network: NetworkContent
    versions: tuple[tuple[str, str], ...]
    written: str


def collect(
    model: BowTieRegressor,
    X: Any,
    y: Any,
    *,
    train: tuple[Any, ...] | None = None,
    seen: bool | None = None,
    sample_weight: Any = None,
    row_numbers: Any = None,
    coverage: float = 0.9,
    title: str | None = None,
    model_file: str | os.PathLike[str] | None = None,
    max_features: int = 12,
    progress: Progress | None = None,
) -> ReportContent:
    """Ask a fitted model all that its report shows; see `write_report` for the arguments."""
    if not isinstance(model, BowTieRegressor):
        raise TypeError(f"model must be a BowTieRegressor, got {type(model).__name__}.")
    tell = progress or _silent
    share = float(check_coverage(number(coverage, "coverage")))
    most = whole(max_features, "max_features")
    with page_style():
        tell("reading rows", 0.0)
        rows = read_rows(
            model, X, y, most=MOST_ROWS, sample_weight=sample_weight, row_numbers=row_numbers
        )
        known = None if train is None else _read_training(model, train)
        names, table = rows.target_names, read_columns(rows.table, model.columns_)
        columns = [
            *summarize_targets(names, rows.targets),
            *summarize_features(table, model.columns_),
        ]
        tell("predicting", 0.1)
        pruned = pruned_model(model)
        targets = TargetParts(
            model=model,
            pruned=pruned,
            rows=rows,
            train=known,
            table=table,
            coverage=share,
            is_seen=seen,
        ).collect(names[:MOST_TARGETS], most, tell)
        tell("drawing the network", 0.8)
        return ReportContent(
            title=clean(title or f"A model of {', '.join(names)}", 120),
            model_file=None if model_file is None else os.fspath(model_file),
            coverage=share,
            targets=targets,
            n_targets=model.n_outputs_,
            columns=tuple(columns[:MOST_COLUMNS]),
            n_columns=len(columns),
            n_rows=rows.n_rows,
            n_effective=rows.n_effective,
            n_given=rows.n_given,
            n_train=None if known is None else known.n_given,
            is_seen=seen,
            rows_named_by=_naming(X, row_numbers),
            fit=fit_facts(model),
            bound=figures.bound_plot("bound", model),
            network=_network(model, pruned, names),
            versions=_versions(),
            written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )


def _silent(words: str, share: float) -> None:
    """Nobody wants to know."""


def _network(
    model: BowTieRegressor, pruned: BowTieRegressor, targets: Sequence[str]
) -> NetworkContent:
    """Sizes and plots of the network before and after pruning."""
    sizes, was_pruned = pruned.sparsity_, is_pruned(model)
    member = chosen_member(model, None)
    inputs = figures.strongest_inputs(model, pruned)
    counts = [
        (word, getattr(sizes, f"{name}_before"), getattr(sizes, f"{name}_after"))
        for name, word in (("inputs", "inputs"), ("nodes", "units"), ("weights", "weights"))
    ]
    several = len(model.member_weights_) > 1
    lead = "The member with the largest weight" if several else "The network"

    def plot(which: BowTieRegressor, side: int) -> Plot:
        number_of = [int(one[1 + side][member]) for one in counts]
        words = f"{lead} {('before', 'after')[side]} pruning: {count(number_of[0], 'input')}, "
        words += f"{count(number_of[1], 'unit')}, {count(number_of[2], 'weight')}."
        if number_of[2] == 0:
            words += " It predicts a constant."
        name = ("network-before", "network-after")[side]
        return figures.network_plot(name, which, inputs, member, targets, words)

    plots = [plot(pruned, 1)] if was_pruned else [plot(model, 0), plot(pruned, 1)]
    left = np.where(np.isnan(sizes.false_sign_rate), 0, sizes.weights_after)
    rate = float(np.nansum(sizes.false_sign_rate * left) / left.sum()) if left.sum() else None
    return NetworkContent(
        sizes=tuple((word, int(a.sum()), int(b.sum())) for word, a, b in counts),
        rate=rate,
        was_pruned=was_pruned,
        n_inputs=len(model.ensemble_.representation.column_order),
        n_drawn=inputs.size,
        plots=tuple(plots),
    )


def _read_training(model: BowTieRegressor, train: Any) -> ReportRows:
    if not isinstance(train, tuple) or len(train) not in (2, 3):
        raise ValueError(
            "train must be a pair (X, y) of the training rows, or (X, y, sample_weight), got "
            f"a {type(train).__name__}: give train=(X_train, y_train)."
        )
    X, y, weights = (*train, None)[:3]
    return read_rows(model, X, y, most=MOST_ROWS, sample_weight=weights)


def _naming(X: Any, row_numbers: Any) -> str:
    if row_numbers is not None:
        return "file"
    return "index" if hasattr(X, "iloc") else "place"


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("bowtienet", persistence.version()), ("Python", platform.python_version())]
    found += [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return tuple(found)
