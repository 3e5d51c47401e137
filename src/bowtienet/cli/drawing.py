"""``bowtienet plot``: pictures of a model and of how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bowtienet import persistence, plotting
from bowtienet._validation import suggestion
from bowtienet.cli import options
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.cli.models import inputs_of, target_names
from bowtienet.cli.tables import Rows, read, split_columns
from bowtienet.estimators.preparing import output_names
from bowtienet.estimators.table_pipeline import TablePipeline, load
from bowtienet.plotting.fitted import network_of
from bowtienet.prediction.intervals import check_coverage

_DPI = 130


class Kind(StrEnum):
    """Pictures by name."""

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
    """Endings of pictures."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


class Others(StrEnum):
    """Inputs that are not shown: at typical values, or averaged over the rows."""

    FIXED = "fixed"
    AVERAGE = "average"


NEED_ROWS = (Kind.CALIBRATION, Kind.PIT, Kind.PREDICTED, Kind.BAND)


@guarded
def plot(
    model: options.Model,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            show_default=False,
            help="Rows with targets, best such as the model has not seen.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path(
        "plots"
    ),
    kind: Annotated[
        list[Kind] | None,
        typer.Option(
            "--kind",
            show_default=False,
            help="Picture to draw, repeat it for several; all by default. "
            f"{', '.join(NEED_ROWS)} need DATA.",
        ),
    ] = None,
    feature: Annotated[
        str | None,
        typer.Option(
            "--feature", show_default=False, help="Input for band; the strongest by default."
        ),
    ] = None,
    others: Annotated[
        Others,
        typer.Option("--others", help="What band does with inputs that it does not show."),
    ] = Others.FIXED,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            show_default=False,
            help="Which of several targets, the first by default; or the target's column, for a "
            "model that does not know its name.",
        ),
    ] = None,
    picture_format: Annotated[Format, typer.Option("--format", help="Kind of file.")] = Format.PNG,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Draw the network, its fit and, with rows, how well it predicts them."""
    output = Output(as_json)
    check_coverage(coverage)
    check_folder(out)
    fitted = load(model)
    names = target_names(fitted, [] if target is None else [target])
    rows = None
    if data is not None:
        table = read(data, output, delimiter, decimal, encoding)
        rows = split_columns(table, names, [], None, data.name, output)
    painters = painters_of(fitted, rows, feature, others, _place(target, names), coverage)
    found = draw(_chosen(painters, kind), out, output, picture_format)
    output.say("\n".join(str(place) for place in found))
    output.result({"pictures": [str(place) for place in found]})


def draw(
    painters: Mapping[Kind, Callable[[], Any]],
    folder: Path,
    output: Output,
    picture_format: Format = Format.PNG,
) -> list[Path]:
    """Write pictures to a folder, which is made if need be; their places."""
    from matplotlib import pyplot

    pyplot.switch_backend("agg")  # files only: no window, and none is needed
    check_folder(folder)
    figures: dict[Path, Any] = {}
    try:
        with output.stage("drawing") as bar:
            for index, (kind, paint) in enumerate(painters.items()):
                bar.show(f"drawing {kind}", index / len(painters))
                figures[folder / f"{kind}.{picture_format}"] = paint().figure_
                stop_if_interrupted()
        # Only now, so that rows that do not fit leave no folder and no picture behind.
        folder.mkdir(exist_ok=True)
        for place, figure in figures.items():
            with persistence.replacing(persistence.check_writable(place)) as temporary:
                figure.savefig(temporary, format=picture_format, dpi=_DPI)
    finally:
        for figure in figures.values():
            pyplot.close(figure)
    return list(figures)


def check_folder(folder: Path) -> None:
    """Raise if there can be no pictures in a folder, which need not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the pictures.")
    persistence.check_writable(folder / "picture" if folder.is_dir() else folder)


def painters_of(
    model: Any,
    rows: Rows | None,
    feature: str | None = None,
    others: str = "fixed",
    target: int = 0,
    coverage: float = 0.9,
) -> dict[Kind, Callable[[], Any]]:
    """How each picture that can be drawn is drawn; those of rows for one of the targets."""
    found: dict[Kind, Callable[[], Any]] = {
        Kind.NETWORK: lambda: plotting.NetworkDisplay.from_estimator(model),
        Kind.WEIGHTS: lambda: plotting.WeightsDisplay.from_estimator(model),
        Kind.RELEVANCE: lambda: plotting.RelevanceDisplay.from_estimator(model),
        Kind.SHRINKAGE: lambda: plotting.ShrinkageDisplay.from_estimator(model),
        Kind.ACTIVATION: lambda: plotting.ActivationDisplay.from_estimator(model),
    }
    if len(network_of(model).elbo_history_):  # a pruned model has none
        found[Kind.ELBO] = lambda: plotting.ElboDisplay.from_estimator(model)
    if rows is None:
        return found
    X, y = inputs_of(model, rows.table, "the table"), rows.targets
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
            strongest_input(model) if feature is None else feature,
            others=others,
            coverages=(0.5, coverage) if coverage > 0.5 else (coverage,),
            y=y,
            **about,
        ),
    }


def _chosen(
    painters: dict[Kind, Callable[[], Any]], kinds: list[Kind] | None
) -> dict[Kind, Callable[[], Any]]:
    """Pictures that are asked for, all of them if none is, in the order of `Kind`."""
    for kind in kinds or ():
        if kind in NEED_ROWS and kind not in painters:
            raise ValueError(f"{kind} needs rows with targets: name a table after the model.")
        if kind not in painters:
            raise ValueError(f"{kind} cannot be drawn: a pruned model has no history of its bound.")
    return {kind: painters[kind] for kind in Kind if kind in (kinds or painters)}


def _place(target: str | None, names: list[str]) -> int:
    if target is not None and target not in names:
        raise ValueError(f"the model has no target {target!r}{suggestion(target, names)}")
    return 0 if target is None else names.index(target)


def strongest_input(model: Any) -> str | int:
    """The column that moves the targets most."""
    found = model.feature_relevance_.strongest()
    largest = found.strength
    knows_names = model
    if isinstance(model, TablePipeline):
        knows_names = model.preparer_
        strength = dict(zip(found.name, largest, strict=True))
        parts = [output_names([column]) for column in model.preparer_.columns_]
        largest = [max((strength[name] for name in names), default=-np.inf) for names in parts]
    place = int(np.argmax(largest))
    names = getattr(knows_names, "feature_names_in_", None)
    return place if names is None else str(names[place])
