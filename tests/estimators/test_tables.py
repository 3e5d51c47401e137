"""Tables at the door: the same numbers in every form give the same fit, and what is wrong with a
table, a weight or a setting is said in one sentence that leaves the estimator as it was."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bowtienet import BowTieRegressor

NAMES = ["age", "height", "weight"]
N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
COUNTS = np.column_stack([np.arange(N) % 7, np.arange(N) % 2, np.arange(N) % 3 - 1])
FRAME = pd.DataFrame(X, columns=NAMES)
POLARS = pl.DataFrame(X, schema=NAMES)
ARROW = pa.table({name: X[:, i] for i, name in enumerate(NAMES)})
WORDS = ["red", "blue"] * (N // 2)
DATES = pd.date_range("2020-01-01", periods=N)


def small(**changes: Any) -> BowTieRegressor:
    """A regressor that is fitted in a tenth of a second and calls itself converged."""
    settings: dict[str, Any] = {"n_estimators": 1, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (5,), "max_iter": 10, "tol": 1.0}
    return BowTieRegressor(**(settings | changes))


def frozen(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def altered(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    values = values.copy()
    values[place] = value
    return values


@pytest.fixture(scope="module")
def reference() -> BowTieRegressor:
    return small().fit(X, Y)


# The same numbers


TABLES = {
    "list": X.tolist(),
    "tuples": tuple(map(tuple, X)),
    "rows": list(X),
    "Fortran order": np.asfortranarray(X),
    "strides": np.repeat(X, 2, axis=1)[:, ::2],
    "read only": frozen(X),
    "objects": X.astype(object),
    "big endian": X.astype(">f8"),
    "pandas": FRAME,
    "pandas Float64": FRAME.astype("Float64"),
    "pandas pyarrow": FRAME.astype("float64[pyarrow]"),
    "pandas objects": FRAME.astype(object),
    "pandas sparse": FRAME.astype(pd.SparseDtype(float, 0.0)),
    "pandas without names": pd.DataFrame(X),
    "polars": POLARS,
    "polars in chunks": pl.concat([POLARS[:10], POLARS[10:]], rechunk=False),
    "pyarrow": ARROW,
    "pyarrow in chunks": pa.concat_tables([ARROW[:10], ARROW[10:]]),
}
NAMED = {name for name in TABLES if name.startswith(("pandas", "polars", "pyarrow"))} - {
    "pandas without names"
}


@pytest.mark.parametrize("form", TABLES)
def test_the_form_of_a_table_changes_no_bit(form: str, reference: BowTieRegressor) -> None:
    model = small().fit(TABLES[form], Y)
    for found, expected in zip(
        model.predict(TABLES[form], return_std=True),
        reference.predict(X, return_std=True),
        strict=True,
    ):
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    assert model.n_features_in_ == 3
    names = getattr(model, "feature_names_in_", None)
    assert (None if names is None else names.tolist()) == (NAMES if form in NAMED else None)


def test_names_are_those_of_the_table_whoever_made_it() -> None:
    model = small().fit(FRAME, Y)
    expected = model.predict(FRAME)
    for table in (POLARS, ARROW):
        np.testing.assert_array_equal(model.predict(table), expected)


def test_a_record_batch_is_a_table_too(reference: BowTieRegressor) -> None:
    batch = ARROW.to_batches()[0]
    model = small().fit(batch, Y)
    np.testing.assert_array_equal(model.predict(batch), reference.predict(X))
    assert model.feature_names_in_.tolist() == NAMES


TARGETS = {
    "list": Y.tolist(),
    "read only": frozen(Y),
    "objects": Y.astype(object),
    "pandas": pd.Series(Y),
    "pandas Float64": pd.Series(Y, dtype="Float64"),
    "pandas with another index": pd.Series(Y, index=np.arange(N)[::-1]),
    "polars": pl.Series(Y),
    "pyarrow array": pa.array(Y),
    "pyarrow chunks": pa.chunked_array([Y[:10], Y[10:]]),
}


@pytest.mark.parametrize("table", [X, FRAME], ids=["numpy", "pandas"])
@pytest.mark.parametrize("form", TARGETS)
def test_the_form_of_targets_changes_no_bit(
    form: str, table: Any, reference: BowTieRegressor
) -> None:
    found = small().fit(table, TARGETS[form]).predict(table)
    np.testing.assert_array_equal(found, reference.predict(X))


@pytest.mark.parametrize(
    "targets",
    [
        np.column_stack([Y, -Y]),
        pd.DataFrame({"price": Y, "tax": -Y}),
        pl.DataFrame({"price": Y, "tax": -Y}),
        pa.table({"price": Y, "tax": -Y}),
    ],
    ids=["numpy", "pandas", "polars", "pyarrow"],
)
def test_tables_of_targets(targets: Any) -> None:
    expected = small().fit(X, [[y, -y] for y in Y.tolist()]).predict(X)
    np.testing.assert_array_equal(small().fit(X, targets).predict(X), expected)


def counts() -> dict[str, Any]:
    frame = pd.DataFrame(COUNTS, columns=NAMES)
    mixed = frame.assign(height=frame["height"].astype(bool))
    return {
        "int64": COUNTS,
        "int8": COUNTS.astype(np.int8),
        "objects": COUNTS.astype(object),
        "pandas": frame,
        "pandas Int64": frame.astype("Int64"),
        "pandas with a bool": mixed,
        "pandas with a boolean": frame.assign(height=frame["height"].astype("boolean")),
        "polars with a Boolean": pl.DataFrame(mixed),
        "pyarrow with a bool": pa.Table.from_pandas(mixed),
    }


@pytest.mark.parametrize("form", counts())
def test_whole_numbers_and_booleans_are_numbers(form: str) -> None:
    table, target = counts()[form], COUNTS @ [0.3, 1.0, -0.5] + 0.1 * Y
    expected = small().fit(COUNTS.astype(float), target).predict(COUNTS.astype(float))
    np.testing.assert_array_equal(small().fit(table, target).predict(table), expected)


def test_a_table_of_booleans_alone() -> None:
    flags = COUNTS > 0
    expected = small().fit(flags.astype(float), Y).predict(flags.astype(float))
    for table in (flags, flags.tolist(), pd.DataFrame(flags), pl.DataFrame(flags)):
        np.testing.assert_array_equal(small().fit(table, Y).predict(table), expected)


WEIGHTS = {
    "list": (np.arange(N) % 3).tolist(),
    "read only": frozen(np.arange(N) % 3.0),
    "pandas": pd.Series(np.arange(N) % 3.0),
    "polars": pl.Series(np.arange(N) % 3.0),
    "pyarrow array": pa.array(np.arange(N) % 3.0),
    "pyarrow chunks": pa.chunked_array([np.arange(10) % 3.0, np.arange(10, N) % 3.0]),
}


@pytest.mark.parametrize("form", WEIGHTS)
def test_the_form_of_weights_changes_no_bit(form: str) -> None:
    expected = small().fit(X, Y, sample_weight=np.arange(N) % 3.0).predict(X)
    found = small().fit(X, Y, sample_weight=WEIGHTS[form]).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_rows_in_single_precision_predict_alike_in_double() -> None:
    """A random start: a fitted one multiplies rounding. 40 rows of 6e-8 leave 1e-4 to spare."""
    single = small(init="laplace").fit(X.astype(np.float32), Y)
    found = single.predict(X.astype(np.float32))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, small(init="laplace").fit(X, Y).predict(X), atol=1e-4)


def test_targets_keep_their_digits_beside_rows_in_single_precision() -> None:
    """A spread of 1 around 1.7e9 is lost in single precision, whose steps there are 128."""
    single, double = (small(init="laplace").fit(x, 1.7e9 + Y) for x in (X.astype(np.float32), X))
    found = single.predict(X.astype(np.float32)) - 1.7e9
    np.testing.assert_allclose(found, double.predict(X) - 1.7e9, atol=1e-4)
    assert found.std() > 0.1


def test_large_integers_in_single_precision_are_not_a_constant() -> None:
    column = 1e6 + np.arange(40.0) % 10
    table = np.column_stack([column, X[:, 1]]).astype(np.float32)
    model = small(init="laplace", max_iter=40).fit(table, column)
    assert model.score(table, column) > 0.9


# torch


@pytest.fixture
def every_warning_of_torch() -> Iterator[Any]:
    """torch, which otherwise says most of its warnings only once."""
    torch = pytest.importorskip("torch")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield torch
    torch.set_warn_always(before)


def test_torch_in_torch_out() -> None:
    """Sums of torch round in their own way; from a random start that stays rounding."""
    torch = pytest.importorskip("torch")
    table, target = torch.tensor(X), torch.tensor(Y)
    model = small(init="laplace").fit(table, target)
    expected = small(init="laplace").fit(X, Y).predict(X, return_std=True)
    for found, numbers in zip(model.predict(table, return_std=True), expected, strict=True):
        assert isinstance(found, torch.Tensor)
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), numbers, rtol=1e-8, atol=1e-9)
    for part in model.predict_components(table):
        assert isinstance(part, torch.Tensor)
    assert isinstance(model.predict(X), np.ndarray)
    assert not hasattr(model, "feature_names_in_")


def test_torch_in_single_precision() -> None:
    torch = pytest.importorskip("torch")
    table = torch.tensor(X, dtype=torch.float32)
    model = small(init="laplace").fit(table, torch.tensor(Y, dtype=torch.float32))
    found = model.predict(table)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), small(init="laplace").fit(X, Y).predict(X), atol=1e-4)


@pytest.mark.parametrize("kind", ["int64", "bool"])
def test_torch_tensors_of_other_types(kind: str) -> None:
    torch = pytest.importorskip("torch")
    numbers = (COUNTS > 0) if kind == "bool" else COUNTS
    table = torch.tensor(numbers)
    model = small(init="laplace").fit(table, torch.tensor(Y))
    expected = small(init="laplace").fit(numbers, Y).predict(numbers)
    assert model.predict(table).dtype == torch.float64
    np.testing.assert_allclose(model.predict(table).numpy(), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", TARGETS)
def test_torch_inputs_with_other_targets(form: str, every_warning_of_torch: Any) -> None:
    table = every_warning_of_torch.tensor(X)
    found = small(init="laplace").fit(table, TARGETS[form]).predict(table)
    expected = small(init="laplace").fit(X, Y).predict(X)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", WEIGHTS)
def test_torch_inputs_with_other_weights(form: str, every_warning_of_torch: Any) -> None:
    torch = every_warning_of_torch
    table, target = torch.tensor(X), torch.tensor(Y)
    found = small(init="laplace").fit(table, target, sample_weight=WEIGHTS[form]).predict(table)
    expected = small(init="laplace").fit(X, Y, sample_weight=WEIGHTS["list"]).predict(X)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-9)


def test_torch_targets_with_numpy_inputs() -> None:
    torch = pytest.importorskip("torch")
    found = small(init="laplace").fit(X, torch.tensor(Y)).predict(X)
    assert isinstance(found, np.ndarray)
    expected = small(init="laplace").fit(X, Y).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


# What is refused


def check_refused(words: str, reference: BowTieRegressor, *arguments: Any, **changes: Any) -> str:
    """One ValueError or TypeError with these words, of a fresh estimator and of a fitted one."""
    fresh = small(**changes)
    before = dict(vars(fresh))
    with pytest.raises((ValueError, TypeError)) as caught:
        fresh.fit(*arguments)
    assert vars(fresh) == before
    fitted = copy.deepcopy(reference).set_params(**changes)
    expected = reference.predict(X[:5], return_std=True)
    with pytest.raises(type(caught.value)):
        fitted.fit(*arguments)
    for found, value in zip(fitted.predict(X[:5], return_std=True), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    assert set(vars(fitted)) == set(vars(reference))
    # An error of narwhals, polars, pandas or pyarrow is not for those who called us.
    home = type(caught.value).__module__.split(".")[0]
    assert home in ("builtins", "sklearn"), type(caught.value)
    message = str(caught.value)
    assert re.search(words, message, re.DOTALL), message
    return message


MISSING = altered(X, (3, 1), np.nan)
INFINITE = altered(X, (3, 1), np.inf)
OBJECTS = X.astype(object)
HIDDEN = np.ma.masked_array(X, mask=altered(np.zeros(X.shape, dtype=bool), (3, 1), True))
HEIGHT = [None, *X[1:, 1].tolist()]
IMPUTE = "SimpleImputer"
ENCODE = "OneHotEncoder"


def with_height(values: Any) -> pd.DataFrame:
    return FRAME.assign(height=values)


def polars_height(values: Any, dtype: Any = None) -> pl.DataFrame:
    return POLARS.with_columns(height=pl.Series(values, dtype=dtype))


def arrow_height(values: Any) -> pa.Table:
    return ARROW.set_column(1, "height", values)


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "NaN": (MISSING, rf"X contains NaN.*column 1 \(1 NaN\).*{IMPUTE}"),
    "infinity": (INFINITE, r"X contains.*infinity in column 1 \(1 infinite\).*finite numbers"),
    "minus infinity": (-INFINITE, r"column 1 \(1 infinite\).*finite numbers"),
    "NaN in a list": (MISSING.tolist(), rf"column 1 \(1 NaN\).*{IMPUTE}"),
    "NaN in pandas": (with_height(MISSING[:, 1]), rf"column 'height' \(1 NaN\).*{IMPUTE}"),
    "NA in pandas Int64": (
        with_height(pd.array([None] + [1] * (N - 1), dtype="Int64")),
        rf"column 'height' \(1 NaN\).*{IMPUTE}",
    ),
    "NA in pandas boolean": (
        with_height(pd.array([None] + [True] * (N - 1), dtype="boolean")),
        rf"column 'height' \(1 NaN\).*{IMPUTE}",
    ),
    "None in pandas objects": (
        with_height(pd.Series(HEIGHT, dtype=object)),
        rf"column 'height' \(1 NaN\).*{IMPUTE}",
    ),
    "NaN in pandas without names": (pd.DataFrame(MISSING), rf"column '?1'? \(1 NaN\).*{IMPUTE}"),
    "NaN in polars": (polars_height(MISSING[:, 1]), rf"'height' \(1 NaN\).*{IMPUTE}"),
    "null in polars": (polars_height(HEIGHT), rf"'height' \(1 NaN\).*{IMPUTE}"),
    "infinity in polars": (polars_height(INFINITE[:, 1]), r"'height' \(1 infinite\).*finite"),
    "only nulls in polars": (polars_height([None] * N), rf"'height' \({N} NaN\).*{IMPUTE}"),
    "null in pyarrow": (arrow_height(pa.array(HEIGHT)), rf"'height' \(1 NaN\).*{IMPUTE}"),
    "None among objects": (altered(OBJECTS, (3, 1), None), rf"column 1 \(1 NaN\).*{IMPUTE}"),
    "masked values": (HIDDEN, r"mask|column 1 \(1 NaN\)"),
    "text among objects": (altered(OBJECTS, (3, 1), "red"), rf"X.*'red' in column 1.*{ENCODE}"),
    "text": (np.array([["1", "red", "2"]] * N), rf"float: 'red' in column 1.*{ENCODE}"),
    "text in lists": ([[1.0, "red", 2.0]] * N, rf"'red' in column 1.*{ENCODE}"),
    "a dict among objects": (altered(OBJECTS, (3, 1), {}), "number.*column 1|column 1.*number"),
    "a date among objects": (
        altered(OBJECTS, (3, 1), DATES[0]),
        "number.*column 1|column 1.*number",
    ),
    "complex among objects": (
        altered(OBJECTS, (3, 1), 1j),
        "number.*column 1|column 1.*number",
    ),
    "a number too large": (altered(OBJECTS, (3, 1), 10**400), "column 1"),
    "text in pandas": (with_height(WORDS), rf"X must hold numbers.*'height' \(.*{ENCODE}"),
    "text in pandas objects": (
        with_height(pd.Series(WORDS, dtype=object)),
        rf"X must hold numbers.*'height' \(.*{ENCODE}",
    ),
    "categories in pandas": (
        with_height(pd.Categorical(WORDS)),
        rf"'height' \(Categorical\).*{ENCODE}",
    ),
    "numbers as categories in pandas": (
        with_height(pd.Categorical([1, 2] * (N // 2))),
        rf"'height' \(Categorical\).*{ENCODE}",
    ),
    "dates in pandas": (with_height(DATES), r"'height' \(Datetime"),
    "durations in pandas": (with_height(DATES - DATES[0]), r"'height' \(Duration"),
    "complex in pandas": (with_height(X[:, 1] + 1j), r"'height'"),
    "text in polars": (polars_height(WORDS), rf"X must hold numbers.*'height' \(String.*{ENCODE}"),
    "categories in polars": (
        polars_height(WORDS, pl.Categorical),
        rf"'height' \(Categorical.*{ENCODE}",
    ),
    "dates in polars": (polars_height(list(DATES)), r"'height' \(Datetime"),
    "lists in polars": (polars_height([[1.0]] * N), r"'height' \(List"),
    "text in pyarrow": (arrow_height(pa.array(WORDS)), rf"'height' \(String.*{ENCODE}"),
    "dates in pyarrow": (arrow_height(pa.array(list(DATES))), r"'height' \(Datetime"),
    "a lazy polars frame": (POLARS.lazy(), r"lazy.*collect\(\)"),
    "dates": (np.full((N, 3), np.datetime64("2020")), r"\bX\b.*datetime"),
    "durations": (np.full((N, 3), np.timedelta64(3, "D")), r"\bX\b.*timedelta"),
    "complex": (X + 1j, "Complex data not supported.*real"),
    "one row": (X[:1], r"X has 1 sample\(s\).*at least 2.*more rows"),
    "no rows": (X[:0], r"X has 0 sample\(s\).*more rows"),
    "no rows in pandas": (FRAME[:0], r"X has 0 sample\(s\).*more rows"),
    "no rows in polars": (POLARS[:0], r"X has 0 sample\(s\).*more rows"),
    "no columns": (X[:, :0], r"X has 0 feature\(s\).*minimum of 1 is required"),
    "no columns in pandas": (FRAME[[]], r"X has 0 feature\(s\).*minimum of 1 is required"),
    "one axis": (X[:, 0], r"Reshape your data"),
    "one axis in a list": (Y.tolist(), r"Reshape your data"),
    "a pandas series": (FRAME["age"], r"\(40,\).*(Reshape|to_frame)"),
    "a polars series": (POLARS["age"], r"\(40,\).*(Reshape|to_frame)"),
    "a pyarrow column": (ARROW["age"], r"\(40,\).*(Reshape|to_frame)"),
    "three axes": (X[:, :, None], r"X must be a table of shape \(rows, columns\)"),
    "nothing": (None, r"\bX\b.*None"),
    "a sparse matrix": (sparse.csr_matrix(X), r"Sparse data.*X.*toarray\(\)"),
    "a sparse array": (sparse.csr_array(X), r"Sparse data.*X.*toarray\(\)"),
    "rows of unequal lengths": ([[1.0, 2.0]] * (N - 1) + [[1.0]], "inhomogeneous|rectangular"),
    "equal names in pandas": (
        pd.DataFrame(X, columns=["a", "a", "b"]),
        "'a'.*(rename|unique)|(rename|unique).*'a'",
    ),
    "names of several types": (pd.DataFrame(X, columns=["a", 1, "b"]), "names.*strings"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_and_nothing_changes(case: str, reference: BowTieRegressor) -> None:
    table, words = BAD_TABLES[case]
    check_refused(words, reference, table, Y)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (lambda x: x * np.nan, rf"column 0 \(40 NaN\).*{IMPUTE}"),
        (lambda x: x / 0.0, "column 0 .*infinite.*finite numbers"),
        (lambda x: x[:, 0], r"X must be a table.*\(40,\).*Reshape"),
        (lambda x: x[:, :, None], r"X must be a table.*\(40, 3, 1\)"),
        (lambda x: x[:1], r"1 sample\(s\).*more rows"),
        (lambda x: x[:0], r"0 sample\(s\).*more rows"),
        (lambda x: x[:, :0], r"0 feature\(s\)"),
        (lambda x: x + 1j, "Complex data not supported.*X.*real"),
    ],
    ids=[
        "NaN",
        "infinity",
        "one axis",
        "three axes",
        "one row",
        "no rows",
        "no columns",
        "complex",
    ],
)
def test_a_bad_tensor_is_refused(table: Any, words: str, reference: BowTieRegressor) -> None:
    torch = pytest.importorskip("torch")
    check_refused(words, reference, table(torch.tensor(X)), Y)


BAD_TARGETS: dict[str, tuple[Any, str]] = {
    "None": (None, r"y is None.*fit\(X, y\)"),
    "NaN": (altered(Y, 3, np.nan), r"y contains NaN.*target 0 \(1 NaN\).*leave those rows out"),
    "infinity": (altered(Y, 3, np.inf), r"y contains.*target 0 \(1 infinite\).*leave those rows"),
    "NaN in the second": (np.column_stack([Y, altered(Y, 3, np.nan)]), r"target 1 \(1 NaN\)"),
    "NaN in pandas": (pd.Series(altered(Y, 3, np.nan)), r"target 0 \(1 NaN\).*leave those"),
    "NaN in a frame": (pd.DataFrame({"price": altered(Y, 3, np.nan)}), r"'price' \(1 NaN\)"),
    "null in polars": (pl.Series([None, *Y[1:].tolist()]), r"target 0 \(1 NaN\).*leave those"),
    "null in pyarrow": (pa.array([None, *Y[1:].tolist()]), r"target 0 \(1 NaN\).*leave those"),
    "None in a list": ([None, *Y[1:].tolist()], r"target 0 \(1 NaN\).*leave those"),
    "another length": (Y[:-1], "X has 40 rows and y has 39.*one target for each row"),
    "another length in polars": (pl.Series(Y[:-1]), "X has 40 rows and y has 39.*one target"),
    "three axes": (Y[:, None, None], r"y must have shape \(rows,\) or \(rows, outputs\)"),
    "one number": (1.0, r"y must have shape \(rows,\) or \(rows, outputs\)"),
    "no columns": (np.empty((N, 0)), "y has no columns.*each row of X"),
    "text": (np.array(WORDS), r"y must hold numbers.*float: 'red' in target 0"),
    "text in a list": (WORDS, r"y must hold numbers.*'red' in target 0"),
    "text in pandas": (pd.Series(WORDS, name="price"), r"y must hold numbers.*'price' \("),
    "text in polars": (pl.Series("price", WORDS), r"y must hold numbers.*'price' \(String"),
    "text in pyarrow": (pa.array(WORDS), r"y must hold numbers.*target 0"),
    "nameless text in pandas": (pd.Series(WORDS), r"y must hold numbers.*target 0"),
    "nameless text in polars": (pl.Series(WORDS), r"y must hold numbers.*target 0"),
    "dates": (np.full(N, np.datetime64("2020")), r"\by\b.*datetime"),
    "dates in pandas": (pd.Series(DATES, name="price"), r"y must hold numbers.*'price' \(Datetime"),
    "complex": (Y + 1j, "Complex data not supported.*real"),
    "complex in pandas": (pd.Series(Y + 1j, name="price"), "y.*'price'"),
    "a sparse column": (sparse.csr_matrix(Y[:, None]), r"Sparse data.*y.*toarray\(\)"),
    "a lazy polars frame": (pl.LazyFrame({"price": Y}), r"lazy.*collect\(\)"),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_targets_are_refused_and_nothing_changes(case: str, reference: BowTieRegressor) -> None:
    target, words = BAD_TARGETS[case]
    message = check_refused(words, reference, X, target)
    # A transformer of columns in a pipeline does nothing for the targets.
    assert ENCODE not in message


BAD_WEIGHTS: dict[str, tuple[Any, str]] = {
    "negative": (altered(np.ones(N), 3, -1.0), "sample_weight.*negative.*0 to leave a row out"),
    "NaN": (altered(np.ones(N), 3, np.nan), r"sample_weight.*NaN.*index \(3,\).*drop"),
    "infinite": (altered(np.ones(N), 3, np.inf), r"sample_weight.*infinite.*index \(3,\).*drop"),
    "NA in pandas": (
        pd.Series([None] + [1] * (N - 1), dtype="Int64"),
        r"sample_weight.*NaN.*index \(0,\)",
    ),
    "too short": (np.ones(N - 1), "sample_weight.*39.*40.*equal"),
    "all zero": (np.zeros(N), "sample_weight.*all zero.*positive"),
    "two axes": (np.ones((N, 1)), r"sample_weight must have shape \(rows,\), got \(40, 1\)"),
    "one number": (2.0, r"sample_weight must have shape \(rows,\)"),
    "text": (["1"] * N, "sample_weight.*real numbers.*convert"),
    "complex": (np.ones(N) + 0j, "sample_weight.*real numbers.*convert"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_refused_and_nothing_changes(case: str, reference: BowTieRegressor) -> None:
    weights, words = BAD_WEIGHTS[case]
    check_refused(words, reference, X, Y, weights)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("gate_temperature", 0, r"range \(0.0, inf\).*'auto'.*Got 0"),
        ("gate_temperature", float("nan"), r"range \(0.0, inf\).*Got nan"),
        ("gate_temperature", "warm", "'auto'.*Got 'warm'"),
        ("n_estimators", 0, r"range \[1, inf\).*Got 0"),
        ("n_estimators", 1.5, "int.*Got 1.5"),
        ("combine", "x", "'stacking'.*Got 'x'"),
        ("hidden_layer_sizes", (0,), "whole number of at least 1.*got 0"),
        ("hidden_layer_sizes", (5, -1), "whole number of at least 1.*got -1"),
        ("hidden_layer_sizes", (5.5,), "whole number of at least 1.*got 5.5"),
        ("hidden_layer_sizes", "50", "array-like or an int.*Got '50'"),
        ("hidden_layer_sizes", None, "array-like or an int.*Got None"),
        ("hidden_layer_sizes", ((5,),), "whole number of at least 1"),
        ("prior", "x", "'student_t'.*Got 'x'"),
        ("elbo_tempering", -1.0, r"range \[0.0, inf\).*Got -1.0"),
        ("init", "x", "'relu_network'.*Got 'x'"),
        ("init_penalty", -1.0, r"range \[0.0, inf\).*'auto'.*Got -1.0"),
        ("predictive", "x", "'push_forward'.*Got 'x'"),
        ("max_iter", 0, r"range \[1, inf\).*Got 0"),
        ("tol", -1.0, r"range \[0.0, inf\).*Got -1.0"),
        ("warm_start", "x", "bool.*Got 'x'"),
        ("n_jobs", 0, "no meaning|Got 0"),
        ("n_jobs", 1.5, "int.*Got 1.5"),
        ("random_state", "x", "RandomState.*Got 'x'"),
        ("verbose", -1, r"range \[0, inf\).*Got -1"),
    ],
)
def test_a_bad_setting_is_named(
    name: str, value: Any, words: str, reference: BowTieRegressor
) -> None:
    message = check_refused(words, reference, X, Y, **{name: value})
    assert name in message


# At prediction


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (FRAME[NAMES[::-1]], "same order as they were in fit"),
        (POLARS[NAMES[::-1]], "same order as they were in fit"),
        (ARROW.select(NAMES[::-1]), "same order as they were in fit"),
        (FRAME.rename(columns={"age": "Age"}), "unseen at fit time:\n- Age.*missing:\n- age"),
        (POLARS.rename({"age": "Age"}), "unseen at fit time:\n- Age.*missing:\n- age"),
        (ARROW.rename_columns(["Age", *NAMES[1:]]), "unseen.*\n- Age.*missing:\n- age"),
        (FRAME[NAMES[:2]], "now missing:\n- weight"),
        (POLARS[NAMES[:2]], "now missing:\n- weight"),
        (ARROW.select(NAMES[:2]), "now missing:\n- weight"),
        (FRAME.assign(shoe=1.0), "unseen at fit time:\n- shoe"),
        (POLARS.with_columns(shoe=1.0), "unseen at fit time:\n- shoe"),
    ],
)
def test_other_columns_than_in_training_are_named(table: Any, words: str) -> None:
    model = small(init="laplace").fit(FRAME, Y)
    with pytest.raises(ValueError, match=re.compile(words, re.DOTALL)):
        model.predict(table)


BAD_QUESTIONS: dict[str, tuple[Any, str]] = {
    "too few columns": (X[:, :2], "X has 2 features.*expecting 3 features"),
    "too many columns": (np.tile(X, 2), "X has 6 features.*expecting 3 features"),
    "too few columns in a list": (X[:, :2].tolist(), "X has 2 features.*expecting 3 features"),
    "NaN": (MISSING, rf"column 1 \(1 NaN\).*{IMPUTE}"),
    "text": ([[1.0, "red", 2.0]], rf"'red' in column 1.*{ENCODE}"),
    "no rows": (X[:0], r"X has 0 sample\(s\).*more rows"),
    "one axis": (X[0], "Reshape your data"),
    "a pandas row": (pd.Series(X[0]), r"\(3,\).*(Reshape|to_frame)"),
    "three axes": (X[:, :, None], r"X must be a table of shape \(rows, columns\)"),
    "sparse": (sparse.csr_matrix(X), r"toarray\(\)"),
    "nothing": (None, r"\bX\b.*None"),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_a_bad_question_is_refused(case: str, reference: BowTieRegressor) -> None:
    table, words = BAD_QUESTIONS[case]
    for ask in (reference.predict, reference.predict_interval, reference.sample_y):
        with pytest.raises((ValueError, TypeError), match=re.compile(words, re.DOTALL)):
            ask(table)


def test_one_row_can_be_predicted(reference: BowTieRegressor) -> None:
    assert reference.predict(X[:1]).shape == (1,)
    np.testing.assert_allclose(reference.predict(X[:1]), reference.predict(X)[:1], rtol=1e-12)


def test_scores_refuse_other_targets(reference: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="X has 40 rows and y has 39"):
        reference.log_score(X, Y[:-1])
    with pytest.raises(ValueError, match=r"y has shape \(40, 2\).*\(40,\)"):
        reference.log_score(X, np.column_stack([Y, Y]))


def test_names_are_looked_at_before_the_fit_begins(capsys: pytest.CaptureFixture[str]) -> None:
    """Not after hours: a fit that has begun would show its line."""
    with pytest.raises(TypeError, match="names"):
        small(verbose=1).fit(BAD_TABLES["names of several types"][0], Y)
    assert capsys.readouterr().out == ""
