"""Processes that are killed, interrupted or out of room: what was whole stays whole."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bowtienet import BowTieRegressor
from bowtienet.cli.app import app
from bowtienet.report import write_report

pytestmark = pytest.mark.process

CHILDREN = """
import os, random, signal, sys, time, warnings
import numpy as np, pandas as pd
import bowtienet as bt
from bowtienet.cli import predict
from bowtienet.cli.app import app

warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)
chance = random.Random(0)

def child(work):
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        code = work() or 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        os._exit(code)

def ended(number):
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
"""


def run(program: str, folder: Path, *words: Any) -> str:
    """A program with children of its own; what it says on standard error."""
    code = CHILDREN + textwrap.dedent(program)
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def fitted() -> tuple[BowTieRegressor, pd.DataFrame]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table["y"] = table["a"] + 0.1 * rng.normal(size=60)
    return BowTieRegressor((4,), effort="fast", random_state=0).fit(table, "y"), table


@pytest.fixture
def folder(fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a model, its rows, and predictions of before."""
    model, table = fitted
    model.save(tmp_path / "model.btn")
    table.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "p.csv").write_text("of before\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_killed_while_saving(folder: Path) -> None:
    """A killed process can leave a hidden file, but never half a model."""
    run(
        """
        model, before = bt.load("model.btn"), open("model.btn", "rb").read()

        def save():
            while True:
                model.save("model.btn")

        for _ in range(30):
            number = child(save)
            time.sleep(chance.uniform(0.0, 0.1))
            os.kill(number, signal.SIGKILL)
            assert ended(number) == -signal.SIGKILL
            assert open("model.btn", "rb").read() == before
        """,
        folder,
    )
    assert visible(folder) == ["model.btn", "p.csv", "rows.csv"]


def test_killed_while_a_command_writes(folder: Path) -> None:
    """Predictions are those of before, or all of them."""
    run(
        """
        predict.ROWS = 1  # read, predicted and written at a time

        def write():
            app(["predict", "model.btn", "rows.csv", "--out", "p.csv"], standalone_mode=False)

        write()  # imports what it needs
        whole, kept = open("p.csv").read(), 0
        open("p.csv", "w").write("of before")
        for _ in range(10):
            number = child(write)
            while not [name for name in os.listdir() if name.startswith(".p.csv")]:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.05))
            os.kill(number, signal.SIGKILL)
            ended(number)
            for name in os.listdir():
                if name.startswith(".p.csv"):
                    os.unlink(name)
            found = open("p.csv").read()
            assert found in ("of before", whole)
            kept += found == "of before"
        assert kept
        """,
        folder,
    )


@contextmanager
def room(size: int) -> Iterator[None]:
    """Files can have no more bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.99])
def test_full_disk(share: float, fitted: Any, folder: Path) -> None:
    model, table = fitted
    before = {name: Path(name).read_bytes() for name in visible(folder)}
    with room(int(share * len(before["model.btn"]))), pytest.raises(OSError, match="large"):
        model.save("model.btn")
    words = ["predict", "model.btn", "rows.csv", "--out", "p.csv"]
    with room(int(share * 1000)):
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "Error: " in done.stderr
    with room(int(share * 1000)), pytest.raises(OSError, match="large"):
        write_report(model, table[["a", "b"]], table["y"], "page.html")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_full_disk_behind_a_pipe(folder: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "bowtienet", "predict", "model.btn", "rows.csv"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"space" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["/proc", "rows.csv"])
def test_folders_that_take_no_file(name: str, fitted: Any, folder: Path) -> None:
    """/proc takes none from root either; the other is no folder at all."""
    if not os.path.exists(name):
        pytest.skip(f"this system has no {name}")
    before = visible(folder)
    with pytest.raises(OSError, match=name):
        fitted[0].save(Path(name, "model.btn"))
    done = CliRunner().invoke(app, ["predict", "model.btn", "rows.csv", "--out", f"{name}/p.csv"])
    assert done.exit_code == 2
    assert name in done.stderr
    assert visible(folder) == before


def test_interrupted_fits(folder: Path) -> None:
    """Ctrl-C at random moments: KeyboardInterrupt, or a model that predicts, within seconds."""
    run(
        """
        table = pd.read_csv("rows.csv")
        models = [
            bt.BowTieRegressor(effort="best", n_jobs=2, random_state=0),
            bt.BowTieNetwork((20,), init="laplace", max_iter=100_000, tol=0.0, random_state=0),
        ]

        def fit(model):
            try:
                model.fit(table, "y")
            except KeyboardInterrupt:
                return 0
            return not np.isfinite(model.predict(table)).all()

        for model in models * 4:
            number = child(lambda: fit(model))
            time.sleep(chance.uniform(0.05, 1.0))
            os.kill(number, signal.SIGINT)
            began = time.monotonic()
            assert ended(number) == 0
            assert time.monotonic() - began < 30.0
        """,
        folder,
    )


def test_interrupted_commands(folder: Path) -> None:
    """They end with 130 as shells have it, without a traceback or half a file."""
    said = run(
        """
        words = ["fit", "rows.csv", "-t", "y", "-o", "new.btn", "--set", "effort=best"]
        for _ in range(4):
            number = child(lambda: app(words))
            time.sleep(chance.uniform(0.3, 1.0))
            os.kill(number, signal.SIGINT)
            code = ended(number)
            assert code in (0, 130), code
            if os.path.exists("new.btn"):
                bt.load("new.btn")
        """,
        folder,
    )
    assert "Traceback" not in said
    assert set(visible(folder)) <= {"model.btn", "new.btn", "p.csv", "rows.csv"}
