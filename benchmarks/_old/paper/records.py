"""Results of the experiments in a file of JSON lines that a run can add to and go on from.

A line is of a run (kind "run": id, started, command, commit, versions, machine) or of a case (kind
"record"), with

    experiment, dataset, method, seed, hidden, members, settings    the case, by which it is known
    train_rows       rows to fit and to score, of cases that say so; null or absent: nine tenths
    status           "done", "failed", or "missing" for want of a library or of data
    scores           by name; empty unless done
    curve            shares inside central Gaussian intervals of the levels of `calibration_curve`
    seconds, wall_seconds, predict_seconds    CPU and wall time of the fit, CPU time of prediction
    peak_mb          peak memory of the process in fit and prediction; older records have none
    n_train, n_test, note, run                rows, what a reader must know, and the run's id

JSON has no word for NaN and infinity: they are null, "inf" and "-inf".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DONE, FAILED, MISSING = STATUSES = ("done", "failed", "missing")
SCORES = (
    *("rmse", "nll", "crps", "coverage", "gaussian_nll", "gaussian_coverage", "interval_width"),
)
_CASE = ("experiment", "dataset", "method", "seed", "hidden", "members", "settings")

Record = dict[str, Any]


def key_of(record: Mapping[str, Any]) -> str:
    """The text by which a case and its record are found again."""
    names = [record[name] for name in _CASE]
    if (rows := record.get("train_rows")) is not None:
        names.append(rows)
    return json.dumps(names, sort_keys=True, separators=(",", ":"))


def to_line(content: Any) -> str:
    """One line of JSON."""
    return json.dumps(_plain(content), allow_nan=False) + "\n"


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple | np.ndarray):
        return [_plain(value) for value in content]
    content = content.item() if isinstance(content, np.generic) else content
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content


def load(path: Path) -> tuple[list[Record], list[Record]]:
    """Runs and records of a file, one record for each case; a last line that was cut is left out.

    The last record of a case counts, but what is done stays done.
    """
    runs: list[Record] = []
    records: dict[str, Record] = {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    for line in lines:
        if not line.endswith("\n"):
            break
        content = json.loads(line)
        if content["kind"] == "run":
            runs.append(content)
        elif _counts(content, records.get(key_of(content))):
            records[key_of(content)] = content
    return runs, list(records.values())


def _counts(record: Record, before: Record | None) -> bool:
    return before is None or record["status"] == DONE or before["status"] != DONE


class Journal:
    """A file of results to add to; a last line that a killed run left half-written is dropped."""

    def __init__(self, path: Path, run: Record) -> None:
        self.path, self.run = path, run
        self.runs, found = load(path)
        self.records = {key_of(record): record for record in found}
        content = path.read_bytes() if path.exists() else b""
        if not content.endswith(b"\n"):
            path.write_bytes(content[: content.rfind(b"\n") + 1])
        self._write(run)
        self.runs.append(run)

    def append(self, record: Record) -> None:
        """Add a record of this run, which is in the file when this returns."""
        record = {"kind": "record", **record, "run": self.run["id"]}
        self._write(record)
        if _counts(record, self.records.get(key_of(record))):
            self.records[key_of(record)] = record

    def _write(self, content: Record) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(to_line(content))


def to_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Records as rows, by seed: scores are columns, and `depth` is the number of hidden layers.

    What was not done has NaN for scores and seconds.
    """
    rows = [
        {
            **{name: record[name] for name in record if name not in ("scores", "settings")},
            **{name: _number(record["scores"].get(name)) for name in SCORES},
            "seconds": _number(record["seconds"]),
            "peak_mb": _number(record.get("peak_mb")),
            "train_rows": _number(record.get("train_rows")),
            "depth": len(record["hidden"]),
        }
        for record in records
    ]
    columns = ["experiment", "dataset", "method", "members", "seed", "status", "depth", *SCORES]
    frame = pd.DataFrame(rows, columns=None if rows else columns)
    return frame.sort_values("seed", kind="stable", ignore_index=True)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
