"""Tables as they are: any library, any kind of column, missing values, names of columns."""

from __future__ import annotations

import copy
import datetime
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor
from tests._old.estimators.models import answers, assert_same, rows, small

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 60
RNG = np.random.default_rng(0)
SIZE = RNG.normal(100.0, 20.0, size=N)
CITY = RNG.choice(["Bonn", "Köln", "Ulm"], size=N)
GARDEN = RNG.random(N) < 0.5
PRICE = 0.1 * SIZE + 3.0 * (CITY == "Ulm") + 2.0 * GARDEN + 0.3 * RNG.normal(size=N)
DAY = datetime.datetime(2024, 1, 1)

FRAME = pd.DataFrame(
    {
        "size": np.where(np.arange(N) % 7 == 0, np.nan, SIZE),
        "rooms": np.arange(N) % 5,
        "city": np.where(np.arange(N) % 11 == 0, None, CITY),
        "kind": pd.Categorical(np.where(SIZE > 100.0, "house", "flat")),
        "garden": GARDEN,
        "built": [DAY + datetime.timedelta(days=37 * i) for i in range(N)],
        "vacant": [datetime.timedelta(hours=5 * (i % 9)) for i in range(N)],
        "cost": [f"{1000 + 37 * i:,} €" for i in range(N)],
        "here": "yes",
        "price": PRICE,
    }
)
FEATURES = [name for name in FRAME if name != "price"]
FIRST = FRAME[FEATURES]

LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas of pyarrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    with pytest.warns(UserWarning, match="'cost'"):
        return small().fit(FRAME, "price")


def one_column(values: Any, name: str = "x") -> pd.DataFrame:
    """A column of any kind beside one of numbers."""
    return pd.DataFrame({"size": SIZE[: len(values)], name: values})


# What a table may hold


def test_what_was_learnt_of_each_column(model: BowTieRegressor) -> None:
    columns = {column.name: column for column in model.columns_}
    assert list(columns) == FEATURES == model.feature_names_in_.tolist()
    kinds = {name: column.kind for name, column in columns.items()}
    assert kinds["size"] == kinds["rooms"] == kinds["garden"] == kinds["cost"] == "number"
    assert kinds["city"] == kinds["kind"] == "category"
    assert (kinds["built"], kinds["vacant"]) == ("date", "duration")
    assert columns["city"].categories == ("Bonn", "Köln", "Ulm")
    assert {name for name in FEATURES if columns[name].has_indicator} == {"size", "city"}
    assert not columns["here"].has_value
    assert columns["size"].typical == np.nanmedian(FRAME["size"])
    assert model.n_features_in_ == len(FEATURES)
    assert model.target_names_ == ["price"]
    # Numbers 6, indicators 2, categories 3 + 2; the constant has none.
    assert len(model.ensemble_.representation.column_order) == 13
    assert model.score(FRAME, "price") > 0.7


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_same_model_and_answers(
    library: str, model: BowTieRegressor
) -> None:
    table = LIBRARIES[library](FRAME)
    assert_array_equal(model.predict(table), model.predict(FRAME))
    with pytest.warns(UserWarning, match="'cost'"):
        found = small().fit(table, "price")
    assert_same(found, model)
    assert_array_equal(answers(found, FIRST[::-1]), answers(model, FIRST[::-1]))
    assert model.score(table, "price") == model.score(FRAME, "price")


def test_relevance_has_an_entry_for_each_column_of_the_user(model: BowTieRegressor) -> None:
    found = model.feature_relevance_
    assert found.name.tolist() == FEATURES
    assert found.p_value.shape == found.strength.shape == (9,)
    assert found.strength[FEATURES.index("here")] == 0.0
    assert np.argmax(found.strength) in (FEATURES.index("size"), FEATURES.index("city"))
    both = small().fit(FIRST[["size", "city"]], np.column_stack([PRICE, -PRICE]))
    assert both.feature_relevance_.strength.shape == (2, 2)
    assert both.feature_relevance_.strongest().strength.shape == (2,)


# What comes only later


def test_values_that_are_missing_only_later_are_the_typical_ones(model: BowTieRegressor) -> None:
    gone = FIRST.copy()
    gone["rooms"] = np.nan
    typical = FIRST.assign(rooms=2)
    assert_array_equal(model.predict(gone), model.predict(typical))
    nothing = FIRST.assign(**dict.fromkeys(FEATURES))
    assert np.isfinite(answers(model, nothing)).all()
    assert np.ptp(model.predict(nothing)) == 0.0


def test_unseen_categories_are_warned_of_once_and_are_none_of_the_known(
    model: BowTieRegressor,
) -> None:
    new = FIRST.assign(city="Rom", kind="tent")
    with pytest.warns(UserWarning, match=r"'city'.*'kind'") as caught:
        found = model.predict(new)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isfinite(found).all()
    with pytest.warns(UserWarning, match="Rom") as caught:
        score = model.score(new.assign(price=PRICE), "price")
    assert len(caught) == 1
    assert np.isfinite(score)


# Columns that are not what they seem


def test_identifiers_are_left_out_with_a_warning() -> None:
    frame = one_column([f"id-{i}" for i in range(N)], "key")
    with pytest.warns(UserWarning, match="'key'") as caught:
        found = small().fit(frame, PRICE)
    assert caught[0].filename == __file__
    assert_same(found, small().fit(frame[["size"]], PRICE))
    # Nobody is surprised by other identifiers.
    other = frame.assign(key="new")
    assert_array_equal(found.predict(other), found.predict(frame))


@pytest.mark.parametrize("values", [["a"] * N, [None] * N, [1.5] * N])
def test_columns_that_say_nothing_are_left_out_silently_or_noted(values: list[Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = small().fit(one_column(values), PRICE)
    assert_same(found, small().fit(one_column(values)[["size"]], PRICE))
    assert len([w for w in caught if "'x'" in str(w.message)]) == (values[0] is None)


# Names


def test_other_columns_are_ignored_and_the_known_must_be_in_order(model: BowTieRegressor) -> None:
    expected = model.predict(FIRST)
    more = FRAME.assign(more="text")[["more", *FEATURES[:4], "price", *FEATURES[4:]]]
    assert_array_equal(model.predict(more), expected)
    with pytest.raises(ValueError, match="order"):
        model.predict(FIRST[FEATURES[::-1]])
    with pytest.raises(ValueError, match="city"):
        model.predict(FIRST.drop(columns="city"))
    with pytest.raises(ValueError, match="city"):
        model.predict(FIRST.rename(columns={"city": "town"}))
    with pytest.raises(ValueError, match="8 features"):
        model.predict(FIRST.astype(object).to_numpy()[:, :8])


def test_names_that_come_or_go_are_warned_of() -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abc"))
    named, nameless = small().fit(frame, y), small().fit(X, y)
    with pytest.warns(UserWarning, match="feature names"):
        found = named.predict(X)
    with pytest.warns(UserWarning, match="feature names"):
        assert_array_equal(nameless.predict(frame), found)
    nameless.fit(frame, y)
    assert nameless.feature_names_in_.tolist() == ["a", "b", "c"]
    nameless.fit(X, y)
    assert not hasattr(nameless, "feature_names_in_")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_targets_and_weights_by_name(library: str) -> None:
    X, y = rows()
    both, weights = np.column_stack([y, -X[:, 2]]), np.arange(60) % 3.0
    table = pd.DataFrame(X, columns=list("abc")).assign(y=both[:, 0], z=both[:, 1], w=weights)
    table = LIBRARIES[library](table)
    found = small().fit(table, ["y", "z"], sample_weight="w")
    assert_same(found, small().fit(X, both, weights))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.target_names_ == ["y", "z"]
    assert found.predict(table).shape == (60, 2)
    assert found.score(table, ["y", "z"], "w") == pytest.approx(
        small().fit(X, both, weights).score(X, both, weights), rel=1e-12
    )
    with pytest.raises(ValueError, match="'prize'"):
        small().fit(table, "prize")


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (PRICE, ["y"]),
        (PRICE[:, None], ["y"]),
        (np.column_stack([PRICE, PRICE]), ["y0", "y1"]),
        (pd.Series(PRICE, name="price"), ["price"]),
        (pd.DataFrame({"a": PRICE, "b": PRICE}), ["a", "b"]),
        (pl.Series("price", PRICE), ["price"]),
        (PRICE.tolist(), ["y"]),
    ],
    ids=["array", "column", "two", "series", "frame", "polars", "list"],
)
def test_names_of_targets(y: Any, names: list[str]) -> None:
    model = small(n_estimators=1, max_iter=2).fit(SIZE[:, None], y)
    assert model.target_names_ == names
    assert model.n_outputs_ == len(names)
    shape = np.shape(y)
    assert model.predict(SIZE[:, None]).shape == shape


# Arrays


def test_missing_values_of_an_array() -> None:
    X, y = rows()
    X[::6, 0] = np.nan
    model = small().fit(X, y)
    assert [column.has_indicator for column in model.columns_] == [True, False, False]
    assert np.isfinite(answers(model, X)).all()
    filled = np.where(np.isnan(X), np.nanmedian(X[:, 0]), X)
    marked = np.column_stack([filled[:, 0], np.isnan(X[:, 0]), filled[:, 1:]])
    assert_same(small().fit(marked, y), model)
    with pytest.raises(ValueError, match="masked"):
        small().fit(np.ma.masked_invalid(X), y)


def test_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    X, y = rows()
    tensors = torch.from_numpy(X), torch.from_numpy(y)
    for init, digits, away in (("laplace", 1e-6, 0.0), ("relu_network", 0.05, 0.1)):
        model, expected = small(init=init).fit(*tensors), small(init=init).fit(X, y)
        mean, deviation = model.predict(tensors[0], return_std=True)
        assert isinstance(mean, torch.Tensor)
        # Steps of the start multiply rounding; beside the noise what comes of it is small.
        assert_allclose(mean.numpy(), expected.predict(X), rtol=1e-6, atol=away * deviation.min())
        assert_allclose(deviation.numpy(), answers(expected, X)[1], rtol=digits)
        assert model.score(*tensors) == pytest.approx(expected.score(X, y), rel=digits)
    hole = tensors[0].clone()
    hole[::7, 1] = np.nan
    assert torch.isfinite(small().fit(hole, tensors[1]).predict(hole)).all()


# Shapes at the border


@pytest.mark.parametrize("weighting", ["equal", "stacking"])
def test_one_row_and_two_rows(weighting: str) -> None:
    X, y = rows()
    with pytest.raises(ValueError, match="sample"):
        small(weighting=weighting).fit(X[:1], y[:1])
    model = small(weighting=weighting).fit(X[:2], y[:2])
    assert np.isfinite(answers(model, X)).all()
    assert model.predict(X[:1]).shape == (1,)
    with pytest.raises(ValueError, match="sample"):
        model.predict(X[:0])


def test_more_columns_than_rows() -> None:
    wide = np.random.default_rng(1).normal(size=(20, 60))
    model = small(max_iter=3).fit(wide, wide[:, 7])
    assert np.isfinite(answers(model, 100.0 * wide)).all()
    assert model.feature_relevance_.strength.shape == (60,)


@pytest.mark.parametrize("weighting", ["equal", "elbo", "stacking"])
def test_a_constant_target_is_that_constant(weighting: str) -> None:
    X, _ = rows()
    mean, deviation = answers(small(weighting=weighting).fit(X, np.full(60, -7.3)), X)
    assert_allclose(mean, -7.3, rtol=1e-12)
    assert np.all((deviation > 0.0) & (deviation < 0.073))


def test_what_was_given_is_not_changed() -> None:
    frame, X = FRAME.copy(), rows()[0]
    X[3, 1] = np.nan
    before = X.copy()
    with pytest.warns(UserWarning, match="cost"):
        small().fit(frame, "price").predict(frame)
    small().fit(X, PRICE)
    pd.testing.assert_frame_equal(frame, FRAME)
    assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("X", "y", "weights", "match"),
    [
        (FRAME, "prize", None, "prize"),
        (FIRST, None, None, "y"),
        (FIRST, PRICE[:-1], None, "inconsistent"),
        (FIRST, PRICE, -np.ones(N), "sample_weight"),
        (FIRST, PRICE, np.zeros(N), "sample_weight"),
        (FIRST, PRICE, np.ones(N - 1), "sample_weight"),
        (FIRST[:0], PRICE[:0], None, "sample"),
        (FIRST.assign(size=[[1]] * N), PRICE, None, "size"),
        (FIRST.rename(columns={"size": "city"}), PRICE, None, "city"),
        (FIRST.assign(rooms=1j), PRICE, None, "rooms|[Cc]omplex"),
        (SIZE, PRICE, None, "2D array"),
    ],
)
def test_a_fit_that_is_refused_changes_nothing(
    X: Any, y: Any, weights: Any, match: str, model: BowTieRegressor
) -> None:
    fitted = copy.copy(model)
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match=match):
        fitted.fit(X, y, weights)
    assert vars(fitted) == before
