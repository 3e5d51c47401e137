"""Explanations: what each column adds to the mean and to the uncertainty of a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import whole
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.ensemble.shapley import plan_coalitions, players, shapley_values
from bowtienet._old.estimators.column_groups import read_groups
from bowtienet._old.estimators.text_tables import text_table
from bowtienet._old.representation.background import Background

Floats = NDArray[np.float64]

BACKGROUND_ROWS = 100
"""Of the rows that a model keeps, by which predictions are explained."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation:
    """Shapley values of n predictions, for columns or groups of them.

    ``base_mean + mean_contributions.sum(axis=1)`` is the predictive mean, and the same with `std`
    the standard deviation, both as `predict` gives them, to rounding. With several targets all
    arrays have one axis more. Of classes the means are those of `predict_proba`, the deviations
    epistemic, and the last axis has the classes; of counts they are those of exposure 1.
    """

    name: NDArray[Any]
    """Names of the columns or groups."""
    base_mean: Floats
    """Mean prediction of the background; a number, with several targets (outputs,)."""
    base_std: Floats
    """Mean standard deviation of the background."""
    mean_contributions: Floats
    """What each column adds to the mean, (n, columns)."""
    std_contributions: Floats
    """What each column adds to the standard deviation, (n, columns)."""
    mean_errors: Floats | None
    """Standard errors (n, columns) by the orders that were drawn; None if values are exact."""
    std_errors: Floats | None
    target_names: tuple[str, ...]
    """Of the targets, or of the probabilities of classes."""

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each prediction and column (and target): what the column adds to it.

        Columns are `row`, from 0, `column`, with several targets or classes `target`, the
        contributions `mean` and `std` and, where they are not exact, `mean_error` and `std_error`.
        """
        n_rows, n_names = self.mean_contributions.shape[:2]
        count = len(self.target_names)
        row, column, target = np.indices((n_rows, n_names, count)).reshape(3, -1)
        found: dict[str, Any] = {"row": row, "column": self.name[column]}
        if count > 1:
            found["target"] = np.array(self.target_names, dtype=object)[target]
        found |= {"mean": self.mean_contributions.ravel(), "std": self.std_contributions.ravel()}
        if self.mean_errors is not None and self.std_errors is not None:
            found |= {"mean_error": self.mean_errors.ravel(), "std_error": self.std_errors.ravel()}
        return new_frame(found, library)

    def __repr__(self) -> str:
        """The contributions to one prediction, or their mean sizes over several."""
        n_rows, n_names, count = *self.mean_contributions.shape[:2], len(self.target_names)
        shape = (n_rows, n_names, count)
        mean, std = self.mean_contributions.reshape(shape), self.std_contributions.reshape(shape)
        sums = np.reshape(self.base_mean, count), np.reshape(self.base_std, count)
        header = ("column", "mean", "std")
        if n_rows > 1:
            header = ("column", "mean size for mean", "for std")
            mean, std = (np.abs(values).mean(axis=0, keepdims=True) for values in (mean, std))
        found = []
        for k, target in enumerate(self.target_names):
            found.append(
                f"{target}, {n_rows:,} prediction{'s' if n_rows > 1 else ''}: base mean "
                f"{sums[0][k]:.4g}, base std {sums[1][k]:.4g}"
            )
            order = np.argsort(-np.abs(mean[0, :, k]), kind="stable")
            lines = [
                (str(self.name[i]), f"{mean[0, i, k]:.4g}", f"{std[0, i, k]:.4g}") for i in order
            ]
            found.append(text_table(header, lines))
        return "\n".join(found)


def explain_rows(
    estimator: Any,
    features: Any,
    background: Any,
    groups: Any,
    n_permutations: Any,
    rng: np.random.Generator,
) -> Explanation:
    """Shapley values of encoded rows; `background` are encoded rows too, or None for those kept."""
    own = read_groups(groups, [column.name for column in estimator.columns_])
    pairs = whole(n_permutations, "n_permutations")
    if pairs < 2:
        raise ValueError("n_permutations must be at least 2: one has no error.")
    ensemble = estimator.ensemble_
    rows = _kept_rows(estimator) if background is None else _counted_alike(background)
    plan = plan_coalitions(len(players(ensemble, own.places)), pairs, rng)
    inputs = to_numpy(features).astype(np.float64)
    base, found, errors = shapley_values(ensemble, inputs, rows, own.places, plan)
    base, found = (estimator._squeeze(values) for values in (base, found))
    mean_errors, std_errors = (None, None) if errors is None else estimator._squeeze(errors)
    return Explanation(
        name=np.asarray(own.names, dtype=object),
        base_mean=base[0],
        base_std=base[1],
        mean_contributions=found[0],
        std_contributions=found[1],
        mean_errors=mean_errors,
        std_errors=std_errors,
        target_names=estimator._effect_names(),
    )


def _kept_rows(estimator: Any) -> Background:
    kept: Background | None = estimator.ensemble_.background
    if kept is None:
        raise ValueError(
            "a model from a file has no rows to explain predictions by: give some, such as those "
            "of training, background=X."
        )
    first = slice(BACKGROUND_ROWS)
    return Background(features=kept.features[first], weights=kept.weights[first])


def _counted_alike(features: Any) -> Background:
    found = to_numpy(features).astype(np.float64)
    return Background(features=found, weights=np.ones(len(found)))
