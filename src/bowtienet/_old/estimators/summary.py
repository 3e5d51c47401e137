"""What there is to say of a fitted model: scores of held-out rows, ensemble, columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._validation import shorten
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.ensemble.cross_fitted_scores import target_scores
from bowtienet._old.ensemble.descriptions import describe_levels, describe_views
from bowtienet._old.ensemble.ensemble import outcome_of
from bowtienet._old.estimators.importance import Importance
from bowtienet._old.estimators.text_tables import readable, text_table
from bowtienet._old.prediction.calibration import is_discrete
from bowtienet._old.prediction.cross_fitted import COVERAGE
from bowtienet._old.representation.columns import describe

SCORE_WORDS = {
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "MAE",
    "log_density": "log density",
    "log_probability": "log probability",
    "coverage": f"coverage of {COVERAGE:.0%} intervals".replace("%", " %"),
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "brier_score": "Brier score",
}
_SHARES = ("coverage", "accuracy")
_LINE = 80
"""Letters of a line in a terminal;"""
_WIDEST_USE = 34
"""and of what becomes of a column."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelSummary:
    """A fitted model in words and tables; it prints as text.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
    >>> model = BowTieRegressor((20,), effort="fast", random_state=0).fit(X, y)
    >>> found = model.summary()
    >>> found.scores["r2"].round(1).tolist()
    [1.0]
    >>> found.columns.index.tolist()
    ['x0', 'x1']
    """

    title: str
    note: str
    """What the scores are of."""
    facts: dict[str, str]
    """The ensemble in words."""
    score_columns: dict[str, Sequence[Any]]
    """Of held-out rows, by name; empty if no row was held out."""
    member_columns: dict[str, Sequence[Any]]
    column_columns: dict[str, Sequence[Any]]
    importance_found: Importance | None

    @property
    def scores(self) -> Any:
        """Scores of held-out rows as a pandas frame, a row for each target."""
        return new_frame(self.score_columns or {"target": []}, index="target")

    @property
    def ensemble(self) -> Any:
        """The members as a pandas frame: weights, sizes, and how their fits ended."""
        return new_frame(self.member_columns, index="member")

    @property
    def columns(self) -> Any:
        """The columns of the table as a pandas frame: what becomes of each, and its strength."""
        return new_frame(self.column_columns, index="column")

    @property
    def importance(self) -> Any:
        """What the last call of `importance` found as a pandas frame; None without any."""
        return None if self.importance_found is None else self.importance_found.to_frame()

    def __repr__(self) -> str:
        """Text of at most 80 columns, unless names are long."""
        parts = [self.title, ""]
        if self.score_columns:
            targets, *names = self.score_columns
            header = ["held out", *map(str, self.score_columns[targets])]
            lines = [
                [SCORE_WORDS[name], *(score_text(name, v) for v in self.score_columns[name])]
                for name in names
            ]
            parts += [text_table(header, lines)]
        parts += [self.note, ""]
        width = max(map(len, self.facts)) + 2
        parts += [
            textwrap.fill(f"{name:<{width}}{words}", _LINE, subsequent_indent=" " * width)
            for name, words in self.facts.items()
        ]
        parts += ["", self._columns_text()]
        if self.importance_found is not None:
            parts += ["", f"importance: {self.importance_found!r}"]
        return "\n".join(parts)

    def _columns_text(self) -> str:
        found = self.column_columns
        numbers = [name for name in found if name not in ("column", "use")]
        order = np.argsort(-np.asarray(found["strength"]), kind="stable")
        lines = [
            [
                str(found["column"][row]),
                shorten(str(found["use"][row]), _WIDEST_USE),
                *(readable(float(found[name][row]), 3) for name in numbers),
            ]
            for row in order
        ]
        header = ["column", "use", *(name.replace("_", " ") for name in numbers)]
        return text_table(header, lines, n_texts=2)


def summarize_model(estimator: Any) -> ModelSummary:
    """What there is to say of a fitted estimator."""
    kind = type(estimator).__name__
    used = sum(column.has_value or column.has_indicator for column in estimator.columns_)
    return ModelSummary(
        title=f"{kind} of {', '.join(estimator.target_names_)}: "
        f"{used} of {len(estimator.columns_)} columns used, {sizes_text(estimator)}",
        note=scores_note(estimator),
        facts=_facts(estimator),
        score_columns=_score_columns(estimator),
        member_columns=_member_columns(estimator),
        column_columns=_column_columns(estimator),
        importance_found=getattr(estimator, "importance_", None),
    )


def scores_note(estimator: Any) -> str:
    """What held-out scores are of, or what to do where there are none."""
    found = estimator.ensemble_.cross_fitted
    if found is None:
        return "The fit held no row out: give rows that it has not seen to score and plot."
    return f"{found.n_rows:,} distinct rows, each predicted by networks that were not fitted to it."


def sizes_text(estimator: Any) -> str:
    """Networks and weights, in words."""
    size, members = estimator.sparsity_, len(estimator.ensemble_.members)
    weights = int(size.weights_after.sum())
    return f"{members} network{'s' if members > 1 else ''} with {weights:,} weights"


def score_text(name: str, value: float) -> str:
    """A score as people read it."""
    return f"{100.0 * value:.1f} %" if name in _SHARES else readable(value)


def _score_columns(estimator: Any) -> dict[str, Sequence[Any]]:
    found = target_scores(estimator.ensemble_)
    if not found:
        return {}
    columns: dict[str, Sequence[Any]] = {"target": list(estimator.target_names_)}
    return columns | {name: [one[name] for one in found] for name in found[0]}


def _member_columns(estimator: Any) -> dict[str, Sequence[Any]]:
    ensemble, size = estimator.ensemble_, estimator.sparsity_
    return {
        "member": list(range(len(ensemble.members))),
        "weight": ensemble.weights,
        "inputs": size.inputs_after,
        "units": size.nodes_after,
        "weights": size.weights_after,
        "sweeps": [member.n_sweeps for member in ensemble.members],
        "status": [str(member.status.value) for member in ensemble.members],
    }


def _column_columns(estimator: Any) -> dict[str, Sequence[Any]]:
    relevance = estimator.feature_relevance_.strongest()
    columns: dict[str, Sequence[Any]] = {
        "column": relevance.name,
        "use": [describe(column) for column in estimator.columns_],
        "strength": relevance.strength,
    }
    tested = hasattr(estimator, "structure_")
    return columns | ({"p_value": relevance.p_value} if tested else {})


def _facts(estimator: Any) -> dict[str, str]:
    ensemble = estimator.ensemble_
    found = {
        "networks see": describe_views(ensemble),
        "effective networks": readable(float(estimator.n_effective_members_), 3),
    }
    if not is_discrete(outcome_of(ensemble)):
        found["noise"] = describe_levels(ensemble)
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        found["classes"] = shorten(", ".join(map(str, classes.tolist())), 60)
    stopped = str(estimator.status_.value).replace("_", " ")
    sweeps = int(estimator.n_iter_)
    ended = f"{estimator.solver_}, {sweeps} sweep{'s' if sweeps != 1 else ''}, {stopped}"
    return found | {"fit": ended}
