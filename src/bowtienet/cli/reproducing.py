"""``bowtienet reproduce``: the experiments of the paper beside competitors, again and further."""

from __future__ import annotations

import importlib
import shlex
import signal
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bowtienet._validation import suggestion
from bowtienet.cli import options
from bowtienet.cli.commands import guarded, heeding, interruption_code, stop_if_interrupted
from bowtienet.cli.console import Bar, Output, fail
from bowtienet.cli.drawing import check_folder
from bowtienet.data.sets import SETS
from bowtienet.experiments.cases import Case
from bowtienet.experiments.index import write_index
from bowtienet.experiments.methods import METHODS, missing
from bowtienet.experiments.provenance import describe_run
from bowtienet.experiments.records import DONE, FAILED, MISSING, STATUSES, Journal, Record, count
from bowtienet.experiments.running import run_cases, seconds_left, to_do

EXPERIMENTS = ("priors", "activation", "toy", "diabetes", "uci", "slump", "svi")
"""Modules of `bowtienet.experiments`, in the order of the paper."""
ALL = "all"
TO_DO = "to do"
RESULTS = "results.jsonl"
_REASONS = 10
"""Reasons that are shown; more are counted."""


class _Wish(NamedTuple):
    """What is to be run, and where to."""

    experiments: Sequence[str]
    splits: int
    methods: Sequence[str] | None
    datasets: Sequence[str] | None
    out: Path
    jobs: int
    again: bool

    @property
    def takes_fits(self) -> bool:
        """Whether figures of fits are wanted: who asks for some cases of several is spared them."""
        return len(self.experiments) == 1 or not (self.methods or self.datasets)


@guarded
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            show_default=False,
            help=f"Of {', '.join(EXPERIMENTS)}; all of them by default.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for all files.")] = Path(
        "reproduced"
    ),
    splits: Annotated[int, typer.Option("--splits", min=1, help="Random splits.")] = 10,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", show_default=False, help="Only this method; repeat for several."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", show_default=False, help="Only this data set; repeat for several."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Run once more what failed.")] = False,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
) -> None:
    """Run the experiments of the paper beside competitors, and write tables and figures.

    Every result goes to a line of results.jsonl at once. The same command goes on after Ctrl-C or
    a crash, tries again what lacked a library or data, and renews index.md, tables and figures.
    """
    output = Output(as_json)
    wish = _Wish(_experiments(what), splits, method, data, out, jobs, again)
    _check_names(method, METHODS, "method")
    _check_names(data, SETS, "data set")
    check_folder(out)
    try:
        with heeding(signal.SIGTERM):
            _reproduce(wish, output)
    except KeyboardInterrupt:
        fail(f"interrupted: all that is done is in {out}, the same command goes on.")
        raise typer.Exit(interruption_code()) from None


def _reproduce(wish: _Wish, output: Output) -> None:
    modules = {
        name: importlib.import_module(f"bowtienet.experiments.{name}") for name in wish.experiments
    }
    cases = _cases(modules.values(), wish)
    wish.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(wish.out / RESULTS, describe_run(_command(wish)))
    if journal.mended:
        output.note(journal.mended)
    if cases:
        _run(cases, journal, wish, output)
    files = _write(modules, journal, wish, output)
    _show(cases, journal, files, output)


def _cases(modules: Any, wish: _Wish) -> list[Case]:
    found = [
        case
        for module in modules
        for case in module.cases(splits=wish.splits, methods=wish.methods)
        if wish.datasets is None or case.dataset in wish.datasets
    ]
    if not found and (wish.methods or wish.datasets):
        raise ValueError(
            f"{', '.join(wish.experiments)} has nothing to run with these --method and --data: "
            "leave one of them out, or name another experiment."
        )
    return found


def _run(cases: Sequence[Case], journal: Journal, wish: _Wish, output: Output) -> None:
    left = {case.key: case for case in to_do(cases, journal.records, again=wish.again)}
    left = {key: case for key, case in left.items() if missing(case.method) is None}
    total = len(left)
    output.say(_outlook(cases, left, journal))
    with output.stage("running") as bar:

        def advance(record: Record) -> None:
            stop_if_interrupted()
            if left.pop(record.key, None) is not None:
                remaining = seconds_left(left.values(), journal.records.values(), wish.jobs)
                _progress(bar, record, total - len(left), total, remaining)

        run_cases(cases, journal, n_jobs=wish.jobs, again=wish.again, callback=advance)


def _outlook(cases: Sequence[Case], left: Container[str], journal: Journal) -> str:
    """How many cases are at what, before anything is run."""
    states = Counter(_state(key, left, journal) for key in {case.key for case in cases})
    parts = [f"{states[state]:,} {state}" for state in (DONE, TO_DO, MISSING, FAILED)]
    return f"{states.total():,} cases: {', '.join(parts)}"


def _state(key: str, left: Container[str], journal: Journal) -> str:
    if key in left:
        return TO_DO
    return journal.records[key].status if key in journal.records else MISSING


def _progress(bar: Bar, record: Record, done: int, total: int, remaining: float) -> None:
    what = f"{record.experiment}, {record.method} on {record.dataset}, split {record.seed}"
    bar.show(
        f"running | {done:,}/{total:,} | {what}: {record.status} | "
        f"about {_duration(remaining)} left",
        done / total,
    )


def _write(modules: dict[str, Any], journal: Journal, wish: _Wish, output: Output) -> list[Path]:
    """Tables, figures and the page that shows them."""
    records = list(journal.records.values())
    files: list[Path] = []
    fitting = [name for name, module in modules.items() if hasattr(module, "write_fits")]
    if fitting and not wish.takes_fits:
        output.say(
            "with --method or --data, fits behind figures are left out: name one of "
            f"{', '.join(fitting)} alone for its own"
        )
    with output.stage("writing") as bar:
        for place, (name, module) in enumerate(modules.items()):
            share = place / len(modules)

            def report(text: str, name: str = name, share: float = share) -> None:
                stop_if_interrupted()
                bar.show(f"writing {name} | {text}", share)

            report("tables and figures")
            files += module.write(records, wish.out, report)
            if name in fitting and wish.takes_fits:
                files += module.write_fits(wish.out, report, n_jobs=wish.jobs)
            stop_if_interrupted()
    return [*files, write_index(wish.out, journal.runs.values(), records)]


def _show(cases: Sequence[Case], journal: Journal, files: list[Path], output: Output) -> None:
    """How the cases ended, why some did not, and where everything is."""
    records = [journal.records[case.key] for case in cases if case.key in journal.records]
    if records:
        methods = dict.fromkeys(record.method for record in records)
        counts = {m: count(r for r in records if r.method == m) for m in methods}
        output.table(
            ("method", *STATUSES),
            [(m, *(f"{number:,}" for number in counts[m].values())) for m in methods],
        )
    reasons = Counter(
        f"{record.method} {record.status}: {record.note}"
        for record in records
        if record.status != DONE
    )
    for reason, times in reasons.most_common(_REASONS):
        output.say(f"{reason} ({times:,} case{'s' if times > 1 else ''})")
    if len(reasons) > _REASONS:
        output.say(f"and {len(reasons) - _REASONS} more reasons, in the notes of {RESULTS}")
    output.say(f"{len(files):,} files, all shown in {files[-1]}")
    output.result(
        {
            "cases": count(records),
            "reasons": dict(reasons),
            "files": [str(file) for file in files],
            "index": str(files[-1]),
        }
    )


def _experiments(what: Sequence[str] | None) -> list[str]:
    names = list(dict.fromkeys(what or [ALL]))
    _check_names(names, (*EXPERIMENTS, ALL), "experiment")
    return list(EXPERIMENTS) if ALL in names else names


def _check_names(names: Sequence[str] | None, known: Any, kind: str) -> None:
    for name in names or ():
        if name not in known:
            raise ValueError(f"there is no {kind} {name!r}{suggestion(name, list(known))}")


def _command(wish: _Wish) -> str:
    """What to type for the same, but for the folder."""
    words = ["bowtienet", "reproduce", *wish.experiments, "--splits", str(wish.splits)]
    words += [word for name in wish.methods or () for word in ("--method", name)]
    words += [word for name in wish.datasets or () for word in ("--data", name)]
    words += ["--again"] if wish.again else []
    return shlex.join([*words, "--jobs", str(wish.jobs)])


def _duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
