"""`bowtienet fit`: fit a model, score it on held-out rows, save it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from bowtienet._format import count, duration, number, percent, shorten
from bowtienet.cli import options
from bowtienet.cli.console import as_json, note, say, table
from bowtienet.cli.data import Rows, estimator_of, hold_out, read_rows, take
from bowtienet.cli.refusals import Problems

USUAL_TEST_SIZE = 0.2


def fit(
    data: options.Data,
    target: options.Target,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="MODEL", help="File of the model. [DATA.btn]"),
    ] = None,
    effort: options.Effort = "balanced",
    outcome: options.Outcome = "auto",
    exclude: options.Exclude = [],  # noqa: B006 (typer copies it)
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    test_size: options.TestSize = None,
    test_last: options.TestLast = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a page about the model as well.")
    ] = None,
    settings: options.Settings = [],  # noqa: B006
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Fit a model to a table, score it on held-out rows and save it."""
    problems = Problems()
    out = out or Path("model.btn" if data == "-" else Path(data).stem + ".btn")
    check_options(problems, effort, outcome, test_size, test_last)
    problems.output(out, force=force)
    problems.output(report, force=force)
    how = options.reading(missing_values, day_first, decimal, problems)
    roles: Any = {"target": target, "weight": weight, "exposure": exposure}
    rows = read_rows(data, how, problems, outcome=outcome, exclude=exclude, **roles)
    outcome = "numbers" if rows is None else rows.outcome
    if exposure is not None and rows is not None and outcome != "counts":
        problems.add("--exposure is for counts: add --outcome counts.")
    if report is not None and test_size == 0.0:
        problems.add("--report needs held-out rows: leave --test-size 0 out.")
    known = list(estimator_of(outcome, {}).get_params())
    chosen = options.settings_of(settings, known, problems)
    problems.refuse_if_any()
    assert rows is not None
    common = {"effort": effort, "n_jobs": jobs, "random_state": seed}
    common["verbose"] = sys.stderr.isatty()
    estimator = estimator_of(outcome, common | chosen)
    share = USUAL_TEST_SIZE if test_size is None else test_size
    train, test = hold_out(rows.target, outcome, share, test_last, seed)
    training, held_out = take(rows, train), take(rows, test) if len(test) else None
    if not json:
        announce(data, rows)
    began = time.perf_counter()
    fit_rows(estimator, training)
    for text in dict.fromkeys((*rows.notes, *estimator._fitted.representation.notes)):
        note(text)
    seconds = time.perf_counter() - began
    content = {"outcome": outcome, "rows": len(training.target), "seconds": seconds}
    if held_out is not None:
        how_held = "at random" if test_last is None else "the last ones"
        content |= show_scores(estimator, training, held_out, how_held, seconds, quiet=json)
    estimator.save(out)
    if report is not None and held_out is not None:
        write_page(estimator, training, held_out, report)
    if json:
        as_json({**content, "model": str(out), "report": report and str(report)})
        return
    scored = "the model of these scores" if held_out is not None else "fitted to all rows"
    more = "; --test-size 0 fits all rows" if held_out is not None else ""
    say(f"Wrote {out} ({scored}{more}).")
    if report is not None:
        say(f"Wrote {report}.")
    say(f"Next: bowtienet predict {quote(str(out))} NEW_DATA --out predictions.csv", style="dim")


def check_options(
    problems: Problems,
    effort: str,
    outcome: str,
    test_size: float | None,
    test_last: float | None,
) -> None:
    """Options that do not depend on the table."""
    problems.choice("--effort", effort, options.EFFORTS)
    problems.choice("--outcome", outcome, options.OUTCOMES)
    problems.share("--test-size", test_size)
    problems.share("--test-last", test_last)
    if test_size is not None and test_last is not None:
        problems.add("--test-size and --test-last exclude each other: give one of them.")


def announce(data: str, rows: Rows) -> None:
    """What was read."""
    what = {"student_t": "numbers with outliers"}.get(rows.outcome, rows.outcome)
    say(
        f"{shorten(data, 60)}: {count(len(rows.target), 'row')}, "
        f"{count(rows.features.shape[1], 'column')}; target '{shorten(rows.target.name)}' "
        f"({what})"
    )


def fit_rows(estimator: Any, rows: Rows) -> None:
    """Fit to rows by their roles."""
    extra = {} if rows.exposure is None else {"exposure": rows.exposure}
    estimator.fit(rows.features, rows.target, sample_weight=rows.weights, **extra)


def show_scores(
    model: Any, training: Rows, held_out: Rows, how: str, seconds: float, *, quiet: bool
) -> dict[str, Any]:
    """Scores of held-out rows compared with a linear model, as a table and for machines."""
    from bowtienet.report.assessment import LINEAR, OURS, assess

    assessment = assess(
        model,
        held_out.features,
        held_out.target,
        exposure=held_out.exposure,
        training=(training.features, training.target, training.exposure),
    )
    means = assessment.means
    if not quiet:
        lines = [
            [name, *(score(name, means[model_name][name]) for model_name in (OURS, LINEAR))]
            for name in means[OURS]
        ]
        lines.append(["seconds", *map(duration, (seconds, assessment.seconds[LINEAR]))])
        header = f"{count(assessment.n_rows, 'held-out row')} ({how})"
        table([header, OURS, LINEAR], lines)
        band = assessment.sureness
        if assessment.outcome == "classes":
            say(
                f"Calibration error {percent(band.value, 1)}; a calibrated model of as many rows "
                f"has up to {percent(band.high, 1)} by chance."
            )
        else:
            most = "or more" if assessment.outcome == "counts" else f"to {percent(band.high)}"
            say(
                f"90 % intervals hold {percent(band.value)} of the rows; chance allows "
                f"{percent(band.low)} {most}."
            )
    return {
        "held_out_rows": assessment.n_rows,
        "scores": means,
        "gain_over_linear": assessment.gains[LINEAR]._asdict(),
        "seconds_of_linear": assessment.seconds[LINEAR],
    }


def score(name: str, value: float) -> str:
    """A score for people."""
    shares = ("accuracy", "in 90 % intervals")
    return percent(value, 1) if name in shares else number(value, 4)


def write_page(model: Any, training: Rows, held_out: Rows, path: Path) -> None:
    """The page about a model that was fitted here."""
    from bowtienet.report import write_report

    write_report(
        model,
        held_out.features,
        held_out.target,
        path,
        exposure=held_out.exposure,
        training=(training.features, training.target, training.exposure),
    )
