"""``python -m benchmarks._old.paper``: run the experiments of the paper, and write tables and figures.

Every result goes to a line of results.jsonl at once. The same command goes on after Ctrl-C or a
crash, tries again what lacked a library or data, and renews index.md, tables and figures.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from pathlib import Path
from types import ModuleType

from benchmarks._old.paper.cases import run_cases
from benchmarks._old.paper.drawing import save_table
from benchmarks._old.paper.index import RESULTS, TITLES, write_index
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.provenance import describe_run
from benchmarks._old.paper.records import DONE, Journal, to_frame
from benchmarks._old.paper.sets import SETS


def main(given: list[str] | None = None) -> int:
    """Run the command; 1 if a process died or a case failed."""
    chosen = _options(given)
    names = list(TITLES) if "all" in chosen.experiments else chosen.experiments
    modules = [
        importlib.import_module(f"benchmarks._old.paper.experiments.{name}")
        for name in dict.fromkeys(names)
    ]
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.splits)
    cases = [
        case
        for module in modules
        if hasattr(module, "cases")
        for case in module.cases(seeds, chosen.method)
        if not chosen.data or case.dataset in chosen.data
    ]
    chosen.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(chosen.out / RESULTS, describe_run(_command(chosen)))
    try:
        well = run_cases(cases, journal, _say, n_jobs=chosen.jobs, again=chosen.again)
        _write(modules, journal, chosen)
    except KeyboardInterrupt:
        _say(f"interrupted: all that is done is in {chosen.out}, the same command goes on.")
        return 130
    records = [journal.records[case.key] for case in cases if case.key in journal.records]
    left = [record for record in records if record["status"] != DONE]
    for note in sorted({f"{r['method']} {r['status']}: {r['note']}" for r in left}):
        _say(note)
    _say(f"all tables and figures are shown in {chosen.out / 'index.md'}")
    return 0 if well else 1


def _write(modules: list[ModuleType], journal: Journal, chosen: argparse.Namespace) -> None:
    """Tables, figures and the page that shows them."""
    frame = to_frame(journal.records.values())
    for module in modules:
        for name, text in module.pages(frame).items() if hasattr(module, "pages") else ():
            save_table(text, chosen.out, name)
        if hasattr(module, "draw"):
            module.draw(frame, chosen.out)
        # Whoever asks for some cases of several experiments is spared the fits behind figures.
        if hasattr(module, "write_fits") and (
            len(modules) == 1 or not (chosen.method or chosen.data)
        ):
            module.write_fits(chosen.out, _say, n_jobs=chosen.jobs)
    write_index(chosen.out, journal.runs, list(journal.records.values()))


def _options(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks._old.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiments", nargs="*", default=["all"], choices=[*TITLES, "all"])
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="folder for all files")
    parser.add_argument("--splits", type=int, default=10, help="number of random splits")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first split")
    parser.add_argument("--method", nargs="+", choices=METHODS, help="only these methods")
    parser.add_argument("--data", nargs="+", choices=SETS, help="only these data sets")
    parser.add_argument("--again", action="store_true", help="run once more what failed")
    parser.add_argument("--jobs", type=int, default=-1, help="cases at a time; -1 for all cores")
    return parser.parse_args(given)


def _command(chosen: argparse.Namespace) -> str:
    """What to type for the same, but for the folder."""
    words = ["python", "-m", "benchmarks._old.paper", *chosen.experiments]
    words += ["--splits", str(chosen.splits), "--first-seed", str(chosen.first_seed)]
    for name in ("method", "data"):
        words += [f"--{name}", *getattr(chosen, name)] if getattr(chosen, name) else []
    words += ["--again"] if chosen.again else []
    return shlex.join([*words, "--jobs", str(chosen.jobs)])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
