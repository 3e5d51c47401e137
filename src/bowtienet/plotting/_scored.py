"""What displays that compare predictions with targets have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet.evaluation.checks import read_sample_weight, read_targets
from bowtienet.plotting._checks import chosen
from bowtienet.plotting.fitted import network_of, open_rows, target_names
from bowtienet.prediction.mixture import Mixture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 1e-9
"""n equal weights are n rows, also where their sums are a little less."""


class ScoredDisplay:
    """A display that `from_predictions` draws from targets and their predictive distributions."""

    _names_its_target = False

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: Mixture,
        *,
        target: int = 0,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Draw predictive distributions against targets."""
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, target: int = 0, **settings: Any
    ) -> Self:
        """Draw the predictions for `X` against targets.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted. Of other models draw `from_predictions`.
        X : table (n, columns)
            Held-out rows.
        y : array (n,) or (n, outputs), or names
            Targets; or columns of X that hold them.
        target : int
            Which of several targets.
        **settings
            Those of `from_predictions`.
        """
        network, source = network_of(model), open_rows(model, X, y)
        names = target_names(network, source)
        if cls._names_its_target and target in range(len(names)):
            settings.setdefault("target_name", names[target])
        targets = to_numpy(source.block.targets)
        return cls.from_predictions(
            targets, network.predict_dist(source), target=target, **settings
        )


def one_target(y: Any, distribution: Mixture, target: Any) -> tuple[np.ndarray, Mixture]:
    """Values (n,) of one of the targets and its predictive distribution."""
    forecast = distribution_of(distribution, target)
    values = read_targets(y)
    values = values.reshape(len(values), -1)
    shape = distribution.means[0].reshape(len(distribution.means[0]), -1).shape
    if values.shape != shape:
        raise ValueError(
            f"y has shape {values.shape}, but the distribution is for {shape[0]} rows and "
            f"{shape[1]} target{'s' * (shape[1] > 1)}: give one value for each."
        )
    return values[:, target], forecast


def distribution_of(distribution: Mixture, target: Any) -> Mixture:
    """Predictive distribution (n,) of one of the targets."""
    if not isinstance(distribution, Mixture):
        raise TypeError(
            "distribution must be a Mixture, such as predict_dist and build_mixture give, "
            f"got {type(distribution).__name__}."
        )
    is_single = distribution.means.ndim == 2
    place = chosen(target, 1 if is_single else distribution.means.shape[2], "target")
    return distribution if is_single else distribution.of_target(place)


def effective_rows(n_rows: int, sample_weight: Any) -> int:
    """(Σ w)² / Σ w², the number of rows of equal weight that say as much; n without weights."""
    if sample_weight is None:
        return n_rows
    weights = read_sample_weight(sample_weight, np.zeros(n_rows))
    return max(1, int(np.sum(weights) ** 2 / np.sum(weights**2) + _ROUNDING))
