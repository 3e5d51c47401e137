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

from bowtienet._old import persistence
from bowtienet._old._validation import number, whole
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.classifier import BowTieClassifier
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.plotting._along import read_content
from bowtienet._old.plotting.fitted import feature_names, target_names
from bowtienet._old.prediction.intervals import check_coverage
from bowtienet._old.report import figures
from bowtienet._old.report.classes import ClassContent, ClassParts, class_column, class_texts
from bowtienet._old.report.column_table import ColumnSummary, summarize
from bowtienet._old.report.fit_summary import FitFacts, fit_facts
from bowtienet._old.report.network import NetworkContent, network_content
from bowtienet._old.report.outside_rows import OutsideRow, outside_rows
from bowtienet._old.report.sampled_rows import ReportRows, read_rows
from bowtienet._old.report.svg import Plot, page_style
from bowtienet._old.report.targets import (
    Progress,
    TargetContent,
    TargetParts,
    measured_importance,
    ranked_features,
)
from bowtienet._old.report.training_ranges import (
    FAR,
    TrainingRanges,
    departures,
    training_ranges,
)
from bowtienet._old.report.whatif import PanelTarget, WhatIf, what_if
from bowtienet._old.report.wording import clean
from bowtienet._old.representation.columns import describe
from bowtienet._old.representation.kinds import NUMBER, Numbers, Texts

MOST_ROWS = 20_000
"""Rows that are scored: a share of them is known to 0.4 points, and more would take minutes."""
MOST_TARGETS = 12
MOST_COLUMNS = 300
_PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """All of a report."""

    title: str
    model_file: str | None
    coverage: float
    targets: tuple[TargetContent, ...]
    """Of numbers; none of a classifier."""
    classes: ClassContent | None
    """Of a classifier."""
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
    outside: tuple[OutsideRow, ...] | None
    """Rows that leave what training had, the furthest first; None where nobody knows that."""
    n_outside: int
    """All of them."""
    n_far: int
    """Those by more than a tenth of a column's range, or in what has none."""
    what_if: WhatIf
    versions: tuple[tuple[str, str], ...]
    written: str


def collect(
    model: BowTieRegressor | BowTieClassifier,
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
    if not isinstance(model, (BowTieRegressor, BowTieClassifier)):
        raise TypeError(
            f"model must be a BowTieRegressor or a BowTieClassifier, got {type(model).__name__}."
        )
    if is_counts(model.ensemble_):
        raise ValueError("reports are for numbers and classes, and the model is of counts.")
    tell = progress or _silent
    share = float(check_coverage(number(coverage, "coverage")))
    most = whole(max_features, "max_features")
    with page_style():
        tell("reading rows", 0.0)
        rows = read_rows(
            model, X, y, most=MOST_ROWS, sample_weight=sample_weight, row_numbers=row_numbers
        )
        names, contents = target_names(model, rows.source), read_contents(model, rows)
        known = None if train is None else _read_training(model, train)
        columns = _summaries(model, rows, names, contents)
        tell("predicting", 0.1)
        trained = rows if known is None and seen else known
        ranges = training_ranges(model, trained)
        beyond = () if ranges is None else departures(ranges, contents, rows.n_rows)
        judged: dict[str, Any] = {
            "rows": rows,
            "train": trained,
            "contents": contents,
            "importance": measured_importance(model, rows, len(contents)),
            "departures": {one.row: one.reasons for one in beyond},
        }
        targets: tuple[TargetContent, ...] = ()
        classes: ClassContent | None = None
        if isinstance(model, BowTieClassifier):
            classes = ClassParts(model=model, **judged).collect(names[0], tell)
        else:
            numbers = TargetParts(model=model, coverage=share, **judged)
            targets = numbers.collect(names[:MOST_TARGETS], most, tell)
        tell("drawing the network", 0.8)
        return ReportContent(
            title=clean(title or f"A model of {', '.join(names)}", 120),
            model_file=None if model_file is None else os.fspath(model_file),
            coverage=share,
            targets=targets,
            classes=classes,
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
            network=network_content(model, _output_names(model, names)),
            outside=None
            if ranges is None
            else outside_rows(
                model,
                rows,
                beyond,
                share,
                [target.kind for target in targets],
                () if classes is None else classes.classes,
            ),
            n_outside=len(beyond),
            n_far=sum(one.distance > FAR for one in beyond),
            what_if=_what_if(model, judged, ranges, targets, classes, share),
            versions=_versions(),
            written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )


def _what_if(
    model: EnsembleEstimator,
    judged: dict[str, Any],
    ranges: TrainingRanges | None,
    targets: Sequence[TargetContent],
    classes: ClassContent | None,
    coverage: float,
) -> WhatIf:
    return what_if(
        model,
        judged["rows"],
        judged["contents"],
        ranking=ranked_features(model, judged["importance"]),
        bases=_bases(judged["rows"], targets, classes),
        ranges=ranges,
        coverage=coverage,
        targets=[
            PanelTarget(name=own.name, kind=own.kind, low=own.usual[0], high=own.usual[1])
            for own in targets
        ],
        classes=() if classes is None else classes.classes,
    )


def _bases(
    rows: ReportRows, targets: Sequence[TargetContent], classes: ClassContent | None
) -> list[tuple[int, str]]:
    """Rows to start a what-if from, and what is special about them."""
    found: dict[int, str] = {}
    if targets:
        y, name = rows.targets[:, 0], targets[0].name
        found = {int(np.argmin(y)): f"lowest {name}", int(np.argmax(y)): f"highest {name}"}
    surprises = classes.surprises if classes is not None else targets[0].surprises
    for one in surprises[:3]:
        found.setdefault(one.place, "improbable")
    return list(found.items())


def _silent(words: str, share: float) -> None:
    """Nobody wants to know."""


def _output_names(model: EnsembleEstimator, targets: list[str]) -> list[str]:
    """Of networks: the targets, or more than two classes."""
    if isinstance(model, BowTieClassifier) and len(model.classes_) > 2:
        return list(class_texts(model))
    return targets


def read_contents(model: EnsembleEstimator, rows: ReportRows) -> dict[str, Numbers | Texts]:
    """What each feature holds in the rows, in the order of training."""
    names = feature_names(model, rows.source)
    return {
        name: read_content(column, rows.source, place)
        for place, (name, column) in enumerate(zip(names, model.columns_, strict=True))
    }


def _summaries(
    model: EnsembleEstimator,
    rows: ReportRows,
    targets: Sequence[str],
    features: dict[str, Numbers | Texts],
) -> list[ColumnSummary]:
    """Targets, and then features."""
    held: list[Numbers | Texts] = [Numbers(kind=NUMBER, values=values) for values in rows.targets.T]
    if isinstance(model, BowTieClassifier):
        held = [class_column(model, rows)]
    found = [
        summarize(name, content, "target") for name, content in zip(targets, held, strict=True)
    ]
    return found + [
        summarize(name, content, describe(column))
        for (name, content), column in zip(features.items(), model.columns_, strict=True)
    ]


def _read_training(model: EnsembleEstimator, train: Any) -> ReportRows:
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
