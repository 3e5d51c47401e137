"""`bowtienet fit`: fit a model, score it on held-out rows, save it."""

from __future__ import annotations

import sys
import time
from ast import literal_eval
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from bowtienet._format import SCORES, count, duration, percent, score
from bowtienet.cli import options
from bowtienet.cli.console import note, say, table
from bowtienet.cli.data import Rows, announce, hold_out, read_rows
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
    test_size: options.TestSize = 0.2,
    test_last: options.TestLast = None,
    report: options.Report = None,
    settings: options.Settings = [],  # noqa: B006
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    seed: Annotated[int, typer.Option(help="Source of all randomness.")] = 0,
    jobs: options.Jobs = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit a model to a table, score it on held-out rows and save it."""
    from bowtienet.evaluation.competitors import OURS

    problems, rows = Problems(), None
    out = out or Path("model.btn" if data == "-" else Path(data).stem + ".btn")
    problems.output(out, data)
    problems.output(report, data)
    share = test_size if test_last is None else test_last
    if report is not None and not share:
        problems.add("--report needs held-out rows: leave --test-size 0 out.")
    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    roles: Any = {"target": target, "weight": weight, "exposure": exposure}
    with problems.gather():
        rows = read_rows(data, how, problems, outcome=outcome, exclude=exclude, **roles)
        if exposure is not None and rows.outcome != "counts":
            problems.add("--exposure is for counts: add --outcome counts.")
    estimator = OURS["numbers" if rows is None else rows.outcome]()
    with problems.gather("--set: "):
        estimator.set_params(effort=effort, n_jobs=jobs, random_state=seed)
        estimator.set_params(verbose=sys.stderr.isatty(), **dict(map(setting, settings)))
    problems.refuse_if_any()
    assert rows is not None
    training, held_out = hold_out(rows, share, last=test_last is not None, seed=seed)
    if not json:
        announce(data, rows)
    began = time.perf_counter()
    estimator.fit(training.features, training.target, **training.extra)
    seconds = time.perf_counter() - began
    estimator.save(out)
    for text in dict.fromkeys((*rows.notes, *estimator._fitted.representation.notes)):
        note(text)
    content = {"outcome": rows.outcome, "rows": len(training.target), "seconds": seconds}
    if held_out is not None:
        assessment = judge(estimator, training, held_out, report)
        content |= {
            "held_out_rows": assessment.n_rows,
            "scores": assessment.means,
            "gain_over_linear": assessment.gains["linear"],
        }
    if json:
        print(dumps({**content, "model": str(out), "report": report and str(report)}, indent=2))
        return
    fate = "fitted to all rows"
    if held_out is not None:
        show_scores(assessment, "at random" if test_last is None else "the last ones", seconds)
        fate = "the model of these scores; --test-size 0 fits all rows"
    say(f"Wrote {out} ({fate}).")
    if report is not None:
        say(f"Wrote {report}.")
    say(f"Next: bowtienet predict {quote(str(out))} NEW_DATA --out predictions.csv", style="dim")


def judge(estimator: Any, training: Rows, held_out: Rows, page: Path | None) -> Any:
    """Scores of held-out rows, and a page about them if it has a name."""
    from bowtienet.report import write_report
    from bowtienet.report.assessment import assess

    exposure, past = (rows.extra.get("exposure") for rows in (held_out, training))
    known: Any = {"exposure": exposure, "training": (training.features, training.target, past)}
    if page is not None:
        write_report(estimator, held_out.features, held_out.target, page, **known)
    return assess(estimator, held_out.features, held_out.target, **known)


def setting(text: str) -> tuple[str, Any]:
    """A parameter from NAME=VALUE, whose value is as in Python, or plain text."""
    name, _, value = text.partition("=")
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def show_scores(assessment: Any, how: str, seconds: float) -> None:
    """Scores of held-out rows compared with a linear model."""
    ours, linear = assessment.means["bow tie"], assessment.means["linear"]
    lines = [[SCORES[name], score(name, ours[name]), score(name, linear[name])] for name in ours]
    lines.append(["seconds", duration(seconds), duration(assessment.seconds["linear"])])
    table([f"{count(assessment.n_rows, 'held-out row')} ({how})", "bow tie", "linear"], lines)
    value, low, high = (assessment.sureness[end] for end in ("value", "low", "high"))
    if assessment.outcome == "classes":
        say(
            f"Calibration error {percent(value, 1)}; a calibrated model of as many rows "
            f"has up to {percent(high, 1)} by chance."
        )
        return
    most = "or more" if assessment.outcome == "counts" else f"to {percent(high)}"
    say(f"90 % intervals hold {percent(value)} of the rows; chance allows {percent(low)} {most}.")
