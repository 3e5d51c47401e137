"""Standardised rows: scales, quantiles, levels that do not leak, words that help, notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV

from bowtienet.tables.door import open_features, open_rows
from bowtienet.tables.levels import learn_means, statistic_folds
from bowtienet.tables.notes import describe_columns
from bowtienet.tables.quantiles import weighted_quantiles
from bowtienet.tables.representation import (
    FARTHEST,
    Representation,
    fit_scaling,
    learn_representation,
    standardize,
    to_scale,
)


def fitted(
    X: Any, y: Any, weights: Any = None, **options: Any
) -> tuple[Representation, np.ndarray]:
    return learn_representation(open_rows(BaseEstimator(), X, y, weights, **options), 30)


def learnt(X: Any, weights: Any = None) -> Representation:
    return fitted(X, np.zeros(len(X)), weights)[0]


def new(representation: Representation, X: Any) -> np.ndarray:
    return standardize(representation, open_features(BaseEstimator(), X, reset=True))


def test_mean_and_variance_of_training(rng: np.random.Generator) -> None:
    X = rng.gamma(1.0, [2.0, 30.0], size=(50, 2)) + np.array([0.0, 1e4])
    weights = rng.uniform(0.2, 3.0, size=50)
    values = new(learnt(X, weights), X)
    np.testing.assert_allclose(np.average(values, axis=0, weights=weights), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.average(values**2, axis=0, weights=weights), 1.0, rtol=1e-10)
    fresh = X[:5] + rng.uniform(size=(5, 2))
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    expected = (fresh - mean) / deviation
    np.testing.assert_allclose(new(learnt(X, weights), fresh), expected, rtol=1e-9)


def test_a_row_of_weight_two_is_two_rows(rng: np.random.Generator) -> None:
    counts = 1 + np.arange(30) % 3
    X = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(list("xyz"), size=30)})
    X.loc[::7, "a"] = np.nan
    weighted, repeated = learnt(X, counts.astype(float)), learnt(X.loc[X.index.repeat(counts)])
    assert str(weighted.columns) == str(repeated.columns)
    for a, b in zip(weighted.scaling, repeated.scaling, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-3, 1e150, 1e300, 1.7e308 / 10.0])
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    X = rng.uniform(-3.0, 3.0, size=(20, 2)) + np.array([0.0, 7.0])
    scaled = new(learnt(unit * X), unit * X)
    plain = new(learnt(X), X)
    np.testing.assert_allclose(scaled, plain, rtol=1e-11)


def test_far_values_are_held() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match="far outside.*'x0'"):
        values = new(learnt(X), np.array([[1e300], [-1e9], [3.0]]))
    assert values[:2, 0].tolist() == [FARTHEST, -FARTHEST]
    assert values[2, 0] == pytest.approx(2.0 / np.sqrt(2.0 / 3.0))


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e200, -51_224.35352388])
def test_a_constant_column_is_zero_exactly_whatever_the_weights(value: float) -> None:
    values = np.full((20, 1), value)
    scaling = fit_scaling(values, np.linspace(1e-4, 1e-3, 20))
    assert scaling[1][0] == (abs(value) or 1.0)
    np.testing.assert_array_equal(to_scale(scaling, values), 0.0)


# Quantiles of weighted values


LEVELS = np.arange(17.0) / 16.0  # exact, so that NumPy does not miss the borders of rows


def by_numpy(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The middle of the two values that part the rows exactly, or that at the step."""
    return np.quantile(values, levels, method="averaged_inverted_cdf")


def test_quantiles_of_weighted_values(rng: np.random.Generator) -> None:
    """A weight of two is two rows, in any order, with ties; of weight one as NumPy has it."""
    for n in (1, 2, 3, 12, 101):
        values, counts = rng.integers(0, 8, size=n).astype(float), rng.integers(1, 5, size=n)
        repeated = rng.permutation(np.repeat(values, counts))
        quantiles = weighted_quantiles(values, counts.astype(float), LEVELS)
        np.testing.assert_array_equal(quantiles, by_numpy(repeated, LEVELS))
        values = rng.normal(size=n)
        quantiles = weighted_quantiles(values, np.ones(n), LEVELS)
        np.testing.assert_allclose(quantiles, by_numpy(values, LEVELS), rtol=1e-15)


@pytest.mark.parametrize("unit", [1e-300, 1.0 / 3.0, 0.1, 1e300])
def test_units_of_weights_do_not_matter(unit: float) -> None:
    """Also where a level falls on the border of two rows: sums of tenths are rounded."""
    values, counts = np.arange(10.0), np.array([1.0, 2, 1, 3, 1, 2, 2, 1, 4, 3])
    levels = np.arange(21.0) / 20.0
    expected = weighted_quantiles(values, counts, levels)
    np.testing.assert_array_equal(weighted_quantiles(values, unit * counts, levels), expected)


def test_quantiles_of_large_values_do_not_overflow() -> None:
    values, weights = np.array([-1.7e308, 1.6e308, 1.7e308]), np.array([1.0, 1.0, 2.0])
    quantiles = weighted_quantiles(values, weights, np.array([0.25, 0.5]))
    assert np.isfinite(quantiles).all()
    np.testing.assert_allclose(quantiles[1], 1.65e308, rtol=1e-15)


# What needs the target


def test_means_are_those_of_loops(rng: np.random.Generator) -> None:
    n, n_levels = 400, 20
    index = rng.integers(-1, n_levels, n)
    effects = rng.normal(size=n_levels + 1)
    targets = np.column_stack([effects[index] + rng.normal(size=n), 3.0 * effects[index]])
    weights, folds = rng.integers(1, 4, n).astype(float), rng.integers(0, 10, n)
    means, held_out = learn_means(index, targets, weights, folds)
    center = np.average(targets, axis=0, weights=weights)
    known = index >= 0
    y, level, w = (targets - center)[known], index[known], weights[known]
    size = np.array([w[level == each].sum() for each in range(n_levels)])
    mean = np.array([np.average(y[level == e], axis=0, weights=w[level == e]) for e in range(20)])
    within = np.array(w @ (y - mean[level]) ** 2) / (w.sum() - n_levels)
    explained = size @ (mean - np.average(y, axis=0, weights=w)) ** 2
    between = (explained - (n_levels - 1) * within) / (w.sum() - np.sum(size**2) / w.sum())
    for i in range(0, n, 7):
        others = (folds != folds[i]) & (index == index[i])
        expected = np.zeros(2)
        if index[i] >= 0:
            sums = weights[others] @ (targets - center)[others]
            expected = sums / (weights[others].sum() + within / between)
        np.testing.assert_allclose(held_out[i], center + expected, rtol=1e-9, atol=1e-9)
    full = center + size[:, None] * mean / (size[:, None] + within / between)
    np.testing.assert_allclose(means, np.vstack([full, center]), rtol=1e-9, atol=1e-9)


def test_folds_do_not_depend_on_the_order_of_rows(rng: np.random.Generator) -> None:
    X, y, order = rng.integers(0, 30, (300, 2)), rng.normal(size=(300, 1)), rng.permutation(300)
    folds = statistic_folds(X.astype(float), y)
    np.testing.assert_array_equal(statistic_folds(X[order].astype(float), y[order]), folds[order])
    assert np.ptp(np.bincount(folds)) <= 1


@pytest.mark.filterwarnings("ignore:levels that training did not have")
@pytest.mark.parametrize("n_other", [0, 2])
def test_a_noise_target_does_not_leak(n_other: int, rng: np.random.Generator) -> None:
    """Fitted to 500 levels that say nothing, a model is as good on new rows as without them.

    The bound is four standard errors of what two useless columns cost, 2 / n each.
    """
    n, excess = 3_000, []
    for _ in range(10):
        X = pd.DataFrame(rng.normal(size=(2 * n, n_other))).add_prefix("x")
        X["level"] = [f"level {i}" for i in rng.integers(0, 500, 2 * n)]
        y = rng.normal(size=2 * n)
        representation, inputs = fitted(X[:n], y[:n])
        model = RidgeCV().fit(inputs, y[:n])
        score = np.mean((y[n:] - model.predict(new(representation, X[n:]))) ** 2)
        excess.append(score / np.mean((y[n:] - y[:n].mean()) ** 2) - 1.0)
    assert np.mean(excess) < 0.005


def test_levels_that_matter_are_worth_their_means(rng: np.random.Generator) -> None:
    levels = rng.integers(0, 200, 4_000)
    effects = rng.normal(size=200)
    X = pd.DataFrame({"zip": [f"{i:05d}" for i in levels]})
    y = effects[levels] + rng.normal(size=4_000)
    representation, inputs = fitted(X[:3_000], y[:3_000])
    assert representation.names == ["zip mean"]
    model = RidgeCV().fit(inputs, y[:3_000])
    error = y[3_000:] - model.predict(new(representation, X[3_000:]))
    # The variance of the noise, and that of a mean of fifteen rows.
    assert np.mean(error**2) < 1.25
    with pytest.warns(UserWarning, match="levels that training did not have.*'zip'"):
        unknown = new(representation, pd.DataFrame({"zip": ["99999", None]}))
    assert model.predict(unknown) == pytest.approx(y[:3_000].mean(), abs=0.1)


def test_classes_have_a_share_each(rng: np.random.Generator) -> None:
    levels = rng.integers(0, 60, 3_000)
    y = np.where(rng.uniform(size=3_000) < 0.8, np.array(list("abc"))[levels % 3], "a")
    representation, _ = fitted(
        "street " + pd.DataFrame({"shop": levels}).astype(str), y, labels=True
    )
    assert representation.names[-2:] == ["shop mean 0", "shop mean 1"]
    [column] = representation.columns
    assert column.means is not None
    [shares] = column.means[:-1][column.levels == "street 31"]
    assert shares == pytest.approx([0.8, 0.0], abs=0.2)


def test_words_that_help_and_texts_that_do_not(rng: np.random.Generator) -> None:
    words = np.array(["garden", "noisy", "old", "view", "quiet", "cellar", "lift"])
    used = rng.integers(0, 2, (600, 7)).astype(bool)
    X = pd.DataFrame(
        {
            "text": [f"{' '.join(words[row])}, flat {i}" for i, row in enumerate(used)],
            "id": [f"flat{i}" for i in range(600)],
        }
    )
    y = 2.0 * used[:, 0] - 2.0 * used[:, 1] + rng.normal(size=600)
    representation, _ = fitted(X, y)
    assert set(representation.names) == {"text has garden", "text has noisy"}
    assert any("'id': left out" in note for note in representation.notes)
    nothing, _ = fitted(X.assign(number=y), rng.normal(size=600))
    assert nothing.names == ["number"]
    assert any("'text': left out" in note for note in nothing.notes)


# Notes


N = 200


def notes(X: pd.DataFrame, y: Any, **options: Any) -> tuple[str, ...]:
    return fitted(X, y, **options)[0].notes


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
    assert 'noise="student_t" unless they are counts' in outliers
    (same,) = notes(X.iloc[:, :1].assign(a=1.0).iloc[:, -1:], y)
    assert "kept, for no column is usable" in same
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
