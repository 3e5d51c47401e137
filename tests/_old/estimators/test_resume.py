"""A fit that was cut short goes on from its checkpoint, and ends in the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

import bowtienet
from bowtienet._old import BowTieRegressor
from tests._old.estimators.models import answers, assert_same, at_sweep, rows, small, watched

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows()
SIGNS = pd.DataFrame({"x": X[:, 0], "sign": np.where(X[:, 1] > 0.0, "plus", "minus"), "y": Y})

KINDS: dict[str, dict[str, Any]] = {
    "equal": {"solver": "cavi"},
    "stochastic": {"solver": "svi", "weighting": "stacking", "batch_size": 20},
    "table": {"solver": "cavi"},
    "streamed": {"solver": "svi", "batch_size": 20},
}


class StopError(Exception):
    """The end of a process, as a test plays it."""


def make(kind: str, **changes: Any) -> BowTieRegressor:
    settings = {"init_penalty": 1.0, "tol": 0.0, "random_state": 3} | KINDS[kind]
    return small(**(settings | changes))


def data_of(kind: str, folder: Path) -> tuple[Any, ...]:
    if kind == "table":
        return SIGNS, "y"
    if kind != "streamed":
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


@pytest.mark.parametrize(
    ("kind", "sweep"),
    [
        ("equal", 11),
        ("stochastic", 8),
        ("table", 11),
        ("streamed", 8),
    ],
)
def test_ctrl_c_leaves_a_model_and_a_checkpoint(
    kind: str, sweep: int, undisturbed: Callable[[str], BowTieRegressor], path: Path
) -> None:
    """Fits have eight sweeps: it comes in the second member, or in a pass."""
    model = make(kind, checkpoint=path)
    watched(model, at_sweep(sweep, KeyboardInterrupt))
    given = data_of(kind, path.parent)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*resume"):
        model.fit(*given)
    assert np.isfinite(answers(model, given[0])).all()
    assert_same(undisturbed(kind), make(kind, checkpoint=path).resume(*given))


@pytest.mark.parametrize("place", ["fold_networks.train", "cross_fit.stack_recipes"])
def test_a_cross_fit_that_was_cut_short_starts_again_from_its_seed(
    place: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its networks are fitted side by side: nothing is finished before all is."""

    def cut(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    model = make("equal", weighting="stacking", checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr(f"bowtienet._old.ensemble.{place}", cut)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert not hasattr(model, "ensemble_")
    # The seed is that of the file.
    other = make("equal", weighting="stacking", checkpoint=path, random_state=99)
    assert_same(make("equal", weighting="stacking").fit(X, Y), other.resume(X, Y))


# Going on with members of an earlier fit


def test_a_warm_start_is_resumed_from_its_own_members(path: Path) -> None:
    first = make("equal").fit(X, Y).set_params(warm_start=True)
    first.save(path.with_name("first"))

    def loaded() -> BowTieRegressor:
        model = BowTieRegressor.load(path.with_name("first"))
        return model.set_params(checkpoint=path, warm_start=True)

    expected = loaded().fit(X, Y)
    cut = loaded()
    watched(cut, at_sweep(11, StopError))
    with pytest.raises(StopError):
        cut.fit(X, Y)
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
    from bowtienet._old import BowTieRegressor, FitOptions

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
