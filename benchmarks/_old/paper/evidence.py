"""Puts the tables and figures of runs of the experiments into the pages of the documentation.

    python -m benchmarks._old.paper.evidence FOLDER ...

reads FOLDER/results.jsonl, keeps it as docs/measurements/evidence.jsonl (runs and records, in the
order of their keys), writes every table that the pages of `PAGES` ask for between their marks,
draws the figures of the first that records alone can make, and copies the others and the tables
that it says are copied. Several folders may be given, of runs that did different parts: the first
that has a case done counts. FOLDER/classes.jsonl, of `benchmarks._old.outcomes.study`, is kept beside.
Without any folder the tables are made again from the results that are kept, and figures and copies
stay.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks._old.outcomes import records as outcomes
from benchmarks._old.outcomes.tables import published_classes
from benchmarks._old.paper.experiments import (
    all_sets,
    diabetes,
    more_sets,
    slump,
    toy,
    uci,
    uci_lines,
)
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.records import DONE, Record, key_of, load, to_frame, to_line
from benchmarks._old.paper.tables import markdown

ROOT = Path(__file__).parents[3]
FIGURES, MEASUREMENTS = ROOT / "docs" / "figures", ROOT / "docs" / "measurements"
PAGE, RESULTS = MEASUREMENTS / "evidence.md", MEASUREMENTS / "evidence.jsonl"
CLASSES = MEASUREMENTS / "classes.jsonl"
"""Of the published repeats of the study of classifiers."""
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
WAITING = (
    *("more_sets_scores", "more_sets_paired", "more_sets_wins", "more_sets_ranks"),
    "classes_published",
)
"""Tables that pages may ask for before there is a record of them."""
SHOWN = re.compile(r"\.\./figures/evidence_(\w+)\.png")


def tables(
    runs: list[Record], records: list[Record], classes: list[Record] | None = None
) -> dict[str, str]:
    """Text of every table that records alone can make, by name and without its heading."""
    frame = to_frame(records)
    found = [module.pages(frame) for module in (uci, more_sets, all_sets, slump, toy, diabetes)]
    texts = {name: _without_title(text) for pages in found for name, text in pages.items()}
    sources = [[method.label, method.source] for method in METHODS.values()]
    if classes:
        texts["classes_published"] = published_classes(classes)
    return {
        **dict.fromkeys(WAITING, "There are no records yet."),
        "methods": markdown(["method", "settings"], sources),
        "origins": origins(runs, records),
        **texts,
        **uci_lines.lines(frame),
    }


def origins(runs: list[Record], records: list[Record]) -> str:
    """Of each method, day, commit and machine of its runs, and how many records each gave."""
    known = {run["id"]: run for run in runs}
    counts: dict[str, dict[str, int]] = {method: {} for method in METHODS}
    for record in records:
        if record["status"] == DONE:
            run = known[record["run"]]
            machine = run["machine"]
            place = f"{machine['cores']} cores of {machine['processor']}"
            words = f"{run['started'][:10]}, commit {run['commit'][:8]}, {place}"
            counts[record["method"]][words] = counts[record["method"]].get(words, 0) + 1
    rows = [
        [METHODS[method].label, "; ".join(f"{words}: {n}" for words, n in sorted(found.items()))]
        for method, found in counts.items()
        if found
    ]
    return markdown(["method", "day, commit and machine of its runs: records"], rows)


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


def draw_figures(records: list[Record], folder: Path) -> None:
    """Draw what records alone can show, also where they are of several folders."""
    frame = to_frame(records)
    for module in (uci, all_sets, slump, toy):
        module.draw(frame, folder)


def find_figures(page: str, folders: list[Path]) -> dict[Path, Path]:
    """Where figures of the page go to, and where the first folder has them; others stay."""
    found = {}
    for name in sorted(set(SHOWN.findall(page))):
        goal = FIGURES / f"evidence_{name}.png"
        places = [path for f in folders if (path := f / "figures" / f"{name}.png").is_file()]
        if places:
            found[goal] = places[0]
        elif not goal.is_file():
            sys.exit(f"no folder has figures/{name}.png: run the experiment that draws it.")
    return found


def gathered_classes(folders: list[Path]) -> list[Record]:
    """Records of classifiers in the first folder that has some, or those that are kept."""
    return next(filter(None, (outcomes.read(f / CLASSES.name) for f in folders)), []) or (
        outcomes.read(CLASSES)
    )


def main() -> None:
    """Renew the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    folders = parser.parse_args().folders
    runs, records = gathered(folders) if folders else load(RESULTS)
    classes = gathered_classes(folders)
    texts = tables(runs, records, classes)
    pages = {
        page: with_copies(filled(page.read_text(encoding="utf-8"), texts), folders)
        for page in PAGES
    }
    with tempfile.TemporaryDirectory() as drawn:
        figures = {}
        if folders:
            draw_figures(records, Path(drawn))
            figures = find_figures(PAGE.read_text(encoding="utf-8"), [Path(drawn), *folders])
        # All that can go wrong has gone by now.
        RESULTS.write_text("".join(map(to_line, runs + records)), encoding="utf-8")
        if classes:
            CLASSES.write_text("".join(map(to_line, classes)), encoding="utf-8")
        for place, text in pages.items():
            place.write_text(text, encoding="utf-8")
        for place, origin in figures.items():
            shutil.copyfile(origin, place)


if __name__ == "__main__":
    main()
