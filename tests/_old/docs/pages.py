"""The pages of the documentation, and what the code in them finds when it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GENERATED = (DOCS / "_build", DOCS / "gallery", DOCS / "api" / "generated")
"""What `make docs` writes."""

_FENCE = re.compile(
    r"^(?P<before>[^\n]*\n\n?)?"
    r"^(?P<ticks>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=ticks)[ ]*$",
    flags=re.DOTALL | re.MULTILINE,
)
_NOT_RUN = re.compile(r"<!-- not run: \S.+ -->")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """That of its first line of text, from 1."""
    is_run: bool
    """Without a comment above it that says why not."""


def pages() -> list[Path]:
    """Every Markdown file that people wrote for the documentation."""
    found = sorted(DOCS.rglob("*.md"))
    return [path for path in found if not any(path.is_relative_to(folder) for folder in GENERATED)]


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = path.read_text()
    for found in _FENCE.finditer(text):
        yield Block(
            language=found["language"].strip(),
            text=found["text"],
            line=1 + text.count("\n", 0, found.start("text")),
            is_run=not _NOT_RUN.fullmatch((found["before"] or "").strip()),
        )


def prose(path: Path) -> str:
    """The text of a page without its fenced blocks and inline code."""
    return re.sub(
        r"`[^`\n]+`", "", _FENCE.sub(lambda found: found["before"] or "", path.read_text())
    )


def lay_out_files(folder: Path) -> None:
    """The files that pages speak of: a table of prices, and trips in many forms."""
    rng = np.random.default_rng(0)
    for name in ("data", "new"):
        size, rooms = rng.uniform(20.0, 120.0, size=60).round(1), rng.integers(1, 6, size=60)
        price = (10.0 * size + 50.0 * rooms + rng.normal(0.0, 20.0, size=60)).round()
        lines = [
            f"{s},{'' if i % 9 == 0 else r},{('red', 'blue')[i % 2]},{p}"
            for i, (s, r, p) in enumerate(zip(size, rooms, price, strict=True))
        ]
        (folder / f"{name}.csv").write_text("\n".join(["size,rooms,colour,price", *lines]) + "\n")
    for name in ("trips", "new-trips"):
        (folder / name).mkdir()
        pq.write_table(_trips(rng), folder / name / "part.parquet")
    for month in ("january", "february"):
        pq.write_table(_trips(rng), folder / f"{month}.parquet")
    for month in range(12):
        np.save(folder / f"month-{month}.npy", rng.normal(size=(10, 3)))
    np.save(folder / "X.npy", rng.normal(size=(60, 2)))
    np.save(folder / "y.npy", rng.normal(size=60))


def names_in_sight() -> dict[str, Any]:
    """What pages take for granted: rows that arrive today and tomorrow."""
    rng = np.random.default_rng(1)
    days = {"today": rng.normal(size=(60, 3)), "tomorrow": rng.normal(size=(20, 3))}
    inputs = {f"X_{day}": rows[:, :2] for day, rows in days.items()}
    return {**inputs, **{f"y_{day}": rows[:, 2] for day, rows in days.items()}}


def _trips(rng: np.random.Generator) -> pa.Table:
    columns = {name: rng.uniform(1.0, 9.0, size=40) for name in ("distance", "hour")}
    fare = columns["distance"] + rng.normal(0.0, 0.1, size=40)
    counts = rng.integers(1, 3, size=40)
    return pa.table({**columns, "fare": fare, "tip": 0.1 * fare, "count": counts})
