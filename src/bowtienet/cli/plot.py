"""``bowtienet plot``: plots of a model and of how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet.cli import options
from bowtienet.cli.console import Output
from bowtienet.cli.exits import guarded, stop_if_interrupted

if TYPE_CHECKING:
    from bowtienet.cli.reading import Rows

_DPI = 130


class Kind(StrEnum):
    """Plots by name."""

    NETWORK = "network"
    WEIGHTS = "weights"
    RELEVANCE = "relevance"
    ELBO = "elbo"
    SHRINKAGE = "shrinkage"
    ACTIVATION = "activation"
    CALIBRATION = "calibration"
    PIT = "pit"
    PREDICTED = "predicted"
    BAND = "band"


class Format(StrEnum):
    """Endings of plots."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


class Others(StrEnum):
    """Features that are not shown: at typical values, or averaged over the rows."""

    FIXED = "fixed"
    AVERAGE = "average"


NEED_ROWS = (Kind.CALIBRATION, Kind.PIT, Kind.PREDICTED, Kind.BAND)


@guarded
def plot(
    model: options.Model,
    data: options.OptionalKnownRows = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the plots.")] = Path("plots"),
    kind: Annotated[
        list[Kind] | None,
        options.unset_option(
            "--kind",
            metavar="KIND",
            words=f"Plot to draw, repeat it for several; all by default: {', '.join(Kind)}. "
            f"Those that need DATA are {', '.join(NEED_ROWS)}.",
        ),
    ] = None,
    feature: Annotated[
        str | None,
        options.unset_option(
            "--feature", metavar="COLUMN", words="Feature for band; the strongest by default."
        ),
    ] = None,
    others: Annotated[
        Others,
        typer.Option("--others", help="What band does with features that it does not show."),
    ] = Others.FIXED,
    target: Annotated[
        str | None,
        options.unset_option(
            "--target",
            "-t",
            metavar="COLUMN",
            words="Which of several targets, the first by default; or the column of the only "
            "target, if its name is not that of training.",
        ),
    ] = None,
    file_format: Annotated[Format, typer.Option("--format", help="Kind of file.")] = Format.PNG,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Draw a model, its fit and, with rows, how well it predicts them."""
    from bowtienet.cli.reading import open_known_rows, read
    from bowtienet.cli.writing import check_folder
    from bowtienet.estimators.files import load

    output = Output(as_json)
    check_folder(out)
    fitted = load(model)
    names, place = _targets(fitted, target)
    rows = None
    if data is not None:
        table = read(data, output, delimiter, decimal, encoding)
        rows = open_known_rows(fitted, table, data.name, output, targets=names)
    painters = painters_of(fitted, rows, feature, others, place, coverage)
    found = draw(_chosen(painters, kind), out, output, file_format)
    output.say("\n".join(str(place) for place in found))
    output.result({"plots": [str(place) for place in found]})


def draw(
    painters: Mapping[Kind, Callable[[], Any]],
    folder: Path,
    output: Output,
    file_format: Format = Format.PNG,
) -> list[Path]:
    """Write plots to a folder, which is made if need be; their places."""
    from matplotlib import pyplot

    from bowtienet import persistence

    pyplot.switch_backend("agg")  # files only: no window, and none is needed
    figures: dict[Path, Any] = {}
    try:
        with output.stage("drawing") as bar:
            for index, (kind, paint) in enumerate(painters.items()):
                bar.show(f"drawing {kind}", index / len(painters))
                figures[folder / f"{kind}.{file_format}"] = paint().figure_
                stop_if_interrupted()
        # Only now, so that rows that do not fit leave no folder and no plot behind.
        folder.mkdir(exist_ok=True)
        for place, figure in figures.items():
            with persistence.replacing(persistence.check_writable(place)) as temporary:
                figure.savefig(temporary, format=file_format, dpi=_DPI)
    finally:
        for figure in figures.values():
            pyplot.close(figure)
    return list(figures)


def painters_of(
    model: Any,
    rows: Rows | None,
    feature: str | None = None,
    others: str = "fixed",
    target: int = 0,
    coverage: float = 0.9,
) -> dict[Kind, Callable[[], Any]]:
    """How each plot that can be drawn is drawn; those of rows for one of the targets."""
    from bowtienet import plotting

    found: dict[Kind, Callable[[], Any]] = {
        Kind.NETWORK: lambda: plotting.NetworkDisplay.from_estimator(model),
        Kind.WEIGHTS: lambda: plotting.WeightsDisplay.from_estimator(model),
        Kind.RELEVANCE: lambda: plotting.RelevanceDisplay.from_estimator(model),
        Kind.SHRINKAGE: lambda: plotting.ShrinkageDisplay.from_estimator(model),
        Kind.ACTIVATION: lambda: plotting.ActivationDisplay.from_estimator(model),
    }
    if len(model.elbo_history_):  # a pruned model has none
        found[Kind.ELBO] = lambda: plotting.ElboDisplay.from_estimator(model)
    if rows is None:
        return found
    X, y = rows.features, rows.named_targets
    about: dict[str, Any] = {"target": target, "target_name": rows.names[target]}
    return found | {
        Kind.CALIBRATION: lambda: plotting.CalibrationCurveDisplay.from_estimator(
            model, X, y, target=target
        ),
        Kind.PIT: lambda: plotting.PitHistogramDisplay.from_estimator(model, X, y, target=target),
        Kind.PREDICTED: lambda: plotting.PredictedActualDisplay.from_estimator(
            model, X, y, coverage=coverage, **about
        ),
        Kind.BAND: lambda: plotting.PredictiveBandDisplay.from_estimator(
            model,
            X,
            _strongest(model) if feature is None else feature,
            others=others,
            coverages=(0.5, coverage) if coverage > 0.5 else (coverage,),
            y=y,
            **about,
        ),
    }


def _chosen(
    painters: dict[Kind, Callable[[], Any]], kinds: list[Kind] | None
) -> dict[Kind, Callable[[], Any]]:
    """Plots that are asked for, all of them if none is, in the order of `Kind`."""
    for kind in kinds or ():
        if kind in NEED_ROWS and kind not in painters:
            raise ValueError(f"{kind} needs rows with targets: name a table after the model.")
        if kind not in painters:
            raise ValueError(f"{kind} cannot be drawn: a pruned model has no history of its bound.")
    return {kind: painters[kind] for kind in Kind if kind in (kinds or painters)}


def _targets(model: Any, given: str | None) -> tuple[list[str], int]:
    """Columns of all targets, and the place of the one to plot."""
    from bowtienet._validation import suggestion

    names = list(model.target_names_)
    if given is None:
        return names, 0
    if len(names) == 1:
        return [given], 0
    if given not in names:
        raise ValueError(f"the model has no target {given!r}{suggestion(given, names)}")
    return names, names.index(given)


def _strongest(model: Any) -> str | int:
    """The column that moves the targets most, by name if columns have names."""
    found = model.feature_relevance_.strongest()
    place = int(found.strength.argmax())
    return str(found.name[place]) if hasattr(model, "feature_names_in_") else place
