"""``bowtienet plot``: plots of a model and of how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output

if TYPE_CHECKING:
    from bowtienet._old.cli.input_tables import NamedTable

_DPI = 130
OF_MODELS = {
    "network": "NetworkDisplay",
    "weights": "WeightsDisplay",
    "relevance": "RelevanceDisplay",
    "elbo": "ElboDisplay",
    "shrinkage": "ShrinkageDisplay",
    "activation": "ActivationDisplay",
}
_OF_NUMBERS = {
    "calibration": "CalibrationCurveDisplay",
    "pit": "PitHistogramDisplay",
    "predicted": "PredictedActualDisplay",
    "importance": "ImportanceDisplay",
    "band": "PredictiveBandDisplay",
}
_OF_CLASSES = {
    "reliability": "ReliabilityDisplay",
    "roc": "RocCurvesDisplay",
    "precision-recall": "PrecisionRecallCurvesDisplay",
    "confusion": "ConfusionDisplay",
}
OF_ROWS = _OF_NUMBERS | _OF_CLASSES
KINDS = OF_MODELS | OF_ROWS
"""Plots by name, and what draws them."""
BY_TASK = {
    "numbers": tuple(_OF_NUMBERS),
    "classes": (*_OF_CLASSES, "importance"),
    "counts": ("calibration", "pit", "importance"),
}
"""Plots of rows."""
_OF_TWO_CLASSES = ("roc", "precision-recall")
"""Plots that tell classes apart."""
Format = StrEnum("Format", "PNG SVG PDF")
Others = StrEnum("Others", "FIXED AVERAGE")


def kinds_of(task: str) -> list[str]:
    """Plots that there may be of a model and of rows."""
    return [*OF_MODELS, *BY_TASK[task]]


def _known(kinds: list[str] | None) -> list[str] | None:
    for kind in kinds or ():
        if kind not in KINDS:
            raise typer.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}.")
    return kinds


def plot(
    model: options.Model,
    data: options.OptionalKnownRows = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the plots.")] = Path("plots"),
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            callback=_known,
            show_default=False,
            help=f"Plot to draw, repeat it for several; all that apply by default. Of models: "
            f"{', '.join(OF_MODELS)}. Of models and DATA: {', '.join(_OF_NUMBERS)}; of classes "
            f"{', '.join(BY_TASK['classes'])}; of counts {', '.join(BY_TASK['counts'])}.",
        ),
    ] = None,
    feature: Annotated[
        str | None,
        options.unset("Feature for band; the strongest by default.", "COLUMN", "--feature"),
    ] = None,
    others: Annotated[
        Others,
        typer.Option("--others", help="What band does with features that it does not show."),
    ] = Others.FIXED,
    target: Annotated[
        str | None,
        options.unset(
            "Which of several targets, the first by default; or the column of the only target, if "
            "its name is not that of training.",
            "COLUMN",
            "--target",
            "-t",
        ),
    ] = None,
    exposure: options.Exposure = None,
    file_format: Annotated[Format, typer.Option("--format", help="Kind of file.")] = Format.PNG,
    coverage: options.Coverage = 0.9,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Draw a model, its fit and, with rows, how well it predicts them."""
    from bowtienet._old.cli.input_tables import known_rows_of_model, read
    from bowtienet._old.cli.writing import check_folder
    from bowtienet._old.estimators.saving import load

    output = Output(as_json)
    check_folder(out)
    fitted = load(model)
    names, place = _targets(fitted, target)
    rows = None
    if data is not None:
        table = read(data, output, (delimiter, decimal, encoding, date_format), fitted)
        rows = known_rows_of_model(fitted, table, data.name, targets=names, exposure=exposure)
    painters = _chosen(fitted, painters_of(fitted, rows, feature, others, place, coverage), kind)
    check_folder(out, [f"{name}.{file_format}" for name in painters], force=force)
    found = draw(painters, out, output, file_format)
    output.say("\n".join(found))
    output.result({"plots": found})


def draw(
    painters: Mapping[str, Callable[[], Any]],
    folder: Path,
    output: Output,
    file_format: str = "png",
) -> list[str]:
    """Write plots to a folder, which is made if need be; their places."""
    from matplotlib import pyplot

    from bowtienet._old import persistence

    pyplot.switch_backend("agg")  # files only: no window, and none is needed
    figures: dict[Path, Any] = {}
    try:
        with output.stage("drawing") as bar:
            for index, (kind, paint) in enumerate(painters.items()):
                bar.show(f"drawing {kind}", index / len(painters))
                figures[folder / f"{kind}.{file_format}"] = paint().figure_
        # Only now, so that rows that do not fit leave no folder and no plot behind.
        folder.mkdir(exist_ok=True)
        for place, figure in figures.items():
            with persistence.replacing(persistence.check_writable(place)) as temporary:
                figure.savefig(temporary, format=file_format, dpi=_DPI)
    finally:
        for figure in figures.values():
            pyplot.close(figure)
    return [str(place) for place in figures]


def painters_of(
    model: Any,
    rows: NamedTable | None,
    feature: str | None = None,
    others: str = "fixed",
    target: int = 0,
    coverage: float = 0.9,
) -> dict[str, Callable[[], Any]]:
    """How each plot that can be drawn is drawn; those of rows for one of the targets."""
    from bowtienet._old import plotting

    settings: dict[str, dict[str, Any]] = {kind: {} for kind in OF_MODELS}
    if not len(model.elbo_history_):
        del settings["elbo"]
    if rows is not None:
        drawn = set(BY_TASK[rows.task]) - (set() if _is_mixed(rows) else {*_OF_TWO_CLASSES})
        settings |= {kind: _of_rows(kind, model, rows, target) for kind in OF_ROWS if kind in drawn}
    if "predicted" in settings:
        settings["predicted"]["coverage"] = coverage
    if "band" in settings:
        settings["band"] |= {
            "feature": _strongest(model) if feature is None else feature,
            "others": others,
            "coverages": (0.5, coverage) if coverage > 0.5 else (coverage,),
        }
    return {
        kind: partial(getattr(plotting, KINDS[kind]).from_estimator, model, **given)
        for kind, given in settings.items()
    }


def _of_rows(kind: str, model: Any, rows: NamedTable, target: int) -> dict[str, Any]:
    """The rows as the display of a kind takes them."""
    if kind in _OF_CLASSES:
        return {"X": rows.features, "y": rows.labels}
    if rows.task == "numbers":
        return {"X": rows.features, "y": rows.targets, "target": target}
    return {"X": rows.source(model), "y": None}


def _is_mixed(rows: NamedTable) -> bool:
    """Whether rows are of numbers or counts, or of more than one class."""
    return rows.task != "classes" or len(set(rows.labels.tolist())) > 1


def _chosen(
    model: Any, painters: dict[str, Callable[[], Any]], kinds: list[str] | None
) -> dict[str, Callable[[], Any]]:
    """Plots that are asked for, all of them if none is, in the order of `KINDS`."""
    from bowtienet._old.cli.tasks import task_of

    task = task_of(model)
    for kind in sorted(set(kinds or ()) - set(painters)):
        if kind in OF_ROWS and kind not in BY_TASK[task]:
            raise ValueError(
                f"{kind} is not for {task}: choose among {', '.join(BY_TASK[task])}, or plots of "
                "the model alone."
            )
        if kind in _OF_TWO_CLASSES and "confusion" in painters:
            raise ValueError(f"{kind} needs rows of two classes or more: give others.")
        if kind in OF_ROWS:
            raise ValueError(f"{kind} needs rows with targets: name a table after the model.")
        raise ValueError(f"{kind} cannot be drawn: this model has no history of its bound.")
    return {kind: paint for kind, paint in painters.items() if kind in (kinds or painters)}


def _targets(model: Any, given: str | None) -> tuple[list[str], int]:
    """Columns of all targets, and the place of the one to plot."""
    from bowtienet._old._validation import suggestion

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
