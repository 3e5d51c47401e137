"""Rows that are not in memory: every kind of source gives the fit and the answers of a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bowtienet as bt
from bowtienet import BowTieRegressor, persistence
from bowtienet._arrays import map_arrays
from bowtienet.data.rows import Rows
from bowtienet.estimators import fitting, progress
from bowtienet.estimators.checkpoint import KIND
from bowtienet.estimators.streaming import fit_streamed
from bowtienet.estimators.tasks import Outcome, Task
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult
from bowtienet.prediction.ensemble import mean_and_deviation
from bowtienet.prediction.predictive import predict
from bowtienet.prediction.weighting import stack_forecasts, variance_ratio

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = ("first", "second", "third")
N_ROWS = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, 3)) * (1.0, 20.0, 0.1) + (0.0, 300.0, 5.0)
Y = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1] + 0.1 * RNG.normal(size=N_ROWS)
TWO = np.stack([Y, 0.5 * X[:, 2] + 0.1 * RNG.normal(size=N_ROWS)], axis=1)
WEIGHTS = np.where(np.arange(N_ROWS) % 4 == 0, 0.0, 1.0)


def small(**changes: Any) -> BowTieRegressor:
    """Two members of one recipe, six steps each."""
    settings: dict[str, Any] = {"n_estimators": 2, "random_state": 0, "max_iter": 2}
    settings |= {"batch_size": 80}
    settings |= {"hidden_layer_sizes": (4,), "gate_temperature": 0.05, "init_penalty": 1.0}
    return BowTieRegressor(**(settings | {"solver": "svi"} | changes))


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(NAMES, X.T, strict=True)) | {"y": Y} | more)


class Batches:
    """Gives its batches anew each time it is asked."""

    def __init__(self, *batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)


def cut(size: int, *arrays: Any) -> list[tuple[Any, ...]]:
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, N_ROWS, size)]


def parquet(path: Path, table: pd.DataFrame, **settings: Any) -> Path:
    pq.write_table(pa.Table.from_pandas(table), path, **settings)
    return path


def folder(path: Path, table: pd.DataFrame, n_files: int = 3) -> Path:
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), n_files)):
        parquet(path / f"{number}.parquet", table.iloc[part])
    return path


def mapped(path: Path, values: np.ndarray) -> np.memmap:
    found = np.memmap(path, dtype=float, mode="w+", shape=values.shape)
    found[:] = values
    found.flush()
    return np.memmap(path, dtype=float, mode="r", shape=values.shape)


def sources(tmp_path: Path) -> dict[str, tuple[Any, ...]]:
    """All kinds; those up to the mark are read in one piece of one block."""
    one = parquet(tmp_path / "one.parquet", frame())
    return {
        "memmap": (mapped(tmp_path / "map", X), Y),
        "file": (one, "y"),
        "path in words": (str(one), "y"),
        "dataset": (pyarrow.dataset.dataset(one), "y"),
        "table": (pa.Table.from_pandas(frame()), "y"),
        "one batch": ([(X, Y)],),
        "opened": (bt.open_source(one, "y"),),
        "several row groups": (
            parquet(tmp_path / "some.parquet", frame(), row_group_size=70),
            "y",
        ),
        "folder": (folder(tmp_path / "folder", frame()), "y"),
        "batches": (cut(50, X, Y),),
        "class": (Batches(*cut(50, X, Y)),),
    }


ONE_PIECE = ("memmap", "file", "path in words", "dataset", "table", "one batch", "opened")


def assert_same(first: BowTieRegressor, second: BowTieRegressor) -> None:
    """To the bit."""
    assert len(first.ensemble_.members) == len(second.ensemble_.members)
    for a, b in zip(first.ensemble_.members, second.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.factors, b.factors)
        assert_array_equal(a.variance_ratio, b.variance_ratio)
        assert a.elbo_history == b.elbo_history
    assert_array_equal(first.member_weights_, second.member_weights_)
    a, b = (mean_and_deviation(model.ensemble_, X) for model in (first, second))
    assert_array_equal(a, b)


@pytest.fixture(scope="module")
def fitted() -> BowTieRegressor:
    return small().fit(X, Y)


@pytest.fixture(scope="module")
def named() -> BowTieRegressor:
    return small().fit(frame(), "y")


# The fit


def test_all_sources_of_one_piece_give_the_fit_of_arrays(
    fitted: BowTieRegressor, tmp_path: Path
) -> None:
    assert fitted.solver_ == "svi"
    assert fitted.score(X, Y) > 0.8
    found = sources(tmp_path)
    for kind in ONE_PIECE:
        model = small().fit(*found[kind])
        assert_same(fitted, model)
        assert model.solver_ == "svi"
        has_names = kind not in ("memmap", "one batch")
        assert hasattr(model, "feature_names_in_") == has_names
        if has_names:
            assert_array_equal(model.feature_names_in_, NAMES)


def test_other_pieces_give_as_good_a_fit(fitted: BowTieRegressor, tmp_path: Path) -> None:
    found = sources(tmp_path)
    models = {kind: small().fit(*found[kind]) for kind in found if kind not in ONE_PIECE}
    for model in models.values():
        assert_allclose(model.score([(X, Y)]), fitted.score(X, Y), atol=0.05)
        assert model.n_features_in_ == 3
        assert_allclose(model.ensemble_.input_scaling.center, X.mean(axis=0), rtol=1e-12)
        assert_allclose(model.ensemble_.input_scaling.scale, X.std(axis=0), rtol=1e-10)
        assert_allclose(model.ensemble_.target_scaling.scale, Y.std(), rtol=1e-10)
    assert_same(models["batches"], models["class"])


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_a_frame_and_the_name_of_its_target(solver: str) -> None:
    settings = {"solver": solver, "combine": "equal"}
    apart = small(**settings).fit(frame().drop(columns="y"), frame()["y"])
    for table in (frame(), pl.DataFrame(frame())):
        model = small(**settings).fit(table, "y")
        assert_array_equal(model.feature_names_in_, NAMES)
        assert_same(apart, model)


def test_several_targets(tmp_path: Path) -> None:
    table = frame(z=TWO[:, 1])
    expected = small().fit(X, TWO)
    assert expected.predict(X).shape == (N_ROWS, 2)
    path = parquet(tmp_path / "two.parquet", table)
    assert small().fit(path, ["y", "z"]).predict_interval(path).shape == (N_ROWS, 2, 2)
    for arguments in (
        (path, ["y", "z"]),
        (table, ["y", "z"]),
        ([(X, TWO)],),
        (mapped(tmp_path / "map", X), TWO),
    ):
        model = small().fit(*arguments)
        assert model.n_outputs_ == 2
        assert_same(expected, model)
    # One name in a list, or one column, is a table of one target.
    assert small().fit(path, ["y"]).predict(path).shape == (N_ROWS, 1)


def test_weights_by_name_and_with_the_batches(tmp_path: Path) -> None:
    expected = small().fit(X, Y, WEIGHTS)
    table = frame(w=WEIGHTS)
    for arguments in (
        (parquet(tmp_path / "w.parquet", table), "y", "w"),
        (table, "y", "w"),
        (pa.Table.from_pandas(table), "y", "w"),
        (mapped(tmp_path / "map", X), Y, WEIGHTS),
        ([(X, Y, WEIGHTS)],),
    ):
        assert_same(expected, small().fit(*arguments))


def test_rows_of_weight_zero_have_no_influence() -> None:
    """Whatever they hold; that they are there moves only the order of the others."""
    wild = np.where(WEIGHTS[:, None] == 0.0, 1e6, X), np.where(WEIGHTS == 0.0, -1e9, Y)
    assert_same(small().fit(X, Y, WEIGHTS), small().fit(*wild, WEIGHTS))
    model = small().fit(X, Y, WEIGHTS)
    assert_allclose(model.ensemble_.input_scaling.center, X[WEIGHTS > 0].mean(axis=0), rtol=1e-12)


def test_a_row_of_weight_two_counts_twice() -> None:
    """The sums of a full batch are those of the doubled rows, but for the order of the rows."""
    double = np.where(np.arange(N_ROWS) < 60, 2.0, 1.0)
    twice = np.repeat(np.arange(N_ROWS), double.astype(int))
    settings = {"combine": "equal", "batch_size": 1000, "init": "laplace", "max_iter": 2}
    found = small(**settings).fit(X, Y, double)
    expected = small(**settings).fit(X[twice], Y[twice])
    assert_allclose(found.ensemble_.input_scaling.center, expected.ensemble_.input_scaling.center)
    counts = [float(model.ensemble_.members[0].statistics.count) for model in (found, expected)]
    assert_allclose(counts, double.sum())
    assert_allclose(found.score(X, Y), expected.score(X, Y), atol=0.1)


def test_only_the_inputs_that_are_named_are_used(tmp_path: Path) -> None:
    path = parquet(tmp_path / "more.parquet", frame(text=["a"] * N_ROWS, extra=X[:, 0]))
    source = bt.open_source(path, "y", inputs=["third", "first"])
    model = small().fit(source)
    assert_array_equal(model.feature_names_in_, ["third", "first"])
    assert_array_equal(model.predict(path), model.predict(frame()[["third", "first"]]))
    with pytest.raises(ValueError, match="an opened source knows its targets and weights"):
        small().fit(source, "y")


def spied_tasks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks of the next streamed fits."""
    seen: list[Any] = []
    genuine = fitting.fit_streamed

    def spy(tasks: Any, run: Any) -> Any:
        seen.extend(tasks)
        return genuine(tasks, run)

    monkeypatch.setattr(fitting, "fit_streamed", spy)
    return seen


@pytest.mark.parametrize("kind", ["array", "folder", "batches"])
def test_every_row_is_held_out_or_trained_on(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tasks = spied_tasks(monkeypatch)
    model = small().fit(*(sources(tmp_path)[kind] if kind != "array" else (X, Y)))
    scaling = model.ensemble_.input_scaling
    numbers = np.sort((X[:, 0] - scaling.center[0]) / scaling.scale[0])
    held_out = tasks[0].held_out.inputs[:, 0]
    assert len(held_out) == N_ROWS // 5
    for epoch in (0, 1):
        batches = list(tasks[0].stream.batches(50, 7)(epoch))
        trained = np.concatenate([batch.inputs[batch.weights > 0, 0] for batch in batches])
        assert_allclose(np.sort(np.concatenate([held_out, trained])), numbers, atol=1e-9)
        assert {float(w) for batch in batches for w in batch.weights} == {0.0, 1.0}
    assert tasks[0].stream.total_weight == N_ROWS - len(held_out)
    assert tasks[0].held_out is tasks[1].held_out
    # The rows to start from are none of them either.
    assert not set(tasks[0].rows.inputs[:, 0]) & set(held_out)


@pytest.mark.parametrize("combine", ["equal", "elbo"])
def test_without_stacking_nothing_is_held_out(combine: str) -> None:
    model = small(combine=combine).fit([(X, Y)])
    assert float(model.ensemble_.members[0].statistics.count) == pytest.approx(N_ROWS)
    assert [member.variance_ratio for member in model.ensemble_.members] == [None, None]


@pytest.mark.parametrize("n_members", [1, 2])
def test_rows_held_out_set_the_variances(n_members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one member are its own; several share the factor that stacking finds."""
    tasks = spied_tasks(monkeypatch)
    model = small(n_estimators=n_members).fit([(X, TWO)])
    held_out, members = tasks[0].held_out, model.ensemble_.members
    found = [predict(m.model, m.factors, held_out.inputs) for m in members]
    errors = np.stack([held_out.targets - f.mean for f in found])
    variances = np.stack([f.signal_variance + f.noise_variance for f in found])
    ratios = np.stack(
        [variance_ratio(e, v, held_out.weights) for e, v in zip(errors, variances, strict=True)]
    )
    weights = np.ones(1)
    if n_members > 1:
        assert len(members) == n_members
        weights, factor = stack_forecasts(errors, ratios[:, None] * variances, held_out.weights)
        ratios = ratios * factor
    assert_allclose([member.variance_ratio for member in members], ratios, rtol=1e-12)
    assert_allclose(model.member_weights_, weights, rtol=1e-12)


def result_of(number: int) -> FitResult:
    unknown: Any = None
    return FitResult(
        model=unknown,
        factors=unknown,
        elbo_terms=None,
        elbo_history=(),
        n_sweeps=number,
        status=Status.CONVERGED,
    )


def test_members_without_weight_are_left_out() -> None:
    """The one whose errors are large, and the one that broke down."""
    sizes = (1.0, 30.0, np.nan, 1.0)
    held_out = Rows(inputs=X[:20], targets=TWO[:20], weights=np.linspace(0.5, 2.0, 20))
    tasks = [Task(rows=held_out, held_out=held_out) for _ in sizes]
    ones = np.ones((1, 20, 2))
    outcomes = [
        Outcome(results=(result_of(k),), forecasts=np.stack([size * ones, ones]))
        for k, size in enumerate(sizes)
    ]
    members, weights = fit_streamed(tasks, lambda _: outcomes)
    assert [member.n_sweeps for member in members] == [0, 3]
    assert_allclose(weights, [0.5, 0.5])
    for member in members:
        assert_allclose(member.variance_ratio, [1.0, 1.0], rtol=1e-4)
    # What Ctrl-C left is not weighed, and no variance is known.
    members, weights = fit_streamed(tasks, lambda _: outcomes[:2])
    assert [member.variance_ratio for member in members] == [None, None]
    assert_allclose(weights, [0.5, 0.5])


@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_coordinate_ascent_on_a_stream_is_that_in_memory(combine: str, tmp_path: Path) -> None:
    settings = {"solver": "cavi", "combine": combine, "max_iter": 10}
    expected = small(**settings).fit(X, Y)
    found = sources(tmp_path)
    for kind in ("several row groups", "batches"):
        model = small(**settings).fit(*found[kind])
        assert model.solver_ == "cavi"
        assert_allclose(model.elbo_history_, expected.elbo_history_, rtol=1e-8)
        assert_allclose(model.predict([X]), expected.predict(X), rtol=1e-6)


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_two_hidden_layers_and_none(solver: str) -> None:
    for hidden in ((), (4, 3)):
        model = small(solver=solver, hidden_layer_sizes=hidden, combine="equal", n_estimators=1)
        assert np.isfinite(model.fit(cut(100, X, Y)).predict(X)).all()


def test_the_solver_follows_the_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = parquet(tmp_path / "y.parquet", frame())
    said: list[str] = []
    genuine = progress.Reporter.say

    def say(self: progress.Reporter, text: str, share: float | None = None) -> None:
        said.append(text)
        genuine(self, text, share)

    monkeypatch.setattr(progress.Reporter, "say", say)
    for large, expected in ((N_ROWS, "cavi"), (N_ROWS - 1, "svi")):
        monkeypatch.setattr(fitting, "LARGE", large)
        for arguments in ((X, Y), (path, "y"), (frame(), "y"), (cut(100, X, Y),)):
            said.clear()
            model = small(solver="auto", verbose=1, n_estimators=1).fit(*arguments)
            assert model.solver_ == expected
            assert (f"{N_ROWS:,} rows: solver='svi'" in said) == (expected == "svi")
    assert "fit 1/1" in capsys.readouterr().out


def test_a_small_source_is_fitted_as_the_table_it_holds(tmp_path: Path) -> None:
    settings = {"solver": "auto", "combine": "equal"}
    expected = small(**settings).fit(X, Y)
    for arguments in sources(tmp_path).values():
        assert_same(expected, small(**settings).fit(*arguments))


def test_two_processes_give_the_same_bits(tmp_path: Path) -> None:
    path = parquet(tmp_path / "y.parquet", frame(), row_group_size=70)
    assert_same(small().fit(path, "y"), small(n_jobs=2).fit(path, "y"))
    settings = {"solver": "cavi", "combine": "equal"}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        there = small(**settings).fit(path, "y")
    assert_same(small(**settings).fit(path, "y"), there)


def test_a_fit_goes_on_with_a_stream() -> None:
    model = small(warm_start=True).fit(cut(100, X, Y))
    before = model.elbo_
    scaling = model.ensemble_.input_scaling
    ratios = [member.variance_ratio for member in model.ensemble_.members]
    model.fit(cut(60, X, Y))
    assert_array_equal([member.variance_ratio for member in model.ensemble_.members], ratios)
    assert model.elbo_ > before - 0.05 * abs(before)
    assert model.ensemble_.input_scaling is scaling
    with pytest.raises(ValueError, match=r"X has 2 features.*warm_start=False"):
        model.fit(cut(60, X[:, :2], Y))


# Predictions


def test_predictions_from_all_sources(named: BowTieRegressor, tmp_path: Path) -> None:
    model = named
    inputs = frame()[list(NAMES)]
    mean, std = model.predict(inputs, return_std=True)
    found = sources(tmp_path)
    for kind, (source, *_) in found.items():
        if kind in ("table", "opened", "one batch", "batches", "class"):
            continue
        for answer in ("predict", "predict_interval", "predict_quantiles"):
            expected = getattr(model, answer)(inputs)
            assert_allclose(getattr(model, answer)(source), expected, rtol=1e-12)
    for source in (cut(50, X), Batches(*cut(70, X)), Batches(*[part[0] for part in cut(70, X)])):
        again = model.predict(source, return_std=True)
        assert_allclose(again, (mean, std), rtol=1e-12)
    components = model.predict_components(found["folder"][0])
    assert_allclose(components.mean, mean, rtol=1e-12)
    dist = model.predict_dist(found["folder"][0])
    assert_allclose(dist.std(), std, rtol=1e-12)


def test_scores_from_all_sources(
    fitted: BowTieRegressor, named: BowTieRegressor, tmp_path: Path
) -> None:
    r2, log = fitted.score(X, Y), fitted.log_score(X, Y)
    for arguments in sources(tmp_path).values():
        assert_allclose(fitted.score(*arguments), r2, rtol=1e-10)
        assert_allclose(fitted.log_score(*arguments), log, rtol=1e-10)
    r2, log = fitted.score(X, Y, WEIGHTS), fitted.log_score(X, Y, WEIGHTS)
    weighed = parquet(tmp_path / "w.parquet", frame(w=WEIGHTS), row_group_size=50)
    for arguments in ((weighed, "y", "w"), (cut(70, X, Y, WEIGHTS),)):
        assert_allclose(fitted.score(*arguments), r2, rtol=1e-10)
        assert_allclose(fitted.log_score(*arguments), log, rtol=1e-10)
    assert_allclose(named.score(frame(w=WEIGHTS), "y", "w"), r2, rtol=1e-10)
    assert_allclose(named.log_score(frame(w=WEIGHTS), "y", "w"), log, rtol=1e-10)
    two = small().fit(X, TWO)
    assert_allclose(two.score(cut(50, X, TWO)), two.score(X, TWO), rtol=1e-10)
    assert_allclose(two.log_score(cut(50, X, TWO)), two.log_score(X, TWO), rtol=1e-10)


def test_scores_of_a_constant_target_and_of_no_rows(fitted: BowTieRegressor) -> None:
    constant = np.zeros(N_ROWS)
    assert fitted.score(cut(50, X, constant)) == fitted.score(X, constant) == 0.0
    for score in (fitted.score, fitted.log_score):
        with pytest.raises(ValueError, match="the weights are all zero"):
            score(cut(50, X, Y, constant))
        with pytest.raises(ValueError, match="has no targets, but 1 was fitted"):
            score(cut(50, X))
        with pytest.raises(ValueError, match="has 2 targets, but 1 was fitted"):
            score(cut(50, X, TWO))


def test_columns_are_found_by_their_names(named: BowTieRegressor, tmp_path: Path) -> None:
    expected = named.predict(frame()[list(NAMES)])
    moved = frame(more=X[:, 0])[["third", "more", "first", "y", "second"]]
    assert_array_equal(named.predict(parquet(tmp_path / "moved.parquet", moved)), expected)
    assert_array_equal(named.predict(folder(tmp_path / "moved", moved)), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(moved[["third", "first", "second"]])
    with pytest.raises(ValueError, match="'third' stands where 'first' was"):
        named.predict([moved[["third", "first", "second"]]])
    lacking = parquet(tmp_path / "lacking.parquet", frame()[["first", "third"]])
    with pytest.raises(ValueError, match=r"X has no column 'second', which inputs names"):
        named.predict(lacking)


def test_inputs_that_cannot_be_predicted(named: BowTieRegressor, tmp_path: Path) -> None:
    hole = frame()
    hole.loc[77, "second"] = np.nan
    with pytest.raises(ValueError, match=r"hole.parquet, row group 1 .*column 'second' \(1 NaN\)"):
        named.predict(parquet(tmp_path / "hole.parquet", hole, row_group_size=60))
    with pytest.raises(ValueError, match="X has 2 features, but BowTieRegressor is expecting 3"):
        named.predict([X[:, :2]])
    with pytest.raises(ValueError, match=r"batch 1 has 2 columns, but the first has 3"):
        named.predict([X, X[:, :2]])
    with pytest.raises(ValueError, match="which can be read only once"):
        named.predict(part for part in [X])
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        named.predict(tmp_path / "nothing")


# Predictions into Parquet


def test_predictions_into_a_file(named: BowTieRegressor, tmp_path: Path) -> None:
    target, inputs = tmp_path / "out.parquet", frame()[list(NAMES)]
    for source in (folder(tmp_path / "in", frame()), inputs, cut(60, X)):
        named.predict_to_parquet(source, target)
        found = pq.read_table(target)
        assert found.column_names == ["mean", "std", "lower", "upper"]
        mean, std = named.predict(inputs, return_std=True)
        assert_allclose(found["mean"].to_numpy(), mean, rtol=1e-12)
        assert_allclose(found["std"].to_numpy(), std, rtol=1e-12)
        limits = np.stack([found["lower"].to_numpy(), found["upper"].to_numpy()], axis=1)
        assert_allclose(limits, named.predict_interval(inputs, 0.9), rtol=1e-12)
    named.predict_to_parquet(inputs, target, coverage=None)
    assert pq.read_table(target).column_names == ["mean", "std"]
    named.predict_to_parquet(inputs, target, coverage=0.5)
    lower = pq.read_table(target)["lower"].to_numpy()
    assert_allclose(lower, named.predict_interval(inputs, 0.5)[:, 0], rtol=1e-12)


def test_predictions_of_several_targets_into_a_file(tmp_path: Path) -> None:
    model, target = small().fit(X, TWO), tmp_path / "out.parquet"
    model.predict_to_parquet(X, target)
    found = pq.read_table(target)
    columns = [f"{name}_{i}" for name in ("mean", "std", "lower", "upper") for i in (0, 1)]
    assert found.column_names == columns
    mean, std = model.predict(X, return_std=True)
    assert_allclose(found["mean_1"].to_numpy(), mean[:, 1], rtol=1e-12)
    assert_allclose(found["std_0"].to_numpy(), std[:, 0], rtol=1e-12)
    assert_array_equal(found["upper_1"].to_numpy(), model.predict_interval(X)[:, 1, 1])


class BrokenError(Exception):
    """What a test lets happen."""


class BreaksAt(Batches):
    """Fails in the middle of every pass but those that only look at the beginning."""

    def __iter__(self) -> Iterator[Any]:
        yield from self.batches
        raise BrokenError


@pytest.mark.parametrize("existing", [True, False])
def test_nothing_is_left_of_a_file_that_was_not_finished(
    existing: bool, named: BowTieRegressor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "out.parquet"
    if existing:
        target.write_bytes(b"precious")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def unchanged() -> bool:
        return before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(BrokenError):
        named.predict_to_parquet(BreaksAt(*cut(60, X)), target)
    assert unchanged()
    hole = np.where(np.arange(N_ROWS)[:, None] == 200, np.nan, X)
    with pytest.raises(ValueError, match=r"batch 3: X contains NaN"):
        named.predict_to_parquet(cut(60, hole), target)
    assert unchanged()
    for coverage in ([0.5, 0.9], 1.5, "most"):
        with pytest.raises(ValueError, match="coverage"):
            named.predict_to_parquet(X, target, coverage=coverage)
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(OSError, match="No space left"):
            named.predict_to_parquet([X], target)
    assert unchanged()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            named.predict_to_parquet([X], target)
    assert unchanged()
    with pytest.raises(FileNotFoundError):
        named.predict_to_parquet([X], tmp_path / "nowhere" / "out.parquet")


# Bad rows


def third_is_text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    if not path.exists():
        folder(path, frame())
    parquet(path / "2.parquet", frame(second=["a"] * N_ROWS))
    return path


def one_nan(n_batches: int, row: int) -> Batches:
    batches = [(x, y) for x, y in cut(1, X, Y)] * (n_batches // N_ROWS + 1)
    batches = batches[:n_batches]
    batches[row] = (np.array([[1.0, np.nan, 2.0]]), np.ones(1))
    return Batches(*batches)


BAD: dict[str, tuple[Callable[[Path], tuple[Any, ...]], str]] = {
    "ragged": (
        lambda _: ([(X, Y), ([[1.0, 2.0, 3.0], [1.0]], [0.0, 0.0])],),
        r"batch 1: X must be a rectangular table of numbers",
    ),
    "unequal lengths": (
        lambda _: ([(X, Y), (X, Y[:-1])],),
        r"batch 1 has different numbers of rows \(240 in X, 239 in y\)",
    ),
    "columns changed": (
        lambda _: ([(X, Y), (X[:, :2], Y)],),
        r"batch 1 has 2 columns, but the first has 3",
    ),
    "names changed": (
        lambda _: ([(frame()[list(NAMES)], Y), (frame()[["second", "first", "third"]], Y)],),
        r"batch 1 has 'second' where the first has 'first' among its columns",
    ),
    "targets changed": (
        lambda _: ([(X, Y), (X, TWO)],),
        r"batch 1 has 2 targets, but the first has 1",
    ),
    "type changed": (
        lambda _: ([(X, Y), (X, Y), (X.astype(str).astype(object) + "a", Y)],),
        r"batch 2: X must hold numbers",
    ),
    "NaN in the thousandth batch": (
        lambda _: (one_nan(1001, 1000),),
        r"batch 1000: X contains NaN or infinity in column 1 \(1 NaN\)",
    ),
    "NaN in a target": (
        lambda _: ([(X, Y), (X, np.where(Y[3] == Y, np.inf, Y))],),
        r"batch 1: y contains NaN or infinity in target 0 \(1 infinite\)",
    ),
    "NaN in a file": (
        lambda path: (parquet(path / "n.parquet", frame(third=[None, *X[1:, 2]])), "y"),
        r"n.parquet, row group 0 .*: NaN or infinity in column 'third' \(1 NaN\)",
    ),
    "no batches": (lambda _: (Batches(),), r"X gave no rows"),
    "an empty list": (lambda _: ([],), r"X|y"),
    "a generator": (lambda _: ((b for b in [(X, Y)]),), r"which can be read only once"),
    "text in the third file": (
        lambda path: (third_is_text(path), "y"),
        r"2.parquet has no numbers in 'second' \((large_)?string\)",
    ),
    "no target": (
        lambda path: (parquet(path / "y.parquet", frame()),),
        r"the target is missing: name it, as in fit\(dataset, 'y'\)",
    ),
    "batches without target": (lambda _: ([X, X],), r"the target is missing"),
    "a misspelt target": (
        lambda path: (parquet(path / "y.parquet", frame(price=Y)), "prize"),
        r"X has no column 'prize', which y names; did you mean 'price'",
    ),
    "a misspelt target of a frame": (
        lambda _: (frame(price=Y), "prize"),
        r"X has no column 'prize'; did you mean 'price'",
    ),
    "one row": (lambda _: ([(X[:1], Y[:1])],), r"the source has 1 row: at least 2 are needed"),
    "weights of zero": (
        lambda _: (cut(100, X, Y, np.zeros(N_ROWS)),),
        r"the weights are all zero: at least one row must have a positive weight",
    ),
    "negative weights": (
        lambda _: (cut(100, X, Y, -np.ones(N_ROWS)),),
        r"batch 0: 100 of the weights are negative",
    ),
    "an array for the target of a path": (
        lambda path: (parquet(path / "y.parquet", frame()), Y),
        r"y must be the name of the target column",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_told_and_leave_no_trace(kind: str, tmp_path: Path) -> None:
    make, message = BAD[kind]
    model = small(n_estimators=1, max_iter=1, checkpoint=tmp_path / "fit.checkpoint").fit(X, Y)
    before = dict(vars(model))
    written = (tmp_path / "fit.checkpoint").read_bytes()
    for solver in ("svi", "auto")[: 1 if "thousandth" in kind else 2]:
        model.set_params(solver=solver)
        with pytest.raises(ValueError, match=message):
            model.fit(*make(tmp_path))
    model.set_params(solver="svi")
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    assert (tmp_path / "fit.checkpoint").read_bytes() == written
    persistence.load(tmp_path / "fit.checkpoint", KIND)


@pytest.mark.parametrize("solver", ["svi", "cavi"])
def test_a_file_rewritten_during_the_fit(
    solver: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, kept = parquet(tmp_path / "y.parquet", frame()), tmp_path / "fit.checkpoint"
    settings = {"solver": solver, "combine": "equal", "max_iter": 6}
    expected = small(**settings).fit(path, "y")
    genuine = path.read_bytes()
    after_sweep = progress.MemberReporter.__call__

    def rewrite(self: Any, found: Any) -> bool:
        if found.sweep == 3:
            parquet(path, frame(first=X[:, 0] + 1e-3))
        return after_sweep(self, found)

    model = small(checkpoint=kept, checkpoint_every=0, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(progress.MemberReporter, "__call__", rewrite)
        with pytest.raises(ValueError, match=r"y.parquet changed during the fit"):
            model.fit(path, "y")
    assert not hasattr(model, "ensemble_")
    assert persistence.load(kept, KIND)["seed"] >= 0
    with pytest.raises(ValueError, match="is of another fit: scaling was"):
        model.resume(path, "y")
    path.write_bytes(genuine)
    assert_same(expected, model.resume(path, "y"))


def test_rows_that_are_fewer_in_a_later_pass() -> None:
    class Shrinking(Batches):
        passes = 0

        def __iter__(self) -> Iterator[Any]:
            type(self).passes += 1
            return iter(self.batches[: 2 if self.passes > 4 else None])

    with pytest.raises(ValueError, match=r"240 rows in the first pass and 120 in a later one"):
        small().fit(Shrinking(*cut(60, X, Y)))


def test_rows_in_another_order_in_a_later_pass() -> None:
    """Local factors and held-out rows belong to places."""

    class Mixed(Batches):
        passes = 0

        def __iter__(self) -> Iterator[Any]:
            self.passes += 1
            return iter([self.batches[i] for i in np.roll(range(4), self.passes)])

    batches = cut(60, X, Y)
    for solver in ("cavi", "svi"):
        with pytest.raises(ValueError, match=r"or the same in another order: let each pass be"):
            small(solver=solver, combine="equal").fit(Mixed(*batches))


def test_what_needs_all_rows_at_once_says_so(named: BowTieRegressor, tmp_path: Path) -> None:
    path = parquet(tmp_path / "y.parquet", frame())
    for ask in (named.sample_y, lambda source: named.predict(source, return_cov=True)):
        with pytest.raises(ValueError, match="this needs the rows in memory: read X into a table"):
            ask(path)


def test_predictions_do_not_replace_their_own_rows(named: BowTieRegressor, tmp_path: Path) -> None:
    path = parquet(tmp_path / "y.parquet", frame())
    before = Path(path).read_bytes()
    for source, target in ((path, path), (tmp_path, tmp_path / "new.parquet")):
        with pytest.raises(ValueError, match="one of the files that are read"):
            named.predict_to_parquet(source, target)
    assert Path(path).read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["y.parquet"]


def test_a_fifth_of_the_rows_that_count_is_held_out() -> None:
    weights = np.zeros(len(X))
    weights[::3] = 1.0
    model = small(solver="svi", combine="stacking").fit(X, Y, weights)
    counted = len(weights[::3])
    found = [float(member.statistics.count) for member in model.ensemble_.members]
    assert_allclose(found, counted - counted // 5)
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("weight", [0.01, 100.0])
def test_weights_do_not_change_when_steps_shrink(
    weight: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Passes are counted by what has been visited of the whole, in the unit of the weights."""
    found = []
    for scale in (1.0, weight):
        model = small(solver="svi", combine="equal", n_estimators=1, verbose=1)
        model.fit(X, Y, np.full(len(X), scale))
        found.append(model.n_iter_)
        assert "at most -" not in capsys.readouterr().out
    assert found[0] == found[1]


def test_two_rows_are_enough() -> None:
    for solver in ("svi", "cavi", "auto"):
        model = small(solver=solver, n_estimators=1).fit([(X[:2], Y[:2])])
        assert np.isfinite(model.predict(X)).all()


def test_rows_of_a_block_are_those_of_the_table() -> None:
    rows = fitting.gathered(bt.open_source(cut(50, X, Y)))
    assert isinstance(rows, Rows)
    assert_array_equal(rows.inputs, X)
    assert_array_equal(rows.targets[:, 0], Y)
