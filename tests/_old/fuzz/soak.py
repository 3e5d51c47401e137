"""The runner: each case in a process of its own, with limits; counts and failures at the end.

python -m tests._old.fuzz.soak --seconds 3600 --seed 500
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bowtienet
from tests._old.fuzz.attempts import Failure, place_of, require
from tests._old.fuzz.commands import fuzz_command
from tests._old.fuzz.files import fuzz_damage, fuzz_forgery, fuzz_full_disk, fuzz_kill
from tests._old.fuzz.fits import (
    fuzz_containers,
    fuzz_fit,
    fuzz_life,
    fuzz_new_containers,
    fuzz_new_rows,
    fuzz_nonsense,
)
from tests._old.fuzz.threads import fuzz_threads

Case = Callable[[np.random.Generator, Path, Callable[[str], None]], str]
KINDS: dict[str, tuple[float, Case]] = {
    "numbers": (4.0, fuzz_fit("numbers")),
    "classes": (3.0, fuzz_fit("classes")),
    "counts": (2.0, fuzz_fit("counts")),
    "new rows": (2.0, fuzz_new_rows),
    "containers": (2.0, fuzz_containers),
    "new containers": (1.0, fuzz_new_containers),
    "life": (2.0, fuzz_life),
    "nonsense": (2.0, fuzz_nonsense),
    "damage": (0.5, fuzz_damage),
    "forgery": (1.0, fuzz_forgery),
    "full disk": (0.5, fuzz_full_disk),
    "kill": (1.0, fuzz_kill),
    "threads": (0.5, fuzz_threads),
    "command": (2.0, fuzz_command),
}
"""Kinds of cases, with the share of each."""
CPU_SECONDS = 60
"""Of a case; the longest take 20."""
SECONDS = 400.0
"""Of a case, waiting included, on a busy machine."""
GIGABYTES = 4.0
"""Of address space that a case may take beyond that of the runner."""


LATE = (
    *("dask.dataframe", "jinja2", "joblib", "matplotlib.pyplot", "narwhals", "pyarrow.csv"),
    *("rich.console", "rich.progress", "scipy.optimize", "scipy.stats", "scoringrules"),
)
"""Modules that the library imports when it needs them."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case; `where` is None if it held."""

    number: int
    kind: str
    word: str
    seconds: float
    where: str | None = None
    detail: str = ""
    told: str = ""


@dataclass
class _Running:
    """A case under way."""

    number: int
    kind: str
    process: int
    pipe: int
    folder: Path
    begin: float
    said: bytearray = field(default_factory=bytearray)


def preload() -> None:
    """Import everything once, for all processes; nothing is called, so no thread is started."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(bowtienet.__path__, "bowtienet."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        for name in LATE:
            importlib.import_module(name)


def generator_of(seed: int, number: int) -> np.random.Generator:
    """Generator of a case."""
    return np.random.default_rng([seed, number])


def kind_of(seed: int, number: int, kinds: dict[str, tuple[float, Case]]) -> str:
    """Kind of a case, by the shares."""
    shares = np.array([share for share, _ in kinds.values()])
    drawn = generator_of(seed, number).choice(len(shares), p=shares / shares.sum())
    return list(kinds)[int(drawn)]


def start(seed: int, number: int, kind: str, case: Case) -> _Running:
    """Fork a process that runs a case and writes what became of it as JSON to a pipe."""
    folder = Path(tempfile.mkdtemp(prefix="bowtienet-fuzz-"))
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(reading)
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _set_limits()
        found = _run(seed, number, case, folder)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(found).encode("utf-8", "replace"))
        os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    return _Running(number, kind, process, reading, folder, time.monotonic())


def _set_limits() -> None:
    used = 0
    if os.path.exists("/proc/self/statm"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + int(GIGABYTES * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(seed: int, number: int, case: Case, folder: Path) -> dict[str, Any]:
    """What became of a case, in this process."""
    told: list[str] = []
    # What the case prints, and what libraries write past Python, is not of the report.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    own, temporary = folder / "own", folder / "temporary"
    own.mkdir()
    temporary.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    try:
        word = case(generator_of(seed, number).spawn(1)[0], own, told.append)
        left = sorted(place.name for place in temporary.iterdir())
        require(not left, "temporary files are left behind", left)
        return {"word": word}
    except Failure as failure:
        where, detail = failure.where, failure.detail
        trace = traceback.format_exc()
    except BaseException as error:
        where, detail = f"the case raises {place_of(error)}", str(error)
        trace = traceback.format_exc()
    return {"word": "failed", "where": where, "detail": detail, "told": told, "trace": trace}


def finish(case: _Running) -> Outcome | None:
    """The outcome of a case that has come to its end or to its limit; None if it goes on."""
    try:
        while part := os.read(case.pipe, 1 << 16):
            case.said += part
    except BlockingIOError:
        pass
    seconds = time.monotonic() - case.begin
    ended, status = os.waitpid(case.process, os.WNOHANG)
    late = not ended and seconds > SECONDS
    if not ended and not late:
        return None
    _end(case)
    if late:
        os.waitpid(case.process, 0)
    while not late and (part := _rest(case.pipe)):
        case.said += part
    os.close(case.pipe)
    shutil.rmtree(case.folder, ignore_errors=True)
    known = {"number": case.number, "kind": case.kind, "seconds": seconds}
    if late:
        where = f"a case takes more than {SECONDS:.0f} s"
        return Outcome(**known, word="hangs", where=where)
    if not case.said:
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU:
            where = f"a case takes more than {CPU_SECONDS} s of the processor"
            return Outcome(**known, word="hangs", where=where)
        return Outcome(**known, word="crashes", where=f"a case ends its process with {code}")
    found = json.loads(case.said)
    told = "\n".join([*found.pop("told", []), found.pop("trace", "")])
    return Outcome(**known, told=told, **found)


def _end(case: _Running) -> None:
    """Whatever the case has started ends with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(case.process, signal.SIGKILL)


def _rest(pipe: int) -> bytes:
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""


class Report:
    """Counts by kind, and failures: the first of each fault in full."""

    def __init__(self, seed: int, verbose: bool) -> None:
        self.seed, self.verbose = seed, verbose
        self.counts: Counter[tuple[str, str]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.faults: dict[tuple[str, str], list[Outcome]] = {}
        self.begin = self.told = time.monotonic()

    @property
    def n_failures(self) -> int:
        return sum(map(len, self.faults.values()))

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.kind, outcome.word] += 1
        self.seconds[outcome.kind] += outcome.seconds
        if outcome.where is not None:
            known = self.faults.setdefault((outcome.kind, outcome.where), [])
            known.append(outcome)
            if len(known) == 1:
                print(
                    f"FAILURE case {outcome.number} ({outcome.kind}): {outcome.where}", flush=True
                )
                print(f"    {outcome.detail[:500]}\n    {self.command(outcome)}", flush=True)
        if self.verbose:
            print(outcome.told or f"case {outcome.number} ({outcome.kind}): {outcome.word}")

    def command(self, outcome: Outcome) -> str:
        kind = f" --kind {outcome.kind!r}" if " " in outcome.kind else f" --kind {outcome.kind}"
        return f"python -m tests._old.fuzz.soak --seed {self.seed} --case {outcome.number}{kind}"

    def progress(self) -> None:
        if time.monotonic() - self.told > 30.0:
            self.told = time.monotonic()
            print(f"{self.told - self.begin:7.0f} s  {self.counts.total():6} cases, "
                  f"{self.n_failures} failures, {len(self.faults)} faults", flush=True)  # fmt: skip

    def close(self) -> None:
        print(f"\n{'kind':16}{'cases':>7}{'failures':>10}{'seconds':>9}  what became of them")
        for kind in dict.fromkeys(kind for kind, _ in self.counts):
            words = {word: n for (own, word), n in self.counts.items() if own == kind}
            failed = sum(len(found) for (own, _), found in self.faults.items() if own == kind)
            told = ", ".join(f"{n} {word}" for word, n in sorted(words.items()))
            print(f"{kind:16}{sum(words.values()):7}{failed:10}{self.seconds[kind]:9.0f}  {told}")
        total, failed = self.counts.total(), self.n_failures
        print(f"{'all':16}{total:7}{failed:10}{sum(self.seconds.values()):9.0f}")
        for (kind, where), found in sorted(self.faults.items(), key=lambda item: -len(item[1])):
            print(f"\n{len(found)} x {kind}: {where}\n    {found[0].detail[:200]}")
            for outcome in found[:3]:
                print(f"    {self.command(outcome)}")


def soak(
    seed: int,
    *,
    seconds: float,
    numbers: range,
    kinds: dict[str, tuple[float, Case]],
    jobs: int = 1,
    verbose: bool = False,
) -> Report:
    """Run cases until the time or the numbers are used up."""
    report = Report(seed, verbose)
    waiting, running = iter(numbers), list[_Running]()
    goes_on = True
    try:
        while goes_on or running:
            while goes_on and len(running) < jobs:
                number = next(waiting, None)
                if number is None or time.monotonic() - report.begin > seconds:
                    goes_on = False
                    break
                kind = kind_of(seed, number, kinds)
                running.append(start(seed, number, kind, kinds[kind][1]))
            if running:
                select.select([case.pipe for case in running], [], [], 0.2)
            for case in list(running):
                outcome = finish(case)
                if outcome is not None:
                    running.remove(case)
                    report.add(outcome)
            report.progress()
    except KeyboardInterrupt:
        print("interrupted: what was found so far")
    finally:
        for case in running:
            _end(case)
            os.waitpid(case.process, 0)
            shutil.rmtree(case.folder, ignore_errors=True)
    return report


def main(arguments: list[str] | None = None) -> int:
    """1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for how long")
    parser.add_argument("--cases", type=int, default=10**9, help="how many at most")
    parser.add_argument("--case", type=int, help="this one alone, with what it did")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only such cases")
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time")
    given = parser.parse_args(arguments)
    if given.case is None and given.cases == 10**9 and given.seconds == float("inf"):
        parser.error("say --seconds, --cases or --case")
    kinds = {kind: KINDS[kind] for kind in given.kind or KINDS}
    one = given.case is not None
    numbers = range(given.case, given.case + 1) if one else range(given.cases)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    preload()
    report = soak(
        given.seed,
        seconds=given.seconds,
        numbers=numbers,
        kinds=kinds,
        jobs=given.jobs,
        verbose=one,
    )
    report.close()
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
