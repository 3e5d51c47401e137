"""Records of the study of outcomes: one line of JSON each, so that a run goes on where it stopped.

task, set, seed, method     what was measured; a repeat is a seed
n_train, n_test             rows
scores                      numbers by name; those of `benchmarks._old.outcomes.study`
seconds                     processor seconds of fit and prediction, on one core
version                     of the library
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

Record = dict[str, Any]


def key_of(record: Record) -> tuple[str, str, int, str]:
    """What a record is found by."""
    return record["task"], record["set"], record["seed"], record["method"]


def read(path: Path) -> list[Record]:
    """Records so far, the last of each case; a last line that was cut is left out."""
    found: dict[tuple[str, str, int, str], Record] = {}
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    for line in lines:
        if line.endswith("\n"):
            record = json.loads(line)
            found[key_of(record)] = record
    return list(found.values())


def append(path: Path, record: Record) -> None:
    """Add a record, which is in the file when this returns."""
    content = path.read_bytes() if path.exists() else b""
    if not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def to_frame(records: Iterable[Record], task: str) -> pd.DataFrame:
    """Records of a task as rows, scores as columns."""
    return pd.DataFrame(
        [
            {**{n: v for n, v in record.items() if n != "scores"}, **record["scores"]}
            for record in records
            if record["task"] == task
        ]
    )
