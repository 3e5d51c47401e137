"""What displays of class probabilities have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from bowtienet.evaluation.scorers import class_forecast


class ClassifiedDisplay:
    """A display that `from_predictions` draws from labels and the probabilities of classes."""

    from_predictions: ClassVar[Any]

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
