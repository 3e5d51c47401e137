"""`bowtienet predict`: predictions for new rows, written chunk by chunk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bowtienet._format import count, listed
from bowtienet.cli import options
from bowtienet.cli.console import note, say
from bowtienet.cli.data import features_for, numbers_of, read_rows
from bowtienet.cli.refusals import Problems

ROWS = 50_000
"""Read, predicted and written at a time."""


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="CSV", help="File of predictions. [the screen]"),
    ] = None,
    coverage: Annotated[float, typer.Option(help="Share of new targets in the intervals.")] = 0.9,
    quantiles: Annotated[
        str, typer.Option(metavar="LEVELS", help="Further quantiles, such as 0.1,0.5,0.9.")
    ] = "",
    calibration: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Held-out rows with targets, for conformal intervals."),
    ] = None,
    identify: Annotated[
        list[str],
        typer.Option(
            "--id", metavar="COLUMN", help="Column to carry into predictions; may be repeated."
        ),
    ] = [],  # noqa: B006 (typer copies it)
    exposure: options.Exposure = None,
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
) -> None:
    """Predict new rows with a saved model, with uncertainty."""
    import pandas as pd

    from bowtienet import load
    from bowtienet.evaluation.competitors import outcome_of
    from bowtienet.persistence import replacing
    from bowtienet.tables.files import read_chunks

    problems, fitted = Problems(), load(model)
    problems.output(out, model, data)
    outcome, target = outcome_of(fitted), fitted._target_names[0]
    for option, value in (("--quantiles", quantiles), ("--calibration", calibration)):
        if outcome == "classes" and value:
            problems.append(f"{option} is for numbers and counts; classes have probabilities.")
    if exposure is not None and outcome != "counts":
        problems.append("--exposure is for models of counts.")
    levels: list[float] = []
    with problems.gather("--quantiles: "):
        levels = [float(each) for each in quantiles.split(",") if each]
    problems.refuse_if_any()
    how: Any = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    how_sure: dict[str, Any] = {"coverage": coverage}
    if calibration is not None:
        rows = read_rows(calibration, how, target=target, outcome="numbers")
        pair = features_for(fitted, rows.features, problems), rows.target
        how_sure |= {"method": "conformal", "calibration": pair}
    n_rows = 0
    stream: Any = nullcontext(sys.stdout)
    with stream if out is None else replacing(out, encoding="utf-8", newline="") as file:
        for frame in read_chunks(data, ROWS, **how):
            known = list(map(str, frame.columns))
            problems.columns("--id", identify, known)
            problems.columns("--exposure", [exposure] if exposure else [], known)
            features = features_for(fitted, frame, problems)
            rest = [name for name in known if name not in {*features, *identify, exposure, target}]
            if not n_rows and rest:
                note(f"the model does not use {listed(rest)}; --id carries columns along.")
            if not n_rows and outcome == "counts" and exposure is None:
                note("counts are for an exposure of 1: add --exposure COLUMN if rows differ.")
            extra: dict[str, Any] = {}
            if outcome == "counts":
                extra["exposure"] = 1.0 if exposure is None else numbers_of(frame, exposure)
            answers = pd.DataFrame(predictions(fitted, features, how_sure, levels, extra))
            table = pd.concat([frame[identify].reset_index(drop=True), answers], axis=1)
            table = table.map(no_formula).rename(columns=no_formula)
            # More than six digits would be noise.
            table.to_csv(file, header=not n_rows, index=False, float_format="%.6g")
            n_rows += len(frame)
    if out is not None:
        say(f"Wrote {count(n_rows, 'prediction')} to {out}.", stderr=True)


def no_formula(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: texts that begin like one, quoted."""
    if not isinstance(cell, str) or len(cell) < 2 or cell[0] not in "=+-@\t\r":
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def predictions(
    fitted: Any,
    features: Any,
    how_sure: dict[str, Any],
    levels: Sequence[float],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Answers of a model as columns."""
    if hasattr(fitted, "predict_proba"):
        shares = fitted.predict_proba(features)
        names = [f"probability_{label}" for label in fitted.classes_]
        best = fitted.classes_[np.argmax(shares, axis=1)]
        return {"prediction": best, **dict(zip(names, shares.T, strict=True))}
    mean, std = fitted.predict(features, return_std=True, **extra)
    low, high = fitted.predict_interval(features, **how_sure, **extra).T
    share = f"{100.0 * how_sure['coverage']:g}"
    columns = {"prediction": mean, "std": std, f"lower_{share}": low, f"upper_{share}": high}
    if levels:
        values = fitted.predict_quantiles(features, levels, **extra)
        columns |= {f"q{level:g}": values[:, i] for i, level in enumerate(levels)}
    return columns
