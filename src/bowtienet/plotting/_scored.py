"""What displays that compare predictions with what happened have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from bowtienet.estimators.tables import named_columns
from bowtienet.plotting.fitted import predictive

if TYPE_CHECKING:
    from bowtienet.prediction.mixture import GaussianMixture


class ScoredDisplay:
    """A display that `from_predictions` draws from targets and their predictive distributions."""

    @classmethod
    def from_predictions(
        cls, y: Any, distribution: GaussianMixture, *, target: int = 0, **settings: Any
    ) -> Self:
        """Draw predictive distributions against what happened."""
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, target: int = 0, **settings: Any
    ) -> Self:
        """Draw the predictions for `X` against what happened.

        Parameters
        ----------
        model : estimator
            Fitted, with ``predict_dist(X)``.
        X : table (n, columns)
            Rows that the model has not seen.
        y : array (n,) or (n, outputs), or names
            What happened; or columns of X that hold it.
        target : int
            Which of several targets.
        **settings
            Those of `from_predictions`.
        """
        X, y, _ = named_columns(X, y, None)
        return cls.from_predictions(y, predictive(model, X), target=target, **settings)
