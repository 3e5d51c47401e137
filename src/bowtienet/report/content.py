"""Everything that a report shows, as plain numbers and texts."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet import persistence
from bowtienet._validation import number, whole
from bowtienet.plotting.fitted import network_of
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report.inputs import Dependence, Relevance, follow_inputs, rank_inputs
from bowtienet.report.rows import ReportRows, names_ignored, read_rows, target_names
from bowtienet.report.scoring import TargetScores, linear_baseline, score_target
from bowtienet.report.structure import (
    FitFacts,
    NetworkPictures,
    fit_facts,
    picture_network,
    prune_quietly,
)
from bowtienet.report.summary import (
    ColumnSummary,
    Content,
    read_columns,
    summarize_inputs,
    summarize_targets,
)
from bowtienet.report.wording import clean

MOST_ROWS = 20_000
"""Rows that are scored: a share of so many is known to 0.4 points, and more would take minutes.
The largest surprises are those of these rows alone."""
MOST_TARGETS = 12
MOST_COLUMNS = 300
_MOST_POINTS = 1200
_MOST_CURVES = 24
"""Points and curves of all targets together: they are most of the page."""
_SURPRISE_INPUTS = 8
_PACKAGES = ("numpy", "scipy", "scikit-learn")

Progress = Callable[[str, float], object]


@dataclass(frozen=True, kw_only=True)
class TargetContent:
    """The part of a report that is about one target."""

    name: str
    scores: TargetScores
    relevance: tuple[Relevance, ...]
    """Columns, the strongest first."""
    dependence: tuple[Dependence, ...]


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """All of a report."""

    title: str
    model_kind: str
    model_file: str | None
    has_save: bool
    """Whether the model can be kept in a file of this library; a plain pipeline cannot."""
    coverage: float
    targets: tuple[TargetContent, ...]
    n_targets: int
    """Of the model; at most `MOST_TARGETS` are shown."""
    columns: tuple[ColumnSummary, ...]
    n_columns: int
    """Of the table and the targets; at most `MOST_COLUMNS` are shown."""
    n_gaps: int
    """Those of them, shown or not, that lack values."""
    n_rows: int
    """Rows that were scored."""
    n_effective: int
    """Rows of equal weight that would say as much; all without weights."""
    n_given: int
    """Rows that were given to be scored, those that count for nothing aside."""
    n_train: int | None
    """Rows of training, where they are known."""
    is_seen: bool | None
    """Whether the rows were used in fitting; None if that is not known."""
    rows_named_by: str
    """"file", "index" or "place"."""
    has_weights: bool
    fit: FitFacts
    network: NetworkPictures
    versions: tuple[tuple[str, str], ...]
    written: str


def collect(
    model: Any,
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
    max_inputs: int = 12,
    progress: Progress | None = None,
) -> ReportContent:
    """Ask a fitted model all that its report shows; see `write_report` for the arguments."""
    tell = progress or _silent
    share = float(check_coverage(number(coverage, "coverage")))
    most = whole(max_inputs, "max_inputs")
    network, names = network_of(model), target_names(model, y)
    tell("reading rows", 0.0)
    rows = read_rows(
        model, X, y, most=MOST_ROWS, sample_weight=sample_weight, row_numbers=row_numbers
    )
    known = None if train is None else _read_training(model, train)
    contents = read_columns(model, rows.table)
    columns = _summaries(model, rows, known, contents, names)
    tell("predicting", 0.1)
    pruned = prune_quietly(network)
    with names_ignored():
        forecasts = [one.predict_dist(rows.prepared) for one in (network, pruned)]
    targets = _targets(model, rows, known, contents, forecasts, names, share, most, seen, tell)
    tell("drawing the network", 0.8)
    return ReportContent(
        title=clean(title or f"A model of {', '.join(names)}", 120),
        model_kind=type(model).__name__,
        model_file=None if model_file is None else os.fspath(model_file),
        has_save=hasattr(model, "save"),
        coverage=share,
        targets=targets,
        n_targets=len(names),
        columns=tuple(columns[:MOST_COLUMNS]),
        n_columns=len(columns),
        n_gaps=sum(column.n_missing > 0 for column in columns),
        n_rows=rows.n_rows,
        n_effective=rows.n_effective,
        n_given=rows.n_given,
        n_train=None if known is None else known.n_given,
        is_seen=seen,
        rows_named_by=_naming(X, row_numbers),
        has_weights=rows.weights is not None,
        fit=fit_facts(model),
        network=picture_network(model, pruned, names),
        versions=_versions(),
        written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _silent(words: str, share: float) -> None:
    """Nobody wants to know."""


def _targets(
    model: Any,
    rows: ReportRows,
    train: ReportRows | None,
    contents: dict[str, Content],
    forecasts: Sequence[GaussianMixture],
    names: Sequence[str],
    coverage: float,
    max_inputs: int,
    is_seen: bool | None,
    tell: Progress,
) -> tuple[TargetContent, ...]:
    """The parts about the targets; the more there are, the fewer points and inputs of each."""
    shown = names[:MOST_TARGETS]
    most_points = max(100, _MOST_POINTS // len(shown))
    most_inputs = min(max_inputs, max(2, _MOST_CURVES // len(shown)))
    found = []
    for place, name in enumerate(shown):
        tell(f"scoring {name}", 0.2 + 0.6 * place / len(shown))
        ranked = rank_inputs(model, list(contents), place)
        strong = [one.column for one in ranked if one.column in contents]
        forecast, pruned = (
            one if one.means.ndim == 2 else one.of_target(place) for one in forecasts
        )
        scores = score_target(
            rows,
            forecast,
            pruned,
            linear_baseline(rows, train, place, is_seen),
            place,
            coverage,
            {column: contents[column] for column in strong[:_SURPRISE_INPUTS]},
            most_points,
        )
        tell(f"following the inputs of {name}", 0.2 + 0.6 * (place + 0.3) / len(shown))
        chosen = [one.column for one in ranked if one.strength > 0.0][:most_inputs]
        dependence = follow_inputs(model, rows, contents, chosen, place, coverage)
        found.append(
            TargetContent(
                name=clean(name),
                scores=scores,
                relevance=tuple(ranked),
                dependence=tuple(dependence),
            )
        )
    return tuple(found)


def _read_training(model: Any, train: Any) -> ReportRows:
    if not isinstance(train, tuple) or len(train) not in (2, 3):
        raise ValueError(
            "train must be a pair (X, y) of the rows of training, or (X, y, sample_weight), got "
            f"a {type(train).__name__}: give train=(X_train, y_train)."
        )
    X, y, weights = (*train, None)[:3]
    return read_rows(model, X, y, most=MOST_ROWS, sample_weight=weights)


def _summaries(
    model: Any,
    rows: ReportRows,
    train: ReportRows | None,
    contents: dict[str, Content],
    names: list[str],
) -> list[ColumnSummary]:
    """Targets first, then inputs; with the rows of training where they are known."""
    parts, targets = [contents], rows.targets
    if train is not None:
        parts.append(read_columns(model, train.table))
        targets = np.concatenate([targets, train.targets])
    return [*summarize_targets(names, targets), *summarize_inputs(parts)]


def _naming(X: Any, row_numbers: Any) -> str:
    if row_numbers is not None:
        return "file"
    return "index" if hasattr(X, "iloc") else "place"


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("bowtienet", persistence.version()), ("Python", platform.python_version())]
    found += [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return tuple(found)
