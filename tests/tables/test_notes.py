"""Notes: each says what it must, with its remedy, and a clean table has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from bowtienet.tables.door import open_rows
from bowtienet.tables.notes import describe_columns
from bowtienet.tables.representation import learn_representation

N = 200


def notes(X: pd.DataFrame, y: Any, **options: Any) -> tuple[str, ...]:
    return learn_representation(open_rows(BaseEstimator(), X, y, **options), 30)[0].notes


@pytest.fixture
def clean(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    return X, (X["a"] + rng.normal(size=N)).to_numpy()


def test_a_clean_table_has_no_notes(clean: tuple[pd.DataFrame, np.ndarray]) -> None:
    assert notes(*clean) == ()


MANY = {f"c{i}": 1.0 for i in range(50)}
CODED = ["1", "2", "3", "k.A."] * (N // 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: X.assign(vat=1.19 * y), "'vat' nearly gives the target.*leave it out"),
        (lambda X, y: X.assign(cm=100.0 * X["a"]), "columns 'a', 'cm' are equal"),
        (lambda X, y: X.assign(c=1.0), "column 'c': left out, with a single value"),
        (lambda X, y: X.assign(c=CODED), "'k.A.' count as missing.*'c'"),
        (lambda X, y: X.assign(c=["1,234", "2,345"] * 100), "column 'c'.*decimal=','"),
        (lambda X, y: X.assign(c=["1/2/2024", "3/4/2024"] * 100), "column 'c'.*day_first=True"),
        (lambda X, y: X.assign(**MANY), "'c4' and 45 more: left out"),
    ],
)
def test_notes_of_columns(change: Any, words: str, clean: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = clean
    said = notes(change(X, y), y)
    assert len(said) == 1
    assert pd.Series(said).str.contains(words).all()


def test_notes_of_targets_and_rows(clean: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = clean
    (outliers,) = notes(X, pd.Series(np.where(np.arange(N) < 2, 1e6, y), name="price"))
    assert "'price' has 2 outliers" in outliers
    assert 'noise="student_t"' in outliers
    (few,) = notes(X[:20], y[:20])
    assert few.startswith("20 rows")


def test_rows_in_the_order_of_time(
    clean: tuple[pd.DataFrame, np.ndarray], rng: np.random.Generator
) -> None:
    X, y = clean
    X = X.assign(day=pd.date_range("2024-01-01", periods=N))
    assert notes(X, y) == ()
    walk = y + np.cumsum(rng.normal(size=N))
    (note,) = notes(X, walk)
    assert "'day'" in note
    assert "--test-last" in note
    mixed = rng.permutation(N)
    assert notes(X.iloc[mixed], walk[mixed]) == ()


def test_columns_for_people() -> None:
    X = pd.DataFrame(
        {
            "rent": ["573,77 EUR", "k.A.", "612,10 EUR", "600 EUR"] * 20,
            "city": ["Rome", None, "Oslo", "Bern"] * 20,
            "same": 1,
        }
    )
    training = open_rows(BaseEstimator(), X, np.arange(80.0))
    columns = learn_representation(training, 30)[0].columns
    rent, city, same = describe_columns(columns, training.table)
    assert (rent[0].name, rent[0].kind) == ("rent", "number")
    examples = ["573,77 EUR", "612,10 EUR", "600 EUR"]
    assert rent[1:] == ("a number, and whether it is missing", 20, examples)
    assert (city[0].kind, *city[1:3]) == ("category", "3 levels", 20)
    assert same[1] == "left out"
    assert "single value" in same[0].note
