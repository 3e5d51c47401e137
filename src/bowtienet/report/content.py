"""Everything that a report shows, as plain numbers and texts."""

from __future__ import annotations

import datetime
import importlib.metadata
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
from bowtienet.report.scoring import TargetScores, linear_baseline, one_target, score_target
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
"""Rows that are scored: more would change no figure that a reader sees, but take minutes."""
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
    coverage: float
    targets: tuple[TargetContent, ...]
    n_targets: int
    """Of the model; at most `MOST_TARGETS` are shown."""
    columns: tuple[ColumnSummary, ...]
    n_columns: int
    """Of the table and the targets; at most `MOST_COLUMNS` are shown."""
    n_rows: int
    """Rows that were scored."""
    n_given: int
    """Rows that were given to be scored."""
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
    train: tuple[Any, Any] | None = None,
    seen: bool | None = None,
    sample_weight: Any = None,
    row_numbers: Any = None,
    coverage: float = 0.9,
    title: str | None = None,
    model_file: str | None = None,
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
    known = None if train is None else read_rows(model, *_pair(train), most=MOST_ROWS)
    contents = read_columns(model, rows.table)
    columns = _summaries(model, rows, known, contents, names)
    tell("predicting", 0.1)
    pruned = prune_quietly(network)
    with names_ignored():
        forecasts = [one.predict_dist(rows.prepared) for one in (network, pruned)]
    targets = _targets(model, rows, known, contents, forecasts, names, share, most, tell)
    tell("drawing the network", 0.8)
    return ReportContent(
        title=clean(title or f"A model of {', '.join(names)}", 120),
        model_kind=type(model).__name__,
        model_file=None if model_file is None else str(model_file),
        coverage=share,
        targets=targets,
        n_targets=len(names),
        columns=tuple(columns[:MOST_COLUMNS]),
        n_columns=len(columns),
        n_rows=rows.n_rows,
        n_given=rows.n_given,
        n_train=None if known is None else known.n_given,
        is_seen=False if seen is None and train is not None else seen,
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
        forecast, pruned = (one_target(forecast, place) for forecast in forecasts)
        scores = score_target(
            rows,
            forecast,
            pruned,
            linear_baseline(rows, train, place, coverage),
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


def _pair(train: Any) -> tuple[Any, Any]:
    if not isinstance(train, tuple) or len(train) != 2:
        raise ValueError(
            f"train must be a pair (X, y) of the rows of training, got a {type(train).__name__}: "
            "give train=(X_train, y_train)."
        )
    return train


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
