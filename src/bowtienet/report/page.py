"""The page about a fitted model: what goes into its template."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from bowtienet._format import SCORES, count, number, percent, score, shorten
from bowtienet.persistence import replacing
from bowtienet.report.assessment import assess
from bowtienet.report.columns import column_name, groups, importances, outside
from bowtienet.report.figures import images
from bowtienet.tables.columns import read_column
from bowtienet.tables.door import hints_of


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    exposure: Any = None,
    training: Any = None,
) -> None:
    """Write one HTML page about a fitted model: how good, how sure, which columns, where not.

    The page opens anywhere; nothing is loaded from elsewhere.

    Parameters
    ----------
    model : fitted estimator
        `BowTieRegressor` with one target, `BowTieClassifier` or `BowTieCountRegressor`.
    X : table (n, columns)
        Rows that the fit has not seen.
    y : array (n,)
        Their targets.
    path : str or path
        The file; one that exists is replaced when the new one is complete.
    exposure : array (n,), optional
        Of counts.
    training : (X, y, exposure), optional
        Rows of the fit, to which simple models are fitted; else they are cross-validated.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from bowtienet.estimators.regressor import BowTieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = X[:, 0] + rng.normal(size=120)
    >>> model = BowTieRegressor(effort="fast", random_state=0).fit(X[:80], y[:80])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "page.html")
    ...     write_report(model, X[80:], y[80:], page)
    ...     page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    True
    """
    names = getattr(model, "_target_names", ("y",))
    if len(names) > 1:
        raise ValueError(f"a report is about one target, got {len(names)}: fit a model for each.")
    X, y = _typed(model, X), np.asarray(y)
    if len(y) < 2:
        raise ValueError(f"a report needs two rows at least, better dozens, got {len(y)}.")
    if training is not None:
        training = (_typed(model, training[0]), np.asarray(training[1]), training[2])
    assessment = assess(model, X, y, exposure=exposure, training=training)
    ranked = importances(model, X, y, exposure)
    n_bands = 3 if assessment.outcome == "classes" else 2  # four plots in all
    text = (
        _environment()
        .get_template("page.html")
        .render(
            target=names[0],
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
            images=images(model, X, y, exposure, [each["column"] for each in ranked[:n_bands]]),
            version=version("bowtienet"),
        )
    )
    with replacing(path, encoding="utf-8") as file:
        file.write(text.replace(" %", "\N{NO-BREAK SPACE}%"))


def _environment() -> Environment:
    """Templates, whose values are escaped."""
    environment = Environment(
        loader=PackageLoader("bowtienet.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "column": column_name,
        "count": count,
        "number": number,
        "percent": percent,
        "score": score,
        "shorten": shorten,
    }
    return environment


def _typed(model: Any, X: Any) -> Any:
    """An array, or a frame of pandas whose texts are the numbers and dates that the model reads."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.asarray(X)
    hints, X = hints_of(X), frame.to_pandas().copy()
    for column in model._fitted.representation.columns:
        if column.kind in ("number", "date") and X[column.name].dtype == object:
            values, place, unread = read_column(column, X[column.name].to_numpy(), hints)
            if not unread:
                X[column.name] = values[place]
    return X
