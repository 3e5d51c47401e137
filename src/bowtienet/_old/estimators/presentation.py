"""What a fitted estimator shows of itself: a summary, plots, a report, a card in notebooks."""

from __future__ import annotations

import os
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bowtienet._old.estimators.notebook_card import model_card
from bowtienet._old.estimators.summary import ModelSummary, summarize_model


class PresentedEstimator(BaseEstimator):
    """An estimator whose fit leaves an `ensemble_`."""

    def summary(self) -> ModelSummary:
        """Scores of held-out rows, the ensemble and the columns; it prints as text.

        Its `scores`, `ensemble`, `columns` and, after a call of `importance`, `importance` are
        pandas frames. Scores are of rows that the fit held out in turn: no rows are needed, and
        none are read.
        """
        check_is_fitted(self)
        return summarize_model(self)

    def plot(self, X: Any, y: Any = None, **settings: Any) -> Any:
        """One figure of how well rows that the fit has not seen are predicted.

        Of numbers and counts: predicted against actual, the band along the strongest column,
        calibration, and the PIT histogram. Of classes: reliability, the confusion matrix and ROC
        curves (``pip install 'bowtienet[plot]'``).

        Parameters
        ----------
        X, y
            Rows in memory, and targets or names of columns of X that hold them.
        **settings
            Those of `bowtienet._old.plotting.OverviewDisplay.from_estimator`: `feature` of the band,
            `target`, `coverage`, `exposure` of counts, and `fig`.

        Returns
        -------
        OverviewDisplay
            Its `figure_` is the matplotlib figure.
        """
        from bowtienet._old.plotting import OverviewDisplay

        check_is_fitted(self)
        return OverviewDisplay.from_estimator(self, X, y, **settings)

    def report(self, X: Any, y: Any, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write one HTML page about the model and its predictions of rows it has not seen.

        The settings are those of `bowtienet._old.report.write_report`, such as `title` and `train`
        (``pip install 'bowtienet[report]'``).
        """
        from bowtienet._old.report import write_report

        check_is_fitted(self)
        write_report(self, X, y, path, **settings)

    def _repr_html_inner(self) -> str:
        """What notebooks show: scikit-learn's diagram, below the card of a fitted model."""
        diagram = str(super()._repr_html_inner())
        return model_card(self) + diagram if hasattr(self, "ensemble_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        found = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            found["text/html"] = self._repr_html_inner()
        return found
