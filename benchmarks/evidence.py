"""Puts the tables of a run of `bowtienet reproduce` into the page of the documentation.

    python benchmarks/evidence.py FOLDER ...

reads FOLDER/results.jsonl, keeps it as docs/measurements/evidence.jsonl (runs and records, in the
order of their keys), writes every table that the pages of `PAGES` ask for between their marks, and
copies the figures that the first shows and the tables that it says are copied. Several folders may
be given, of runs that did different parts. Without any the tables are made again from the results
that are kept, and what is copied stays.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from bowtienet.experiments import diabetes, slump, toy, uci
from bowtienet.experiments.drawing import markdown
from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.records import Record, Run, load, plain
from bowtienet.persistence import replacing

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "measurements" / "evidence.md"
PAGES = (PAGE, DOCS / "measurements" / "differences.md", DOCS.parent / "README.md")
RESULTS = DOCS / "measurements" / "evidence.jsonl"
FIGURES = DOCS / "figures"
EXPERIMENTS = {"uci": uci, "slump": slump, "toy": toy, "diabetes": diabetes}
MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COPIED = re.compile(r"(<!-- copied (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""Of tables that need the fits themselves, and not their records alone."""
SHOWN = re.compile(r"\.\./figures/evidence_(\w+)\.png")


def tables(records: list[Record]) -> dict[str, str]:
    """Text of every table that records alone can make, by name and without its heading."""
    found = {"methods": sources()}
    for module in EXPERIMENTS.values():
        for name, text in module.pages(records).items():
            found[name] = _without_title(text)
    return found


def sources() -> str:
    """A table of all methods, and where their settings are from."""
    return markdown(["method", "settings"], [[m.label, m.source] for m in METHODS.values()])


def filled(page: str, texts: dict[str, str]) -> str:
    """The page with the tables that it asks for."""
    absent = sorted({name for _, name, _ in MARKED.findall(page)} - set(texts))
    if absent:
        sys.exit(f"no records for {', '.join(absent)}: run these experiments as well.")
    return MARKED.sub(lambda m: f"{m[1]}\n{texts[m[2]].strip()}\n\n{m[3]}", page)


def with_copies(page: str, folders: list[Path]) -> str:
    """The page with tables that are files of a folder, the first that has them; others stay."""

    def text(mark: re.Match[str]) -> str:
        for folder in folders:
            file = folder / "tables" / f"{mark[2]}.md"
            if file.is_file():
                table = _without_title(file.read_text(encoding="utf-8"))
                return f"{mark[1]}\n{table.strip()}\n\n{mark[3]}"
        return mark[0]

    return COPIED.sub(text, page)


def _without_title(text: str) -> str:
    """A table's own text: its title is the page's matter, and headings below go a level down."""
    _, _, rest = text.partition("\n")
    return re.sub(r"^(#+) ", r"#\1 ", rest, flags=re.MULTILINE)


def gathered(folders: list[Path]) -> tuple[list[Run], list[Record]]:
    """Runs and records of several folders; the first that has a case done counts."""
    runs: dict[str, Run] = {}
    records: dict[str, Record] = {}
    for folder in folders:
        some_runs, some_records = load(folder / "results.jsonl")
        runs |= {run.id: run for run in some_runs}
        for record in some_records:
            before = records.get(record.key)
            if before is None or (before.status != "done" and record.status == "done"):
                records[record.key] = record
    needed = {record.run for record in records.values()}
    kept = sorted((run for run in runs.values() if run.id in needed), key=lambda run: run.started)
    return kept, [records[key] for key in sorted(records)]


def as_lines(runs: list[Run], records: list[Record]) -> str:
    """The results that the page is made of, as the command writes them."""
    lines = [{"kind": "run", **asdict(run)} for run in runs]
    lines += [{"kind": "record", **asdict(record)} for record in records]
    return "".join(json.dumps(plain(line), allow_nan=False) + "\n" for line in lines)


def find_figures(page: str, folders: list[Path]) -> dict[Path, Path]:
    """Where pictures of the page go to, and where the first folder has them."""
    found = {}
    for name in sorted(set(SHOWN.findall(page))):
        places = [path for f in folders if (path := f / "figures" / f"{name}.png").is_file()]
        if not places:
            sys.exit(f"no folder has figures/{name}.png: run the experiment that draws it.")
        found[FIGURES / f"evidence_{name}.png"] = places[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    folders = parser.parse_args().folders
    runs, records = gathered(folders) if folders else load(RESULTS)
    figures = find_figures(PAGE.read_text(encoding="utf-8"), folders) if folders else {}
    texts = tables(records)
    pages = {
        page: with_copies(filled(page.read_text(encoding="utf-8"), texts), folders)
        for page in PAGES
    }
    # All that can go wrong has gone by now.
    for place, text in ({RESULTS: as_lines(runs, records)} | pages).items():
        with replacing(place) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")
    for place, origin in figures.items():
        shutil.copyfile(origin, place)


if __name__ == "__main__":
    main()
