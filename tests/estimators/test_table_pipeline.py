"""Tables in, predictions out: the same bits as with a table that was prepared by hand."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.preprocessing import StandardScaler

import bowtienet
from bowtienet import (
    BowTieRegressor,
    TablePipeline,
    TablePreparer,
    make_table_pipeline,
    persistence,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 40
RNG = np.random.default_rng(0)
AGE = RNG.normal(size=N).round(3)
CITY = RNG.choice(["Rome", "Oslo", "Bonn"], N)
WEIGHT = RNG.integers(1, 4, N)
PRICE = AGE + 2.0 * (CITY == "Rome") + 0.1 * RNG.normal(size=N)
COST = 5.0 - AGE + 0.1 * RNG.normal(size=N)
NO_AGE, NO_CITY = np.arange(N) % 9 == 1, np.arange(N) % 7 == 2
FRAME = pd.DataFrame(
    {
        "age": np.where(NO_AGE, np.nan, AGE),
        "city": [None if absent else city for city, absent in zip(CITY, NO_CITY, strict=True)],
        "price": PRICE,
        "cost": COST,
        "count": WEIGHT,
    }
)
INPUTS = FRAME[["age", "city"]]
BY_HAND = np.column_stack(
    [
        np.where(NO_AGE, np.median(AGE[~NO_AGE]), AGE),
        NO_AGE,
        *((name == CITY) & ~NO_CITY for name in ("Bonn", "Oslo", "Rome")),
        NO_CITY,
    ]
).astype(float)
NAMES = ["age", "age missing", "city=Bonn", "city=Oslo", "city=Rome", "city missing"]


def small(**changes: Any) -> BowTieRegressor:
    settings: dict[str, Any] = {"n_estimators": 1, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (5,), "init": "laplace", "max_iter": 5}
    return BowTieRegressor(**(settings | changes))


def as_polars(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(frame)


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": as_polars,
    "pyarrow": as_arrow,
}


@pytest.fixture(scope="module")
def reference() -> BowTieRegressor:
    with pytest.warns(match="max_iter"):
        return small().fit(BY_HAND, PRICE)


@pytest.fixture(scope="module")
def fitted() -> TablePipeline:
    with pytest.warns(match="max_iter"):
        return make_table_pipeline(small()).fit(FRAME[["age", "city", "price"]], "price")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bowtie"


# The same bits as by hand


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_that_for_a_table_prepared_by_hand(
    kind: str, reference: BowTieRegressor
) -> None:
    table = KINDS[kind](INPUTS)
    model = make_table_pipeline(small()).fit(table, PRICE)
    equal = np.testing.assert_array_equal
    equal(model.predict(table), reference.predict(BY_HAND))
    for keyword in ("return_std", "return_cov"):
        found = model.predict(table, **{keyword: True})
        for one, other in zip(found, reference.predict(BY_HAND, **{keyword: True}), strict=True):
            equal(one, other)
    options = {"kind": "highest_density", "n_samples": 50, "random_state": 1}
    equal(model.predict_interval(table), reference.predict_interval(BY_HAND))
    equal(
        model.predict_interval(table, [0.5, 0.8], **options),
        reference.predict_interval(BY_HAND, [0.5, 0.8], **options),
    )
    equal(model.predict_quantiles(table, [0.3]), reference.predict_quantiles(BY_HAND, [0.3]))
    equal(model.predict_components(table), reference.predict_components(BY_HAND))
    equal(model.predict_dist(table).ppf(0.3), reference.predict_dist(BY_HAND).ppf(0.3))
    equal(
        model.sample_y(table, 3, 7, joint=True, noise=False),
        reference.sample_y(BY_HAND, 3, 7, joint=True, noise=False),
    )
    assert model.score(table, PRICE) == pytest.approx(reference.score(BY_HAND, PRICE), rel=1e-12)
    assert model.log_score(table, PRICE, WEIGHT) == pytest.approx(
        reference.log_score(BY_HAND, PRICE, WEIGHT), rel=1e-12
    )
    assert model.regressor_.feature_names_in_.tolist() == NAMES


def test_an_array_of_objects_gives_the_same(reference: BowTieRegressor) -> None:
    table = INPUTS.to_numpy(dtype=object)
    model = make_table_pipeline(small()).fit(table, PRICE)
    np.testing.assert_array_equal(model.predict(table), reference.predict(BY_HAND))
    relevance, expected = model.feature_relevance_, reference.feature_relevance_
    assert relevance.name.tolist() == [
        name.replace("age", "x0").replace("city", "x1") for name in NAMES
    ]
    np.testing.assert_array_equal(relevance.strength, expected.strength)


@pytest.mark.parametrize("kind", KINDS)
def test_targets_and_weights_by_name(kind: str) -> None:
    table = KINDS[kind](FRAME)
    weighted = small().fit(BY_HAND, np.column_stack([PRICE, COST]), WEIGHT)
    model = make_table_pipeline(small()).fit(table, ["price", "cost"], "count")
    np.testing.assert_array_equal(model.predict(table), weighted.predict(BY_HAND))
    assert model.target_names_ == ["price", "cost"]
    both = FRAME[["price", "cost"]].to_numpy()
    expected = weighted.score(BY_HAND, both, WEIGHT)
    assert model.score(table, ["price", "cost"], "count") == pytest.approx(expected, rel=1e-12)
    expected = weighted.log_score(BY_HAND, both, WEIGHT)
    assert model.log_score(table, ["price", "cost"], "count") == pytest.approx(expected, rel=1e-12)


def test_weights_reach_the_regressor_by_every_way() -> None:
    expected = small().fit(BY_HAND, PRICE, WEIGHT).predict(BY_HAND)
    assert not np.array_equal(expected, small().fit(BY_HAND, PRICE).predict(BY_HAND))
    for table, weights in (
        (INPUTS, {"sample_weight": WEIGHT}),
        (FRAME[["age", "city", "count"]], {"sample_weight": "count"}),
        (INPUTS, {"regressor__sample_weight": WEIGHT}),
    ):
        model = make_table_pipeline(small()).fit(table, PRICE, **weights)
        np.testing.assert_array_equal(model.predict(table), expected)
    with config_context(enable_metadata_routing=True):
        regressor = small().set_fit_request(sample_weight=True)
        model = make_table_pipeline(regressor).fit(INPUTS, PRICE, WEIGHT)
        np.testing.assert_array_equal(model.predict(INPUTS), expected)


def test_other_columns_and_another_order_do_not_matter(fitted: TablePipeline) -> None:
    expected = fitted.predict(INPUTS)
    for columns in (["city", "age"], ["price", "city", "cost", "age"]):
        np.testing.assert_array_equal(fitted.predict(FRAME[columns]), expected)
        np.testing.assert_array_equal(fitted.predict(as_arrow(FRAME[columns])), expected)


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (PRICE, ["y"]),
        (PRICE[:, None], ["y"]),
        (PRICE.tolist(), ["y"]),
        (np.column_stack([PRICE, COST]), ["y0", "y1"]),
        (pd.Series(PRICE, name="p"), ["p"]),
        (pd.Series(PRICE), ["y"]),
        (pd.Series(PRICE, name=0), ["y"]),
        (pd.DataFrame({"p": PRICE, "c": COST}), ["p", "c"]),
        (pd.DataFrame(np.column_stack([PRICE, COST])), ["y0", "y1"]),
        (pl.Series("p", PRICE), ["p"]),
        (pl.Series(PRICE), ["y"]),
        (pl.DataFrame({"p": PRICE}), ["p"]),
        (pa.chunked_array([PRICE]), ["y"]),
        (pa.table({"p": PRICE}), ["p"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_names_of_targets(y: Any, names: list[str]) -> None:
    assert make_table_pipeline(small(max_iter=1)).fit(INPUTS, y).target_names_ == names


# A scikit-learn pipeline


def test_the_parts_of_a_pipeline() -> None:
    model = make_table_pipeline(max_categories=7)
    assert [name for name, _ in model.steps] == ["prepare", "regressor"]
    assert model.get_params()["prepare__max_categories"] == 7
    assert model.get_params()["regressor__n_estimators"] == BowTieRegressor().n_estimators
    model.set_params(regressor=small()).fit(FRAME, "price")
    assert type(model.preparer_) is TablePreparer
    assert model.regressor_ is model.named_steps["regressor"]
    assert model.n_features_in_ == 4
    assert model.sparsity_.inputs_before.tolist() == [8]
    assert model.feature_relevance_.name.tolist() == [*NAMES, "cost", "count"]


def test_settings_can_be_searched() -> None:
    grid = {"regressor__hidden_layer_sizes": [(2,), (3,)], "prepare__max_categories": [3, 4]}
    search = GridSearchCV(make_table_pipeline(small()), grid, cv=2, error_score="raise")
    search.fit(INPUTS, PRICE, sample_weight=WEIGHT)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict(INPUTS).shape == (N,)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_cross_validation(kind: str) -> None:
    table, folds = KINDS[kind](INPUTS), KFold(2)
    found = cross_val_score(make_table_pipeline(small()), table, PRICE, cv=folds)
    expected = []
    for train, test in folds.split(BY_HAND):
        model = make_table_pipeline(small()).fit(INPUTS.iloc[train], PRICE[train])
        expected.append(model.score(INPUTS.iloc[test], PRICE[test]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert cross_val_predict(make_table_pipeline(small()), table, PRICE, cv=2).shape == (N,)


def same(model: TablePipeline) -> TablePipeline:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, same])
def test_copies(copied: Callable[[TablePipeline], TablePipeline], fitted: TablePipeline) -> None:
    again = copied(fitted)
    np.testing.assert_array_equal(again.predict(INPUTS), fitted.predict(INPUTS))
    assert again.target_names_ == ["price"]


def test_a_clone_is_not_fitted(fitted: TablePipeline) -> None:
    again = clone(fitted)
    for ask in (
        lambda: again.predict(INPUTS),
        lambda: again.regressor_,
        lambda: again.feature_relevance_,
        lambda: again.prune(),
        lambda: again.save("nowhere"),
    ):
        with pytest.raises(NotFittedError):
            ask()
    again.fit(INPUTS, PRICE)
    np.testing.assert_array_equal(again.predict(INPUTS), fitted.predict(INPUTS))


def test_more_steps_than_two() -> None:
    prepare, scale = TablePreparer(), StandardScaler()
    model = TablePipeline([("a", prepare), ("b", scale), ("c", small())]).fit(INPUTS, PRICE, WEIGHT)
    scaled = StandardScaler().fit_transform(BY_HAND)
    expected = small().fit(scaled, PRICE, WEIGHT).predict(scaled)
    np.testing.assert_allclose(model.predict(INPUTS), expected, rtol=1e-9)


def test_a_regressor_that_goes_on_goes_on() -> None:
    expected = small(warm_start=True).fit(BY_HAND, PRICE).fit(BY_HAND, PRICE).predict(BY_HAND)
    model = make_table_pipeline(small(warm_start=True)).fit(INPUTS, PRICE).fit(INPUTS, PRICE)
    np.testing.assert_array_equal(model.predict(INPUTS), expected)


# Pruning


def test_pruning_is_that_of_the_regressor(
    fitted: TablePipeline, reference: BowTieRegressor
) -> None:
    before = fitted.predict(INPUTS)
    pruned, expected = fitted.prune(0.05), reference.prune(0.05)
    assert type(pruned) is TablePipeline
    np.testing.assert_array_equal(pruned.predict(INPUTS), expected.predict(BY_HAND))
    assert pruned.sparsity_.weights_after.tolist() == expected.sparsity_.weights_after.tolist()
    assert pruned.sparsity_.weights_after[0] < pruned.sparsity_.weights_before[0]
    assert pruned.target_names_ == fitted.target_names_
    refitted = fitted.prune(0.05, refit=True, X=FRAME, y="price", sample_weight="count")
    expected = reference.prune(0.05, refit=True, X=BY_HAND, y=PRICE, sample_weight=WEIGHT)
    np.testing.assert_array_equal(refitted.predict(INPUTS), expected.predict(BY_HAND))
    pruned.set_params(prepare__max_categories=5)
    assert fitted.preparer_.max_categories == 100
    np.testing.assert_array_equal(fitted.predict(INPUTS), before)


def test_pruning_says_what_it_needs(fitted: TablePipeline) -> None:
    with pytest.raises(ValueError, match="refit=True needs the rows"):
        fitted.prune(0.05, refit=True)
    with pytest.raises(ValueError, match="used only with refit=True"):
        fitted.prune(0.05, X=FRAME, y="price")


# What is refused


@pytest.mark.parametrize(
    ("table", "y", "weights", "words"),
    [
        (FRAME, None, None, "the target y is None"),
        (FRAME, "prize", None, "X has no column 'prize'; did you mean 'price'"),
        (FRAME, "city", None, "y must hold numbers.*'city'"),
        (FRAME, "age", None, r"y contains NaN.*leave those rows out"),
        (INPUTS, PRICE[:-1], None, "X has 40 rows and y has 39"),
        (INPUTS, -PRICE, -WEIGHT, "sample_weight.*negative"),
        (BY_HAND, "price", None, "names of columns need a table whose columns have names"),
        (INPUTS.assign(id=[f"i{k}" for k in range(N)]), PRICE, None, "'id' holds 40 different"),
        (INPUTS.assign(age=np.inf), PRICE, None, r"column 'age' \(40 infinite\)"),
        ("table.parquet", "price", None, "X is a str.*fit BowTieRegressor itself"),
        (Path("table.parquet"), "price", None, "fit BowTieRegressor itself"),
        (pl.LazyFrame({"a": [1, 2]}), "a", None, r"lazy.*collect\(\)"),
    ],
)
def test_a_fit_that_fails_changes_nothing(table: Any, y: Any, weights: Any, words: str) -> None:
    model = make_table_pipeline(small(max_iter=1), max_categories=20).fit(INPUTS, PRICE)
    before, steps = model.predict(INPUTS), list(model.steps)
    with pytest.raises(ValueError, match=words):
        model.fit(table, y, weights)
    assert model.steps == steps
    assert model.target_names_ == ["y"]
    np.testing.assert_array_equal(model.predict(INPUTS), before)


def test_sources_are_refused() -> None:
    dask = pytest.importorskip("dask.array")
    source = bowtienet.open_source(as_arrow(FRAME[["age", "price"]]), "price")
    for rows in (dask.ones((10, 2)), source):
        with pytest.raises(ValueError, match="fit BowTieRegressor itself"):
            make_table_pipeline(small()).fit(rows, np.ones(10))


def test_questions_that_are_refused(fitted: TablePipeline) -> None:
    with pytest.raises(ValueError, match="X lacks the column that training had: 'age'"):
        fitted.predict(FRAME[["city"]])
    with pytest.raises(ValueError, match=r"column 'age' held numbers.*text, such as 'old'"):
        fitted.predict(INPUTS.assign(age="old"))
    with pytest.raises(ValueError, match="y is None: give the targets"):
        fitted.score(FRAME)
    with pytest.raises(ValueError, match="unknown kind 'wide'"):
        fitted.predict_interval(FRAME, kind="wide")


def test_a_new_category_is_predicted_with_a_warning(
    fitted: TablePipeline, reference: BowTieRegressor
) -> None:
    with pytest.warns(UserWarning, match=r"column 'city', 40 rows, such as 'Paris'"):
        found = fitted.predict(INPUTS.assign(city="Paris"))
    unknown = BY_HAND.copy()
    unknown[:, 2:] = 0.0
    np.testing.assert_array_equal(found, reference.predict(unknown))


def test_names_that_come_or_go_are_warned_of_once(fitted: TablePipeline) -> None:
    array = INPUTS.to_numpy(dtype=object)
    nameless = make_table_pipeline(small()).fit(array, PRICE)
    for model, table in ((fitted, array), (nameless, INPUTS)):
        with pytest.warns(UserWarning, match="feature names") as caught:
            found = model.predict(table)
        assert len(caught) == 1
        np.testing.assert_array_equal(found, fitted.predict(INPUTS))


# Files


@pytest.mark.parametrize("kind", [*KINDS, "array"])
@pytest.mark.parametrize("y", ["price", ["price", "cost"]], ids=str)
def test_a_saved_pipeline_comes_back_bit_for_bit(kind: str, y: Any, path: Path) -> None:
    table = INPUTS.to_numpy(dtype=object) if kind == "array" else KINDS[kind](FRAME)
    targets = FRAME[y].to_numpy() if kind == "array" else y
    steps = [("first", TablePreparer(max_categories=9)), ("second", small())]
    model = TablePipeline(steps).fit(table, targets)
    model.save(path)
    for loaded in (TablePipeline.load(path), bowtienet.load(path)):
        assert type(loaded) is TablePipeline
        for found, expected in zip(
            loaded.predict(table, return_std=True),
            model.predict(table, return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)
        assert loaded.target_names_ == model.target_names_
        assert loaded.preparer_.columns_ == model.preparer_.columns_
        assert repr(loaded.get_params()) == repr(model.get_params())
        again = path.with_suffix(".again")
        loaded.save(again)
        assert again.read_bytes() == path.read_bytes()
        np.testing.assert_array_equal(
            loaded.fit(table, targets).predict(table), model.predict(table)
        )


def test_a_regressor_is_loaded_as_such(reference: BowTieRegressor, path: Path) -> None:
    reference.save(path)
    loaded = bowtienet.load(path)
    assert type(loaded) is BowTieRegressor
    np.testing.assert_array_equal(loaded.predict(BY_HAND), reference.predict(BY_HAND))
    with pytest.raises(ValueError, match="holds a 'BowTieRegressor', not a 'TablePipeline'"):
        TablePipeline.load(path)


def test_a_pipeline_of_other_steps_cannot_be_saved(path: Path) -> None:
    for steps in ([TablePreparer(), Ridge()], [TablePreparer(), StandardScaler(), small()]):
        model = TablePipeline([(f"s{k}", step) for k, step in enumerate(steps)]).fit(INPUTS, PRICE)
        with pytest.raises(ValueError, match="only a pipeline of a TablePreparer and a BowTieReg"):
            model.save(path)
    assert not path.exists()


def foreign(path: Path) -> None:
    path.write_bytes(b"a,b\n1,2\n" * 100)


def of_another_kind(path: Path) -> None:
    persistence.save(path, "pair", (1, 2))


def without_content(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("write", [foreign, of_another_kind, without_content, Path.mkdir, None])
def test_load_says_the_same_as_persistence(write: Any, path: Path) -> None:
    if write is not None:
        write(path)
    errors = []
    for read in (bowtienet.load, lambda name: persistence.load(name, "BowTieRegressor")):
        with pytest.raises((OSError, ValueError)) as caught:
            read(path)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_a_damaged_pipeline_is_refused(fitted: TablePipeline, path: Path) -> None:
    fitted.save(path)
    data = path.read_bytes()
    for changed in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), data.replace(b"Oslo", b"Osla")):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"truncated|altered"):
            bowtienet.load(path)


Content = dict[str, Any]


def column(**changes: Any) -> Callable[[Content], Any]:
    return lambda content: content["preparation"]["columns"][0].update(changes)


def city(**changes: Any) -> Callable[[Content], Any]:
    return lambda content: content["preparation"]["columns"][1].update(changes)


FORGERIES: dict[str, tuple[Callable[[Content], Any], str]] = {
    "no preparation": (lambda c: c.pop("preparation"), "preparation"),
    "no regressor": (lambda c: c.pop("regressor"), "regressor"),
    "no targets": (lambda c: c.pop("targets"), "targets"),
    "no steps": (lambda c: c.pop("steps"), "steps"),
    "a preparation that is a list": (lambda c: c.update(preparation=[1]), "other parts"),
    "more in a preparation": (lambda c: c["preparation"].update(colour=1), "other parts"),
    "settings of another type": (lambda c: c["preparation"].update(max_categories="9"), "settings"),
    "a bad setting": (lambda c: c["preparation"].update(max_categories=0), "max_categories"),
    "names that are a number": (lambda c: c["preparation"].update(named=1), "settings"),
    "no columns": (lambda c: c["preparation"].update(columns=[]), "no columns"),
    "columns that are a dict": (lambda c: c["preparation"].update(columns={}), "no columns"),
    "one column too few": (lambda c: c["preparation"]["columns"].pop(), "other columns"),
    "a column that is a number": (lambda c: c["preparation"].update(columns=[1]), "other parts"),
    "a column with more": (column(colour="red"), "other parts"),
    "a column of unknown kind": (column(kind="colour"), "'age' of the preparation is not readable"),
    "a name that is a number": (column(name=1), "not readable"),
    "another name": (column(name="years"), "other columns"),
    "the same name twice": (column(name="city"), "same name"),
    "a count that is a text": (column(n_missing="many"), "not readable"),
    "a negative count": (column(n_missing=-1), "not readable"),
    "an indicator of nothing": (column(n_missing=0), "do not belong together"),
    "a median that is a text": (column(typical="3"), "not readable"),
    "a median that is NaN": (column(typical=float("nan")), "not readable"),
    "a day that is none": (column(typical=1e300, kind="date"), "not readable"),
    "no median": (column(typical=None), "do not belong together"),
    "numbers with categories": (column(categories=["a", "b"]), "do not belong together"),
    "no value column": (column(has_value=False), "other columns"),
    "no indicator": (column(has_indicator=False), "other columns"),
    "truth values that are numbers": (column(has_value=1), "not readable"),
    "categories that are a text": (city(categories="abc"), "not readable"),
    "categories that are numbers": (city(categories=[1, 2, 3]), "not readable"),
    "categories out of order": (city(categories=["Oslo", "Bonn", "Rome"]), "belong together"),
    "a category twice": (city(categories=["Bonn", "Oslo", "Oslo"]), "belong together"),
    "a category too few": (city(categories=["Bonn", "Oslo"]), "other columns"),
    "categories with a median": (city(typical=1.0), "belong together"),
    "a regressor without settings": (lambda c: c["regressor"].pop("settings"), "settings"),
    "a regressor without bound": (lambda c: c["regressor"]["fitted"].pop("elbo_"), "elbo_"),
    "another number of targets": (lambda c: c.update(targets=["a", "b"]), "targets"),
    "targets that are numbers": (lambda c: c.update(targets=[1]), "targets"),
    "targets that are a text": (lambda c: c.update(targets="p"), "targets"),
    "one step": (lambda c: c.update(steps=["a"]), "steps"),
    "steps that are numbers": (lambda c: c.update(steps=[1, 2]), "steps"),
    "steps of the same name": (lambda c: c.update(steps=["a", "a"]), "unique"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_file_is_refused(case: str, fitted: TablePipeline, path: Path) -> None:
    """The digest of such a file is right: someone wrote it so."""
    change, words = FORGERIES[case]
    fitted.save(path)
    content = persistence.load(path, "TablePipeline")
    change(content)
    persistence.save(path, "TablePipeline", content)
    with pytest.raises(ValueError, match=f"does not hold a complete TablePipeline .*{words}"):
        bowtienet.load(path)


@pytest.mark.parametrize("content", [None, [1, 2], {}, {"steps": 1}])
def test_content_of_another_form_is_refused(content: Any, path: Path) -> None:
    persistence.save(path, "TablePipeline", content)
    with pytest.raises(ValueError, match="does not hold a complete TablePipeline"):
        TablePipeline.load(path)


def test_a_subclass_is_another_kind(fitted: TablePipeline, path: Path) -> None:
    class Other(TablePipeline):
        pass

    other = Other(fitted.steps)
    other.target_names_ = fitted.target_names_
    other.save(path)
    with pytest.raises(ValueError, match="'Other', not a 'TablePipeline'"):
        TablePipeline.load(path)
    assert type(Other.load(path)) is Other
