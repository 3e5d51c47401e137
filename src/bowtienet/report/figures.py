"""Plots of the page as images that need no other file."""

from __future__ import annotations

import base64
import io
import warnings
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from bowtienet.evaluation.competitors import rows_of
from bowtienet.plotting import CalibrationDisplay, PredictedActualDisplay, PredictiveBandDisplay
from bowtienet.report.assessment import at_exposure
from bowtienet.report.columns import column_name

STYLE: Any = {
    "svg.fonttype": "none",  # text stays text, in the fonts of the page
    "font.family": "sans-serif",
    "text.parse_math": False,  # names of columns may hold a $
}


def images(model: Any, X: Any, y: Any, exposure: Any, along: list[Any]) -> list[dict[str, str]]:
    """Title, caption and data URI of the plots: accuracy, calibration, bands along columns."""
    # More than a thousand dots hide each other and make a page slow.
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:1000])
    X, y, has_classes = rows_of(X, rows), np.asarray(y)[rows], hasattr(model, "predict_proba")
    fitted = at_exposure(model, exposure, rows)
    images = []

    def add(title: str, caption: str, draw: Any, *args: Any) -> None:
        images.append({"title": title, "caption": caption, "source": _drawn(draw, *args)})

    if not has_classes:
        caption = "Each dot is a held-out row, each bar its 90 % interval. Orange: outside."
        draw: Any = PredictedActualDisplay.from_estimator
        add("Predicted and actual", caption, draw, fitted, X, y)
    caption = "A calibrated model stays within the grey, which is what chance allows."
    add("Calibration", caption, CalibrationDisplay.from_estimator, fitted, X, y)
    dots = None if exposure is not None or has_classes else y
    caption = "Predictions as this column varies and the others stand at typical values."
    for name in along:
        draw = PredictiveBandDisplay.from_estimator
        add(f"Along {column_name(name)}", caption, draw, model, X, name, dots)
    return images


def _drawn(draw: Any, *args: Any) -> str:
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the page's fonts have them
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        draw(*args, ax=figure.subplots())
        stream, kind = io.BytesIO(), "svg+xml"
        figure.savefig(stream, format="svg", metadata={"Date": None})
        if stream.tell() > 100_000:  # four images stay below half a megabyte
            stream, kind = io.BytesIO(), "png"
            figure.savefig(stream, format="png", dpi=150)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
