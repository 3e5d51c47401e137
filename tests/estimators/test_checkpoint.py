"""Checkpoints: one of two files is complete at every moment, and nothing foreign is overwritten."""

from __future__ import annotations

import builtins
import errno
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from bowtienet import persistence
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.estimators.checkpoint import KIND, Checkpoint, digest, identity_difference


def content(number: int) -> dict[str, Any]:
    return {"number": number, "numbers": np.full(500, float(number))}


def number_in(path: Path) -> int | None:
    """Number of the complete checkpoint at a path, None if there is none."""
    try:
        found = persistence.load(path, KIND)
    except (FileNotFoundError, ValueError):
        return None
    np.testing.assert_array_equal(found["numbers"], found["number"])
    return found["number"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def previous(path: Path) -> Path:
    return path.with_name("fit.checkpoint.previous")


@pytest.fixture
def checkpoint(path: Path) -> Checkpoint:
    """With the state 2 at the path, and the state 1 before it."""
    checkpoint = Checkpoint(path, seconds=0)
    checkpoint.write(content(1))
    checkpoint.write(content(2))
    return checkpoint


# Writing and reading


def test_the_one_before_is_kept(path: Path, previous: Path) -> None:
    checkpoint = Checkpoint(str(path))
    assert checkpoint.previous == Path(os.path.realpath(previous))
    checkpoint.prepare()
    assert os.listdir(path.parent) == []
    for number in range(4):
        checkpoint.write(content(number))
        assert checkpoint.read()["number"] == number
        assert number_in(path) == number
        assert number_in(previous) == (number - 1 if number else None)
        assert set(os.listdir(path.parent)) <= {path.name, previous.name}


def test_another_process_goes_on(checkpoint: Checkpoint, path: Path, previous: Path) -> None:
    again = Checkpoint(path)
    assert again.read()["number"] == 2
    again.write(content(3))
    assert (number_in(path), number_in(previous)) == (3, 2)


def test_when_one_is_due(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    checkpoint = Checkpoint(path, seconds=60)
    assert Checkpoint(path, seconds=0).is_due()
    assert not checkpoint.is_due()
    now = 160.0
    assert checkpoint.is_due()
    checkpoint.write(content(1))
    assert not checkpoint.is_due()
    now = 219.9
    assert not checkpoint.is_due()
    now = 220.0
    assert checkpoint.is_due()


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, "60", None, True])
def test_seconds_must_be_a_time(seconds: Any, path: Path) -> None:
    with pytest.raises(ValueError, match="seconds must be a non-negative, finite number"):
        Checkpoint(path, seconds)


def test_files_that_it_wrote_are_not_read_again(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "load", None)
    checkpoint.write(content(3))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "target", tmp_path / "link"
    link.symlink_to(target)
    checkpoint = Checkpoint(link)
    checkpoint.prepare()
    for number in (1, 2):
        checkpoint.write(content(number))
    assert link.is_symlink()
    assert checkpoint.read()["number"] == number_in(target) == 2
    assert number_in(tmp_path / "disk" / "target.previous") == 1
    assert sorted(os.listdir(tmp_path)) == ["disk", "link"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_the_previous_one_may_be_a_link_too(path: Path, previous: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    previous.symlink_to(tmp_path / "disk" / "old")
    checkpoint = Checkpoint(path)
    for number in (1, 2):
        checkpoint.write(content(number))
    assert previous.is_symlink()
    assert number_in(tmp_path / "disk" / "old") == 1


def test_without_second_names_for_a_file(
    checkpoint: Checkpoint, path: Path, previous: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for number in (3, 4):
        checkpoint.write(content(number))
        assert (number_in(path), number_in(previous)) == (number, number - 1)
    assert sorted(os.listdir(path.parent)) == [path.name, previous.name]


# What is not read


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        Checkpoint(path).read()
    assert str(caught.value) == f"{path} does not exist: call fit first."


def test_a_missing_file_beside_a_previous_one(checkpoint: Checkpoint, path: Path) -> None:
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"call fit first\. The checkpoint before it is"):
        checkpoint.read()


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Checkpoint(tmp_path).read()


def test_something_else_of_the_same_kind(path: Path) -> None:
    persistence.save(path, KIND, [1, 2])
    with pytest.raises(ValueError, match="does not hold the state of a fit: call fit first"):
        Checkpoint(path).read()


def torn(data: bytes) -> list[bytes]:
    """Cut off at many places, and with single bits that have changed."""
    start = 8 + int.from_bytes(data[:8], "little")
    lengths = [0, 1, 7, 8, 9, 50, 100, 200, start - 1, start, start + 1, len(data) - 1]
    lengths += range(0, len(data), 211)
    flips = [0, 3, 8, 20, 60, 150, start - 1, start, len(data) - 1, *range(0, len(data), 197)]
    cut = [data[:length] for length in lengths]
    return cut + [data[:i] + bytes([data[i] ^ 4]) + data[i + 1 :] for i in flips]


def test_a_torn_file_is_refused_and_the_way_out_works(
    checkpoint: Checkpoint, path: Path, previous: Path
) -> None:
    whole = path.read_bytes()
    for data in torn(whole):
        path.write_bytes(data)
        before = contents(path.parent)
        with pytest.raises(ValueError, match="is complete: copy") as caught:
            checkpoint.read()
        message = str(caught.value)
        assert message.startswith(f"{path} ")
        assert message.endswith(
            f" The checkpoint before it is complete: copy {checkpoint.previous} to {path} to go on"
            " from there."
        )
        with pytest.raises(ValueError) as plain:  # noqa: PT011 - compared with the message above
            persistence.load(path, KIND)
        assert message.startswith(str(plain.value))
        assert contents(path.parent) == before
    shutil.copy(previous, path)
    assert checkpoint.read()["number"] == 1
    checkpoint.write(content(2))
    assert path.read_bytes() == whole


def test_a_previous_one_that_is_torn_is_no_way_out(
    checkpoint: Checkpoint, path: Path, previous: Path
) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    for data in torn(previous.read_bytes()):
        previous.write_bytes(data)
        with pytest.raises(ValueError, match=r"is truncated: .*; copy it again\.$"):
            checkpoint.read()


# What is not overwritten


def saved_model(folder: Path) -> bytes:
    persistence.save(folder / "model", "BowTieRegressor", content(5))
    data = (folder / "model").read_bytes()
    (folder / "model").unlink()
    return data


FOREIGN: dict[str, Callable[[Path], bytes]] = {
    "table": lambda _: b"inputs,targets\n1.0,2.0\n" * 50,
    "short": lambda _: b"1,2\n",
    "one byte": lambda _: b"\0",
    "zeros": lambda _: bytes(5000),
    "pickle": lambda _: pickle.dumps({"weights": np.arange(50.0)}),
    "safetensors": lambda _: safetensors.numpy.save({"weight": np.ones(3)}, {"kind": KIND}),
    "saved model": saved_model,
    "torn model": lambda folder: saved_model(folder)[:-1],
    "half a header of a model": lambda folder: saved_model(folder)[:180],
    "altered model": lambda folder: saved_model(folder)[:-1] + b"x",
    "words": lambda _: b'{"kind": "checkpoint", "bowtienet": 1}',
}


@pytest.mark.parametrize("which", ["path", "previous"])
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_left_alone(name: str, which: str, path: Path, previous: Path) -> None:
    Checkpoint(path).write(content(1))
    place = {"path": path, "previous": previous}[which]
    place.write_bytes(FOREIGN[name](path.parent))
    before = contents(path.parent)
    checkpoint = Checkpoint(path)
    message = f"{place} is not a checkpoint and is not overwritten: choose another name, or"
    for attempt in (checkpoint.prepare, lambda: checkpoint.write(content(2))):
        with pytest.raises(ValueError, match=re.escape(message)):
            attempt()
        assert contents(path.parent) == before


def test_a_file_that_is_put_there_during_a_fit(checkpoint: Checkpoint, path: Path) -> None:
    path.write_text("inputs,targets\n")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        checkpoint.write(content(3))
    assert path.read_text() == "inputs,targets\n"


def test_a_fit_starts_anew_over_a_checkpoint(
    checkpoint: Checkpoint, path: Path, previous: Path
) -> None:
    again = Checkpoint(path)
    again.prepare()
    assert (number_in(path), number_in(previous)) == (2, 1)
    again.write(content(7))
    assert (number_in(path), number_in(previous)) == (7, 2)


@pytest.mark.parametrize("length", [0, 200, 1000, -1])
def test_a_fit_starts_anew_over_a_torn_checkpoint(
    length: int, checkpoint: Checkpoint, path: Path, previous: Path
) -> None:
    """The torn file does not take the place of the complete one before it."""
    path.write_bytes(path.read_bytes()[:length])
    again = Checkpoint(path)
    again.prepare()
    again.write(content(7))
    assert (number_in(path), number_in(previous)) == (7, 1)
    again.write(content(8))
    assert (number_in(path), number_in(previous)) == (8, 7)


def test_a_file_that_is_torn_during_a_fit(
    checkpoint: Checkpoint, path: Path, previous: Path
) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    checkpoint.write(content(3))
    assert (number_in(path), number_in(previous)) == (3, 1)


def test_places_that_cannot_be_written(tmp_path: Path, path: Path, previous: Path) -> None:
    for place, error in ((tmp_path, IsADirectoryError), (tmp_path / "no" / "x", FileNotFoundError)):
        with pytest.raises(error, match=r"is a folder|create it first"):
            Checkpoint(place).prepare()
    previous.mkdir()
    for attempt in (Checkpoint(path).prepare, lambda: Checkpoint(path).write(content(1))):
        with pytest.raises(IsADirectoryError, match="previous is a folder"):
            attempt()
    assert os.listdir(tmp_path) == [previous.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_a_pipe_is_not_replaced(path: Path) -> None:
    os.mkfifo(path)
    for attempt in (Checkpoint(path).prepare, lambda: Checkpoint(path).write(content(1))):
        with pytest.raises(ValueError, match="is not a regular file"):
            attempt()
    assert path.is_fifo()


# Failures


class Steps:
    """Calls `before` ahead of each step that `write` makes on the disk, with its number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> None:
        self.count = 0
        self.before = before
        for module, name in ((os, "link"), (os, "replace"), (os, "fsync"), (os, "unlink")):
            monkeypatch.setattr(module, name, self.watched(getattr(module, name)))
        monkeypatch.setattr(builtins, "open", self.watched(open, writing=True))

    def watched(self, function: Callable[..., Any], writing: bool = False) -> Callable[..., Any]:
        def step(*arguments: Any, **keywords: Any) -> Any:
            if not writing or arguments[1:] == ("xb",):
                self.count += 1
                self.before(self.count)
            return function(*arguments, **keywords)

        return step


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)


def states(path: Path, previous: Path) -> dict[str, Callable[[], Any]]:
    """Ways in which the two names of a fixture with the states 2 and 1 can be before a write."""
    return {
        "both": lambda: None,
        "only the last": previous.unlink,
        "one file with two names": lambda: (previous.unlink(), os.link(path, previous)),
        "torn": lambda: path.write_bytes(path.read_bytes()[:-1]),
        "missing": path.unlink,
        "previous torn": lambda: previous.write_bytes(previous.read_bytes()[:-1]),
    }


STATES = tuple(states(Path(), Path()))


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
@pytest.mark.parametrize("state", STATES)
def test_one_is_complete_at_every_moment(
    state: str,
    links: bool,
    checkpoint: Checkpoint,
    path: Path,
    previous: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a crash would leave at each step: the new state, or the latest there was."""
    states(path, previous)[state]()
    latest = number_in(path) or number_in(previous)
    assert latest is not None
    found = []

    def look(_: int) -> None:
        found.append((number_in(path), number_in(previous)))

    if not links:
        without_links(monkeypatch)
    steps = Steps(monkeypatch, look)
    checkpoint.write(content(3))
    look(0)
    assert steps.count >= 3
    for pair in found:
        assert latest in pair or 3 in pair
    assert found[-1] == (3, latest)
    assert sorted(os.listdir(path.parent)) == [path.name, previous.name]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
@pytest.mark.parametrize("state", STATES)
def test_a_failure_at_any_step(
    state: str,
    links: bool,
    error: BaseException,
    checkpoint: Checkpoint,
    path: Path,
    previous: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states(path, previous)[state]()
    latest = number_in(path) or number_in(previous)
    before = contents(path.parent)
    failures = 0
    for failing in range(1, 10):
        for stray in path.parent.iterdir():
            stray.unlink()
        for name, data in before.items():
            (path.parent / name).write_bytes(data)

        def fail(step: int, failing: int = failing) -> None:
            if step == failing:
                raise error

        with monkeypatch.context() as patch:
            if not links:
                without_links(patch)
            Steps(patch, fail)
            try:
                Checkpoint(path).write(content(3))
            except (OSError, KeyboardInterrupt) as caught:
                failures += 1
                if isinstance(error, OSError):
                    assert str(caught) == (  # noqa: PT017 - not every step leads to an error
                        f"the checkpoint {path} cannot be written (No space left): make room or "
                        "choose another folder; the checkpoint before it is kept."
                    )
                    assert caught.errno == errno.ENOSPC  # type: ignore[union-attr] # noqa: PT017
        assert {number_in(path), number_in(previous)} & {latest, 3}
        checkpoint = Checkpoint(path)
        checkpoint.prepare()
        checkpoint.write(content(4))
        assert number_in(path) == 4
        assert number_in(previous) in (latest, 3)
    assert failures >= 3


def test_content_that_cannot_be_saved(checkpoint: Checkpoint, path: Path) -> None:
    with pytest.raises(TypeError, match=r"content\['x'\] cannot be saved"):
        checkpoint.write({"x": object()})
    assert number_in(path) == 2


def test_a_failure_is_not_repeated_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk shall not cost an attempt in every sweep."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    checkpoint = Checkpoint(path, seconds=60)
    now = 61.0
    with pytest.raises(TypeError):
        checkpoint.write({"x": object()})
    assert not checkpoint.is_due()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_read_only_folder(checkpoint: Checkpoint, path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        for attempt in (Checkpoint(path).prepare, lambda: checkpoint.write(content(3))):
            with pytest.raises(PermissionError, match="cannot be written"):
                attempt()
        assert checkpoint.read()["number"] == 2
    finally:
        path.parent.chmod(0o700)


def test_a_folder_that_takes_no_new_file(
    checkpoint: Checkpoint, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for whoever is root."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EROFS, "Read-only file system")

    for module, name in ((os, "link"), (builtins, "open"), (os, "open")):
        monkeypatch.setattr(module, name, refuse)
    for attempt in (checkpoint.prepare, lambda: checkpoint.write(content(3))):
        with pytest.raises(PermissionError, match=r"cannot be written \(Read-only file system\)"):
            attempt()
    monkeypatch.undo()
    assert checkpoint.read()["number"] == 2


# Other processes


def run(code: str, *arguments: str) -> str:
    """What a program writes that has the helpers of this file."""
    program = (
        "import os, random, resource, signal, sys, time\n"
        "import numpy as np\n"
        "from bowtienet.estimators.checkpoint import Checkpoint\n"
        "def content(number, size=500):\n"
        "    return {'number': number, 'numbers': np.full(size, float(number))}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program + code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_a_disk_that_is_really_full(checkpoint: Checkpoint, path: Path, previous: Path) -> None:
    """As good as full: the system lets the process write files of 10 kB at most."""
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
checkpoint = Checkpoint(sys.argv[1])
checkpoint.prepare()
try:
    checkpoint.write(content(3, 5000))
except OSError as error:
    print(error, end="")
"""
    said = run(code, str(path))
    assert said.startswith(f"the checkpoint {path} cannot be written (File too large): make room")
    assert checkpoint.read()["number"] == 2
    assert sorted(os.listdir(path.parent)) == [path.name, previous.name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_processes_that_are_killed(path: Path, previous: Path) -> None:
    """Each goes on from what the one before it left, and is killed between or within writes."""
    code = """
random.seed(0)
last = -1
for _ in range(25):
    child = os.fork()
    if child == 0:
        checkpoint = Checkpoint(sys.argv[1], seconds=0)
        number = last
        while True:
            number += 1
            checkpoint.write(content(number, 30_000))
    time.sleep(random.uniform(0.005, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found = Checkpoint(sys.argv[1]).read()
    except FileNotFoundError:
        assert last == -1
        continue
    assert found["number"] >= last, (found["number"], last)
    np.testing.assert_array_equal(found["numbers"], found["number"])
    last = found["number"]
print(last)
"""
    last = int(run(code, str(path)))
    assert last > 10
    assert number_in(path) == last
    assert number_in(previous) in (last - 1, last)


def test_two_fits_with_one_path(path: Path, previous: Path) -> None:
    """Who wrote last is not defined, but all that is ever seen is complete."""
    failures: list[BaseException] = []

    def write(start: int) -> None:
        try:
            checkpoint = Checkpoint(path, seconds=0)
            for number in range(start, start + 30):
                checkpoint.write(content(number))
        except BaseException as error:
            failures.append(error)

    Checkpoint(path).write(content(0))
    writers = [threading.Thread(target=write, args=(start,)) for start in (100, 200)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert number_in(path) is not None
    for writer in writers:
        writer.join()
    assert failures == []
    assert number_in(path) in (129, 229)
    assert number_in(previous) is not None
    assert sorted(os.listdir(path.parent)) == [path.name, previous.name]


# Whether it is the same fit


@pytest.mark.parametrize(
    ("saved", "now"),
    [
        ({}, {}),
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1}),
        ({"a": (50, 20)}, {"a": [50, 20]}),
        ({"a": np.int64(3), "b": np.float32(0.5)}, {"a": 3, "b": 0.5}),
        ({"a": np.arange(3), "b": np.str_("x")}, {"a": (0, 1, 2), "b": "x"}),
        ({"a": math.nan, "b": (np.float64(math.nan), None)}, {"a": np.nan, "b": [math.nan, None]}),
        ({"a": {"x": [1], "y": 2}}, {"a": {"y": 2, "x": (1,)}}),
        (
            {"a": InverseGamma(concentration=np.float64(2.0), scale=math.nan)},
            {"a": InverseGamma(concentration=2.0, scale=math.nan)},
        ),
        ({"a": jnp.arange(2)}, {"a": np.arange(2)}),
    ],
)
def test_fits_that_agree(saved: dict[str, Any], now: dict[str, Any]) -> None:
    assert identity_difference(saved, now) is None
    assert identity_difference(now, saved) is None


@pytest.mark.parametrize(
    ("saved", "now", "words"),
    [
        ({"a": 1, "sizes": [50]}, {"a": 1, "sizes": (20,)}, "sizes was (50,) and is (20,) now"),
        ({"b": 2, "a": 1}, {"a": 2, "b": 1}, "a was 1 and is 2 now"),
        ({"a": np.float64(1.5)}, {"a": None}, "a was 1.5 and is None now"),
        ({"a": math.nan}, {"a": 1.0}, "a was nan and is 1.0 now"),
        ({"a": (1, 2)}, {"a": (1, 2, 3)}, "a was (1, 2) and is (1, 2, 3) now"),
        ({"a": (1,)}, {"a": 1}, "a was (1,) and is 1 now"),
        ({"a": "1"}, {"a": 1}, "a was '1' and is 1 now"),
        ({"a": np.arange(2)}, {"a": np.arange(3)}, "a was (0, 1) and is (0, 1, 2) now"),
        ({}, {"a": 1}, "a was not set and is 1 now"),
        ({"a": 1}, {}, "a was 1 and is not set now"),
        (
            {"a": InverseGamma(concentration=1.0, scale=2.0)},
            {"a": {"x": [1]}},
            "a was InverseGamma(concentration=1.0, scale=2.0) and is {'x': [1]} now",
        ),
    ],
)
def test_fits_that_differ(saved: dict[str, Any], now: dict[str, Any], words: str) -> None:
    assert identity_difference(saved, now) == words


def test_an_identity_comes_back_from_a_file(path: Path) -> None:
    identity = {"sizes": [5, np.int32(3)], "tol": np.float32(0.1), "prior": None, "nan": math.nan}
    Checkpoint(path).write({"identity": identity})
    assert identity_difference(Checkpoint(path).read()["identity"], identity) is None


ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    "same",
    [
        ROWS.copy(),
        np.asfortranarray(ROWS),
        np.repeat(ROWS, 2, axis=1)[:, ::2],
        ROWS.astype(">f8"),
    ],
)
def test_the_same_rows_have_one_digest(same: Any) -> None:
    assert digest([same, None]) == digest([ROWS, None])
    assert re.fullmatch("[0-9a-f]{64}", digest([same]))


def test_other_libraries_have_the_same_digest() -> None:
    assert digest([jnp.asarray(ROWS, dtype=jnp.float32)]) == digest([ROWS.astype("f4")])


def test_other_rows_have_other_digests() -> None:
    changed = ROWS.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 9.0)
    lists: list[list[Any]] = [
        *([], [None], [None, None], [ROWS], [ROWS, None], [None, ROWS], [ROWS, ROWS]),
        *([changed], [ROWS.T], [ROWS.T.copy()], [ROWS.ravel()], [ROWS[None]], [ROWS[::-1]]),
        *([ROWS.astype("f4")], [ROWS.astype("i8")], [ROWS.view("i8")], [ROWS[:2], ROWS[2:]]),
        *([np.zeros(0)], [np.zeros((0, 3))], [np.zeros(())], [np.zeros(1)], [np.array(["a"])]),
    ]
    distinct = {digest(arrays) for arrays in lists}
    assert len(distinct) == len(lists) - 1  # ROWS.T and its copy


def test_a_digest_does_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest([ROWS, ROWS[0]])
    for size in (1, 8, 30, 60):
        monkeypatch.setattr("bowtienet.estimators.checkpoint._PIECE", size)
        assert digest([ROWS, ROWS[0]]) == expected


def test_objects_have_no_digest() -> None:
    with pytest.raises(TypeError, match="dtype object has no digest: convert it to numbers"):
        digest([np.array(["a", None])])
