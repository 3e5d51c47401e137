"""Importance of the user's columns: whole, in groups, with weights, of any model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import SelectFromModel

from bowtienet._old import BowTieRegressor, load
from bowtienet._old.estimators.column_groups import read_groups
from tests._old.estimators.models import rows, small, stacked
from tests._old.sign_pruning import prune_by_signs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows(150)
NEW_X, NEW_Y = rows(200, seed=1)


def flats(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """City and area matter; floor and the day do not, and one column says nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Rome", "Lima"], size=n),
            "area": rng.gamma(4.0, 20.0, size=n),
            "floor": rng.integers(0, 9, size=n).astype(float),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, size=n), "D"),
            "country": "x",
        }
    )
    price = table["area"] + 100.0 * (table["city"] == "Oslo") + rng.normal(0.0, 10.0, size=n)
    table.loc[rng.uniform(size=n) < 0.2, "floor"] = np.nan
    return table, price.to_numpy()


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return stacked(hidden_layer_sizes=(10,)).fit(X, Y)


@pytest.fixture(scope="module")
def mixed() -> BowTieRegressor:
    return stacked(hidden_layer_sizes=(10,)).fit(*flats(200, 0))


# Rows with targets


def test_scores_and_losses_are_in_the_users_units(model: BowTieRegressor) -> None:
    """RMSE and log density of the rows; a column that is gone leaves the spread of its part."""
    found = model.importance(NEW_X, NEW_Y, n_repeats=20)
    assert found.name.tolist() == ["x0", "x1", "x2"]
    assert_allclose(found.log_density, model.log_score(NEW_X, NEW_Y))
    errors = NEW_Y - model.predict(NEW_X)
    assert_allclose(found.rmse, np.sqrt(np.mean(errors**2)))
    # 2 x1 is permuted: its differences have twice the variance 4 · 16 / 12.
    expected = np.sqrt(found.rmse**2 + 2.0 * 4.0 * 16.0 / 12.0) - found.rmse
    assert abs(found.rmse_rise[1] - expected) < 4.0 * found.rmse_error[1] + 0.1 * expected
    # The last column is noise; two errors in three are below one, all below four.
    assert np.abs(found.log_density_drop[2]) < 4.0 * found.log_density_error[2]
    assert np.abs(found.rmse_rise[2]) < 4.0 * found.rmse_error[2]
    assert np.all(found.log_density_drop[:2] > 10.0 * found.log_density_error[:2])


def test_noise_is_worth_nothing_within_its_error(rng: np.random.Generator) -> None:
    """Of 40 noise columns two are expected beyond two errors; nine happen once in 10,000 fits."""
    A, B = rng.normal(size=(150, 41)), rng.normal(size=(300, 41))
    fit = stacked().fit(A, 3.0 * A[:, 0] + rng.normal(size=150))
    found = fit.importance(B, 3.0 * B[:, 0] + rng.normal(size=300))
    assert np.argmax(found.log_density_drop) == 0
    ratio = found.rmse_rise[1:] / found.rmse_error[1:]
    assert np.sum(np.abs(ratio) > 2.0) <= 8
    assert np.all(np.abs(ratio) < 5.0)


def test_all_that_becomes_of_a_column_is_permuted_together(mixed: BowTieRegressor) -> None:
    """Against tables whose columns are permuted before they are encoded."""
    table, price = flats(120, 1)
    found = mixed.importance(table, price, n_repeats=2)
    assert found.name.tolist() == list(table.columns)
    assert found.log_density_drop[4] == found.log_density_error[4] == found.rmse_rise[4] == 0.0
    rng = np.random.default_rng(0)
    for place, column in enumerate(["city", "area", "floor"]):
        drops = []
        for _ in range(30):
            permuted = table.assign(**{column: rng.permutation(table[column].to_numpy())})
            drops.append(mixed.log_score(table, price) - mixed.log_score(permuted, price))
        error = np.std(drops) * np.sqrt(1.0 / 30 + 1.0 / 2)
        assert abs(found.log_density_drop[place] - np.mean(drops)) < 4.0 * error
    assert found.log_density_drop[:2].min() > 5.0 * np.abs(found.log_density_drop[2:]).max()


def test_columns_that_say_the_same_matter_together(rng: np.random.Generator) -> None:
    twin = X[:, :1] + 0.01 * rng.normal(size=(150, 1))
    fit = stacked(hidden_layer_sizes=(10,)).fit(np.hstack([X, twin]), Y)
    new = np.hstack([NEW_X, NEW_X[:, :1] + 0.01 * rng.normal(size=(200, 1))])
    alone = fit.importance(new, NEW_Y)
    found = fit.importance(new, NEW_Y, groups={"both": ["x0", 3]})
    assert found.name.tolist() == ["both", "x1", "x2"]
    assert found.rmse_rise[0] > 1.1 * max(alone.rmse_rise[0], alone.rmse_rise[3])
    assert_allclose(found.rmse_rise[1:], alone.rmse_rise[1:3], rtol=1e-9)


def test_a_row_of_weight_zero_is_absent_and_one_of_two_is_there_twice(
    model: BowTieRegressor,
) -> None:
    weights = np.ones(200)
    weights[100:] = 0.0
    some = model.importance(NEW_X[:100], NEW_Y[:100])
    found = model.importance(NEW_X, NEW_Y, weights)
    assert found.n_rows == 100
    assert_allclose(found.log_density_drop, some.log_density_drop)
    assert_allclose(found.rmse_error, some.rmse_error)
    twice = np.where(np.arange(200) < 100, 2.0, 1.0)
    times = np.repeat(np.arange(200), twice.astype(int))
    found = model.importance(NEW_X, NEW_Y, twice, n_repeats=100)
    again = model.importance(NEW_X[times], NEW_Y[times], n_repeats=100)
    assert_allclose(found.rmse, again.rmse)
    assert_allclose(found.rmse_rise, again.rmse_rise, atol=0.3 * np.max(found.rmse_error))


def test_several_targets_have_a_column_each() -> None:
    both, new = np.column_stack([Y, 5.0 * X[:, 2]]), np.column_stack([NEW_Y, 5.0 * NEW_X[:, 2]])
    fit = stacked(hidden_layer_sizes=(10,)).fit(X, both)
    found = fit.importance(NEW_X, new)
    assert found.rmse_rise.shape == found.log_density_error.shape == (3, 2)
    assert found.rmse.shape == (2,)
    assert np.argmax(found.rmse_rise[:, 1]) == 2
    assert np.argmin(found.rmse_rise[:, 0]) == 2
    assert_allclose(np.mean(found.log_density), fit.log_score(NEW_X, new))
    assert repr(found).count("column") == 2
    assert fit.feature_importances_.shape == (3,)


def test_the_table_begins_with_what_matters_most(model: BowTieRegressor) -> None:
    lines = repr(model.importance(NEW_X, NEW_Y)).splitlines()
    assert lines[0].startswith("y, 200 rows, 5 permutations: log density ")
    assert [line.split()[0] for line in lines[1:]] == ["column", "x1", "x0", "x2"]
    assert all("±" in line for line in lines[2:])


@pytest.mark.parametrize(
    "changes",
    [
        {"propagation": "variational"},
        {"features": "principal"},
        {"hidden_layer_sizes": ()},
        {"features": 4, "target_transform": "yeo-johnson"},
    ],
    ids=str,
)
def test_any_model_can_be_asked(changes: dict[str, Any]) -> None:
    fit = small(**changes).fit(X, Y)
    found = fit.importance(NEW_X, NEW_Y, n_repeats=2)
    assert np.argmin(found.rmse_rise) == 2
    assert_allclose(fit.feature_importances_.sum(), 1.0)


# Without rows


def test_shares_are_of_what_moves_the_mean(model: BowTieRegressor) -> None:
    found = model.feature_importances_
    assert found.shape == (3,)
    assert np.all(found >= 0.0)
    assert_allclose(found.sum(), 1.0)
    # Var[2 |x0|] : Var[2 x1] = 4/12 · 4 : 16/12 · 4, and nothing of x2.
    assert_allclose(found, [0.2, 0.8, 0.0], atol=0.1)
    assert_array_equal(model.feature_importances_, found)
    chosen = SelectFromModel(model, prefit=True, threshold=0.05).transform(X)
    assert_array_equal(chosen, X[:, :2])


def test_shares_come_back_from_files_and_follow_pruning(
    mixed: BowTieRegressor, tmp_path: Path
) -> None:
    """Rows do not: after a change of the model there is nothing to tell."""
    mixed.save(tmp_path / "model")
    found, loaded = mixed.feature_importances_, load(tmp_path / "model")
    assert_array_equal(loaded.feature_importances_, found)
    assert found[4] == 0.0
    assert np.argsort(found)[-2:].tolist() in ([0, 1], [1, 0])
    assert prune_by_signs(mixed, 0.3).feature_importances_.shape == (5,)
    assert loaded.ensemble_.background is None
    with pytest.raises(AttributeError, match=r"ask importance\(X, y\)"):
        _ = prune_by_signs(loaded, 0.3).feature_importances_
    prune_by_signs(loaded, 0.3).save(tmp_path / "again")
    assert not hasattr(load(tmp_path / "again"), "feature_importances_")
    assert not hasattr(small(), "feature_importances_")


def test_a_constant_has_no_shares() -> None:
    constant = prune_by_signs(small(init_penalty=1e6, max_iter=2).fit(X, Y), 1e-12)
    assert_array_equal(constant.feature_importances_, np.zeros(3))


@pytest.mark.parametrize(
    "source", [lambda: [(X, Y)], lambda: [(X[:75], Y[:75]), (X[75:], Y[75:])]], ids=["one", "two"]
)
def test_streams_keep_rows_too(source: Any) -> None:
    fit = small(solver="svi", max_iter=2).fit(source())
    assert fit.ensemble_.background is not None
    kept = fit.ensemble_.background.features
    assert len(kept) > 50
    assert all(np.isclose(X, row).all(axis=1).any() for row in kept)
    assert_allclose(fit.feature_importances_.sum(), 1.0)


def test_kept_rows_are_those_of_the_table(mixed: BowTieRegressor) -> None:
    """In the user's units and without targets; as many as there are, or 200."""
    kept = mixed.ensemble_.background
    assert kept is not None
    areas = flats(200, 0)[0]["area"].to_numpy()
    assert_allclose(np.sort(kept.features[:, 3]), np.sort(areas), rtol=1e-9)
    many = small().fit(*rows(300)).ensemble_.background
    assert many is not None
    assert many.features.shape == (200, 3)


def test_new_rows_bring_new_shares() -> None:
    fit = small().fit(X, X[:, 2])
    assert np.argmax(fit.feature_importances_) == 2
    assert np.argmax(fit.set_params(warm_start=False).fit(X, Y).feature_importances_) == 1
    assert_allclose(fit.partial_fit(NEW_X, NEW_Y).feature_importances_.sum(), 1.0)


# What is refused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": [["x0"]]}, "groups must be a dict"),
        ({"groups": {"a": "x0"}}, "list of columns"),
        ({"groups": {"a": ["x9"]}}, "no column 'x9'"),
        ({"groups": {"a": [3]}}, "no column 3; places count from 0 to 2"),
        ({"groups": {"a": [True]}}, "names or places"),
        ({"groups": {"a": ["x0"], "b": [0]}}, "'x0' twice"),
        ({"n_repeats": 1}, "n_repeats must be at least 2"),
        ({"n_repeats": 0}, "n_repeats"),
    ],
)
def test_wrong_questions_are_refused_by_name(
    model: BowTieRegressor, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        model.importance(NEW_X, NEW_Y, **given)


def test_rows_must_be_in_memory_and_several(model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="in memory"):
        model.importance([(NEW_X, NEW_Y)])
    with pytest.raises(ValueError, match="at least 2 rows"):
        model.importance(NEW_X[:1], NEW_Y[:1])
    with pytest.raises(ValueError, match="at least 2 rows"):
        model.importance(NEW_X, NEW_Y, np.arange(200) == 7)


def test_groups_stand_where_their_first_column_does() -> None:
    found = read_groups({"a": ["d", "b"], 7: [np.int64(2)]}, ["a", "b", "c", "d"])
    assert found.names == ("a", "a", "7")
    assert found.places.tolist() == [0, 1, 2, 1]
