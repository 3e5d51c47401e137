"""One page that holds all tables of a folder of results, shows all figures and says how it came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bowtienet.experiments.records import DONE, FAILED, MISSING, Record, Run, count
from bowtienet.persistence import replacing

TITLES = {
    "priors": "Shrinkage priors",
    "activation": "The stochastic activation",
    "toy": "Toy data",
    "diabetes": "Diabetes data",
    "uci": "UCI data sets",
    "slump": "Slump data",
    "svi": "Stochastic variational inference",
}
"""Experiments in the order of the page, which is that of the paper."""
_HEADING = re.compile(r"^(#{1,4}) ", flags=re.MULTILINE)


def write_index(folder: Path, runs: Iterable[Run], records: Sequence[Record]) -> Path:
    """Write folder/index.md and give its path.

    Parameters
    ----------
    folder : Path
        With ``tables/*.md`` and ``figures/*.png``, whose names begin with that of an experiment.
    runs, records
        Of the folder's results.
    """
    runs = list(runs)
    parts = ["# Results of the experiments", _tally(records), _mixture(runs, records)]
    for experiment, files in _by_experiment(folder).items():
        parts.append(f"## {TITLES.get(experiment, experiment.capitalize())}")
        parts += [_table(file) for file in files if file.suffix == ".md"]
        parts += [_figure(file, folder) for file in files if file.suffix == ".png"]
    used = {record.run for record in records}
    if used:
        parts += ["## How these came about", *[_run(run) for run in runs if run.id in used]]
    path = folder / "index.md"
    with replacing(path) as temporary:
        Path(temporary).write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    return path


def _tally(records: Sequence[Record]) -> str:
    found = count(records)
    return (
        f"{found[DONE]} cases are done, {found[FAILED]} failed and {found[MISSING]} lack a library "
        "or data. All numbers are in [results.jsonl](results.jsonl), a line for each case."
        if records
        else ""
    )


def _mixture(runs: Sequence[Run], records: Sequence[Record]) -> str:
    """What older records were made with, where that differs from the last run."""
    changes = {run.id: _changes(run, runs[-1]) for run in runs}
    others = [record.run for record in records if changes.get(record.run)]
    if not others:
        return ""
    named = dict.fromkeys(change for run in dict.fromkeys(others) for change in changes[run])
    return (
        f"{len(others)} of {len(records)} records come from other versions or commits than the "
        f"last run: {', '.join(named)}."
    )


def _changes(run: Run, last: Run) -> list[str]:
    """Commit and versions that differ; a library that one of them lacks changed no result."""
    before, after = ({"commit": each.commit or "unknown", **each.versions} for each in (run, last))
    return [
        f"{name} {before[name]} instead of {after[name]}"
        for name in before
        if name in after and before[name] != after[name]
    ]


def _by_experiment(folder: Path) -> dict[str, list[Path]]:
    """Tables and figures by the experiment that their names begin with; others come last."""
    files = [*sorted(folder.glob("tables/*.md")), *sorted(folder.glob("figures/*.png"))]
    names = [re.split(r"[-_.]", file.name)[0] for file in files]
    found = {
        experiment: [file for file, name in zip(files, names, strict=True) if name == experiment]
        for experiment in [*TITLES, *sorted(set(names) - set(TITLES))]
    }
    return {experiment: files for experiment, files in found.items() if files}


def _table(file: Path) -> str:
    """A page of tables two levels down, as a part of this one."""
    return _HEADING.sub(r"##\1 ", file.read_text(encoding="utf-8")).strip()


def _figure(file: Path, folder: Path) -> str:
    title = re.sub(r"[-_]+", " ", file.stem)
    return f"![{title}]({file.relative_to(folder).as_posix()})"


def _run(run: Run) -> str:
    """The command, when and where, in a few lines."""
    machine = run.machine
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    place = (
        f"{machine.get('cores')} cores of {machine.get('processor')}, "
        f"{machine.get('memory_gb')} GB, {machine.get('platform')}"
    )
    return "\n".join(
        [
            f"- `{run.command}`, started {run.started}",
            f"  - {place}",
            f"  - {versions}" + (f", commit {run.commit}" if run.commit else ""),
        ]
    )
