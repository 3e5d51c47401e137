"""The parts of a report that are about the classes of a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowtienet._old.estimators.classifier import BowTieClassifier
from bowtienet._old.estimators.importance import Importance
from bowtienet._old.evaluation import ClassScores, evaluate_classes, expected_calibration_error
from bowtienet._old.evaluation.class_metrics import PROBABILITY_FLOOR
from bowtienet._old.report import class_figures, figures
from bowtienet._old.report.baseline import logistic_baseline
from bowtienet._old.report.column_table import value_text
from bowtienet._old.report.estimates import ComparedScore, chance_calibration_error, class_scores
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.svg import Plot
from bowtienet._old.report.targets import SURPRISES, Progress
from bowtienet._old.report.wording import clean
from bowtienet._old.representation.kinds import Numbers, Texts

_SURPRISE_FEATURES = 8


@dataclass(frozen=True, kw_only=True)
class ClassSurprise:
    """A row whose class the model thought unlikely."""

    place: int
    """Among the rows of the report."""
    row: str
    actual: str
    predicted: str
    probability: float
    """Of the actual class."""
    reasons: tuple[str, ...]
    """How the row leaves what training had, if it does."""
    features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClassContent:
    """The part of a report that is about the target of a classifier."""

    name: str
    classes: tuple[str, ...]
    model: ClassScores
    shares: ClassScores
    """Of the shares of the classes, the same for every row."""
    shares_words: str
    """Which rows the shares are of."""
    baseline: ClassScores | None
    baseline_words: str
    scores: dict[str, ComparedScore]
    """With intervals, beside logistic regression, by name."""
    chance_error: float
    """The calibration error that chance alone seldom exceeds."""
    strong: tuple[str, ...]
    """Features with any strength, the strongest first."""
    n_features: int
    confusion: Plot
    reliability: Plot
    baseline_reliability: Plot | None
    roc: Plot | None
    """None of rows of a single class; and so the next."""
    precision_recall: Plot | None
    relevance: Plot
    importance: Plot | None
    """None of a single row."""
    surprises: tuple[ClassSurprise, ...]
    surprise_features: tuple[str, ...]


def class_texts(model: BowTieClassifier) -> tuple[str, ...]:
    """The classes as a page shows them."""
    texts = [clean(label, 30) for label in model.classes_.tolist()]
    if len(set(texts)) == len(texts):
        return tuple(texts)
    return tuple(f"{number}: {text}" for number, text in enumerate(texts))


def class_column(model: BowTieClassifier, rows: ReportRows) -> Texts:
    """The labels of the rows as a column."""
    return Texts(distinct=class_texts(model), codes=rows.targets[:, 0].astype(np.intp))


@dataclass(frozen=True, kw_only=True)
class ClassParts:
    """What the parts about classes are made from."""

    model: BowTieClassifier
    rows: ReportRows
    train: ReportRows | None
    contents: dict[str, Numbers | Texts]
    """What each feature holds in the rows, in the order of training."""
    importance: Importance | None
    """None of a single row."""
    departures: dict[int, tuple[str, ...]]
    """By row: how it leaves what training had."""

    def collect(self, name: str, tell: Progress) -> ClassContent:
        """Scores, plots and surprises."""
        tell(f"scoring {name}", 0.2)
        title, classes = clean(name), class_texts(self.model)
        codes, weights = self.rows.targets[:, 0].astype(int), self.rows.weights
        found = self.model.predict_proba(self.rows.source)
        line, line_words = logistic_baseline(self.model, self.rows, self.train) or (None, "")
        shares, shares_words = self._shares()
        relevance = self.model.feature_relevance_
        strength = relevance.strength.reshape(len(self.contents), -1).max(axis=1)
        features, order = list(self.contents), np.argsort(-strength, kind="stable")
        strong = [features[i] for i in order if strength[i] > 0.0]
        shown = [features[i] for i in order[:_SURPRISE_FEATURES]]

        numbers = np.arange(len(classes))

        def scored(probabilities: Any) -> ClassScores:
            return evaluate_classes(codes, probabilities, numbers, sample_weight=weights)

        def calibration_error(labels: np.ndarray) -> float:
            return expected_calibration_error(labels, found, numbers, sample_weight=weights)

        drawn = class_figures.Judged(
            codes=codes, probabilities=found, classes=classes, weights=weights
        )
        return ClassContent(
            name=title,
            classes=classes,
            model=scored(found),
            shares=scored(np.broadcast_to(shares, found.shape)),
            shares_words=shares_words,
            baseline=None if line is None else scored(line),
            baseline_words=line_words,
            scores=class_scores(codes, found, line, weights, PROBABILITY_FLOOR),
            chance_error=chance_calibration_error(found, calibration_error),
            strong=tuple(clean(one) for one in strong),
            n_features=len(features),
            confusion=class_figures.confusion_plot("confusion", drawn),
            reliability=class_figures.reliability_plot("reliability", drawn, "this model"),
            baseline_reliability=None
            if line is None
            else class_figures.reliability_plot(
                "baseline-reliability", replace(drawn, probabilities=line), "logistic regression"
            ),
            roc=class_figures.roc_plot("roc", drawn),
            precision_recall=class_figures.precision_recall_plot("precision-recall", drawn),
            relevance=figures.relevance_plot(
                "relevance-0", features, strength, relevance.p_value, title
            ),
            importance=None
            if self.importance is None
            else figures.importance_plot(
                "importance-0", self.importance, 0, title, "log probability"
            ),
            surprises=self._surprises(codes, found, shown),
            surprise_features=tuple(clean(one, 30) for one in shown),
        )

    def _shares(self) -> tuple[np.ndarray, str]:
        """Shares (C,) of the classes, and in words of which rows."""
        known = self.rows if self.train is None else self.train
        codes = known.targets[:, 0].astype(int)
        totals = np.bincount(codes, weights=known.weights, minlength=len(self.model.classes_))
        words = "the rows of this report" if self.train is None else "the training rows"
        return totals / totals.sum(), words

    def _surprises(
        self, codes: np.ndarray, found: np.ndarray, features: Sequence[str]
    ) -> tuple[ClassSurprise, ...]:
        classes = class_texts(self.model)
        own = found[np.arange(codes.size), codes]
        likeliest = np.argmax(found, axis=1)
        return tuple(
            ClassSurprise(
                place=int(row),
                row=clean(self.rows.names[row], 24),
                actual=classes[codes[row]],
                predicted=classes[likeliest[row]],
                probability=float(own[row]),
                reasons=self.departures.get(int(row), ()),
                features=tuple(value_text(self.contents[one], int(row)) for one in features),
            )
            for row in np.argsort(own, kind="stable")[:SURPRISES]
        )
