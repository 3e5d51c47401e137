"""Plots of the page as images that need no other file."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from bowtienet.evaluation.competitors import rows_of
from bowtienet.plotting import CalibrationDisplay, PredictedActualDisplay, PredictiveBandDisplay
from bowtienet.report.columns import column_name

MOST_ROWS = 1_000
"""Drawn: more dots hide each other and make a page slow."""
LARGEST_SVG = 100_000
"""Bytes, above which an image is a PNG, so that four of them stay below half a megabyte."""
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text, in the fonts of the page
    "font.family": "sans-serif",
    "text.parse_math": False,  # names of columns may hold a $
}


class AtExposure:
    """A model of counts with the exposures of given rows, for plots of exactly these rows."""

    def __init__(self, model: Any, exposure: Any) -> None:
        self._model, self._exposure = model, np.asarray(exposure, dtype=float)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return partial(value, exposure=self._exposure) if name.startswith("predict") else value


def images(model: Any, X: Any, y: Any, exposure: Any, along: list[Any]) -> list[dict[str, str]]:
    """Title, caption and data URI of the plots: accuracy, calibration, bands along columns."""
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    X, y = rows_of(X, rows), np.asarray(y)[rows]
    fitted = model if exposure is None else AtExposure(model, np.asarray(exposure)[rows])
    plots: list[tuple[str, str, Callable[..., Any]]] = []
    draw: Any
    if not hasattr(model, "predict_proba"):
        caption = "Each dot is a held-out row, each bar its 90 % interval. Orange: outside."
        draw = partial(PredictedActualDisplay.from_estimator, fitted, X, y)
        plots.append(("Predicted and actual", caption, draw))
    caption = "A calibrated model stays within the grey, which is what chance allows."
    draw = partial(CalibrationDisplay.from_estimator, fitted, X, y)
    plots.append(("Calibration", caption, draw))
    dots = None if exposure is not None or hasattr(model, "predict_proba") else y
    for name in along:
        caption = "Predictions as this column varies and the others stand at typical values."
        draw = partial(PredictiveBandDisplay.from_estimator, model, X, name, dots)
        plots.append((f"Along {column_name(name)}", caption, draw))
    return [{"title": t, "caption": c, "source": _drawn(draw)} for t, c, draw in plots]


def _drawn(draw: Callable[..., Any]) -> str:
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the page's fonts have them
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        draw(ax=figure.subplots())
        stream, kind = io.BytesIO(), "svg+xml"
        figure.savefig(stream, format="svg", metadata={"Date": None})
        if stream.tell() > LARGEST_SVG:
            stream, kind = io.BytesIO(), "png"
            figure.savefig(stream, format="png", dpi=150)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
