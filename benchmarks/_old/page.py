"""The page and the messages of `python -m benchmarks._old.bench`: functions from figures to text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks._old.guard import LIMIT, Figures, Kind, Verdict

HEAD = """# Benchmarks

`python -m benchmarks._old.bench` measures all of this and compares the ratios with the last ones that were accepted;
`python -m benchmarks._old.bench --accept` writes this page and `benchmarks/_old/ratios.json`. Do not edit either by hand.
"""
NONE_YET = "No figures have been committed yet."


@dataclass(frozen=True, kw_only=True)
class Section:
    """What one of the benchmark scripts printed."""

    title: str
    command: str
    link: str
    """Where the full measurement and what it means are."""
    text: str
    """Its output, or why there is none."""
    seconds: float | None = None
    """None: it did not run."""


def page(
    figures: Figures | None, words: Mapping[str, tuple[str, str]], sections: Sequence[Section] = ()
) -> str:
    """The Markdown page of a run; `words` say what stands above and below the line of a ratio."""
    if figures is None:
        return f"{HEAD}\n{NONE_YET}\n"
    parts = [HEAD, facts(figures), ratio_table(figures, words)]
    parts += [section_text(section) for section in sections]
    return "\n".join(parts)


def facts(figures: Figures) -> str:
    """What the run ran on."""
    machine = [f"| {name} | {value} |" for name, value in figures.machine.items()]
    libraries = ", ".join(f"{name} {value}" for name, value in figures.versions.items())
    size = " at small sizes (`--quick`), which mean nothing" if figures.quick else ""
    lines = [f"Measured on {figures.when}{size}.", "", "| machine | |", "|---|---|"]
    return "\n".join([*lines, *machine, f"| versions | {libraries} |", ""])


def ratio_table(figures: Figures, words: Mapping[str, tuple[str, str]]) -> str:
    """The guarded ratios and the rule."""
    lines = [
        "## Ratios",
        "",
        "Each is a time over another one, both taken in turn in one process of their own, on one",
        "core but for that of two threads: median and quartiles over the repeats. Smaller is",
        "better. Shapes are rows, inputs, hidden units. A ratio counts as worse when its median",
        f"is more than {LIMIT} times the committed one and its lower quartile lies above the",
        "committed upper quartile, in two runs. Seconds are those of this machine and are not",
        "compared.",
        "",
        "| ratio | time of | over that of | median | quartiles | seconds | over |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, figure in figures.ratios.items():
        above, below = words.get(name, ("", ""))
        lines.append(
            f"| {name} | {above} | {below} | {figure.median:.3g} "
            f"| {figure.low:.3g} to {figure.high:.3g} | {figure.above:.2g} | {figure.below:.2g} |"
        )
    return "\n".join([*lines, ""])


def section_text(section: Section) -> str:
    """Title, command, output and link of a script."""
    took = "" if section.seconds is None else f", {section.seconds:.0f} s"
    lines = [f"## {section.title}", "", f"`{section.command}`{took}; {section.link}.", ""]
    return "\n".join([*lines, section.text.strip(), ""])


def report(verdicts: Iterable[Verdict], changed: Sequence[str] = ()) -> str:
    """What the comparison found, for the terminal."""
    verdicts = list(verdicts)
    found = {kind: [v for v in verdicts if v.kind is kind] for kind in Kind}
    lines = []
    if found[Kind.WORSE]:
        lines += ["Worse than the committed figures:", *_lines(found[Kind.WORSE])]
        lines += [
            "Seconds say which part has changed. Mend it, or take the new figures with",
            "`python -m benchmarks._old.bench --accept`.",
        ]
    if found[Kind.BETTER]:
        lines += ["Better than the committed figures (ACCEPT=1 makes the guard as strict):"]
        lines += _lines(found[Kind.BETTER])
    for kind, text in (
        (Kind.NEW, "Not among the committed figures yet"),
        (Kind.MISSING, "Committed, but not measured in this run"),
    ):
        if found[kind]:
            lines.append(f"{text}: {', '.join(v.name for v in found[kind])}.")
    if changed:
        lines.append("Not as it was for the committed figures: " + "; ".join(changed) + ".")
    compared = [v for v in verdicts if v.before is not None and v.now is not None]
    n_worse = len(found[Kind.WORSE])
    lines.append(f"{len(compared)} ratios compared, {n_worse} worse (limit {LIMIT}).")
    return "\n".join(lines)


def _lines(verdicts: Iterable[Verdict]) -> list[str]:
    rows = [("ratio", "committed", "now", "change", "seconds above", "seconds below")]
    for verdict in verdicts:
        before, now = verdict.before, verdict.now
        assert before is not None
        assert now is not None
        rows.append(
            (
                verdict.name,
                f"{before.median:.3g}",
                f"{now.median:.3g}",
                f"x {verdict.change:.2f}",
                f"{before.above:.2g} -> {now.above:.2g}",
                f"{before.below:.2g} -> {now.below:.2g}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
