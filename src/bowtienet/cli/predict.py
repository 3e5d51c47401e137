"""`bowtienet predict`: predictions for new rows, written chunk by chunk."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bowtienet._format import count, listed
from bowtienet.cli import options
from bowtienet.cli.console import note, say_aside
from bowtienet.cli.data import features_for, numbers_of, read, target_of
from bowtienet.cli.refusals import Problems

if TYPE_CHECKING:  # slow to import, and not needed for --help
    import pandas as pd

ROWS = 50_000
"""Read, predicted and written at a time."""
DIGITS = "%.6g"
"""Of predictions: more would be noise."""


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="CSV", help="Where predictions go. [the screen]"),
    ] = None,
    coverage: Annotated[float, typer.Option(help="Share of new targets in the intervals.")] = 0.9,
    quantiles: Annotated[
        str | None, typer.Option(metavar="LEVELS", help="Further quantiles, as 0.1,0.5,0.9.")
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows with known targets that the fit has not seen: intervals become conformal.",
        ),
    ] = None,
    identify: Annotated[
        list[str],
        typer.Option(
            "--id", metavar="COLUMN", help="Column to carry into the predictions; may be repeated."
        ),
    ] = [],  # noqa: B006 (typer copies it)
    exposure: options.Exposure = None,
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    force: options.Force = False,
) -> None:
    """Predict new rows with a saved model: means, intervals, probabilities."""
    import pandas as pd

    from bowtienet.estimators.saving import load

    problems = Problems()
    problems.share("--coverage", coverage, least=1e-9)
    levels = options.levels_of(quantiles, problems)
    problems.output(out, force=force)
    how = options.reading(missing_values, day_first, decimal, problems)
    fitted, known_rows = None, None
    with problems.gather():
        fitted = load(model)
    if fitted is not None:
        check_abilities(fitted, levels, calibration, exposure, problems)
    if fitted is not None and calibration is not None and not problems.any():
        known_rows = calibration_rows(fitted, calibration, how, problems)
    problems.refuse_if_any()
    n_rows = 0
    with writer(out) as stream:
        for number, frame in enumerate(chunks(data, how)):
            features = features_for(fitted, frame, problems)
            problems.columns("--id", identify, list(map(str, frame.columns)))
            problems.columns("--exposure", [exposure] if exposure else [], list(frame.columns))
            problems.refuse_if_any()
            if number == 0:
                mention_columns(fitted, frame, identify, exposure)
            exposures = None if exposure is None else numbers_of(frame, exposure)
            answers = predictions(fitted, features, coverage, levels, known_rows, exposures)
            result = pd.concat([frame[list(identify)].reset_index(drop=True), answers], axis=1)
            result.to_csv(stream, header=number == 0, index=False, float_format=DIGITS)
            n_rows += len(frame)
    if out is not None:
        say_aside(f"Wrote {count(n_rows, 'prediction')} to {out}.")


def check_abilities(
    fitted: Any,
    levels: Sequence[float],
    calibration: str | None,
    exposure: str | None,
    problems: Problems,
) -> None:
    """Options that only some models take."""
    if not hasattr(fitted, "predict_interval"):
        if levels or calibration:
            option = "--quantiles" if levels else "--calibration"
            problems.add(f"{option} is for numbers and counts; classes have probabilities.")
    elif not hasattr(fitted, "n_jobs"):
        problems.add(f"the model is a {type(fitted).__name__}: predict with it in Python.")
    if exposure is not None and type(fitted).__name__ != "BowTieCountRegressor":
        problems.add("--exposure is for models of counts.")


def calibration_rows(
    fitted: Any, source: str, how: options.Reading, problems: Problems
) -> tuple[pd.DataFrame, Any] | None:
    """Rows with known targets for conformal intervals."""
    rows = None
    with problems.gather("--calibration: "):
        frame = read(source, how)
        target = target_of(fitted)
        problems.columns("--calibration", [target], list(map(str, frame.columns)))
        problems.refuse_if_any()
        known = numbers_of(frame, target)
        present = np.isfinite(known)
        rows = features_for(fitted, frame[present], problems), known[present]
    return rows


def chunks(source: str, how: options.Reading) -> Iterator[pd.DataFrame]:
    """Slices of a file, each a table."""
    from bowtienet.tables.files import read_chunks

    return read_chunks(
        source,
        ROWS,
        missing_values=how.missing_values,
        day_first=how.day_first,
        decimal=how.decimal,
    )


def mention_columns(
    fitted: Any, frame: pd.DataFrame, identify: Sequence[str], exposure: str | None
) -> None:
    """Columns that predictions do not depend on."""
    known = {*map(str, fitted.feature_names_in_), *identify, exposure, target_of(fitted)}
    rest = [name for name in map(str, frame.columns) if name not in known]
    if rest:
        note(f"not used by the model: {listed(rest)}; --id carries a column into the predictions.")
    if exposure is None and type(fitted).__name__ == "BowTieCountRegressor":
        note("counts are for an exposure of 1 in each row: --exposure COLUMN if rows differ.")


def predictions(
    fitted: Any,
    features: pd.DataFrame,
    coverage: float,
    levels: Sequence[float],
    calibration: Any,
    exposure: Any,
) -> pd.DataFrame:
    """Answers of a model as columns."""
    import pandas as pd

    if not hasattr(fitted, "predict_interval"):
        shares = fitted.predict_proba(features)
        names = [f"probability_{label}" for label in fitted.classes_]
        best = fitted.classes_[np.argmax(shares, axis=1)]
        return pd.DataFrame({"prediction": best, **dict(zip(names, shares.T, strict=True))})
    extra = {} if exposure is None else {"exposure": exposure}
    mean, std = fitted.predict(features, return_std=True, **extra)
    method = "central" if calibration is None else "conformal"
    low, high = fitted.predict_interval(
        features, coverage, method=method, calibration=calibration, **extra
    ).T
    share = f"{100.0 * coverage:g}"
    columns = {"prediction": mean, "std": std, f"lower_{share}": low, f"upper_{share}": high}
    if levels:
        values = fitted.predict_quantiles(features, levels, **extra)
        columns |= {f"q{level:g}": values[:, i] for i, level in enumerate(levels)}
    return pd.DataFrame(columns)


@contextmanager
def writer(out: Path | None) -> Iterator[Any]:
    """The screen, or a file that appears when it is complete."""
    if out is None:
        yield sys.stdout
        return
    from bowtienet.persistence import replacing

    with replacing(out, encoding="utf-8", newline="") as stream:
        yield stream
