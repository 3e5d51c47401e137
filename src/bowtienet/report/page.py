"""The page about a fitted model: what goes into its template."""

from __future__ import annotations

import base64
import io
import os
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.figure import Figure

from bowtienet._format import SCORES, count, number, percent, score, shorten
from bowtienet.evaluation.competitors import rows_of
from bowtienet.persistence import replacing
from bowtienet.plotting import CalibrationDisplay, PredictedActualDisplay, PredictiveBandDisplay
from bowtienet.plotting._display import target_name
from bowtienet.report.assessment import Assessment, assess, at_exposure
from bowtienet.report.columns import column_name, groups, importances, outside
from bowtienet.tables.columns import read_column
from bowtienet.tables.door import hints_of
from bowtienet.tables.frames import frame_of


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    exposure: Any = None,
    training: Any = None,
) -> Assessment:
    """Write one HTML page about a fitted model: how good, how sure, which columns, where not.

    The page is complete: it loads nothing from elsewhere.

    Parameters
    ----------
    model : fitted estimator
        `BowTieRegressor` with one target, `BowTieClassifier` or `BowTieCountRegressor`.
    X : table (n, columns)
        Held-out rows.
    y : array (n,)
        Their targets.
    path : str or path
        The file; one that exists is replaced when the new one is complete.
    exposure : array (n,), optional
        For counts.
    training : (X, y, exposure), optional
        Rows of the fit, to which the simple models are fitted; else these are cross-validated.

    Returns
    -------
    Assessment
        The scores that the page shows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bowtienet.estimators.regressor import BowTieRegressor
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 120, 2))
    >>> y = X[:, 0] + noise[:, 0]
    >>> model = BowTieRegressor(effort="fast", random_state=0).fit(X[:80], y[:80])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "page.html")
    ...     scores = write_report(model, X[80:], y[80:], page)
    ...     page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    True
    """
    names = getattr(model, "_target_names", ("y",))
    if len(names) > 1:
        raise ValueError(f"a report is about one target, got {len(names)}: fit a model for each.")
    X, y = _typed(model, X), np.asarray(y)
    if len(y) < 2:
        raise ValueError(f"a report needs at least two rows, better dozens, got {len(y)}.")
    if training is not None:
        training = (_typed(model, training[0]), np.asarray(training[1]), training[2])
    with replacing(path, encoding="utf-8") as file:
        assessment = assess(model, X, y, exposure=exposure, training=training)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the assessment has warned of these rows
            text = _text(model, X, y, exposure, training, assessment)
        file.write(text.replace(" %", "\N{NO-BREAK SPACE}%"))
    return assessment


def _text(model: Any, X: Any, y: Any, exposure: Any, training: Any, assessment: Assessment) -> str:
    """The page as HTML."""
    ranked = importances(model, X, y, exposure)
    n_bands = 3 if assessment.outcome == "classes" else 2  # four plots in all
    loader = PackageLoader("bowtienet.report")
    page = Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    page.filters |= {"column": column_name, "count": count, "number": number}
    page.filters |= {"percent": percent, "score": score, "shorten": shorten}
    return page.get_template("page.html").render(
        target=target_name(model),
        model=type(model).__name__,
        summary=model.summary(),
        n_columns=len(model._fitted.representation.columns),
        n_training=None if training is None else len(training[1]),
        result=assessment,
        names=SCORES,
        ranked=ranked,
        groups=groups(X, assessment.hits, assessment.stated),
        outside=outside(model, X),
        notes=model._fitted.representation.notes,
        images=_images(model, X, y, exposure, [each["column"] for each in ranked[:n_bands]]),
        version=version("bowtienet"),
    )


def _images(model: Any, X: Any, y: Any, exposure: Any, along: list[Any]) -> list[dict[str, str]]:
    """Title, caption and source of the plots: accuracy, calibration, bands along columns."""
    # More than a thousand dots hide each other and make a page slow.
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:1000])
    X, y, has_classes = rows_of(X, rows), np.asarray(y)[rows], hasattr(model, "predict_proba")
    fitted, images = at_exposure(model, exposure, rows), []

    def add(title: str, caption: str, display: Any, *args: Any) -> None:
        source = _drawn(display.from_estimator, *args)
        images.append({"title": title, "caption": caption, "source": source})

    if not has_classes:
        caption = "Each dot is a held-out row, each bar its 90 % interval. Orange: outside."
        add("Predicted and actual", caption, PredictedActualDisplay, fitted, X, y)
    caption = "A calibrated model stays within the grey area, the range of chance."
    add("Calibration", caption, CalibrationDisplay, fitted, X, y)
    dots = None if exposure is not None or has_classes else y
    caption = "Prediction along this column; other columns at their median or most frequent value."
    for name in along:
        title = f"Along {column_name(name)}"
        add(title, caption, PredictiveBandDisplay, model, X, name, dots)
    return images


def _drawn(draw: Any, *args: Any) -> str:
    """A plot as the address of an image, which needs no other file."""
    style: Any = {
        "svg.fonttype": "none",  # text stays text, in the fonts of the page
        "font.family": "sans-serif",
        "text.parse_math": False,  # names of columns may hold a $
    }
    with rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the page's fonts have them
        warnings.filterwarnings("ignore", message="the fit had exposures")  # bands are for 1
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        draw(*args, ax=figure.subplots())
        stream, kind = io.BytesIO(), "svg+xml"
        figure.savefig(stream, format="svg", metadata={"Date": None})
        if stream.tell() > 100_000:  # four images stay below half a megabyte
            stream, kind = io.BytesIO(), "png"
            figure.savefig(stream, format="png", dpi=150)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _typed(model: Any, X: Any) -> Any:
    """An array, or a pandas frame with texts replaced by the numbers and dates the model reads."""
    frame = frame_of(X)
    if frame is None:
        return np.asarray(X)
    hints, X = hints_of(X), frame.to_pandas().copy()
    for column in model._fitted.representation.columns:
        if column.kind in ("number", "date") and X[column.name].dtype == object:
            values, rows, unread = read_column(column, X[column.name].to_numpy(), hints)
            if not unread:
                X[column.name] = values[rows]
    return X
