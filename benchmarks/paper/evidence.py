"""Puts the tables and figures of runs of the experiments into the pages of the documentation.

    python -m benchmarks.paper.evidence FOLDER ...

reads FOLDER/results.jsonl, keeps it as docs/measurements/evidence.jsonl (runs and records, in the
order of their keys), writes every table that the pages of `PAGES` ask for between their marks, and
copies the figures that the first shows and the tables that it says are copied. Several folders may
be given, of runs that did different parts. Without any the tables are made again from the results
that are kept, and what is copied stays.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from benchmarks.paper.experiments import diabetes, slump, toy, uci, uci_lines
from benchmarks.paper.methods import METHODS
from benchmarks.paper.records import DONE, Record, key_of, load, to_frame, to_line
from benchmarks.paper.tables import markdown

ROOT = Path(__file__).parents[2]
FIGURES, MEASUREMENTS = ROOT / "docs" / "figures", ROOT / "docs" / "measurements"
PAGE, RESULTS = MEASUREMENTS / "evidence.md", MEASUREMENTS / "evidence.jsonl"
PAGES = (
    PAGE,
    MEASUREMENTS / "differences.md",
    ROOT / "README.md",
    ROOT / "docs" / "comparison.md",
    ROOT / "docs" / "guide" / "when_not.md",
)
MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COPIED = re.compile(r"(<!-- copied (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""Of tables that need the fits themselves, and not their records alone."""
SHOWN = re.compile(r"\.\./figures/evidence_(\w+)\.png")


def tables(records: list[Record]) -> dict[str, str]:
    """Text of every table that records alone can make, by name and without its heading."""
    frame = to_frame(records)
    found = [module.pages(frame) for module in (uci, slump, toy, diabetes)]
    texts = {name: _without_title(text) for pages in found for name, text in pages.items()}
    sources = [[method.label, method.source] for method in METHODS.values()]
    methods = markdown(["method", "settings"], sources)
    return {"methods": methods, **texts, **uci_lines.lines(frame)}


def filled(page: str, texts: dict[str, str]) -> str:
    """The page with the tables that it asks for."""
    absent = sorted({name for _, name, _ in MARKED.findall(page)} - set(texts))
    if absent:
        sys.exit(f"no records for {', '.join(absent)}: run these experiments as well.")
    return MARKED.sub(lambda m: f"{m[1]}\n{texts[m[2]].strip()}\n\n{m[3]}", page)


def with_copies(page: str, folders: list[Path]) -> str:
    """The page with tables that are files of a folder, the first that has them; others stay."""

    def text(mark: re.Match[str]) -> str:
        files = [folder / "tables" / f"{mark[2]}.md" for folder in folders]
        for file in filter(Path.is_file, files):
            table = _without_title(file.read_text(encoding="utf-8"))
            return f"{mark[1]}\n{table.strip()}\n\n{mark[3]}"
        return mark[0]

    return COPIED.sub(text, page)


def _without_title(text: str) -> str:
    """A table's own text: its title is the page's matter, and headings below go a level down."""
    _, _, rest = text.partition("\n")
    return re.sub(r"^(#+) ", r"#\1 ", rest, flags=re.MULTILINE)


def gathered(folders: list[Path]) -> tuple[list[Record], list[Record]]:
    """Runs and records of several folders; the first that has a case done counts."""
    runs: dict[str, Record] = {}
    records: dict[str, Record] = {}
    for folder in folders:
        some_runs, some_records = load(folder / "results.jsonl")
        runs |= {run["id"]: run for run in some_runs}
        for record in some_records:
            before = records.get(key_of(record))
            if before is None or (before["status"] != DONE and record["status"] == DONE):
                records[key_of(record)] = record
    needed = {record["run"] for record in records.values()}
    kept = sorted((runs[name] for name in needed), key=lambda run: run["started"])
    return kept, [records[key] for key in sorted(records)]


def find_figures(page: str, folders: list[Path]) -> dict[Path, Path]:
    """Where figures of the page go to, and where the first folder has them."""
    found = {}
    for name in sorted(set(SHOWN.findall(page))):
        places = [path for f in folders if (path := f / "figures" / f"{name}.png").is_file()]
        if not places:
            sys.exit(f"no folder has figures/{name}.png: run the experiment that draws it.")
        found[FIGURES / f"evidence_{name}.png"] = places[0]
    return found


def main() -> None:
    """Renew the pages."""
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
    RESULTS.write_text("".join(map(to_line, runs + records)), encoding="utf-8")
    for place, text in pages.items():
        place.write_text(text, encoding="utf-8")
    for place, origin in figures.items():
        shutil.copyfile(origin, place)


if __name__ == "__main__":
    main()
