"""What benchmarks share: cases in processes, their records in a file, and the page."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
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


def run(
    function: Any,
    names: Sequence[str],
    cases: Iterable[Any],
    given: Any,
    *,
    limit: float = math.inf,
    hours: float = math.inf,
    may_fail: bool = False,
) -> list[Record]:
    """All records of the file, with those of `function(*case)` that it did not have.

    A case has `limit` processor seconds (thrice that on the clock), and none is started after
    `hours`. What fails ends the run, unless it may: then its record says so.
    """
    records = read(given.out)
    done = by(records, *names)
    missing = [case for case in cases if case not in done]
    for record in _finished(function, names, missing, given.jobs, limit, 3600.0 * hours):
        if "failed" in record and not may_fail:
            raise RuntimeError(f"{record}")
        records.append(record)
        # Records are whole after every case: gzip files may have many members.
        with _opened(given.out, "at") as file:
            print(json.dumps(record), file=file)
    return records


def read(path: Path) -> list[Record]:
    """Records of a file; none if there is none."""
    if not path.is_file():
        return []
    records = []
    # A run that was killed may have left an unfinished member.
    with suppress(EOFError), _opened(path, "rt") as file:
        records.extend(json.loads(line) for line in file)
    return records


def rewrite(records: Iterable[Record], path: Path) -> None:
    """A file of these records alone: one member compresses far better than many."""
    new = path.with_name(f"new-{path.name}")
    with _opened(new, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    new.replace(path)


def _opened(path: Path, mode: str) -> Any:
    return (gzip.open if path.suffix == ".gz" else open)(path, mode, encoding="utf-8")


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


def _finished(
    function: Any, names: Sequence[str], cases: list[Any], jobs: int, limit: float, seconds: float
) -> Iterator[Record]:
    """Records as they come, every case in a process of its own."""
    # Forked: what the program has read and imported need not be read by every case.
    context = multiprocessing.get_context("fork")
    began, queue, running = time.monotonic(), iter(cases), {}
    try:
        while True:
            while len(running) < jobs and time.monotonic() - began < seconds:
                case = next(queue, None)
                if case is None:
                    break
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_send, args=(function, case, theirs, limit))
                process.start()
                theirs.close()
                running[ours] = process, case, time.monotonic()
            if not running:
                return
            ready = wait(list(running), timeout=1.0)
            for pipe, (process, case, start) in list(running.items()):
                if pipe in ready:
                    try:
                        answer = pipe.recv()
                    except EOFError:
                        process.join()
                        answer = {"failed": f"its process ended with code {process.exitcode}"}
                        if process.exitcode == -signal.SIGXCPU:
                            answer = {"failed": f"longer than {limit:g} s"}
                elif time.monotonic() - start > 3.0 * limit:
                    process.kill()
                    answer = {"failed": f"longer than {3.0 * limit:g} s, most of them waiting"}
                else:
                    continue
                process.join(10.0)
                process.kill()
                del running[pipe]
                yield dict(zip(names, case, strict=True)) | answer
    finally:
        for process, *_ in running.values():
            process.kill()


def _send(function: Any, case: Any, pipe: Any, limit: float) -> None:
    """Answer with the record of a case, or with why there is none."""
    if limit < math.inf:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), resource.RLIM_INFINITY))
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            answer = function(*case)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
    pipe.send(answer)
