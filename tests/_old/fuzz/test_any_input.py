"""What Hypothesis can shrink: any rows to predict, any damage to a file, any text as a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions, load, read_table
from tests._old.fuzz.attempts import Refusal, attempt, must, require
from tests._old.fuzz.properties import check_predictions, predictions

pytestmark = pytest.mark.slow

in_turn = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.one_of(st.none(), finite, st.text(max_size=3), st.booleans())
finite_single = st.floats(allow_nan=False, allow_infinity=False, width=32)


def _fitted(kind: str) -> Any:
    rng = np.random.default_rng(500)
    X = rng.normal(size=(60, 2))
    signal = np.tanh(2.0 * X[:, 0]) + 0.2 * rng.normal(size=60)
    small: dict[str, Any] = {"hidden_layer_sizes": (4,), "effort": "fast", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if kind == "classes":
            return BowTieClassifier(**small).fit(X, signal > 0.0)
        if kind == "counts":
            return BowTieRegressor(**small, outcome="counts").fit(X, rng.poisson(np.exp(signal)))
        if kind == "variational":
            options = FitOptions(propagation="variational", weighting="equal")
            return BowTieRegressor(**small, max_iter=3, options=options).fit(X, signal)
        outcome = "student_t" if kind == "student_t" else "gaussian"
        transform = "yeo-johnson" if kind == "warped" else "auto"
        return BowTieRegressor(**small, outcome=outcome, target_transform=transform).fit(X, signal)


@pytest.fixture(
    scope="module", params=["gaussian", "student_t", "warped", "variational", "classes", "counts"]
)
def model(request: pytest.FixtureRequest) -> Any:
    return _fitted(request.param)


def _assert_sound(model: Any, rows: np.ndarray) -> None:
    found = attempt("predict", lambda: predictions(model, rows))
    if not isinstance(found, Refusal):
        check_predictions(model, found, len(rows))


@in_turn
@given(rows=st.lists(st.tuples(finite, finite), min_size=1, max_size=3))
@example(rows=[(1e155, 0.0)])
@example(rows=[(-1e308, 1e308)])
def test_finite_rows_have_finite_predictions(model: Any, rows: list[tuple[float, float]]) -> None:
    _assert_sound(model, np.array(rows))


@in_turn
@given(rows=st.lists(st.tuples(finite_single, finite_single), min_size=1, max_size=3))
@example(rows=[(1e20, 0.0)])
def test_in_single_precision_too(model: Any, rows: list[tuple[float, float]]) -> None:
    _assert_sound(model, np.array(rows, dtype=np.float32))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = tmp_path_factory.mktemp("fuzz") / "model.btn"
    _fitted("gaussian").save(place)
    return place.read_bytes()


@in_turn
@given(
    flips=st.lists(
        st.tuples(st.floats(0.0, 1.0, exclude_max=True), st.integers(1, 255)), max_size=4
    ),
    end=st.floats(0.0, 1.0),
    more=st.binary(max_size=9),
)
def test_a_damaged_file_is_never_read(
    saved: bytes, tmp_path: Path, flips: list[tuple[float, int]], end: float, more: bytes
) -> None:
    damaged = bytearray(saved)
    for share, bits in flips:
        damaged[int(share * len(saved))] ^= bits
    data = bytes(damaged[: round(end * len(saved))]) + more
    place = tmp_path / "model.btn"
    place.write_bytes(data)
    found = attempt("load", lambda: load(place))
    assert isinstance(found, Refusal) == (data != saved)


@in_turn
@given(text=st.text(alphabet=st.sampled_from("ab1.,;\"'\n\r\t -=éN\x00"), max_size=60))
def test_any_text_is_a_table_or_refused(tmp_path: Path, text: str) -> None:
    place = tmp_path / "data.csv"
    place.write_bytes(text.encode())
    found = attempt("read_table", lambda: read_table(place))
    if not isinstance(found, Refusal):
        require(found.num_rows > 0 and found.num_columns > 0, "a table without cells")
        require(len(set(found.column_names)) == found.num_columns, "names are not unique")


@in_turn
@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_table_or_refused(tmp_path: Path, data: bytes) -> None:
    place = tmp_path / "data.csv"
    place.write_bytes(data)
    attempt("read_table", lambda: read_table(place))


@in_turn
@given(columns=st.lists(st.lists(cells, min_size=12, max_size=12), min_size=1, max_size=2))
def test_any_cells_are_fitted_or_refused(columns: list[list[Any]]) -> None:
    import pandas as pd

    X = pd.DataFrame({f"x{i}": pd.Series(c, dtype=object) for i, c in enumerate(columns)})
    y = np.linspace(-1.0, 1.0, 12) ** 3
    options = FitOptions(init_penalty=1.0)
    model = BowTieRegressor(
        (2,), effort="fast", features="standard", noise="constant", target_transform="none",
        random_state=0, options=options,
    )  # fmt: skip
    if not isinstance(attempt("fit", lambda: model.fit(X, y)), Refusal):
        found = must("predict", lambda: predictions(model, X))
        check_predictions(model, found, 12)
