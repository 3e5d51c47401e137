"""A fit that was cut short goes on from its checkpoint, and ends in the same bits."""

from __future__ import annotations

import errno
import os
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
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

import bowtienet
from bowtienet import BowTieRegressor, persistence
from bowtienet.ensemble import jobs
from bowtienet.ensemble.checkpoint import KIND, Checkpoint
from tests.estimators.models import answers, assert_same, at_sweep, rows, small, watched

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows()
SIGNS = pd.DataFrame({"x": X[:, 0], "sign": np.where(X[:, 1] > 0.0, "plus", "minus"), "y": Y})

KINDS: dict[str, dict[str, Any]] = {
    "equal": {"solver": "cavi"},
    "stacking": {"solver": "cavi", "weighting": "stacking"},
    "pruning": {"solver": "cavi", "prune_every": 3},
    "stochastic": {"solver": "svi", "weighting": "stacking", "batch_size": 20},
    "table": {"solver": "cavi"},
    "streamed": {"solver": "cavi"},
    "streamed batches": {"solver": "svi", "batch_size": 20},
}


class StopError(Exception):
    """The end of a process, as a test plays it."""


def make(kind: str, **changes: Any) -> BowTieRegressor:
    settings = {"init_penalty": 1.0, "tol": 0.0, "random_state": 3} | KINDS[kind]
    return small(**(settings | changes))


def data_of(kind: str, folder: Path) -> tuple[Any, ...]:
    if kind == "table":
        return SIGNS, "y"
    if not kind.startswith("streamed"):
        return X, Y
    path = folder / "rows.parquet"
    if not path.exists():
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
        pq.write_table(table, path, row_group_size=25)
    return path, "y"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BowTieRegressor]:
    """The fit of a kind that nothing stops, made once."""
    found: dict[str, BowTieRegressor] = {}
    folder = tmp_path_factory.mktemp("rows")

    def get(kind: str) -> BowTieRegressor:
        if kind not in found:
            found[kind] = make(kind).fit(*data_of(kind, folder))
        return found[kind]

    return get


def stopping_after(monkeypatch: pytest.MonkeyPatch, n_writes: int) -> None:
    """Let the process end after a number of checkpoints."""
    genuine, count = Checkpoint._write, [0]

    def write(self: Checkpoint, under_way: Any) -> None:
        genuine(self, under_way)
        count[0] += 1
        if count[0] == n_writes:
            raise StopError

    monkeypatch.setattr(Checkpoint, "_write", write)


def cut_short(monkeypatch: pytest.MonkeyPatch, path: Path, kind: str = "equal") -> BowTieRegressor:
    """An estimator whose fit ended after the first checkpoint."""
    model = make(kind, checkpoint=path)
    with monkeypatch.context() as patch:
        stopping_after(patch, 1)
        with pytest.raises(StopError):
            model.fit(*data_of(kind, path.parent))
    assert not hasattr(model, "ensemble_")
    return model


def count_fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that are run from now on."""
    genuine, seen = jobs.run_task, []

    def run_task(task: Any, *arguments: Any, **named: Any) -> Any:
        seen.append((task, named.get("resume")))
        return genuine(task, *arguments, **named)

    monkeypatch.setattr(jobs, "run_task", run_task)
    return seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_writes", [1, 2])
def test_the_end_has_the_same_bits_wherever_it_was_cut(
    kind: str,
    n_writes: int,
    undisturbed: Callable[[str], BowTieRegressor],
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
) -> None:
    given = data_of(kind, path.parent)
    with monkeypatch.context() as patch:
        stopping_after(patch, n_writes)
        with pytest.raises(StopError):
            make(kind, checkpoint=path).fit(*given)
    assert_same(undisturbed(kind), make(kind, checkpoint=path).resume(*given))


def test_nothing_that_was_finished_is_repeated(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """Of five trials and two members the first three are done."""
    with monkeypatch.context() as patch:
        stopping_after(patch, 3)
        with pytest.raises(StopError):
            make("stacking", checkpoint=path).fit(X, Y)
    undisturbed("stacking")
    seen = count_fits(monkeypatch)
    make("stacking", checkpoint=path).resume(X, Y)
    assert len(seen) == 5 + 2 - 3
    seen.clear()
    again = make("stacking", checkpoint=path).resume(X, Y)
    assert seen == []
    assert_same(undisturbed("stacking"), again)


def test_a_stream_goes_on_from_its_last_whole_pass(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    model = make("stochastic", checkpoint=path)
    watched(model, at_sweep(8, StopError))
    with pytest.raises(StopError):
        model.fit(X, Y)
    snapshot = persistence.load(path, KIND)["under way"]
    assert snapshot is not None
    expected = undisturbed("stochastic")
    seen = count_fits(monkeypatch)
    assert_same(expected, make("stochastic", checkpoint=path).resume(X, Y))
    assert [resume is None for _, resume in seen] == [False, True]


def test_a_fit_that_is_cut_again_and_again(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    cut_short(monkeypatch, path, "stacking")
    for _ in range(3):
        with monkeypatch.context() as patch:
            stopping_after(patch, 2)
            with pytest.raises(StopError):
                make("stacking", checkpoint=path).resume(X, Y)
    # 1 + 3 * 2 checkpoints: all seven fits are done.
    assert_same(undisturbed("stacking"), make("stacking", checkpoint=path).resume(X, Y))


@pytest.mark.parametrize("kind", ["stacking", "stochastic"])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 2), (2, 1)])
def test_several_fits_at_a_time(
    kind: str,
    before: int,
    after: int,
    undisturbed: Callable[[str], BowTieRegressor],
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
) -> None:
    with joblib.parallel_config("threading", n_jobs=before):
        cut_short(monkeypatch, path, kind)
    with joblib.parallel_config("threading", n_jobs=after):
        assert_same(undisturbed(kind), make(kind, checkpoint=path).resume(X, Y))


# Ctrl-C


@pytest.mark.parametrize(
    ("kind", "sweep"), [("equal", 11), ("stacking", 20), ("stacking", 44), ("stochastic", 8)]
)
def test_ctrl_c_leaves_a_model_and_a_checkpoint(
    kind: str, sweep: int, undisturbed: Callable[[str], BowTieRegressor], path: Path
) -> None:
    """Fits have eight sweeps: it comes in the second member, a trial, the first member, a pass."""
    model = make(kind, checkpoint=path)
    watched(model, at_sweep(sweep, KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*resume"):
        model.fit(X, Y)
    assert np.isfinite(answers(model, X)).all()
    assert_same(undisturbed(kind), make(kind, checkpoint=path).resume(X, Y))


def test_ctrl_c_before_anything_was_finished(path: Path) -> None:
    model = make("equal", checkpoint=path)
    watched(model, at_sweep(2, KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    assert np.isfinite(answers(model, X)).all()
    with pytest.raises(FileNotFoundError, match="checkpoint"):
        make("equal", checkpoint=path).resume(X, Y)


# What cannot be resumed


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_layer_sizes": (5,)},
        {"max_iter": 9},
        {"prior": "laplace"},
        {"n_estimators": 3},
        {"tol": 1e-3},
        {"weighting": "elbo"},
        {"gate_temperature": 0.1},
    ],
    ids=str,
)
def test_other_settings_are_refused_by_name(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    cut_short(monkeypatch, path)
    before = path.read_bytes()
    [name] = changes
    with pytest.raises(ValueError, match=name):
        make("equal", checkpoint=path, **changes).resume(X, Y)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["equal", "stochastic"])
def test_other_rows_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    cut_short(monkeypatch, path, kind)
    before = path.read_bytes()
    for given in (
        (X[:-1], Y[:-1]),
        (X, Y + (np.arange(60) == 7)),
        (X[:, :2], Y),
        (X, Y, 1.0 + X[:, 0] ** 2),
    ):
        with pytest.raises(ValueError, match=r"rows|scaling"):
            make(kind, checkpoint=path).resume(*given)
    assert path.read_bytes() == before


def test_settings_that_change_no_result(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """The seed is that of the file; the file may have moved, and be read by several jobs."""
    cut_short(monkeypatch, path)
    moved = path.rename(path.with_name("moved"))
    other = {"checkpoint": str(moved), "random_state": 8, "hidden_layer_sizes": [4], "n_jobs": 2}
    with joblib.parallel_config("threading"):
        assert_same(undisturbed("equal"), make("equal", **other).resume(X, Y))


def test_a_seed_that_was_drawn_is_drawn_once(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with monkeypatch.context() as patch:
        stopping_after(patch, 1)
        with pytest.raises(StopError):
            make("equal", checkpoint=path, random_state=None).fit(X, Y)
    first = persistence.load(path, KIND)["outcomes"][0]["results"][-1]
    found = make("equal", checkpoint=path, random_state=None).resume(X, Y)
    assert found.ensemble_.members[0].elbo_history == first.elbo_history
    again = make("equal", checkpoint=path, random_state=None).resume(X, Y)
    assert_same(found, again)


def test_no_checkpoint_to_go_on_from(path: Path) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        make("equal").resume(X, Y)
    with pytest.raises(FileNotFoundError, match="checkpoint"):
        make("equal", checkpoint=path).resume(X, Y)
    assert not path.exists()


def test_a_torn_checkpoint_is_refused_and_a_new_fit_replaces_it(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    model = cut_short(monkeypatch, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="checkpoint"):
        model.resume(X, Y)
    assert_same(undisturbed("equal"), model.fit(X, Y))
    assert_same(undisturbed("equal"), model.resume(X, Y))


def test_files_of_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("equal", max_iter=1).fit(X, Y).save(tmp_path / "model")
    (tmp_path / "thesis.txt").write_text("years of work")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    seen = count_fits(monkeypatch)
    for name in before:
        model = make("equal", checkpoint=tmp_path / name)
        for start in (model.fit, model.resume):
            with pytest.raises(ValueError, match=name):
                start(X, Y)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make("equal", checkpoint=tmp_path / "nowhere" / "checkpoint").fit(X, Y)
    assert seen == []
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_new_fit_takes_the_place_of_an_old_one(path: Path) -> None:
    make("equal", checkpoint=path).fit(X, Y)
    other = make("equal", checkpoint=path).fit(X[:50], Y[:50])
    assert_same(other, make("equal", checkpoint=path).resume(X[:50], Y[:50]))
    with pytest.raises(ValueError, match="rows"):
        make("equal", checkpoint=path).resume(X, Y)


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(
    undisturbed: Callable[[str], BowTieRegressor], monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(persistence, "save", full)
    with pytest.warns(UserWarning, match="No space left"):
        model = make("equal", checkpoint=path).fit(X, Y)
    assert_same(undisturbed("equal"), model)


# Going on with members of an earlier fit


def test_a_warm_start_is_resumed_from_its_own_members(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    first = make("equal").fit(X, Y).set_params(warm_start=True)
    first.save(path.with_name("first"))

    def loaded() -> BowTieRegressor:
        model = BowTieRegressor.load(path.with_name("first"))
        return model.set_params(checkpoint=path, warm_start=True)

    expected = loaded().fit(X, Y)
    with monkeypatch.context() as patch:
        stopping_after(patch, 1)
        with pytest.raises(StopError):
            loaded().fit(X, Y)
    assert_same(expected, loaded().resume(X, Y))
    with pytest.raises(ValueError, match="members"):
        make("equal", checkpoint=path).resume(X, Y)


def test_a_first_fit_is_resumed_by_an_estimator_that_is_fitted_by_now(
    undisturbed: Callable[[str], BowTieRegressor], path: Path
) -> None:
    model = make("equal", checkpoint=path, warm_start=True)
    watched(model, at_sweep(11, KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    recorder = model._skl_callbacks[0]
    recorder.at_end = lambda *_: None
    assert_same(undisturbed("equal"), model.resume(X, Y))


# Another process


SCRIPT = """
    import sys, warnings
    import numpy as np
    from bowtienet import BowTieRegressor, FitOptions

    warnings.simplefilter("ignore")
    rows = np.load(sys.argv[1])
    options = FitOptions(weighting="equal", tol=0.0, batch_size=20)
    settings = {"solver": sys.argv[2], "checkpoint": sys.argv[3], "random_state": 3}
    model = BowTieRegressor((4,), n_estimators=15, max_iter=8, options=options, **settings)
    model.fit(rows[:, :3], rows[:, 3])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_a_process_that_was_killed(solver: str, path: Path) -> None:
    data = path.with_name("rows.npy")
    np.save(data, np.column_stack([X, Y]))
    source = str(Path(bowtienet.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), data, solver, path],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 120.0
        while not path.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    settings = {"solver": solver, "batch_size": 20, "n_estimators": 15, "weighting": "equal"}
    settings |= {"init_penalty": "auto", "gate_temperature": "auto"}
    found = make("equal", **settings, checkpoint=path).resume(X, Y)
    assert_same(make("equal", **settings).fit(X, Y), found)
