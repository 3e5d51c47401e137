"""One page that holds all tables of a folder of results, shows all figures and says how it came."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from benchmarks._old.paper.records import DONE, FAILED, MISSING, Record

RESULTS = "results.jsonl"
TITLES = {
    "priors": "Shrinkage priors",
    "activation": "The stochastic activation",
    "toy": "Toy data",
    "diabetes": "Diabetes data",
    "uci": "UCI data sets",
    "more_sets": "More data sets",
    "all_sets": "All data sets",
    "slump": "Slump data",
    "svi": "Stochastic variational inference",
}
"""Experiments in the order of the page, which is that of the paper."""


def write_index(folder: Path, runs: list[Record], records: list[Record]) -> None:
    """Write folder/index.md.

    The folder has ``tables/*.md`` and ``figures/*.png``, whose names begin with that of an
    experiment.
    """
    count = Counter(record["status"] for record in records)
    parts = [
        "# Results of the experiments",
        f"{count[DONE]} cases are done, {count[FAILED]} failed and {count[MISSING]} lack a library "
        f"or data. All numbers are in [{RESULTS}]({RESULTS}), a line for each case.",
    ]
    for experiment, title in TITLES.items():
        found = [
            # A page of tables two levels down, as a part of this one.
            re.sub(r"^(#{1,4}) ", r"##\1 ", file.read_text(encoding="utf-8"), flags=re.M).strip()
            for file in sorted(folder.glob(f"tables/{experiment}*.md"))
        ]
        found += [
            f"![{file.stem.replace('_', ' ')}](figures/{file.name})"
            for file in sorted(folder.glob(f"figures/{experiment}*.png"))
        ]
        parts += [f"## {title}", *found] if found else []
    made = Counter(record["run"] for record in records)
    parts += ["## How these came about", *(_run(run, made[run["id"]]) for run in runs)]
    (folder / "index.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _run(run: Record, count: int) -> str:
    """The command, when and where, in a few lines."""
    machine = run["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    place = (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB, "
        f"{machine['platform']}"
    )
    return "\n".join(
        [
            f"- `{run['command']}`, started {run['started']}: {count} records",
            f"  - {place}",
            f"  - {versions}, commit {run['commit'] or 'unknown'}",
        ]
    )
