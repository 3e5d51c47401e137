"""Importance of columns: what predictions lose without what a column says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import whole
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.data.rows import Rows
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.ensemble.ensemble import Ensemble, outcome_of
from bowtienet._old.ensemble.importance import permutation_losses, total_effects
from bowtienet._old.estimators.column_groups import read_groups
from bowtienet._old.estimators.known_columns import encoded_blocks
from bowtienet._old.estimators.text_tables import text_table, with_error
from bowtienet._old.prediction.calibration import is_discrete

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Importance:
    """What rows lose when a column is permuted; one entry for each column, or group of columns.

    Arrays are (columns,), with several targets (columns, outputs). Errors are standard errors: by
    how much the numbers would move with other rows of the same kind, as the rows to predict and as
    those that give permuted values, with the noise of the permutations. The model stays: what
    another fit would say is not in them.
    """

    name: NDArray[Any]
    """Names of the columns or groups."""
    log_density_drop: Floats
    """Mean log predictive density of the rows as they are, less that with the column permuted."""
    log_density_error: Floats
    rmse_rise: Floats
    """RMSE with the column permuted, less that of the rows as they are."""
    rmse_error: Floats
    log_density: Floats
    """Of the rows as they are; a number, with several targets (outputs,)."""
    rmse: Floats
    target_names: tuple[str, ...]
    n_rows: int
    n_repeats: int
    scores: tuple[str, str] = ("log density", "RMSE")
    """What the numbers are: of counts `log_density` is the log probability; of classes too, and
    `rmse` the root of the mean Brier score, Σ_c (1{y = c} - p_c)²."""

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each column or group, the largest drop first; of several targets, for each.

        Columns are the losses and their errors under the names that they have here, with several
        targets after `target`; the names are the index of a pandas frame, `column` in others.
        """
        fields = ("log_density_drop", "log_density_error", "rmse_rise", "rmse_error")
        count = len(self.target_names)
        values = {name: getattr(self, name).reshape(-1, count) for name in fields}
        drops = values["log_density_drop"]
        places = [(i, k) for k in range(count) for i in np.argsort(-drops[:, k], kind="stable")]
        rows, targets = np.array(places, dtype=np.intp).reshape(-1, 2).T
        found: dict[str, Any] = {"column": self.name[rows]}
        if count > 1:
            found["target"] = np.array(self.target_names, dtype=object)[targets]
        found |= {name: value[rows, targets] for name, value in values.items()}
        return new_frame(found, library, index="column")

    def __repr__(self) -> str:
        """Tables with the columns that matter most first, one for each target."""
        count = len(self.target_names)
        drop, drop_error, rise, rise_error = (
            np.reshape(values, (len(self.name), count))
            for values in (
                self.log_density_drop,
                self.log_density_error,
                self.rmse_rise,
                self.rmse_error,
            )
        )
        density, rmse = np.reshape(self.log_density, count), np.reshape(self.rmse, count)
        found, (first, second) = [], self.scores
        for k, target in enumerate(self.target_names):
            found.append(
                f"{target}, {self.n_rows:,} rows, {self.n_repeats} permutations: "
                f"{first} {density[k]:.4g}, {second} {rmse[k]:.4g}"
            )
            lines = [
                (
                    str(self.name[i]),
                    with_error(drop[i, k], drop_error[i, k]),
                    with_error(rise[i, k], rise_error[i, k]),
                )
                for i in np.argsort(-drop[:, k], kind="stable")
            ]
            found.append(text_table(("column", f"drop in {first}", f"rise in {second}"), lines))
        return "\n".join(found)


def permutation_importance(
    estimator: Any, source: Source, groups: Any, n_repeats: Any, rng: np.random.Generator
) -> Importance:
    """The importance of the columns of a fitted estimator for rows with targets."""
    own = read_groups(groups, [column.name for column in estimator.columns_])
    repeats = whole(n_repeats, "n_repeats")
    if repeats < 2:
        raise ValueError("n_repeats must be at least 2: one permutation has no error.")
    rows = _counted_rows(estimator, source)
    found = permutation_losses(estimator.ensemble_, rows, own.places, repeats, rng)
    squeezed = {name: estimator._squeeze(value) for name, value in found._asdict().items()}
    return Importance(
        **squeezed,
        name=np.asarray(own.names, dtype=object),
        target_names=tuple(estimator.target_names_),
        n_rows=len(rows.inputs),
        n_repeats=repeats,
        scores=_score_names(estimator.ensemble_),
    )


def _score_names(ensemble: Ensemble) -> tuple[str, str]:
    """What `permutation_losses` scores predictions by; see `ensemble.outcome_scores`."""
    if not is_discrete(outcome_of(ensemble)):
        return "log density", "RMSE"
    return "log probability", "RMSE" if is_counts(ensemble) else "root Brier score"


def importance_shares(estimator: Any) -> Floats:
    """Total effects of the columns on the predictive mean, as shares with sum 1."""
    background = estimator.ensemble_.background
    if background is not None:
        effects = total_effects(estimator.ensemble_, background, np.random.default_rng(0))
        total = effects.sum()
        return effects / total if total > 0.0 else effects
    known: Floats | None = getattr(estimator, "_importances", None)
    if known is None:
        raise AttributeError(
            "a model from a file that was changed has no rows to find feature_importances_ with: "
            "ask importance(X, y)."
        )
    return known.copy()


def _counted_rows(estimator: Any, source: Source) -> Rows:
    """Encoded rows with a positive weight, in memory and in double precision."""
    if not source.in_memory:
        raise ValueError("importance needs the rows in memory: read X into a table first.")
    [(block, features)] = encoded_blocks(estimator, source)
    inputs, targets, weights = (
        to_numpy(values).astype(np.float64) for values in (features, block.targets, block.weights)
    )
    counted = weights > 0.0
    if counted.sum() < 2:
        raise ValueError("importance needs at least 2 rows with a positive weight.")
    return Rows(inputs=inputs[counted], targets=targets[counted], weights=weights[counted])
