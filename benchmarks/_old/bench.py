"""One run of the speed benchmarks: a page, and a guard over ratios of times.

`make bench` runs it. It measures the ratios of benchmarks/ratios.py, each in a process of its own,
compares them with benchmarks/ratios.json and measures a second time what looks worse; then it runs
the benchmark scripts that are short, or a short form of them. The page and the figures go to
build/bench. It ends with 1 if a ratio is worse in both runs (the rule is in benchmarks/guard.py)
or if a script fails.

With --accept the page and the figures then replace docs/measurements/benchmarks.md and
benchmarks/ratios.json; --last takes those of the last run instead of measuring. Scripts whose data
sets are not to be had here are left out, and the page says why.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks._old import guard
from benchmarks._old.guard import Figure, Figures
from benchmarks._old.machine import machine, versions
from benchmarks._old.page import NONE_YET, Section, page, report
from benchmarks._old.paper.cases import lacks_data

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "_old" / "ratios.json"
PAGE = ROOT / "docs" / "measurements" / "benchmarks.md"
BUILD = ROOT / "build" / "bench"
FIGURES_NAME, PAGE_NAME = "ratios.json", "benchmarks.md"


@dataclass(frozen=True, kw_only=True)
class Script:
    """A benchmark script in the form that takes about a minute."""

    title: str
    module: str
    link: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]
    """Its arguments in a quick run."""
    data: tuple[str, ...] = ()
    """Sets of `benchmarks._old.paper.sets` that it reads."""
    libraries: tuple[str, ...] = ()


SPEED = "more in [speed](speed.md)"
BIGDATA = "more in [data that do not fit](../guide/bigdata.md)"
SETS = ("slump", "yacht", "boston", "energy", "concrete")
SCRIPTS = (
    Script(
        title="A sweep",
        module="benchmarks._old.speed.sweep",
        link=SPEED + ", with a million rows and other array libraries (`make bench-speed`)",
        arguments=("--most-rows", "100000", "--no-libraries"),
        quick=("--most-rows", "1000", "--no-libraries"),
    ),
    Script(
        title="Prediction",
        module="benchmarks._old.speed.predict",
        link=SPEED + ", with a million rows (`make bench-predict`)",
        arguments=("--rows", "200000"),
        quick=("--rows", "2000"),
    ),
    Script(
        title="A fit beside others",
        module="benchmarks._old.speed.fit",
        link=SPEED + ", with larger tables, three splits and a plot (`make bench-fit`)",
        arguments=("--splits", "1", "--shapes", "concrete", "1000x100", "200x200"),
        quick=("--splits", "1", "--shapes", "40x2", "--models", "bowtienet"),
    ),
    Script(
        title="Pruning",
        module="benchmarks._old.structure.prune",
        link="more in [structure](structure.md#a-pruned-network), five sets (`make bench-prune`)",
        arguments=("--splits", "1", "--sets", "yacht"),
        quick=("--splits", "1", "--sets", "slump"),
        data=("slump", "yacht"),
    ),
    Script(
        title="Convergence",
        module="benchmarks._old.convergence.study",
        link="more in [convergence](convergence.md), with more sweeps (`make bench-convergence`)",
        arguments=("--sweeps", "100", "--repeat-sweeps", "20"),
        quick=("--sweeps", "2", "--repeat-sweeps", "2"),
        data=SETS,
    ),
    Script(
        title="Solvers",
        module="benchmarks._old.bigdata.scale",
        link=BIGDATA + ", with ten million rows (`make bench-bigdata`)",
        arguments=("--sizes", "10000", "--without-power", "--predict-rows", "100000"),
        quick=("--sizes", "500", "--without-power", "--predict-rows", "500"),
        libraries=("pyarrow",),
    ),
    Script(
        title="Cluster workers",
        module="benchmarks._old.bigdata.cluster",
        link=BIGDATA + ", with a million rows (`make bench-bigdata`)",
        arguments=("--rows", "100000", "--sweeps", "6", "--repeats", "1"),
        quick=("--rows", "1000", "--sweeps", "2", "--repeats", "1"),
        libraries=("dask", "distributed"),
    ),
)


def measure_all(names: Iterable[str], quick: bool) -> Figures:
    """The named ratios, one process after the other; those that need more cores are left out."""
    from benchmarks._old.ratios import RATIOS

    ratios, facts = {}, machine()
    for name in names:
        if RATIOS[name].cores > int(facts["usable cores"]):
            say(f"{name}: left out, it needs {RATIOS[name].cores} cores")
            continue
        begin = time.perf_counter()
        figure = in_own_process(name, quick)
        ratios[name] = figure
        say(
            f"{name}: {figure.median:.3g} ({figure.low:.3g} to {figure.high:.3g}), "
            f"took {time.perf_counter() - begin:.0f} s"
        )
    today = datetime.date.today().isoformat()
    return Figures(when=today, quick=quick, machine=facts, versions=versions(), ratios=ratios)


def in_own_process(name: str, quick: bool) -> Figure:
    """One ratio in a new interpreter."""
    command = [sys.executable, "-m", "benchmarks._old.bench", "--measure", name]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Figure(**json.loads(done.stdout))


def measure_here(name: str, quick: bool) -> Figure:
    """One ratio in this process, which is held to as many cores as it needs."""
    from benchmarks._old import ratios

    ratio = ratios.RATIOS[name]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: ratio.cores])
    # Few sweeps and few rows: what the fits have to say about that is not asked for.
    warnings.simplefilter("ignore")
    return ratios.measure(ratio, quick)


def why_not(script: Script) -> str | None:
    """Why a script cannot run here, as a sentence; None if it can."""
    absent = [name for name in script.libraries if importlib.util.find_spec(name) is None]
    if absent:
        return f"Not measured: {', '.join(absent)} was not installed."
    for name in script.data:
        reason = lacks_data(name)
        if reason is not None:
            return f"Not measured: {reason}"
    return None


def run_script(script: Script, quick: bool) -> tuple[Section, bool]:
    """Its section of the page, and whether all went well; its progress goes to standard error."""
    arguments = script.quick if quick else script.arguments
    command = shlex.join(["python", "-m", script.module, *arguments])
    reason, seconds = why_not(script), None
    if reason is None:
        say(command)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", script.module, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds = time.perf_counter() - begin
        failed = f"It failed and ended with {done.returncode}."
        text, went_well = (done.stdout, True) if done.returncode == 0 else (failed, False)
    else:
        text, went_well = reason, True
    section = Section(
        title=script.title, command=command, link=script.link, text=text, seconds=seconds
    )
    return section, went_well


def verdict(committed: Figures | None, fresh: Figures) -> tuple[str, bool]:
    """What to print about the ratios, and whether none is worse."""
    if committed is None:
        return f"{NONE_YET} `make bench ACCEPT=1` makes those of a run the first.", True
    if fresh.quick:
        return "A quick run is not compared with the committed figures: its sizes differ.", True
    verdicts = guard.compare(committed, fresh)
    changed = guard.changed_facts(committed, fresh)
    return report(verdicts, changed), not guard.worse(verdicts)


def measure_and_repeat(committed: Figures | None, names: list[str], quick: bool) -> Figures:
    """Figures in which what looked worse at first has been measured a second time."""
    fresh = measure_all(names, quick)
    if committed is None or quick:
        return fresh
    doubtful = guard.worse(guard.compare(committed, fresh))
    if doubtful:
        say(f"once more: {', '.join(doubtful)}")
        fresh = guard.better_of(fresh, measure_all(doubtful, quick))
    return fresh


def run(committed: Figures | None, quick: bool) -> tuple[Figures, bool]:
    """Measure everything into build/bench; the figures, and whether all scripts went well."""
    from benchmarks._old.ratios import RATIOS

    fresh = measure_and_repeat(committed, list(RATIOS), quick)
    sections, went_well = zip(*[run_script(script, quick) for script in SCRIPTS], strict=True)
    words = {name: (ratio.above, ratio.below) for name, ratio in RATIOS.items()}
    guard.write(fresh, BUILD / FIGURES_NAME)
    # As they were written, which is rounded: the page says what the file says.
    written = guard.read(BUILD / FIGURES_NAME)
    (BUILD / PAGE_NAME).write_text(page(written, words, sections))
    say(f"the page is {(BUILD / PAGE_NAME).relative_to(ROOT)}")
    return fresh, all(went_well)


def accept(fresh: Figures) -> None:
    """Make the figures and the page of the last run the committed ones."""
    if fresh.quick:
        sys.exit("a quick run cannot be accepted: run it without --quick.")
    shutil.copyfile(BUILD / FIGURES_NAME, COMMITTED)
    shutil.copyfile(BUILD / PAGE_NAME, PAGE)
    say(f"accepted: {COMMITTED.relative_to(ROOT)} and {PAGE.relative_to(ROOT)} are new")


def last_figures() -> Figures:
    found = guard.read(BUILD / FIGURES_NAME)
    if found is None or not (BUILD / PAGE_NAME).is_file():
        sys.exit("there is no last run in build/bench: leave --last out.")
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def options(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks._old.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--accept", action="store_true", help="make the figures the committed ones")
    parser.add_argument("--last", action="store_true", help="take the last run, measure nothing")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", nargs="+", metavar="RATIO", help="these; nothing is written")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    found = parser.parse_args(given)
    if found.accept and found.quick:
        parser.error("a quick run cannot be accepted: leave out --quick or --accept.")
    if found.only and (found.accept or found.last):
        parser.error("--only measures some ratios and writes nothing: leave out the others.")
    from benchmarks._old.ratios import RATIOS

    for name in found.only or ():
        if name not in RATIOS:
            parser.error(f"no ratio is called {name!r}: choose among {', '.join(RATIOS)}.")
    return found


def main(given: list[str] | None = None) -> int:
    chosen = options(given)
    if chosen.measure:
        print(json.dumps(asdict(measure_here(chosen.measure, chosen.quick))))
        return 0
    try:
        committed = guard.read(COMMITTED)
        if chosen.only:
            fresh, went_well = measure_and_repeat(committed, chosen.only, chosen.quick), True
        elif chosen.last:
            fresh, went_well = last_figures(), True
        else:
            fresh, went_well = run(committed, chosen.quick)
    except ValueError as error:
        sys.exit(str(error))
    text, is_well = verdict(committed, fresh)
    print(text)
    if chosen.accept and went_well:
        accept(fresh)
        return 0
    if not went_well:
        say("a benchmark script failed: its message is above.")
    return 0 if is_well and went_well else 1


if __name__ == "__main__":
    sys.exit(main())
