"""Many levels and free text: statistics against loops, and targets that do not leak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV

from bowtienet.tables.door import open_features, open_rows
from bowtienet.tables.levels import learn_means, statistic_folds
from bowtienet.tables.representation import Representation, learn_representation, standardize


def learnt(X: pd.DataFrame, y: Any, labels: bool = False) -> tuple[Representation, np.ndarray]:
    return learn_representation(open_rows(BaseEstimator(), X, y, labels=labels), 30)


def new(representation: Representation, X: pd.DataFrame) -> np.ndarray:
    return standardize(representation, open_features(BaseEstimator(), X, reset=True))


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
        representation, inputs = learnt(X[:n], y[:n])
        model = RidgeCV().fit(inputs, y[:n])
        score = np.mean((y[n:] - model.predict(new(representation, X[n:]))) ** 2)
        excess.append(score / np.mean((y[n:] - y[:n].mean()) ** 2) - 1.0)
    assert np.mean(excess) < 0.005


def test_levels_that_matter_are_worth_their_means(rng: np.random.Generator) -> None:
    levels = rng.integers(0, 200, 4_000)
    effects = rng.normal(size=200)
    X = pd.DataFrame({"zip": [f"{i:05d}" for i in levels]})
    y = effects[levels] + rng.normal(size=4_000)
    representation, inputs = learnt(X[:3_000], y[:3_000])
    assert representation.names == ["zip mean"]
    model = RidgeCV().fit(inputs, y[:3_000])
    error = y[3_000:] - model.predict(new(representation, X[3_000:]))
    # The variance of the noise, and that of a mean of fifteen rows.
    assert np.mean(error**2) < 1.25
    with pytest.warns(UserWarning, match="levels that training did not have.*'zip'.*99999"):
        unknown = new(representation, pd.DataFrame({"zip": ["99999", None]}))
    assert model.predict(unknown) == pytest.approx(y[:3_000].mean(), abs=0.1)


def test_classes_have_a_share_each(rng: np.random.Generator) -> None:
    levels = rng.integers(0, 60, 3_000)
    y = np.where(rng.uniform(size=3_000) < 0.8, np.array(list("abc"))[levels % 3], "a")
    representation, _ = learnt("street " + pd.DataFrame({"shop": levels}).astype(str), y, True)
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
    representation, _ = learnt(X, y)
    assert set(representation.names) == {"text has garden", "text has noisy"}
    assert any("'id': left out" in note for note in representation.notes)
    nothing, _ = learnt(X.assign(number=y), rng.normal(size=600))
    assert nothing.names == ["number"]
    assert any("'text': left out" in note for note in nothing.notes)
