"""A fit that was cut short goes on from its checkpoint, and ends in the same bits."""

from __future__ import annotations

import copy
import errno
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from bowtienet import BowTieRegressor, persistence
from bowtienet._arrays import map_arrays
from bowtienet.estimators import journal, progress, running
from bowtienet.estimators.checkpoint import KIND
from bowtienet.prediction.ensemble import mean_and_deviation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.1 * RNG.normal(size=60)

KINDS: dict[str, dict[str, Any]] = {
    "equal": {"solver": "cavi", "combine": "equal"},
    "stacking": {"solver": "cavi"},
    "pruning": {"solver": "cavi", "combine": "equal", "prune_every": 3},
    "stochastic": {"solver": "svi", "batch_size": 20},
    "streamed": {"solver": "cavi", "combine": "equal"},
}


class StopError(Exception):
    """The end of a process, as a test plays it."""


def small(**changes: Any) -> BowTieRegressor:
    settings: dict[str, Any] = {"n_estimators": 2, "random_state": 3, "max_iter": 8}
    settings |= {
        "hidden_layer_sizes": (4,),
        "gate_temperature": 0.05,
        "init_penalty": 1.0,
        "tol": 0.0,
    }
    return BowTieRegressor(**(settings | changes))


def arguments(kind: str, tmp_path: Path) -> tuple[Any, ...]:
    if kind != "streamed":
        return X, Y
    path = tmp_path / "rows.parquet"
    if not path.exists():
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
        pq.write_table(table, path, row_group_size=25)
    return path, "y"


def assert_same(first: BowTieRegressor, second: BowTieRegressor) -> None:
    """To the bit."""
    assert len(first.ensemble_.members) == len(second.ensemble_.members)
    for a, b in zip(first.ensemble_.members, second.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.factors, b.factors)
        assert_array_equal(a.variance_ratio, b.variance_ratio)
        assert a.elbo_history == b.elbo_history
        assert (a.status, a.n_sweeps) == (b.status, b.n_sweeps)
    assert_array_equal(first.member_weights_, second.member_weights_)
    assert_array_equal(
        mean_and_deviation(first.ensemble_, X), mean_and_deviation(second.ensemble_, X)
    )


def stopping_after(
    monkeypatch: pytest.MonkeyPatch, n_writes: int, error: type[BaseException] = StopError
) -> list[int]:
    """Let the process end after so many checkpoints; answers how many there were."""
    genuine, count = journal.Journal._write, [0]

    def write(self: journal.Journal, under_way: Any) -> None:
        genuine(self, under_way)
        count[0] += 1
        if count[0] == n_writes:
            raise error

    monkeypatch.setattr(journal.Journal, "_write", write)
    return count


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BowTieRegressor]:
    """The fit of a kind that nothing stops, made once."""
    found: dict[str, BowTieRegressor] = {}
    folder = tmp_path_factory.mktemp("rows")

    def get(kind: str) -> BowTieRegressor:
        if kind not in found:
            found[kind] = small(**KINDS[kind]).fit(*arguments(kind, folder))
        return found[kind]

    return get


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_whose_rows_are_held_out_have_ratios(
    kind: str, undisturbed: Callable[[str], BowTieRegressor]
) -> None:
    """So that the tests below see them come back."""
    ratios = [member.variance_ratio for member in undisturbed(kind).ensemble_.members]
    if kind in ("stacking", "stochastic"):
        assert all(ratio.shape == (1,) and ratio != 1.0 for ratio in ratios)
    else:
        assert ratios == [None, None]


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_has_the_same_bits_wherever_it_was_cut(
    kind: str,
    undisturbed: Callable[[str], BowTieRegressor],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path, given = tmp_path / "fit.checkpoint", arguments(kind, tmp_path)
    settings = {**KINDS[kind], "checkpoint": path, "checkpoint_every": 0}
    for n_writes in (1, 3, 12):
        with monkeypatch.context() as patch:
            stopping_after(patch, n_writes)
            model = small(**settings)
            with pytest.raises(StopError):
                model.fit(*given)
            assert not hasattr(model, "ensemble_")
        assert_same(undisturbed(kind), small(**settings).resume(*given))


def test_a_fit_that_is_cut_again_and_again(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {**KINDS["stacking"], "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with monkeypatch.context() as patch:
        stopping_after(patch, 2)
        with pytest.raises(StopError):
            small(**settings).fit(X, Y)
    for attempt in range(100):
        assert attempt < 99
        with monkeypatch.context() as patch:
            stopping_after(patch, 12)
            try:
                found = small(**settings).resume(X, Y)
            except StopError:
                continue
            break
    assert attempt > 3
    assert_same(undisturbed("stacking"), found)


@pytest.mark.parametrize("kind", ["stacking", "stochastic"])
def test_several_fits_at_a_time(
    kind: str,
    undisturbed: Callable[[str], BowTieRegressor],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    settings = {**KINDS[kind], "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    for before, after in ((2, 2), (1, 2), (2, 1)):
        with monkeypatch.context() as patch, joblib.parallel_config("threading", n_jobs=before):
            stopping_after(patch, 1 if before == 2 else 3)
            with pytest.raises(StopError):
                small(**settings).fit(X, Y)
        with joblib.parallel_config("threading", n_jobs=after):
            assert_same(undisturbed(kind), small(**settings).resume(X, Y))


def test_the_state_under_way_belongs_to_its_own_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cut in a trial, resumed with several at a time; the one member then runs by itself."""
    settings = {"solver": "cavi", "n_estimators": 1}
    expected = small(**settings).fit(X, Y)
    settings |= {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with monkeypatch.context() as patch:
        stopping_after(patch, 3)
        with pytest.raises(StopError):
            small(**settings).fit(X, Y)
    assert persistence.load(tmp_path / "c", KIND)["under_way"] is not None
    with joblib.parallel_config("threading", n_jobs=2):
        assert_same(expected, small(**settings).resume(X, Y))


# Ctrl-C


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        *((kind, at) for kind in KINDS for at in (4, 11)),
        ("stacking", 44),  # in the first of the members, after trials of eight sweeps on five folds
        ("equal", 1),
        ("stochastic", 1),
    ],
)
def test_ctrl_c_leaves_a_model_and_a_checkpoint(
    kind: str,
    at: int,
    undisturbed: Callable[[str], BowTieRegressor],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Also where it comes when a sweep is over and half recorded."""
    given, sweeps = arguments(kind, tmp_path), [0]
    genuine = progress.MemberReporter.__call__

    def interrupt(self: Any, found: Any) -> bool:
        sweeps[0] += 1
        if sweeps[0] == at:
            raise KeyboardInterrupt
        return genuine(self, found)

    settings = {**KINDS[kind], "checkpoint": tmp_path / "c"}
    model = small(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(progress.MemberReporter, "__call__", interrupt)
        with pytest.warns(UserWarning, match="The fit was interrupted"):
            model.fit(*given)
    assert np.isfinite(mean_and_deviation(model.ensemble_, X)).all()
    if at > 1:
        assert_same(undisturbed(kind), small(**settings).resume(*given))
        # The model that was interrupted can go on itself, too.
        assert_same(undisturbed(kind), model.resume(*given))
    else:
        # Before anything could be written down there is nothing to go on from.
        with pytest.raises(FileNotFoundError, match="does not exist: call fit first"):
            model.resume(*given)


SCRIPT = """
    import json, sys, warnings
    import numpy as np
    from bowtienet import BowTieRegressor

    warnings.simplefilter("ignore")
    model = BowTieRegressor(**json.loads(sys.argv[1]))
    rows = np.load(sys.argv[2])
    model.fit(rows[:, :3], rows[:, 3])
    model.save(sys.argv[3])
    print("done", flush=True)
"""


def process(model: BowTieRegressor, folder: Path) -> subprocess.Popen[str]:
    """Another process that fits the model and saves it in the folder."""
    source = str(Path(persistence.__file__).parents[2])
    np.save(folder / "rows.npy", np.column_stack([X, Y]))
    settings = json.dumps(model.get_params(), default=str)
    words = [settings, folder / "rows.npy", folder / "model"]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *map(str, words)],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, inodes: int, worker: subprocess.Popen[str]) -> None:
    """Until so many checkpoints were seen."""
    seen: set[tuple[int, int]] = set()
    deadline = time.monotonic() + 60.0
    while len(seen) < inodes and time.monotonic() < deadline:
        assert worker.poll() is None, worker.communicate()
        try:
            found = path.stat()
            seen.add((found.st_ino, found.st_mtime_ns))
        except FileNotFoundError:
            pass
        time.sleep(0.002)
    assert len(seen) >= inodes


def long(path: Path | None, solver: str) -> BowTieRegressor:
    """Long enough to be cut from outside."""
    settings = {"solver": solver, "combine": "equal", "batch_size": 20, "max_iter": 40}
    return small(checkpoint=path, checkpoint_every=0, **settings)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_a_process_that_was_killed(solver: str, tmp_path: Path) -> None:
    model = long(tmp_path / "c", solver)
    killed = process(model, tmp_path)
    try:
        wait_for(tmp_path / "c", 6, killed)
    finally:
        killed.kill()
        killed.communicate()
    assert not (tmp_path / "model").exists()
    assert_same(long(None, solver).fit(X, Y), model.resume(X, Y))


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing there")
def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    model = long(tmp_path / "c", "svi")
    worker = process(model, tmp_path)
    wait_for(tmp_path / "c", 6, worker)
    worker.send_signal(signal.SIGINT)
    out, error = worker.communicate(timeout=60)
    assert out == "done\n", error
    cut = BowTieRegressor.load(tmp_path / "model")
    assert cut.status_ == "interrupted"
    assert np.isfinite(cut.predict(X)).all()
    assert_same(long(None, "svi").fit(X, Y), model.resume(X, Y))


# What cannot be resumed


def cut_short(monkeypatch: pytest.MonkeyPatch, path: Path, **changes: Any) -> dict[str, Any]:
    settings = {**KINDS["equal"], "checkpoint": path, "checkpoint_every": 0, **changes}
    with monkeypatch.context() as patch:
        stopping_after(patch, 3)
        with pytest.raises(StopError):
            small(**settings).fit(X, Y)
    return settings


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_layer_sizes": (5,)}, r"hidden_layer_sizes was \(4,\) and is \(5,\) now"),
        ({"max_iter": 9}, "max_iter was 8 and is 9 now"),
        ({"tol": 1e-3}, r"tol was 0.0 and is 0.001 now"),
        ({"prior": "laplace"}, "prior was 'student_t' and is 'laplace' now"),
        ({"n_estimators": 3}, "n_estimators was 2 and is 3 now"),
        ({"combine": "elbo"}, "combine was 'equal' and is 'elbo' now"),
    ],
    ids=str,
)
def test_other_settings(
    changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = cut_short(monkeypatch, tmp_path / "c")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=rf"c is of another fit: {words}\. Resume with"):
        small(**(settings | changes)).resume(X, Y)
    assert contents(tmp_path) == before


def test_settings_that_change_no_result(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = cut_short(monkeypatch, tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "moved")
    other = {"checkpoint": str(tmp_path / "moved"), "checkpoint_every": 1e3, "random_state": 8}
    other |= {"verbose": 0, "hidden_layer_sizes": [4]}
    assert_same(undisturbed("equal"), small(**(settings | other)).resume(X, Y))


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_other_rows(solver: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = cut_short(monkeypatch, tmp_path / "c", solver=solver)
    before = contents(tmp_path)
    for rows in (
        (X[:-1], Y[:-1]),
        (X, Y + (np.arange(60) == 7)),
        (X[:, :2], Y),
        (X, Y, 1.0 + X[:, 0] ** 2),
    ):
        with pytest.raises(ValueError, match=r"is of another fit: (rows|n_rows|scaling) was"):
            small(**settings).resume(*rows)
    assert contents(tmp_path) == before


def test_no_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="resume needs the checkpoint to go on from: set check"):
        small().resume(X, Y)
    with pytest.raises(FileNotFoundError, match=r"none does not exist: call fit first"):
        small(checkpoint=tmp_path / "none").resume(X, Y)
    assert contents(tmp_path) == {}


def test_a_torn_checkpoint(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "c"
    settings = cut_short(monkeypatch, path)
    path.write_bytes(path.read_bytes()[:-100])
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="The checkpoint before it is complete: copy"):
        small(**settings).resume(X, Y)
    assert contents(tmp_path) == before
    path.write_bytes((tmp_path / "c.previous").read_bytes())
    assert_same(undisturbed("equal"), small(**settings).resume(X, Y))


def test_files_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("work was done before the file was looked at")

    small(**KINDS["equal"], max_iter=1).fit(X, Y).save(tmp_path / "model")
    (tmp_path / "thesis.txt").write_text("years of work")
    before = contents(tmp_path)
    monkeypatch.setattr(running, "run_task", never)
    for name in ("thesis.txt", "model"):
        model = small(checkpoint=tmp_path / name)
        with pytest.raises(ValueError, match="is not a checkpoint and is not overwritten"):
            model.fit(X, Y)
        with pytest.raises(ValueError, match=re.escape(name)):
            model.resume(X, Y)
    assert contents(tmp_path) == before


def test_a_complete_fit_is_not_fitted_again(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a task was run again")

    for kind in ("stacking", "stochastic"):
        settings = {**KINDS[kind], "checkpoint": tmp_path / kind}
        small(**settings).fit(X, Y)
        expected = undisturbed(kind)  # may be fitted here: before that is forbidden
        with monkeypatch.context() as patch:
            patch.setattr(running, "run_task", never)
            assert_same(expected, small(**settings).resume(X, Y))


def test_a_seed_that_was_drawn_is_drawn_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = cut_short(monkeypatch, tmp_path / "c", random_state=None)
    seed = persistence.load(tmp_path / "c", KIND)["seed"]
    found = small(**settings).resume(X, Y)
    assert persistence.load(tmp_path / "c", KIND)["seed"] == seed

    class Drawn(np.random.RandomState):
        def randint(self, *_: Any, **__: Any) -> int:
            return seed

    expected = small(**KINDS["equal"], random_state=Drawn(0)).fit(X, Y)
    assert_same(expected, found)


def test_a_new_fit_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    settings = {**KINDS["equal"], "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    small(**settings).fit(X, Y)
    other = small(**settings).fit(X[:50], Y[:50])
    assert_same(other, small(**settings).resume(X[:50], Y[:50]))
    with pytest.raises(ValueError, match="is of another fit: rows was"):
        small(**settings).resume(X, Y)


def test_a_fit_that_goes_on_is_another_one(tmp_path: Path) -> None:
    settings = {**KINDS["equal"], "checkpoint": tmp_path / "c", "warm_start": True}
    first = small(**settings).fit(X, Y)
    # The first fit is nobody's continuation, also for an estimator that is fitted by now.
    assert_same(first, copy.deepcopy(first).resume(X, Y))
    begun = copy.deepcopy(first)
    first.fit(X, Y)
    for other in (small(**settings), first):
        with pytest.raises(ValueError, match="is of another fit: members to go on from was"):
            other.resume(X, Y)
    assert_same(first, begun.resume(X, Y))


def test_ctrl_c_at_once_loses_nothing_of_what_was_under_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {**KINDS["equal"], "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with monkeypatch.context() as patch:
        stopping_after(patch, 3)
        with pytest.raises(StopError):
            small(**settings).fit(X, Y)
    before = persistence.load(tmp_path / "c", KIND)["under_way"]
    assert before is not None

    def at_once(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "run_task", at_once)
        with pytest.raises(KeyboardInterrupt):
            small(**settings).resume(X, Y)
    after = persistence.load(tmp_path / "c", KIND)["under_way"]
    assert after["engine"].n_sweeps == before["engine"].n_sweeps
    assert_same(small(**KINDS["equal"]).fit(X, Y), small(**settings).resume(X, Y))


# Writing


def test_with_time_enough_only_the_end_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for kind in ("stacking", "stochastic"):
        with monkeypatch.context() as patch:
            count = stopping_after(patch, -1)
            small(**KINDS[kind], checkpoint=tmp_path / kind, checkpoint_every=1e6).fit(X, Y)
            assert count == [1]
        assert persistence.load(tmp_path / kind, KIND)["under_way"] is None


def test_without_a_checkpoint_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    count = stopping_after(monkeypatch, -1)
    small(**KINDS["equal"]).fit(X, Y)
    assert count == [0]
    assert contents(tmp_path) == {}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError, match="cannot be written"):
            small(checkpoint=tmp_path / "c").fit(X, Y)
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fit ends with a sentence; the checkpoint before is complete and resumes."""
    path = tmp_path / "c"
    settings = {**KINDS["equal"], "checkpoint": path, "checkpoint_every": 0}
    expected = small(**KINDS["equal"]).fit(X, Y)
    genuine, count = persistence.save, [0]

    def save(*arguments: Any) -> None:
        count[0] += 1
        if count[0] == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        genuine(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(persistence, "save", save)
        with pytest.raises(
            OSError, match=r"c cannot be written \(No space left on device\)"
        ) as info:
            small(**settings).fit(X, Y)
    assert info.value.errno == errno.ENOSPC
    assert_same(expected, small(**settings).resume(X, Y))


def test_no_folder_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running, "run_task", None)
    with pytest.raises(FileNotFoundError):
        small(checkpoint=tmp_path / "nowhere" / "c").fit(X, Y)
