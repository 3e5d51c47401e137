"""What networks see of columns and targets: piecewise linear features and warps, as users meet it.

Settings, predictions in the user's unit, what lies outside the data, tables of all kinds,
and plots and reports that speak of the user's columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from bowtienet._old import BowTieRegressor
from bowtienet._old.ensemble.ensemble import member_views
from bowtienet._old.estimators.attributes import ensemble_attributes
from tests._old.estimators import models
from tests._old.estimators.models import answers, at_sweep, rows, watched
from tests._old.sign_pruning import prune_by_signs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BENT: dict[str, Any] = {"features": "piecewise", "target_transform": "yeo-johnson"}
KINDS = [(f, t) for f in ("standard", "piecewise") for t in ("none", "yeo-johnson")]
STANDARD_ERRORS = 5.0
"""Allowed between draws and what they are draws of: false alarm 6e-7 for each number."""
DRAWS = 2000


def quick(**changes: Any) -> BowTieRegressor:
    """Two members of ten units and ten sweeps, of one penalty."""
    settings = {"hidden_layer_sizes": (10,), "max_iter": 10, "init_penalty": 1.0}
    return models.small(**(settings | {"gate_temperature": "auto"} | changes))


def long_tailed(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lognormal targets of three columns."""
    X, y = rows(n, seed)
    return X, 10.0 * np.exp(0.4 * y)


X, Y = long_tailed()
NEW = long_tailed(6, seed=9)[0]
TWO = np.column_stack([Y, -(Y**1.2) + 3.0 * X[:, 2]])
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)


def pooled(X: Any, y: Any) -> BowTieRegressor:
    """One member for each of four views of the same rows, in one estimator."""
    found = [
        quick(n_estimators=1, features=f, target_transform=t, random_state=place).fit(X, y)
        for place, (f, t) in enumerate(KINDS)
    ]
    ensembles = [model.ensemble_ for model in found]
    views = tuple(one.representation.views[0] for one in ensembles)
    ensemble = replace(
        ensembles[0],
        members=tuple(one.members[0] for one in ensembles),
        weights=np.array([0.1, 0.2, 0.3, 0.4]),
        representation=replace(ensembles[0].representation, views=views),
        views=(0, 1, 2, 3),
        groups=(0, 1, 2, 3),
    )
    found[0]._set(ensemble_attributes(ensemble, "cavi"))
    return found[0].set_params(n_estimators=4, features="auto", target_transform="auto")


@pytest.fixture(scope="module")
def mixed() -> BowTieRegressor:
    return pooled(FRAME[NAMES], Y)


@pytest.fixture(scope="module")
def bent() -> BowTieRegressor:
    return quick(**BENT).fit(X, Y)


def seen(model: BowTieRegressor) -> set[tuple[bool, bool]]:
    """Whether columns are in bins and targets are warped, over all members."""
    views = member_views(model.ensemble_)
    return {(view.pieces is not None, view.warp is not None) for view in views}


def n_inputs(model: BowTieRegressor) -> int:
    return model.ensemble_.members[0].model.architecture.n_inputs


# Settings


@pytest.mark.parametrize(("features", "target_transform"), KINDS)
def test_each_view_that_is_asked_for(features: str, target_transform: str) -> None:
    model = quick(features=features, target_transform=target_transform).fit(X, Y)
    assert seen(model) == {(features == "piecewise", target_transform == "yeo-johnson")}
    assert n_inputs(model) == (48 if features == "piecewise" else 3)
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize(("bins", "expected"), [(1, 3), (2, 6), (5, 15), (24, 72), (1000, 72)])
def test_a_number_of_bins(bins: int, expected: int) -> None:
    """One bin is the plain column; 120 rows are enough for 24 bins of each column."""
    model = quick(features=bins, target_transform="none", n_estimators=1).fit(X, Y)
    assert n_inputs(model) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"features": "bins"},
        {"features": 0},
        {"features": 2.5},
        {"features": None},
        {"target_transform": "log"},
        {"target_transform": None},
        {"target_transform": 1},
    ],
    ids=str,
)
def test_what_is_no_setting_is_said_in_one_sentence(changes: dict[str, Any]) -> None:
    [(name, value)] = changes.items()
    with pytest.raises(ValueError, match=name) as caught:
        quick(**changes).fit(X, Y)
    text = str(caught.value)
    assert text.startswith(f"The '{name}' parameter of BowTieRegressor must be")
    assert text.endswith(f"Got {value!r} instead.")


def test_bins_are_taken_for_steps_and_plain_columns_for_a_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(150, 1))
    steps = np.floor(6.0 * x[:, 0]) % 2 + 0.05 * rng.normal(size=150)
    line = 3.0 * x[:60, 0] + 0.3 * rng.normal(size=60)
    assert {bins for bins, _ in seen(quick(target_transform="none").fit(x, steps))} == {True}
    assert seen(quick(target_transform="none").fit(x[:60], line)) == {(False, False)}


def test_a_warp_is_taken_for_a_long_tail_and_none_for_a_normal_one() -> None:
    assert {warped for _, warped in seen(quick(features="standard").fit(X, Y))} == {True}
    rng = np.random.default_rng(1)
    table = rng.normal(size=(150, 2))
    y = table @ [1.0, -1.0] + 0.5 * rng.normal(size=150)
    assert seen(quick(features="standard").fit(table, y)) == {(False, False)}


def test_a_warp_predicts_long_tails_better() -> None:
    test = long_tailed(400, seed=5)
    warped, plain = (
        quick(features="standard", target_transform=t).fit(X, Y).log_score(*test)
        for t in ("yeo-johnson", "none")
    )
    assert warped > plain + 0.2


# Predictions in the user's unit


@pytest.fixture(scope="module", params=["bent", "mixed"])
def either(request: pytest.FixtureRequest) -> BowTieRegressor:
    return request.getfixturevalue(request.param)


def new_rows(model: BowTieRegressor) -> Any:
    return pd.DataFrame(NEW, columns=NAMES) if hasattr(model, "feature_names_in_") else NEW


def test_all_answers_are_of_one_distribution(either: BowTieRegressor) -> None:
    table = new_rows(either)
    mean, deviation = either.predict(table, return_std=True)
    found = either.predict_dist(table)
    assert_allclose(found.mean(), mean, rtol=1e-10)
    assert_allclose(found.std(), deviation, rtol=1e-8)
    assert_array_equal(either.predict(table), mean)
    again, covariance = either.predict(table, return_cov=True)
    assert_array_equal(again, mean)
    assert_allclose(np.diag(covariance), deviation**2, rtol=1e-8)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    parts = either._components(table, None)
    assert_allclose(parts.mean, mean, rtol=1e-10)
    assert_allclose(parts.epistemic_variance + parts.noise_variance, deviation**2, rtol=1e-8)
    assert np.all(parts.epistemic_variance > 0.0)
    assert np.all(parts.noise_variance > 0.0)
    levels = np.array([0.05, 0.3, 0.5, 0.95])
    quantiles = np.asarray(either.predict_quantiles(table, levels))
    assert_allclose(found.cdf(quantiles), np.tile(levels, (6, 1)), atol=1e-9)
    assert_allclose(either.predict_interval(table, 0.9), quantiles[:, [0, 3]], rtol=1e-9)


def test_densities_are_of_the_users_unit(either: BowTieRegressor) -> None:
    """They integrate to one, and to the mean; scores are means over rows."""
    table = new_rows(either)[:1]
    found = either.predict_dist(table)
    ends = found.ppf([1e-12, 1.0 - 1e-12])[0]
    grid = np.linspace(*ends, 200_001)
    density = found.pdf(grid[None, :])[0]
    assert_allclose(integrate.trapezoid(density, grid), 1.0, atol=1e-4)
    assert_allclose(integrate.trapezoid(density * grid, grid), found.mean()[0], rtol=1e-3)
    data = (FRAME[NAMES] if isinstance(table, pd.DataFrame) else X), Y
    logs = either.predict_dist(data[0]).logpdf(Y)
    assert_allclose(either.log_score(*data), np.mean(logs), rtol=1e-10)
    weights = np.arange(120.0)
    assert_allclose(either.log_score(*data, weights), np.average(logs, weights=weights), rtol=1e-10)
    assert_allclose(either.score(*data), r2_score(Y, either.predict(data[0])), rtol=1e-10)


def assert_moments_of_draws(draws: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
    """Within error bars: sqrt(v / n) of a mean, sqrt((m4 - v²) / n) of a variance."""
    error = np.sqrt(variance / draws.shape[-1])
    assert np.all(np.abs(draws.mean(axis=-1) - mean) < STANDARD_ERRORS * error)
    away = (draws - mean[..., None]) ** 2
    error = away.std(axis=-1) / np.sqrt(draws.shape[-1])
    assert np.all(np.abs(away.mean(axis=-1) - variance) < STANDARD_ERRORS * error)


def test_draws_have_the_moments_quantiles_and_intervals(either: BowTieRegressor) -> None:
    table = new_rows(either)
    draws = either.sample_y(table, DRAWS)
    mean, deviation = either.predict(table, return_std=True)
    assert_moments_of_draws(draws, mean, deviation**2)
    for level in (0.1, 0.5, 0.9):
        below = np.mean(draws < np.asarray(either.predict_quantiles(table, [level])), axis=1)
        error = np.sqrt(level * (1.0 - level) / DRAWS)
        assert np.all(np.abs(below - level) < STANDARD_ERRORS * error)
    error = np.sqrt(0.16 / DRAWS)
    central, shortest = (
        np.asarray(either.predict_interval(table, 0.8, method=method))
        for method in ("central", "highest_density")
    )
    for ends, slack in ((central, 0.0), (shortest, 0.02)):
        # The shortest interval comes from 2,000 draws of its own.
        inside = np.mean((draws > ends[:, :1]) & (draws < ends[:, 1:]), axis=1)
        assert np.all(np.abs(inside - 0.8) < STANDARD_ERRORS * error + slack)
    assert np.all(np.diff(shortest) < 1.03 * np.diff(central))


def test_two_targets_have_a_warp_each_and_the_shapes_of_one() -> None:
    both = quick(**BENT).fit(X, TWO)
    [view] = {id(view): view for view in member_views(both.ensemble_)}.values()
    assert view.warp is not None
    assert view.warp.exponent[0] < 1.0 < view.warp.exponent[1]
    single = [quick(**BENT).fit(X, TWO[:, place]) for place in range(2)]
    for place, model in enumerate(single):
        [own] = {id(view): view for view in member_views(model.ensemble_)}.values()
        assert_allclose(own.warp.exponent, view.warp.exponent[[place]], rtol=1e-12)

    def said(model: BowTieRegressor) -> list[np.ndarray]:
        return [
            *model.predict(NEW, return_std=True),
            *model.predict_components(NEW),
            model.predict_interval(NEW),
            model.predict_interval(NEW, [0.5, 0.9]),
            model.predict_quantiles(NEW),
            model.predict_dist(NEW).ppf(0.3),
            model.sample_y(NEW, 4),
            model.sample_y(NEW, 4, joint=True, noise=False),
        ]

    ones = [said(model) for model in single]
    for together, *apart in zip(said(both), *ones, strict=True):
        assert together.shape == np.stack(apart, axis=1).shape
        assert np.isfinite(together).all()
    covariance = both.predict(NEW, return_cov=True)[1]
    assert covariance.shape == (6, 6, 2)
    assert both.score(X, TWO) > 0.5
    logs = both.predict_dist(X).logpdf(TWO)
    assert_allclose(both.log_score(X, TWO), logs.mean(), rtol=1e-10)


# Units


@pytest.mark.parametrize(("columns", "unit"), [(3, 10), (498, 498), (-498, -498), (498, -498)])
def test_powers_of_two_as_units_change_no_bit(columns: int, unit: int) -> None:
    """2^498 is 8e149. Densities are in the unit of the target."""
    by, c = 2.0**columns, 2.0**unit
    usual, other = quick(**BENT).fit(X, Y), quick(**BENT).fit(X * by, Y * c)
    assert_array_equal(answers(other, NEW * by), answers(usual, NEW) * c)
    assert_allclose(other.predict_interval(NEW * by), usual.predict_interval(NEW) * c, rtol=1e-12)
    scores = usual.log_score(X, Y), other.log_score(X * by, Y * c)
    assert_allclose(scores[1], scores[0] - np.log(c), rtol=1e-12)


# Outside the data


def along(place: float, column: int = 0, count: int = 5) -> np.ndarray:
    """Rows at 1, 2, ... times so many ranges of a column, the other columns in their middle."""
    table = np.zeros((count, 3))
    table[:, column] = place * np.arange(1, count + 1)
    return table


@pytest.mark.parametrize("side", [-1.0, 1.0], ids=["below", "above"])
@pytest.mark.parametrize("features", ["standard", "piecewise", 3])
@pytest.mark.parametrize("column", [0, 1])
def test_functions_go_on_linearly_and_doubt_grows(features: Any, side: float, column: int) -> None:
    model = quick(features=features, target_transform="none").fit(*rows(120))
    for place in (1e3, 1e5):
        mean, deviation = answers(model, along(side * place, column))
        bends = np.abs(np.diff(mean, 2)) / np.max(np.abs(mean))
        assert np.all(bends < 1e-2 * 1e3 / place)
        assert np.all(np.diff(deviation) > 0.0)
        # In proportion to the distance: it is the slope that is not known.
        assert_allclose(np.diff(deviation) / np.diff(deviation).mean(), 1.0, rtol=0.1)
    near = model.predict(np.zeros((1, 3)), return_std=True)[1]
    assert model.predict(along(side * 4.0, column), return_std=True)[1][0] > near


@pytest.mark.parametrize("features", ["standard", "piecewise"])
@pytest.mark.parametrize("transform", ["none", "yeo-johnson"])
def test_nothing_overflows_a_million_deviations_away(features: str, transform: str) -> None:
    model = quick(features=features, target_transform=transform).fit(X, Y)
    far = np.concatenate([along(s * 1e6 * X.std(), c, 2) for s in (-1.0, 1.0) for c in range(3)])
    found = model.predict_dist(far)
    for answer in (
        *model.predict(far, return_std=True),
        model.predict(far, return_cov=True)[1],
        *model.predict_components(far),
        model.predict_quantiles(far, [1e-9, 0.5, 1.0 - 1e-9]),
        model.predict_interval(far, 0.9, method="highest_density", n_samples=100),
        found.logpdf(Y[:12]),
        found.cdf(Y[:12]),
        *(model.sample_y(far, 20, joint=j, noise=n) for j in (False, True) for n in (False, True)),
    ):
        assert np.isfinite(answer).all()
    levels = model.predict_quantiles(far, [0.05, 0.5, 0.95])
    assert np.all(np.diff(levels) > 0.0)


# Tables of all kinds


def column_of(values: Any) -> Callable[[], tuple[Any, np.ndarray]]:
    """A table whose second column has given values, repeated as needed."""
    return lambda: (np.column_stack([X[:, 0], np.resize(values, 120)]), Y)


def frame_of_kinds() -> tuple[pd.DataFrame, np.ndarray]:
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(120) * 5, unit="D")
    city = np.array(["Oslo", "Rome", "Lima"])[np.arange(120) % 3]
    hole = np.where(np.arange(120) % 7 == 0, np.nan, X[:, 0])
    return pd.DataFrame({"number": hole, "city": city, "day": days, "flag": X[:, 1] > 0.0}), Y


TABLES: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "a constant column": column_of([3.0]),
    "two values": column_of([0.0, 1.0, 1.0]),
    "nine tenths zeros": column_of([0.0] * 18 + [1.5, 2.5]),
    "integers": column_of([0, 1, 2, 3]),
    "nearly equal values": column_of([1.0, 1.0 + 1e-15, 1.0 - 1e-15]),
    "one far value": column_of([*X[:119, 1], 1e12]),
    "two rows": lambda: (X[:2], Y[:2]),
    "three rows": lambda: (X[:3], Y[:3]),
    "a constant target": lambda: (X, np.full(120, 4.0)),
    "two values of the target": lambda: (X, np.where(Y > 20.0, 1.0, 0.0)),
    "identical rows": lambda: (np.tile(X[:1], (60, 1)), np.tile(Y[:1], 60)),
    "identical features": lambda: (np.tile(X[:1], (60, 1)), Y[:60]),
    "200 columns": lambda: (np.random.default_rng(0).normal(size=(60, 200)), Y[:60]),
    "missing values": lambda: (np.where(np.arange(360).reshape(120, 3) % 11 == 0, np.nan, X), Y),
    "columns of all kinds": frame_of_kinds,
}


@pytest.mark.parametrize("settings", [BENT, {}], ids=["bent", "auto"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_all_kinds(name: str, settings: dict[str, Any]) -> None:
    table, y = TABLES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Zeros and ones may be classes, and a warning says so.
        warnings.filterwarnings("ignore", message="y holds nothing but 0 and 1")
        model = quick(**settings, max_iter=5).fit(table, y)
    for part in (table, table[:1]):
        mean, deviation = answers(model, part)
        assert np.isfinite(mean).all()
        assert np.all(deviation >= 0.0)
        assert np.isfinite(np.asarray(model.predict_interval(part))).all()
        assert np.isfinite(model.sample_y(part, 3)).all()
        assert np.isfinite(model.sample_y(part, 3, joint=True, noise=False)).all()
    relevance = model.feature_relevance_
    assert relevance.strength.shape == relevance.name.shape == (table.shape[1],)
    assert_allclose(mean, np.clip(mean, y.min() - np.ptp(y), y.max() + np.ptp(y)), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a constant column", 16),
        ("two values", 17),
        ("nine tenths zeros", 18),
        ("integers", 19),
        ("200 columns", 200),
    ],
)
def test_bins_are_no_more_than_the_values_of_a_column(name: str, expected: int) -> None:
    """Sixteen of the first column; with 200 columns none has more than one."""
    table, y = TABLES[name]()
    model = quick(**BENT, n_estimators=1, max_iter=2).fit(table, y)
    assert n_inputs(model) == expected


def test_gaps_are_told_from_values() -> None:
    """Of a column whose gaps say more than its values."""
    rng = np.random.default_rng(2)
    gap = rng.uniform(size=120) < 0.4
    x = np.where(gap, np.nan, rng.normal(size=120))
    y = np.exp(2.0 * gap + 0.2 * rng.normal(size=120))
    model = quick(**BENT).fit(x[:, None], y)
    assert model.predict([[np.nan]])[0] > 3.0 * model.predict([[0.0]])[0]


# Going on


def test_a_checkpoint_is_for_one_view_of_the_rows(tmp_path: Path) -> None:
    cut = quick(**BENT, checkpoint=tmp_path / "checkpoint")
    watched(cut, at_sweep(12, KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        cut.fit(X, Y)
    for name, value in (("features", "standard"), ("target_transform", "none")):
        other = quick(**(BENT | {name: value}), checkpoint=tmp_path / "checkpoint")
        with pytest.raises(ValueError, match=name):
            other.resume(X, Y)


# Structure, plots and reports speak of the user's columns


@pytest.fixture(scope="module")
def flats() -> pd.DataFrame:
    table, y = frame_of_kinds()
    return table.assign(price=y)


@pytest.fixture(scope="module", params=["piecewise", "auto", "mixed"])
def of_flats(request: pytest.FixtureRequest, flats: pd.DataFrame) -> BowTieRegressor:
    if request.param == "mixed":
        return pooled(flats.drop(columns="price"), flats["price"])
    return quick(features=request.param, weighting="stacking").fit(flats, "price")


def test_relevance_and_pruning_are_of_the_users_columns(
    of_flats: BowTieRegressor, flats: pd.DataFrame
) -> None:
    names = ["number", "city", "day", "flag"]
    relevance = of_flats.feature_relevance_
    assert relevance.name.tolist() == names
    assert relevance.strength.shape == relevance.p_value.shape == (4,)
    pruned = of_flats.prune(flats, "price")
    assert pruned.pruning_.columns == tuple(names)
    assert pruned.feature_relevance_.name.tolist() == names
    assert np.all(pruned.sparsity_.weights_after <= pruned.sparsity_.weights_before)
    assert pruned.sparsity_.weights_after.sum() < pruned.sparsity_.weights_before.sum()
    assert np.isfinite(answers(pruned, flats)).all()
    # Columns that are gone move no mean; those of the noise may be others.
    gone = ~np.array(pruned.pruning_.kept)
    assert_array_equal(pruned.feature_relevance_.strength == 0.0, gone)
    for name in relevance.name[gone]:
        changed = flats.assign(**{name: flats[name].iloc[::-1].to_numpy()})
        assert_array_equal(pruned.predict(changed), pruned.predict(flats))


def test_plots_and_a_report(of_flats: BowTieRegressor, flats: pd.DataFrame, tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    from bowtienet._old import plotting

    pruned = prune_by_signs(of_flats, 0.05)
    for member in range(len(of_flats.ensemble_.members)):
        for model in (of_flats, pruned):
            display = plotting.NetworkDisplay.from_estimator(model, member=member)
            assert display.input_names[0] == "number"
            assert len(display.input_names) < 20
            display.figure_.canvas.draw()
        display = plotting.WeightsDisplay.from_estimator(of_flats, pruned, member=member)
        display.figure_.canvas.draw()
        pyplot.close("all")
    found = plotting.RelevanceDisplay.from_estimator(of_flats)
    assert sorted(found.names) == ["city", "day", "flag", "number"]
    for name in ("number", "day", "city"):
        band = plotting.PredictiveBandDisplay.from_estimator(
            of_flats, flats.drop(columns="price"), name
        )
        band.figure_.canvas.draw()
    pyplot.close("all")
    of_flats.report(flats, "price", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name in ("number", "city", "day", "flag"))
