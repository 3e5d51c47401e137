"""``bowtienet fit``: from a table to a saved model and its scores on held-out rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bowtienet.cli import shared_options as options
from bowtienet.cli.console import Output, note

if TYPE_CHECKING:
    from bowtienet.cli.input_tables import NamedTable
    from bowtienet.cli.tasks import Task

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
TestSize = Annotated[
    float | None,
    options.unset(
        "Share of the rows to hold out and score: 0.1 from 20 rows on; 0 for none.",
        "SHARE",
        "--test-size",
    ),
]


def fit(
    data: options.Data,
    target: options.Target,
    task: options.TargetTask = None,
    out: ModelPlace = None,
    plots: PlotPlace = None,
    report: PagePlace = None,
    drop: options.Drop = None,
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    test_size: TestSize = None,
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
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table, score it on held-out rows, and save it.

    A target of texts, booleans or two different whole numbers has classes, any other is numbers;
    --task says otherwise, and is needed for counts.
    Text columns are one-hot encoded, missing values imputed by the median beside an indicator; the
    model file remembers both. The model that is saved is the one that was scored: held-out rows are
    not used. With --test-size 0 all rows are.
    """
    from bowtienet.cli.input_tables import known_rows, read
    from bowtienet.cli.model_facts import fit_facts
    from bowtienet.cli.plot import draw, painters_of
    from bowtienet.cli.report import check_reportable
    from bowtienet.cli.scores import hold_out, score, show_scores
    from bowtienet.cli.tasks import find_task, read_task
    from bowtienet.ensemble.structure import FEWEST_ROWS

    output, asked = Output(as_json), read_task(task)
    place = _check_places(data, out, plots, report)
    ensemble = {"prior": prior, "n_estimators": members, "max_iter": max_iter}
    ensemble |= {"features": features, "target_transform": target_transform}
    ensemble |= {"noise": noise, "effort": effort}
    regressor = options.make_regressor(
        hidden, weighting, max_categories, jobs, random_state=seed, **ensemble
    )
    table = read(data, output, delimiter, decimal, encoding)
    kind = find_task(table, data.name, target, asked, exposure)
    if report is not None:
        check_reportable(kind)
    rows = known_rows(
        table,
        data.name,
        targets=target,
        drop=drop or [],
        weight=weight,
        task=kind,
        exposure=exposure,
    )
    estimator = options.for_task(regressor, kind)
    train, test = hold_out(rows, test_size, seed)
    columns = _show_columns(rows, train, asked, max_categories, output)
    begin = time.perf_counter()
    model = _fit(estimator, train, output)
    seconds = time.perf_counter() - begin
    if train.n_rows >= FEWEST_ROWS:
        with output.stage("testing which columns matter"):
            model.structure(train.source(model))
    with output.stage("scoring and saving"):
        scores = None if test is None else score(model, test, train, coverage)
        model.save(place)
    facts = {**fit_facts(model), "seconds": round(seconds, 3)}
    held_out = 0 if test is None else test.n_rows
    _show_fit(facts, train.n_rows, held_out, output)
    show_scores(output, scores)
    drawn = []
    if plots is not None:
        drawn = draw(painters_of(model, test, coverage=coverage), plots, output)
    if report is not None:
        _report(model, train, test, report, output, coverage=coverage, model_file=str(place))
    output.say(f"\nmodel: {place}")
    if report is not None:
        output.say(f"report: {report}")
    for plot in drawn:
        output.say(f"plot: {plot}")
    output.result(
        {
            "model": str(place),
            "plots": drawn,
            "report": None if report is None else str(report),
            "task": kind,
            "classes": getattr(model, "classes_", None),
            "rows": {"fitted": train.n_rows, "held_out": held_out},
            "columns": columns,
            "targets": rows.names,
            "fit": facts,
            "scores": scores,
        }
    )


def _check_places(data: Path, out: Path | None, plots: Path | None, report: Path | None) -> Path:
    """Where the model goes; an error if something cannot be written."""
    from bowtienet.cli.writing import PAGES, check_folder, check_place
    from bowtienet.data.files import table_name

    if plots is not None:
        check_folder(plots)
    place = check_place(out or Path(f"{table_name(data)}.btn"), data)
    if report is not None:
        check_place(report, data, place, endings=PAGES)
    return place


def _show_columns(
    rows: NamedTable, train: NamedTable, asked: Task | None, max_categories: int, output: Output
) -> list[dict[str, str]]:
    """What the target is and what becomes of each column, before the long part begins."""
    from bowtienet.cli.model_facts import column_uses
    from bowtienet.cli.tasks import describe_task
    from bowtienet.data.labels import check_classes
    from bowtienet.representation.learning import learn_columns

    with output.stage("looking at the columns"):
        source = train.source()
        if source.classes is not None:
            check_classes(source.classes)
        columns = column_uses(learn_columns(source, max_categories=max_categories))
        target = describe_task(rows.table, rows.names, rows.task, asked)
    output.explain(target)
    output.say()
    shown = [(column["name"], column["use"]) for column in columns]
    shown += [(name, "target") for name in rows.names]
    if rows.weight is not None:
        shown.append((rows.weight, "weight"))
    if rows.exposure is not None:
        shown.append((rows.exposure, "exposure"))
    output.table(("column", "use"), shown, n_texts=2)
    return columns


def _fit(estimator: Any, rows: NamedTable, output: Output) -> Any:
    """Fit with a bar."""
    from bowtienet.cli.model_facts import without_column_notes
    from bowtienet.estimators.progress import reporting_to

    with output.stage("fitting") as bar, reporting_to(bar), without_column_notes():
        exposure = {} if rows.exposure is None else {"exposure": rows.exposure}
        return estimator.fit(rows.table, rows.target, sample_weight=rows.weight, **exposure)


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
    from bowtienet.cli.report import write_page

    if test is None:
        note("no rows were held out: the report is of rows that were fitted.")
        write_page(model, train, place, output, seen=True, **settings)
    else:
        fitted = (train.features, train.targets, train.weights)
        write_page(model, test, place, output, train=fitted, seen=False, **settings)
