"""`bowtienet fit`: fit a model, score it on held-out rows, save it."""

from __future__ import annotations

import sys
import time
from ast import literal_eval
from functools import partial
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from bowtienet._format import SCORES, count, percent, score
from bowtienet.cli import options
from bowtienet.cli.console import note, say, table
from bowtienet.cli.data import announce, hold_out, read_rows
from bowtienet.cli.refusals import Problems


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
    test_size: Annotated[
        float, typer.Option(min=0, max=1, help="Share of rows to hold out; 0 for none.")
    ] = 0.2,
    test_last: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Hold out this share of last rows, for rows in time order."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a page about the model as well.")
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Parameter of the estimator; may be repeated."
        ),
    ] = [],  # noqa: B006
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit a model to a table, score it on held-out rows and save it."""
    from bowtienet.evaluation.competitors import OURS
    from bowtienet.report import write_report
    from bowtienet.report.assessment import assess

    problems, rows = Problems(), None
    out = out or Path("model.btn" if data == "-" else Path(data).stem + ".btn")
    problems.output(out, data)
    problems.output(report, data)
    share = test_size if test_last is None else test_last
    if report is not None and not share:
        problems.append("--report needs held-out rows: leave --test-size 0 out.")
    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    roles: Any = {"target": target, "weight": weight, "exposure": exposure}
    with problems.gather():
        rows = read_rows(data, how, outcome=outcome, exclude=exclude, **roles)
        if exposure is not None and rows.outcome != "counts":
            problems.append("--exposure is for counts: add --outcome counts.")
    estimator = OURS["numbers" if rows is None else rows.outcome]()
    with problems.gather("--set: "):
        estimator.set_params(effort=effort, n_jobs=jobs, random_state=seed)
        estimator.set_params(verbose=sys.stderr.isatty(), **dict(map(setting, settings)))
        estimator._validate_params()
    problems.refuse_if_any()
    assert rows is not None
    training, held_out = hold_out(rows, share, last=test_last is not None, seed=seed)
    if not json:
        announce(data, rows)
    began = time.perf_counter()
    estimator.fit(training.features, training.target, **training.extra)
    content: dict[str, Any] = {"outcome": rows.outcome, "rows": len(training.target)}
    content["seconds"] = time.perf_counter() - began
    estimator.save(out)
    for text in dict.fromkeys((*rows.notes, *estimator._fitted.representation.notes)):
        note(text)
    if held_out is not None:
        times, past = held_out.extra.get("exposure"), training.extra.get("exposure")
        known: Any = {"exposure": times, "training": (training.features, training.target, past)}
        judge: Any = assess if report is None else partial(write_report, path=report)
        assessment = judge(estimator, held_out.features, held_out.target, **known)
        content |= {"held_out_rows": assessment.n_rows, "scores": assessment.means}
        content["gain_over_linear"] = assessment.gains["linear"]
    if json:
        print(dumps({**content, "model": str(out), "report": report and str(report)}, indent=2))
        return
    rest = "fitted to all rows"
    if held_out is not None:
        show_scores(assessment, "at random" if test_last is None else "the last ones")
        rest = "fitted to the training rows; --test-size 0 fits all rows"
    say(f"Wrote {out} ({rest}).")
    if report is not None:
        say(f"Wrote {report}.")
    say(f"Next: bowtienet predict {quote(str(out))} NEW_DATA --out predictions.csv", style="dim")


def setting(text: str) -> tuple[str, Any]:
    """A parameter from NAME=VALUE, whose value is as in Python, or plain text."""
    name, _, value = text.partition("=")
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def show_scores(assessment: Any, how: str) -> None:
    """Scores of held-out rows compared with a linear model."""
    ours, linear = assessment.means["bow tie"], assessment.means["linear"]
    lines = [[SCORES[name], score(name, ours[name]), score(name, linear[name])] for name in ours]
    table([f"{count(assessment.n_rows, 'held-out row')} ({how})", "bow tie", "linear"], lines)
    value, low, high = (percent(assessment.sureness[end], 1) for end in ("value", "low", "high"))
    chance = {"numbers": f"{low} to {high}", "counts": f"{low} or more", "classes": f"up to {high}"}
    what = "Calibration error" if assessment.outcome == "classes" else "Share in 90 % intervals"
    say(f"{what}: {value} ({chance[assessment.outcome]} by chance if calibrated).")
