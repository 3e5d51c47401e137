"""Results of experiments in a file of JSON lines, that a run can add to and go on from.

A line is a `Run`, which says with what and where cases were run, or a `Record` of one case. Lines
are only ever added, each in one piece, so that a run that was cut short loses at most the line it
was writing, and several processes may add to one file.
"""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

DONE, FAILED, MISSING = "done", "failed", "missing"
"""What became of a case; a missing one could not be run here for want of a library or of data."""
STATUSES = (DONE, FAILED, MISSING)
_TIMES = ("seconds", "wall_seconds", "predict_seconds")
_PATIENCE = 0.2
"""Seconds in which another process has surely ended the line that it is writing."""

Line = TypeVar("Line", "Run", "Record")
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Run:
    """With what, where and when cases were run: no name of a machine or user, and no path."""

    id: str
    started: str
    """UTC, to the second."""
    command: str
    commit: str | None
    """Of the library's sources, with a + if files had changed since; None outside a repository."""
    versions: dict[str, str]
    machine: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one case: one method on one split of one data set."""

    experiment: str
    dataset: str
    method: str
    seed: int
    hidden: tuple[int, ...]
    members: int
    settings: dict[str, Any]
    status: str
    scores: dict[str, float]
    """Empty unless done."""
    curve: tuple[float, ...]
    """Shares inside central Gaussian intervals of the levels of `calibration_curve`."""
    seconds: float
    """CPU time of the fit; NaN unless done, as the two below."""
    wall_seconds: float
    predict_seconds: float
    n_train: int
    n_test: int
    note: str | None
    run: str = ""
    """Identity of the `Run`."""

    @property
    def key(self) -> str:
        """The text by which a case and its record are found again."""
        return build_key(self)


class Contents(NamedTuple):
    """What a file of results holds."""

    runs: dict[str, Run]
    records: dict[str, Record]
    """One for each key: the last, but what is done stays done."""


class Journal:
    """A file of results to add to; what it holds already is in `records`, by key.

    A last line that was cut short is dropped, and `mended` says so. The line of the run is written
    before its first record, so that nothing is written where nothing is left to do.
    """

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run
        lines, self.mended = mend_lines(path, _parse)
        self.runs, self.records = _sorted_out(lines)

    def append(self, record: Record) -> Record:
        """Add a record, which is on the disk when this returns."""
        if self.run.id not in self.runs:
            append_line(self.path, {"kind": "run", **asdict(self.run)})
            self.runs[self.run.id] = self.run
        mine = replace(record, run=self.run.id)
        append_line(self.path, {"kind": "record", **asdict(mine)})
        _keep(self.records, mine)
        return mine


def load(path: str | os.PathLike[str]) -> tuple[list[Run], list[Record]]:
    """Runs and records of a file of results, one record for each case; a cut last line is left out.

    Parameters
    ----------
    path : path
        File that ``bowtienet reproduce`` wrote, ``results.jsonl``.
    """
    lines, _, _ = _read_lines(Path(path), _parse)
    runs, records = _sorted_out(lines)
    return list(runs.values()), list(records.values())


def build_key(case: Any) -> str:
    """Experiment, data set, method, seed, widths, members and settings in one stable text.

    Parameters
    ----------
    case : Case or Record
    """
    names = ("experiment", "dataset", "method", "seed", "hidden", "members")
    settings = json.dumps(plain(dict(case.settings)), sort_keys=True, allow_nan=False)
    values = [plain(getattr(case, name)) for name in names]
    return json.dumps([*values, json.loads(settings)], sort_keys=True, separators=(",", ":"))


def count(records: Iterable[Record]) -> dict[str, int]:
    """How many records are done, failed and missing."""
    found = [record.status for record in records]
    return {status: found.count(status) for status in STATUSES}


def plain(content: Any) -> Any:
    """Content as JSON holds it, which has no word for NaN and infinity: null, "inf" and "-inf"."""
    if isinstance(content, Mapping):
        return {str(name): plain(value) for name, value in content.items()}
    if isinstance(content, (list, tuple, np.ndarray)):
        return [plain(value) for value in content]
    if isinstance(content, np.generic):
        content = content.item()
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content


def numbers(content: Any) -> Any:
    """Numbers, or dictionaries and lists of them, as they were before `plain`.

    Examples
    --------
    >>> numbers(plain({"nll": [math.inf, math.nan, 2]}))
    {'nll': [inf, nan, 2.0]}
    """
    if isinstance(content, Mapping):
        return {name: numbers(value) for name, value in content.items()}
    if isinstance(content, list):
        return [numbers(value) for value in content]
    return math.nan if content is None else float(content)


def append_line(path: Path, content: Mapping[str, Any]) -> None:
    """One line in one piece at the end of the file, wherever other processes have moved it."""
    line = (json.dumps(plain(content), allow_nan=False, ensure_ascii=False) + "\n").encode()
    with open(path, "ab", buffering=0) as file:
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file.fileno())


def mend_lines(path: Path, parse: Callable[[bytes], Found]) -> tuple[list[Found], str | None]:
    """What the lines hold of a file whose last one is whole from now on, and what that took.

    Parameters
    ----------
    path : Path
        File of JSON lines, which may be absent.
    parse : callable
        From a line to what it holds, or an error that says what is wrong with it.
    """
    found, size, whole = _read_lines(path, parse)
    if whole == size:
        return found, None
    time.sleep(_PATIENCE)
    if path.stat().st_size != size:
        return mend_lines(path, parse)
    os.truncate(path, whole)
    return found, (
        f"the last line of {path.name} was cut short, as by a run that was killed: it was dropped, "
        "and its case is run again."
    )


def parse_run(content: Mapping[str, Any]) -> Run:
    """The run of a line."""
    return _build(Run, content)


def _keep(records: dict[str, Record], record: Record) -> None:
    """The last record of a case counts, but another machine may lack what one has done."""
    before = records.get(record.key)
    if before is None or record.status == DONE or before.status != DONE:
        records[record.key] = record


def _sorted_out(lines: Iterable[Run | Record]) -> Contents:
    contents = Contents({}, {})
    for line in lines:
        if isinstance(line, Run):
            contents.runs[line.id] = line
        else:
            _keep(contents.records, line)
    return contents


def _read_lines(path: Path, parse: Callable[[bytes], Found]) -> tuple[list[Found], int, int]:
    """What the lines hold, bytes that were read, and bytes before a last line that was cut."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if lines and _is_cut(lines[-1]):
        *lines, rest = lines
    else:
        rest = b""
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(parse(line))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(
                f"line {number} of {path} cannot be read as a result ({_reason(error)}): remove "
                "the line, or name another folder."
            ) from error
    whole = sum(map(len, lines))
    return found, whole + len(rest), whole


def _is_cut(line: bytes) -> bool:
    """Whether the last line of a file was not written to its end."""
    try:
        json.loads(line)
    except ValueError:
        return True
    return not line.endswith(b"\n")


def _reason(error: BaseException) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def _parse(line: bytes) -> Run | Record:
    content = json.loads(line)
    if not isinstance(content, dict) or content.get("kind") not in ("run", "record"):
        raise ValueError("it is neither a run nor a record")
    if content["kind"] == "run":
        return parse_run(content)
    if content["status"] not in STATUSES:
        raise ValueError(f"its status is {content['status']!r}")
    times = {name: numbers(content[name]) for name in _TIMES}
    return _build(
        Record,
        content
        | times
        | {
            "hidden": tuple(content["hidden"]),
            "scores": numbers(content["scores"]),
            "curve": tuple(numbers(content["curve"])),
        },
    )


def _build(kind: type[Line], content: Mapping[str, Any]) -> Line:
    return kind(**{field.name: content[field.name] for field in fields(kind)})
