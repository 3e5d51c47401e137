"""The program as a shell starts it: what it imports, exit codes, pipes, signals and terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import bowtienet as bt
from tests._old.cli.conftest import SWITCHES, TINY, snapshot, write_rows

SOURCE = str(Path(bt.__file__).parents[1])
PROGRAM = ("-m", "bowtienet")
HEAVY = ("matplotlib", "narwhals", "numpy", "pandas", "pyarrow", "rich", "scipy", "sklearn")
NO_ROOM = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
runpy.run_module("bowtienet", run_name="__main__")
"""
"""The program on a machine that lets no file grow beyond 4096 bytes."""


def start(*arguments: object, program=PROGRAM, stderr=subprocess.PIPE, **more: str):
    kept = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**kept, "PYTHONPATH": SOURCE, **more},
    )


def finish(process, seconds=120):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments):
    code = f"import sys; sys.argv[1:] = {arguments}; from bowtienet._old.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += f"print('heavy:', sorted(set({HEAVY}) & set(sys.modules)))"
    _, out, _ = finish(start(program=("-c", code)))
    assert out.splitlines()[-1] == "heavy: []"


def test_without_its_packages_the_command_says_how_to_get_them():
    code = "import sys; sys.modules['typer'] = None; from bowtienet._old.cli import main; main()"
    code, out, err = finish(start(program=("-c", code)))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"Error: .*typer.*\n", err)


@pytest.mark.slow
def test_pipes_get_results_alone(folder):
    code, out, err = finish(start("fit", "data.csv", "-t", "y", *TINY))
    assert code == 0
    assert all(character.isprintable() or character == "\n" for character in out + err)
    assert [line[:5] for line in err.splitlines()] == ["Note:"]  # of convergence
    code, out, err = finish(start("predict", "data.btn", "new.csv"))
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 11
    code, out, err = finish(start("fit", "data.csv", "-t", "Y", "--force"))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"Error: .*'Y'.*\n", err)


@pytest.mark.slow
def test_a_terminal_sees_a_bar(folder):
    """What a pseudo-terminal receives as standard error; standard output stays a pipe."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    fit = ["fit", "data.csv", "-t", "y", "--members", "2", "--weighting", "equal", "--jobs", "1"]
    switches = {"TERM": "xterm", "COLUMNS": "80"}
    process = start(*fit, "--max-iter", "30", stderr=theirs, **switches)
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(ours, 65536):
            seen += chunk
    os.close(ours)
    with process.stdout as stream:
        out = stream.read().decode()
    assert process.wait(timeout=60) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    assert "━" in shown
    assert "━" not in out
    assert re.search(r"fit \d/2", shown)
    assert max(map(len, re.split(r"[\r\n]+", shown))) <= 80


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system limits no files")
@pytest.mark.parametrize("name", ["new.btn", "out.csv"])
def test_a_file_that_may_not_grow(folder, model, name):
    write_rows(folder / "long.csv", 600, seed=3)
    (folder / name).write_text("older")
    before = snapshot(folder)
    fit = ("fit", "long.csv", "-t", "y", *TINY)
    arguments = fit if name == "new.btn" else ("predict", model, "long.csv")
    code, _, err = finish(start(*arguments, "--out", name, "--force", program=("-c", NO_ROOM)))
    assert code == 2, err
    assert re.fullmatch(rf"Error: .*{name} .*", err.splitlines()[-1])
    assert snapshot(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.0, 1.0])
def test_an_interrupted_fit_writes_nothing(folder, wait):
    write_rows(folder / "long.csv", 20_000, seed=3)
    before = snapshot(folder)
    options = ("--members", "4", "--max-iter", "100000", "--hidden", "50,50", "--jobs", "1")
    process = start("fit", "long.csv", "-t", "y", "-o", "model.btn", *options)
    try:
        # The table of columns ends with the target, and is printed just before the fit begins.
        while not process.stdout.readline().startswith(b"y "):
            assert process.poll() is None, process.stderr.read()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
    finally:
        process.kill()
    assert code == 130, err
    assert err.splitlines()[-1].startswith("Error: interrupted")
    assert "Traceback" not in err
    assert snapshot(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "n_lines"),
    [
        (("predict", "model.btn", "long.csv"), 0),
        (("predict", "model.btn", "long.csv"), 1),
        (("inspect", "model.btn"), 0),
    ],
)
def test_a_reader_that_has_seen_enough(folder, model, arguments, n_lines):
    write_rows(folder / "long.csv", 20_000, seed=3)
    with start(*arguments) as process:
        seen = [process.stdout.readline() for _ in range(n_lines)]
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 141
    assert all(line.endswith(b"\n") for line in seen)
