"""The whole estimator on Dask tables, with two worker processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bowtienet as bt
from bowtienet._old.data import chunks
from bowtienet._old.ensemble import fit_ensemble
from bowtienet._old.ensemble.cluster import ClusterRows
from tests._old.ensemble.clusters import kill_worker, left_over
from tests._old.ensemble.fits import Watching, fit, small, viewed_ensemble
from tests._old.sign_pruning import prune_by_signs

dask_array = pytest.importorskip("dask.array")
dask_frame = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N = 120


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not read into memory, and chunks do not follow partitions."""
    monkeypatch.setattr(fit_ensemble, "LARGE", 100)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 32)
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 8)


def estimator(weighting: str = "equal", **settings: Any) -> bt.BowTieRegressor:
    """Two small members, of few sweeps."""
    usual = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 12, "solver": "cavi"}
    options = bt.FitOptions(weighting=weighting)
    return bt.BowTieRegressor(**{**usual, **settings}, options=options, random_state=0)


def numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, two targets and weights, of which some are zero."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    y = np.stack([np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1], X[:, 2] ** 2], axis=1)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=N)
    return X, y + rng.normal(0.0, 0.1, size=y.shape), weights


def tables() -> tuple[Any, Any, Any]:
    """The same as Dask arrays, cut at other places."""
    X, y, weights = numbers()
    chunk = dask_array.from_array
    return chunk(X, chunks=(35, 2)), chunk(y, chunks=(50, 2)), chunk(weights, chunks=35)


def mixed() -> Any:
    """The same as a data frame, with a category and missing values."""
    X, y, weights = numbers()
    table = pandas.DataFrame(X, columns=list("abc")).assign(y=y[:, 0], w=weights)
    table.loc[::7, "b"] = np.nan
    return table.assign(d=np.where(table["c"] > 0.3, "high", "low"))


def count_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by each pass on the workers."""
    passes: list[int] = []
    whole = ClusterRows.local_pass

    def local_pass(self: ClusterRows, *arguments: Any) -> Any:
        passes.append(len(passes))
        return whole(self, *arguments)

    monkeypatch.setattr(ClusterRows, "local_pass", local_pass)
    return passes


def assert_same_fit(found: bt.BowTieRegressor, expected: bt.BowTieRegressor, X: Any) -> None:
    """The same numbers, in all but the last digits."""
    assert found.solver_ == expected.solver_
    assert found.columns_ == expected.columns_
    np.testing.assert_allclose(found.elbo_history_, expected.elbo_history_, rtol=1e-8)
    np.testing.assert_allclose(found.member_weights_, expected.member_weights_, rtol=1e-8)
    for one, other in zip(
        found.predict(X, return_std=True), expected.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_jobs": 2},
        {"hidden_layer_sizes": (4, 3)},
        {"features": 3, "target_transform": "yeo-johnson"},
    ],
    ids=["equal", "two layers", "bins and a warp"],
)
def test_a_dask_array_gives_the_fit_in_memory(
    client: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = count_passes(monkeypatch)
    X, y, weights = numbers()
    expected = estimator(**settings).fit(X, y, weights)
    assert not passes
    found = estimator(**settings).fit(*tables())
    assert len(passes) > 10
    assert_same_fit(found, expected, X)
    assert not left_over(client)


@pytest.mark.parametrize("solver", ["cavi", "auto"])
@pytest.mark.parametrize("large", [N - 1, N])
def test_a_dask_array_is_fitted_as_an_array_on_both_sides_of_the_threshold(
    client: Any, solver: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member of coordinate ascent, or a stacked ensemble; "auto" decides by the rows alone."""
    monkeypatch.setattr(fit_ensemble, "LARGE", large)
    X, y, weights = numbers()
    settings = {"solver": solver, "effort": "fast", "max_iter": 6}
    settings |= {"n_estimators": 1, "weighting": "equal"} if solver == "cavi" else {}
    weighting = settings.pop("weighting", "stacking")
    expected = estimator(weighting, **settings).fit(X, y, weights)
    found = estimator(weighting, **settings).fit(*tables())
    assert found.solver_ == ("svi" if solver == "auto" and large < N else "cavi")
    assert_same_fit(found, expected, X)
    assert not left_over(client)


@pytest.mark.parametrize("n", [20_000, 55_000])
def test_tables_of_real_sizes(client: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read into memory, and swept on the workers."""
    monkeypatch.undo()
    assert (fit_ensemble.LARGE, chunks.CHUNK_ROWS) == (50_000, 16_384)
    rng = np.random.default_rng(521)
    X = rng.normal(size=(n, 4))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(0.0, 0.1, size=n)
    settings = {"n_estimators": 1, "max_iter": 3, "effort": "fast"}
    expected = estimator(**settings).fit(X, y)
    parts = [dask_array.from_array(values, chunks=(7_000, 4)[: values.ndim]) for values in (X, y)]
    assert_same_fit(estimator(**settings).fit(*parts), expected, X[:1_000])


@pytest.mark.parametrize("outcome", ["classes", "counts"])
def test_classes_and_counts_of_a_dask_frame(client: Any, outcome: str) -> None:
    table = mixed()
    if outcome == "classes":
        table["y"] = np.where(table["y"] > 0.5, "high", np.where(table["y"] > -0.5, "mid", "low"))
        model: Any = bt.BowTieClassifier
    else:
        table["y"] = np.round(np.exp(table["y"])).astype(int)
        model = bt.BowTieRegressor
    usual = {"hidden_layer_sizes": (4,), "n_estimators": 1, "max_iter": 6, "solver": "cavi"}
    usual |= {"options": bt.FitOptions(weighting="equal"), "random_state": 0}
    usual |= {} if outcome == "classes" else {"outcome": "counts"}
    found, expected = (
        model(**usual).fit(rows, "y", "w")
        for rows in (dask_frame.from_pandas(table, npartitions=3), table)
    )
    np.testing.assert_allclose(found.elbo_history_, expected.elbo_history_, rtol=1e-8)
    answer = "predict_proba" if outcome == "classes" else "predict"
    values = [getattr(one, answer)(table) for one in (found, expected)]
    np.testing.assert_allclose(*values, rtol=1e-8, atol=1e-8)


@pytest.mark.skipif(os.name != "posix", reason="kills processes by signal")
def test_a_worker_that_dies_changes_nothing(doomed: Any) -> None:
    """Its partitions repeat the local steps that led to the factors they have lost."""
    settings = small(solver="cavi", max_iter=12, n_estimators=1, weighting="equal", tol=0.0)
    expected = fit(numbers(), settings).ensemble
    killed: list[int] = []

    def on_sweep(watch: Watching, progress: Any) -> bool:
        if progress.sweep >= 5 and not killed:
            killed.append(kill_worker(doomed))
        return False

    found = fit(tables(), settings, Watching(on_sweep)).ensemble
    assert killed
    [one], [other] = found.members, expected.members
    np.testing.assert_allclose(one.elbo_history, other.elbo_history, rtol=1e-8)
    for a, b in zip(one.factors.layers, other.factors.layers, strict=True):
        np.testing.assert_allclose(a.weights.mean, b.weights.mean, rtol=1e-8, atol=1e-8)


def test_members_of_a_sample_are_swept_over_the_cluster(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the weights and levels of the sample, as rows in memory are."""
    passes = count_passes(monkeypatch)
    X, y, weights = numbers()
    expected = estimator(weighting="stacking").fit(X, y, weights)
    assert not passes
    found = estimator(weighting="stacking").fit(*tables())
    sweeps = sum(member.n_sweeps for member in found.ensemble_.members)
    assert len(passes) == sweeps > 0
    assert_same_fit(found, expected, X)
    scales = [model.ensemble_.levels.scale for model in (found, expected)]
    np.testing.assert_allclose(*scales, rtol=1e-8)
    assert not left_over(client)


def test_a_dask_frame_with_categories_gives_the_fit_in_memory(client: Any) -> None:
    table = mixed()
    expected = estimator().fit(table, "y", "w")
    found = estimator().fit(dask_frame.from_pandas(table, npartitions=3), "y", "w")
    assert_same_fit(found, expected, table)


def counted(X: np.ndarray, folder: str) -> np.ndarray:
    """Leave a file for every time that a partition is read."""
    if len(X):
        Path(folder, f"{X[0, 0]}_{len(os.listdir(folder))}").touch()
    return X


@pytest.mark.parametrize("solver", ["cavi", "auto"])
def test_every_partition_is_read_once(
    client: Any, solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its rows are swept on the workers, and of a small table that is read into memory."""
    monkeypatch.setattr(fit_ensemble, "LARGE", N if solver == "auto" else N - 1)
    X, y, weights = tables()
    X = X.rechunk({1: -1}).map_blocks(counted, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    estimator(solver=solver, max_iter=2).fit(X, y, weights)
    assert len(list(tmp_path.iterdir())) == X.numblocks[0] == 4


def test_bad_input_is_named_and_nothing_stays(client: Any) -> None:
    X, y, _ = numbers()
    X[80, 1] = np.inf
    with pytest.raises(ValueError, match=r"partition 2.*column 1"):
        estimator().fit(dask_array.from_array(X, chunks=(35, 3)), y)
    assert not left_over(client)


def test_a_warm_start_goes_on_with_members_that_lost_inputs(client: Any) -> None:
    table = dask_frame.from_pandas(mixed(), npartitions=3)
    model = estimator(hidden_layer_sizes=(6,), max_iter=30).fit(table, "y", "w")
    model = prune_by_signs(model, 0.001)
    widths = [member.model.architecture.widths for member in model.ensemble_.members]
    model.set_params(warm_start=True).fit(table, "y", "w")
    assert [member.model.architecture.widths for member in model.ensemble_.members] == widths
    assert np.isfinite(model.elbo_)


def test_members_with_different_views_go_on(client: Any) -> None:
    """Each with the rows as it sees them, as in memory."""
    before = viewed_ensemble(numbers(), max_iter=2)
    settings = small(solver="cavi", max_iter=3)
    expected, found = (
        fit(rows, settings, before=before).ensemble for rows in (numbers(), tables())
    )
    assert found.views == expected.views == (0, 1, 2, 3)
    for one, other in zip(found.members, expected.members, strict=True):
        np.testing.assert_allclose(one.elbo_history, other.elbo_history, rtol=1e-8)
    assert not left_over(client)
