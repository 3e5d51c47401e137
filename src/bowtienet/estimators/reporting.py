"""The reporting part of the estimators: one HTML page about a fitted model."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted


class ReportingMixin:
    """A page about a model and some rows."""

    def report(self, X: Any, y: Any, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write one HTML page about the model and its predictions of some rows.

        It opens from disk and shows the data, the fit, scores beside a linear model, calibration,
        the inputs that matter, the network before and after pruning, and the most surprising rows
        (``pip install 'bowtienet[report]'``).

        Parameters
        ----------
        X : table (n, columns)
            Rows in memory, best such as the model has not seen.
        y : (n,) or (n, outputs), or names
            What happened; or columns of X that hold it.
        path : str or path
            File to write, such as report.html.
        **settings :
            Those of `bowtienet.report.write_report`: `train`, `coverage`, `title`, `model_file`,
            `max_inputs` and others.
        """
        from bowtienet.report import write_report

        check_is_fitted(self)
        write_report(self, X, y, path, **settings)
