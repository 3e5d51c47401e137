"""``bowtienet fit``: from a table to a saved model and its scores on held-out rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, note

if TYPE_CHECKING:
    from bowtienet._old.cli.decisions import Asked, Looked
    from bowtienet._old.cli.input_tables import Marks, NamedTable
    from bowtienet._old.data.dialect import Dialect
    from bowtienet._old.estimators.regressor import BowTieRegressor

ModelPlace = Annotated[
    Path | None,
    options.unset("File for the model; DATA's name with .btn.", "FILE", "--out", "-o"),
]
PlotPlace = Annotated[
    Path | None, options.unset("Folder for plots of the held-out rows.", "FOLDER", "--plots")
]
PagePlace = Annotated[
    Path | None, options.unset("File for an HTML page about the held-out rows.", "FILE", "--report")
]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the files of a fit go."""

    model: Path
    plots: Path | None
    report: Path | None


def fit(
    data: options.Data,
    target: options.Target,
    task: options.TargetTask = None,
    out: ModelPlace = None,
    plots: PlotPlace = None,
    report: PagePlace = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    drop_duplicates: options.DropDuplicates = False,
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    test_size: options.TestSize = None,
    coverage: options.Coverage = 0.9,
    hidden: options.Hidden = "50",
    prior: options.Prior = "student_t",
    features: options.Features = "auto",
    target_transform: options.TargetTransform = "auto",
    noise: options.Noise = "auto",
    effort: options.Effort = "balanced",
    members: options.Members = None,
    weighting: options.Weighting = "stacking",
    max_iter: options.Sweeps = 80,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    verbose: options.Verbose = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table, score it on held-out rows, and save it.

    A target of texts, booleans or two different whole numbers has classes, any other is numbers;
    --task says otherwise, and is needed for counts.
    Text columns are one-hot encoded, missing values imputed by the median beside an indicator; the
    model file remembers both. The model that is saved is the one that was scored: held-out rows are
    not used. With --test-size 0 all rows are.
    """
    from bowtienet._old.cli.decisions import Asked
    from bowtienet._old.cli.tasks import read_task

    output = Output(as_json, verbose=verbose)
    asked = Asked(
        targets=target,
        task=read_task(task),
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
        weight=weight,
        exposure=exposure,
        drop_duplicates=drop_duplicates,
        max_categories=max_categories,
        test_size=test_size,
        seed=seed,
    )
    places = _check_places(data, out, plots, report, force=force)
    ensemble = {"prior": prior, "n_estimators": members, "max_iter": max_iter}
    ensemble |= {"features": features, "target_transform": target_transform}
    ensemble |= {"noise": noise, "effort": effort, "random_state": seed}
    regressor = options.make_regressor(hidden, weighting, max_categories, jobs, **ensemble)
    marks = (delimiter, decimal, encoding, date_format)
    _run(data, marks, asked, regressor, places, output, coverage=coverage, force=force)


def _run(
    data: Path,
    marks: Marks,
    asked: Asked,
    regressor: BowTieRegressor,
    places: Places,
    output: Output,
    *,
    coverage: float,
    force: bool,
) -> None:
    """Read, look, fit, score, save, draw, and say what came of it."""
    from bowtienet._old.cli.decisions import as_plain
    from bowtienet._old.cli.input_tables import read_with_dialect
    from bowtienet._old.cli.model_facts import fit_facts
    from bowtienet._old.cli.scores import score, show_scores

    table, dialect = read_with_dialect(data, output, marks)
    looked, rows, train = _look(table, dialect, data.name, asked, places, output, force=force)
    estimator = options.for_task(regressor, rows.task)
    _show_looked(looked, output)
    begin = time.perf_counter()
    model = _fit(estimator, train, output)
    seconds = time.perf_counter() - begin
    _test_columns(model, train, output)
    if dialect is not None:
        model.dialect_ = dialect
    test = looked.test
    with output.stage("scoring and saving"):
        scores = None if test is None else score(model, test, train, coverage)
        model.save(places.model)
    facts = {**fit_facts(model), "seconds": round(seconds, 3)}
    held_out = 0 if test is None else test.n_rows
    _show_fit(facts, train.n_rows, held_out, output)
    show_scores(output, scores)
    drawn = _draw(model, train, test, places, coverage, output)
    output.result(
        {
            "model": str(places.model),
            "plots": drawn,
            "report": None if places.report is None else str(places.report),
            "task": rows.task,
            "classes": getattr(model, "classes_", None),
            "rows": {"fitted": train.n_rows, "held_out": held_out},
            "columns": looked.columns,
            "targets": rows.names,
            "decisions": [as_plain(one) for one in looked.decisions],
            "dialect": dialect,
            "fit": facts,
            "scores": scores,
        }
    )


def _check_places(
    data: Path, out: Path | None, plots: Path | None, report: Path | None, *, force: bool
) -> Places:
    """Where the files go; an error if one cannot be written."""
    from bowtienet._old.cli.writing import PAGES, check_folder, check_place
    from bowtienet._old.data.files import table_name

    if plots is not None:
        check_folder(plots)
    place = check_place(out or Path(f"{table_name(data)}.btn"), data, force=force)
    if report is not None:
        check_place(report, data, place, endings=PAGES, force=force)
    return Places(model=place, plots=plots, report=report)


def _look(
    table: Any,
    dialect: Dialect | None,
    label: str,
    asked: Asked,
    places: Places,
    output: Output,
    *,
    force: bool,
) -> tuple[Looked, NamedTable, NamedTable]:
    """What becomes of the table, all its rows and the training rows; refused before it is shown."""
    from bowtienet._old.cli.decisions import look, refuse
    from bowtienet._old.cli.plot import kinds_of
    from bowtienet._old.cli.report import check_reportable
    from bowtienet._old.cli.writing import check_folder

    with output.stage("looking at the columns"):
        found = look(table, dialect, label, asked)
    refuse(found.problems)
    assert found.rows is not None
    assert found.train is not None
    if places.report is not None:
        check_reportable(found.rows.task)
    if places.plots is not None:
        names = [f"{name}.png" for name in kinds_of(found.rows.task)]
        check_folder(places.plots, names, force=force)
    return found, found.rows, found.train


def _show_looked(found: Looked, output: Output) -> None:
    """What becomes of the table, before the long part begins."""
    from bowtienet._old.cli.decisions import show

    output.explain(found.sentence)
    output.say()
    show(found, output)


def _fit(estimator: Any, rows: NamedTable, output: Output) -> Any:
    """Fit with a bar."""
    from bowtienet._old.cli.model_facts import without_column_notes
    from bowtienet._old.estimators.progress import reporting_to

    with output.stage("fitting") as bar, reporting_to(bar), without_column_notes():
        exposure = {} if rows.exposure is None else {"exposure": rows.exposure}
        return estimator.fit(rows.table, rows.target, sample_weight=rows.weight, **exposure)


def _test_columns(model: Any, train: NamedTable, output: Output) -> None:
    """Test which columns matter, where there are rows enough."""
    from bowtienet._old.ensemble.structure import FEWEST_ROWS

    if train.n_rows >= FEWEST_ROWS:
        with output.stage("testing which columns matter"):
            model.structure(train.source(model))


def _draw(
    model: Any,
    train: NamedTable,
    test: NamedTable | None,
    places: Places,
    coverage: float,
    output: Output,
) -> list[str]:
    """Write plots and the report that are asked for, and say where all files are."""
    from bowtienet._old.cli.plot import draw, painters_of

    drawn = []
    if places.plots is not None:
        drawn = draw(painters_of(model, test, coverage=coverage), places.plots, output)
    if places.report is not None:
        about = {"coverage": coverage, "model_file": str(places.model)}
        _report(model, train, test, places.report, output, **about)
    output.say(f"\nmodel: {places.model}")
    if places.report is not None:
        output.say(f"report: {places.report}")
    for plot in drawn:
        output.say(f"plot: {plot}")
    return drawn


def _show_fit(facts: dict[str, Any], n_fitted: int, n_held_out: int, output: Output) -> None:
    held = f", {n_held_out:,} held out" if n_held_out else ""
    networks, sweeps = facts["networks"], facts["sweeps"]
    output.say()
    output.explain(
        f"{n_fitted:,} rows fitted{held}; {networks} network{'s' if networks > 1 else ''}, "
        f"{sweeps} sweep{'s' if sweeps > 1 else ''}, "
        f"{'converged' if facts['converged'] else facts['status']}, {facts['seconds']:.1f} s"
    )


def _report(
    model: Any,
    train: NamedTable,
    test: NamedTable | None,
    place: Path,
    output: Output,
    **settings: Any,
) -> None:
    """Write the report about the held-out rows; about those fitted if there are none."""
    from bowtienet._old.cli.report import write_page

    if test is None:
        note("no rows were held out: the report is of rows that were fitted.")
        write_page(model, train, place, output, seen=True, **settings)
    else:
        fitted = (train.features, train.targets, train.weights)
        write_page(model, test, place, output, train=fitted, seen=False, **settings)
