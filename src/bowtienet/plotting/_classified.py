"""What displays of class probabilities have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from bowtienet.evaluation.scorers import class_forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ClassifiedDisplay:
    """A display that `from_predictions` draws from labels and the probabilities of classes."""

    @classmethod
    def from_predictions(
        cls, y: Any, probabilities: Any, classes: Any, *, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Draw class probabilities against labels."""
        raise NotImplementedError

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, **settings: Any) -> Self:
        """Draw the probabilities for `X` against labels.

        Parameters
        ----------
        model : fitted classifier with probabilities
            Fitted; a pipeline that ends with one, too.
        X : table (n, columns)
            Held-out rows.
        y : array (n,)
            Labels.
        **settings
            Those of `from_predictions`.
        """
        return cls.from_predictions(y, *class_forecast(model, X), **settings)
