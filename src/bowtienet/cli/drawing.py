"""``bowtienet plot``: pictures of a model and of how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bowtienet import persistence, plotting
from bowtienet.cli import options
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.cli.models import input_names, inputs_of, network, target_names
from bowtienet.cli.tables import Rows, TextFormat, read, split_columns
from bowtienet.estimators.preparing import output_names
from bowtienet.estimators.table_pipeline import TablePipeline, load
from bowtienet.prediction.intervals import check_coverage

_DPI = 130


class Kind(StrEnum):
    """Pictures by name; those from `CALIBRATION` on need rows."""

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
    rows = None
    if data is not None:
        text = TextFormat(delimiter=delimiter, decimal=decimal, encoding=encoding)
        table = read(data, text, output)
        rows = split_columns(table, target_names(fitted), [], None, data.name, output)
    kinds = _wanted(fitted, kind, rows)
    found = draw(fitted, rows, kinds, out, output, picture_format, feature, coverage)
    output.say("\n".join(str(place) for place in found))
    output.result({"pictures": [str(place) for place in found]})


def draw(
    model: Any,
    rows: Rows | None,
    kinds: Sequence[Kind],
    folder: Path,
    output: Output,
    picture_format: Format = Format.PNG,
    feature: str | None = None,
    coverage: float = 0.9,
) -> list[Path]:
    """Write pictures to a folder, which is made if need be; their places."""
    from matplotlib import pyplot

    painters = _painters(model, rows, feature, coverage)
    pyplot.switch_backend("agg")  # files only: no window, and none is needed
    check_folder(folder)
    folder.mkdir(exist_ok=True)
    places = []
    with output.stage("drawing") as bar:
        for index, kind in enumerate(kinds):
            bar.show(f"drawing {kind}", index / len(kinds))
            figure = painters[kind]().figure_
            stop_if_interrupted()
            places.append(folder / f"{kind}.{picture_format}")
            with persistence.replacing(persistence.check_writable(places[-1])) as temporary:
                figure.savefig(temporary, format=picture_format, dpi=_DPI)
            pyplot.close(figure)
    return places


def check_folder(folder: Path) -> None:
    """Raise if there can be no pictures in a folder, which need not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the pictures.")
    persistence.check_writable(folder / "picture" if folder.is_dir() else folder)


def available(model: Any, rows: Rows | None) -> list[Kind]:
    """Pictures that can be drawn; a pruned model has no history."""
    without: tuple[Kind, ...] = () if len(network(model).elbo_history_) else (Kind.ELBO,)
    without += NEED_ROWS if rows is None else ()
    return [kind for kind in Kind if kind not in without]


def _wanted(model: Any, kinds: list[Kind] | None, rows: Rows | None) -> list[Kind]:
    if not kinds:
        return available(model, rows)
    need = [kind for kind in kinds if kind in NEED_ROWS]
    if rows is None and need:
        raise ValueError(f"{need[0]} needs rows with targets: name a table after the model.")
    return list(dict.fromkeys(kinds))


def _painters(
    model: Any, rows: Rows | None, feature: str | None, coverage: float
) -> dict[Kind, Callable[[], Any]]:
    """How each picture is drawn, beginning with its data."""
    inner = network(model)
    found: dict[Kind, Callable[[], Any]] = {
        Kind.NETWORK: lambda: plotting.NetworkDisplay.from_estimator(inner),
        Kind.WEIGHTS: lambda: plotting.WeightsDisplay.from_estimator(inner),
        Kind.RELEVANCE: lambda: plotting.RelevanceDisplay.from_estimator(inner),
        Kind.ELBO: lambda: plotting.ElboDisplay.from_estimator(inner),
        Kind.SHRINKAGE: lambda: plotting.ShrinkageDisplay.from_estimator(inner),
        Kind.ACTIVATION: lambda: plotting.ActivationDisplay.from_estimator(inner),
    }
    if rows is None:
        return found
    X, y = inputs_of(model, rows.table, "the table"), rows.targets
    name = strongest_input(model) if feature is None else feature
    return found | {
        Kind.CALIBRATION: lambda: plotting.CalibrationCurveDisplay.from_estimator(model, X, y),
        Kind.PIT: lambda: plotting.PitHistogramDisplay.from_estimator(model, X, y),
        Kind.PREDICTED: lambda: plotting.PredictedActualDisplay.from_estimator(
            model, X, y, coverage=coverage
        ),
        Kind.BAND: lambda: plotting.PredictiveBandDisplay.from_estimator(
            model, X, name, coverages=(0.5, coverage), y=y
        ),
    }


def strongest_input(model: Any) -> str | int:
    """The column that moves the target most."""
    found = network(model).feature_relevance_
    largest = found.strength.reshape(len(found.name), -1).max(axis=1)
    strength = dict(zip(map(str, found.name), largest, strict=True))
    if isinstance(model, TablePipeline):
        columns = [(column.name, output_names([column])) for column in model.preparer_.columns_]
        return max(columns, key=lambda c: max((strength[n] for n in c[1]), default=-np.inf))[0]
    names = input_names(model)
    place = int(np.argmax(list(strength.values())))
    return place if names is None else names[place]
