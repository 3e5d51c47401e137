"""A share of the soak for `make test-all`, from a fixed seed; and that the runner finds faults.

The cases run in processes that a runner of their own forks: a test process has threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bowtienet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]
ROOT = Path(__file__).resolve().parents[3]
SEED = 500
SHARE: dict[str, tuple[int, tuple[str, ...]]] = {
    "fits": (48, ("numbers", "classes", "counts")),
    "rows": (28, ("new rows", "containers", "new containers")),
    "calls": (30, ("life", "nonsense")),
    "files": (16, ("damage", "forgery", "full disk", "kill", "threads")),
    "commands": (9, ("command",)),
}
"""How many cases of which kinds: about two minutes together."""
LIMIT = 900.0
"""Seconds, of a busy machine."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The end of a Python process that finds the tests and the same library."""
    source = str(Path(bowtienet.__file__).parents[1])
    paths = os.pathsep.join([source, str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.parametrize("part", SHARE)
def test_no_case_fails(part: str) -> None:
    """What fails is printed with the command that runs it alone."""
    count, kinds = SHARE[part]
    chosen = [word for kind in kinds for word in ("--kind", kind)]
    found = run("-m", "tests._old.fuzz.soak", "--seed", str(SEED), "--cases", str(count), *chosen)
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_kind_of_case_has_its_share() -> None:
    from tests._old.fuzz.soak import KINDS

    assert sorted(kind for _, kinds in SHARE.values() for kind in kinds) == sorted(KINDS)


FAULTS = """
    import os, signal, time
    import numpy as np
    from tests._old.fuzz import soak
    from tests._old.fuzz.attempts import attempt, require

    soak.CPU_SECONDS, soak.GIGABYTES = 1, 0.5

    def loop():
        while True:
            pass

    KINDS = {
        "sound": lambda rng, folder, note: "well",
        "wrong": lambda rng, folder, note: require(False, "one is two", rng.integers(100)),
        "crash": lambda rng, folder, note: os.kill(os.getpid(), signal.SIGSEGV),
        "hang": lambda rng, folder, note: loop(),
        "wait": lambda rng, folder, note: time.sleep(600),
        "memory": lambda rng, folder, note: attempt("it", lambda: np.ones(10**9)),
        "error": lambda rng, folder, note: attempt("it", lambda: [][0]),
        "other": lambda rng, folder, note: attempt("it", lambda: int("x")),
        "warning": lambda rng, folder, note: attempt("it", lambda: np.log(np.zeros(1))),
    }
    for kind, case in KINDS.items():
        soak.SECONDS = 1.0 if kind == "wait" else 60.0
        for _ in range(2):
            report = soak.soak(7, seconds=30.0, numbers=range(1), kinds={kind: (1.0, case)})
            found = [(where, out.detail) for (_, where), [out] in report.faults.items()]
            print("FOUND", kind, found)
"""
FOUND = {
    "sound": "[]",
    "wrong": "one is two",
    "crash": "with -11",
    "hang": "more than 1 s of the processor",
    "wait": "more than 1 s",
    "memory": "all memory",
    "error": "it raises IndexError",
    "other": "it lets through a ValueError",
    "warning": "it warns: RuntimeWarning",
}


def test_the_runner_finds_every_kind_of_fault() -> None:
    """And the same again, from the same seed."""
    ended = run("-c", textwrap.dedent(FAULTS))
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("FOUND")]
    for (kind, words), first, again in zip(FOUND.items(), lines[::2], lines[1::2], strict=True):
        assert words in first.removeprefix(f"FOUND {kind} "), first
        assert first == again
