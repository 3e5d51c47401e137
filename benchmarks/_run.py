"""What benchmarks share: cases in processes, their records in a file, and the page."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

Record = dict[str, Any]


def options(name: str, description: str | None, seeds: int) -> argparse.ArgumentParser:
    """A parser of what every benchmark can be told."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=description)
    parser.add_argument("--seeds", type=int, nargs=2, default=(500, 500 + seeds))
    parser.add_argument("--out", type=Path, default=Path(f"{name}.jsonl"), help="the records")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time, one core each")
    return parser


def run(function: Any, names: Sequence[str], cases: Iterable[Any], given: Any) -> list[Record]:
    """All records of the file, with those of `function(*case)` that it did not have."""
    lines = given.out.read_text().splitlines() if given.out.is_file() else []
    records = [json.loads(line) for line in lines]
    done = by(records, *names)
    missing = [case for case in cases if case not in done]
    with ProcessPoolExecutor(given.jobs) as pool, given.out.open("a") as file:
        for record in pool.map(partial(_record, function, names), missing):
            records.append(record)
            print(json.dumps(record), file=file, flush=True)
    return records


def by(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records by their values of `names`."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return groups


def write(text: str, page: Path | None) -> None:
    """Print a page, and write it to its file."""
    if page is not None:
        page.write_text(text, encoding="utf-8")
    print(text)


def _record(function: Any, names: Sequence[str], case: Any) -> Record:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return dict(zip(names, case, strict=True)) | function(*case)
