"""Explanations add up to predictions, and are what linear models say they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor, load
from bowtienet._old.ensemble import shapley
from bowtienet._old.estimators.explanation import Explanation
from tests._old.estimators.models import rows, small, stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows(120)
BOTH = np.column_stack([Y, X[:, 2] - Y])


def assert_adds_up(found: Explanation, model: BowTieRegressor, table: Any) -> None:
    mean, std = model.predict(table, return_std=True)
    assert_allclose(found.base_mean + found.mean_contributions.sum(axis=1), mean, rtol=1e-7)
    assert_allclose(found.base_std + found.std_contributions.sum(axis=1), std, rtol=1e-7)


CASES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "bins and levels": ({"weighting": "stacking", "init_penalty": 1.0}, Y),
    "two targets": ({}, BOTH),
    "warped": ({"target_transform": "yeo-johnson"}, np.exp(0.5 * Y)),
    "principal": ({"features": "principal"}, Y),
    "variational": ({"propagation": "variational"}, Y),
    "deep": ({"hidden_layer_sizes": (4, 3)}, Y),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("exact", [8, 2], ids=["exact", "sampled"])
def test_contributions_add_up_to_the_prediction(
    case: str, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapley, "MOST_EXACT", exact)
    changes, targets = CASES[case]
    model = small(**changes).fit(X, targets)
    found = model.explain(X[:4], background=X[50:60], n_permutations=2)
    assert found.mean_contributions.shape == (4, 3, *targets.shape[1:])
    assert (found.mean_errors is None) == (found.std_errors is None) == (exact == 8)
    assert_adds_up(found, model, X[:4])


def test_a_linear_models_contributions_are_its_slopes() -> None:
    """β_j (x_j - mean b_j), and a background is where they are zero."""
    model = small(hidden_layer_sizes=(), features="standard", target_transform="none").fit(X, Y)
    found = model.explain(X[:5], background=X[60:90])
    slopes = model.predict(np.eye(3)) - model.predict(np.zeros((1, 3)))
    expected = slopes * (X[:5] - X[60:90].mean(axis=0))
    assert_allclose(found.mean_contributions, expected, rtol=1e-7, atol=1e-9)
    assert_allclose(found.base_mean, model.predict(X[60:90]).mean())


def test_by_default_rows_of_the_fit_are_the_background(tmp_path: Path) -> None:
    model = stacked().fit(X, Y)
    kept = model.ensemble_.background
    assert kept is not None
    found = model.explain(X[:2])
    assert_allclose(found.base_mean, model.predict(kept.features[:100]).mean())
    again = model.explain(X[:2], background=kept.features[:100])
    assert_allclose(found.mean_contributions, again.mean_contributions)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="background=X"):
        load(tmp_path / "model").explain(X)


def test_columns_of_a_table_are_explained_whole() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        city=np.array(["Oslo", "Rome", "Lima"])[np.arange(120) % 3], same=1.0
    )
    table.loc[::9, "a"] = np.nan
    y = Y + 5.0 * (table["city"] == "Oslo")
    model = stacked(hidden_layer_sizes=(8,)).fit(table, y)
    found = model.explain(table[:6])
    assert found.name.tolist() == ["a", "b", "c", "city", "same"]
    assert_adds_up(found, model, table[:6])
    assert_array_equal(found.mean_contributions[:, 4], np.zeros(6))
    oslo = (table["city"][:6] == "Oslo").to_numpy()
    lowest = found.mean_contributions[oslo, 3].min()
    assert lowest > found.mean_contributions[~oslo, 3].max()
    grouped = model.explain(table[:6], groups={"rest": ["a", "b", "c"]})
    assert grouped.name.tolist() == ["rest", "city", "same"]
    assert_adds_up(grouped, model, table[:6])


def test_what_raises_the_noise_is_said_to() -> None:
    """Noise grows with the second column: it takes part in deviations and not in means."""
    rng = np.random.default_rng(501)
    A = rng.uniform(-2.0, 2.0, size=(400, 2))
    y = 2.0 * A[:, 0] + np.exp(A[:, 1]) * rng.normal(size=400)
    model = stacked(hidden_layer_sizes=(8,), noise="auto").fit(A, y)
    found = model.explain([[0.0, 2.0], [0.0, -2.0]])
    assert found.std_contributions[0, 1] > 0.3 * found.base_std
    assert found.std_contributions[1, 1] < -0.3 * found.base_std
    assert np.all(np.abs(found.std_contributions[:, 0]) < 0.2 * found.base_std)


def test_the_table_is_of_one_row_or_of_sizes() -> None:
    model = small().fit(X, BOTH)
    one = repr(model.explain(X[:1], background=X[:5])).splitlines()
    assert one[0].startswith("y0, 1 prediction: base mean ")
    assert one[1].split() == ["column", "mean", "std"]
    several = repr(model.explain(X[:2], background=X[:5])).splitlines()
    assert several[5].startswith("y1, 2 predictions: ")
    assert "size" in several[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_permutations": 1}, "n_permutations must be at least 2"),
        ({"groups": {"a": ["b"]}}, "no column 'b'"),
        ({"background": X[:, :2]}, "features"),
    ],
)
def test_wrong_questions_are_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small().fit(X, Y).explain(X[:2], **given)
