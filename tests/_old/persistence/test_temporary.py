"""Incomplete files: those of killed processes go with the next file, those of living ones stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import bowtienet
from bowtienet._old import BowTieRegressor, FitOptions, persistence
from bowtienet._old.persistence import temporary

SOURCE = str(Path(bowtienet.__file__).parents[1])
posix = pytest.mark.skipif(os.name != "posix", reason="asks for processes and sends signals")


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


def place(folder: Path, machine: str, process: int) -> Path:
    found = folder / f".bowtienet-{machine}-{process}-{uuid.uuid4().hex}.tmp"
    found.touch()
    return found


@posix
def test_only_what_nobody_will_complete_is_removed(tmp_path: Path) -> None:
    here, dead = temporary._machine(), ended_process()
    gone = [place(tmp_path, here, dead), place(tmp_path, "0123abcd", 1)]
    nameless = tmp_path / f".bowtienet-{uuid.uuid4().hex}.tmp"  # of an older version
    nameless.touch()
    for old in (gone[1], nameless):
        os.utime(old, (time.time() - 2e5,) * 2)
    kept = [
        place(tmp_path, here, os.getpid()),
        place(tmp_path, here, os.getppid()),
        place(tmp_path, "0123abcd", dead),
        tmp_path / ".bowtienet-notes.tmp",
        tmp_path / f"model-{here}-{dead}.tmp",
    ]
    for other in kept[3:]:
        other.touch()
    folder = tmp_path / f".bowtienet-{here}-{dead}-{uuid.uuid4().hex}.tmp"
    folder.mkdir()
    persistence.save(tmp_path / "model", "example", 1)
    expected = {path.name for path in [*kept, folder]} | {"model"}
    assert set(os.listdir(tmp_path)) == expected


KILLED = """
import os, sys
from tests._old.persistence import test_temporary as own

genuine, written = os.fsync, 0

def fsync(descriptor):
    global written
    written += 1
    if written == 3:
        os.kill(os.getpid(), 9)
    genuine(descriptor)

os.fsync = fsync
own.fit(sys.argv[1])
"""


def fit(path: str | Path) -> None:
    rng = np.random.default_rng(500)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    tiny = {"n_estimators": 4, "max_iter": 2, "random_state": 0}
    options = FitOptions(weighting="equal")
    with pytest.warns(ConvergenceWarning):
        BowTieRegressor((4,), checkpoint=path, options=options, **tiny).fit(X, y)


@posix
@pytest.mark.process
def test_what_sigkill_leaves_is_removed_by_the_next_fit(tmp_path: Path) -> None:
    """A real fit, killed while it writes its third checkpoint."""
    path = tmp_path / "fit.checkpoint"
    folders = os.pathsep.join((SOURCE, str(Path(__file__).parents[3])))
    found = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == -signal.SIGKILL, found.stderr
    assert len(set(os.listdir(tmp_path)) - {path.name}) == 1
    fit(path)
    assert os.listdir(tmp_path) == [path.name]
