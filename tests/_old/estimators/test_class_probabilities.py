"""Probabilities of classes: calibrated, split into their parts, drawn, and explained by columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr

from bowtienet._old import BowTieClassifier
from tests._old.estimators.class_models import (
    WORDS,
    draw_codes,
    features,
    planted,
    rows,
    small,
    stacked,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 300
X, Y = rows(N, 540)
NEW = features(4000, 542)
NEW_CODES = draw_codes(planted(NEW), 543)


@pytest.fixture(scope="module")
def fitted() -> BowTieClassifier:
    return stacked(hidden_layer_sizes=(10,)).fit(X, Y)


@pytest.fixture(scope="module")
def of_two() -> BowTieClassifier:
    return stacked(hidden_layer_sizes=(10,)).fit(X, Y == "ash")


def calibration_error(found: np.ndarray, hits: np.ndarray, n_bins: int = 10) -> tuple[float, float]:
    """Mean |share - probability| over bins of equal size, and the mean of it under calibration."""
    order = np.argsort(found)
    errors, chance = [], []
    for part in np.array_split(order, n_bins):
        p = found[part]
        errors.append(abs(hits[part].mean() - p.mean()))
        # E|N(0, s²)| = s sqrt(2 / pi)
        chance.append(np.sqrt(2.0 / np.pi * np.sum(p * (1.0 - p))) / len(part))
    return float(np.mean(errors)), float(np.mean(chance))


# Calibration


def test_probabilities_are_calibrated(fitted: BowTieClassifier) -> None:
    """0.03: what the slope of 300 rows leaves open; beyond it twice the error by chance."""
    found = fitted.predict_proba(NEW)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    for code in range(3):
        error, chance = calibration_error(found[:, code], code == NEW_CODES)
        assert error < 0.03 + 2.0 * chance


def test_probabilities_of_two_classes_are_calibrated(of_two: BowTieClassifier) -> None:
    error, chance = calibration_error(of_two.predict_proba(NEW)[:, 1], NEW_CODES == 0)
    assert error < 0.03 + 2.0 * chance


def test_the_log_loss_is_near_that_of_the_truth(fitted: BowTieClassifier) -> None:
    """0.12 nats a row for 300 rows of three classes; the standard error of the mean is 0.01."""
    labels, truth = WORDS[NEW_CODES], planted(NEW)
    best = np.log(truth[np.arange(len(NEW)), NEW_CODES]).mean()
    shares = np.bincount(np.searchsorted(WORDS, Y)) / N
    found = fitted.log_score(NEW, labels)
    assert best - 0.12 < found < best + 0.02
    assert found > np.log(shares)[NEW_CODES].mean() + 0.2
    linear = stacked(hidden_layer_sizes=(), features="standard").fit(X, Y)
    assert found > linear.log_score(NEW, labels) + 0.05


def test_labels_that_say_nothing_have_the_probabilities_of_their_shares() -> None:
    rng = np.random.default_rng(544)
    y = rng.choice(WORDS, size=N, p=[0.2, 0.3, 0.5])
    found = stacked().fit(X, y).predict_proba(NEW)
    shares = np.array([np.mean(y == word) for word in WORDS])
    assert np.abs(found.mean(axis=0) - shares).max() < 0.05
    assert np.sqrt(np.mean((found - shares) ** 2)) < 0.12


# Parts of the entropy


@pytest.mark.parametrize("which", ["fitted", "of_two"])
def test_parts_of_the_entropy_add_up(which: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(which)
    found = model.predict_components(NEW)
    assert_array_equal(found.probabilities, model.predict_proba(NEW))
    entropy = entr(found.probabilities).sum(axis=1)
    assert_allclose(found.epistemic + found.aleatoric, entropy, atol=1e-12)
    assert (found.epistemic >= 0.0).all()
    assert (found.aleatoric >= 0.0).all()
    assert found.epistemic.mean() < found.aleatoric.mean()


@pytest.mark.slow
@pytest.mark.parametrize("two", [False, True])
def test_epistemic_entropy_falls_with_more_rows(two: bool) -> None:
    """On average over six tables: of a single one it depends on the recipes that are chosen."""
    found = np.zeros(2)
    for seed in range(550, 556):
        for place, n in enumerate((150, 1500)):
            table, y = rows(n, seed)
            model = stacked(init_penalty="auto", n_estimators=None)
            model.fit(table, y == "ash" if two else y)
            found[place] += model.predict_components(NEW[:1000]).epistemic.mean()
    assert found[1] < 0.75 * found[0]


def test_epistemic_entropy_of_two_classes_falls_with_more_rows() -> None:
    found = []
    for n in (60, 600):
        table, y = rows(n, 545)
        model = stacked().fit(table, y == "ash")
        found.append(model.predict_components(NEW).epistemic.mean())
    assert found[1] < 0.6 * found[0]


@pytest.mark.parametrize("which", ["fitted", "of_two"])
def test_epistemic_entropy_rises_outside(which: str, request: pytest.FixtureRequest) -> None:
    """Rows on the line between the classes, ten times as far out as any of training."""
    model = request.getfixturevalue(which)
    inside = np.column_stack([np.zeros((50, 2)), np.linspace(-2.0, 2.0, 50)])
    outside = inside * [1.0, 1.0, 10.0]
    epistemic = [model.predict_components(table).epistemic.mean() for table in (inside, outside)]
    assert epistemic[1] > 1.5 * epistemic[0]


# Draws


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("which", ["fitted", "of_two"])
def test_draws_have_the_mean_of_the_probabilities(
    which: str, joint: bool, request: pytest.FixtureRequest
) -> None:
    """Draws have no chance of gates in them: 0.03, and five standard errors."""
    model, n = request.getfixturevalue(which), 2000
    draws = model.sample_proba(NEW[:30], n, joint=joint)
    expected = model.predict_proba(NEW[:30])
    assert draws.shape == (*expected.shape, n)
    assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-12)
    error = 0.03 + 5.0 * draws.std(axis=2) / np.sqrt(n)
    assert (np.abs(draws.mean(axis=2) - expected) < error).all()
    again = model.sample_proba(NEW[:30], n, joint=joint)
    assert_array_equal(draws, again)
    assert not np.array_equal(draws, model.sample_proba(NEW[:30], n, 1, joint=joint))


def test_joint_draws_are_functions(fitted: BowTieClassifier) -> None:
    """A row that is there twice has the same draw twice; drawn by itself it has not."""
    twice = np.repeat(NEW[:1], 2, axis=0)
    joint = fitted.sample_proba(twice, 50, joint=True)
    assert_allclose(joint[0], joint[1], rtol=1e-9)
    alone = fitted.sample_proba(twice, 50)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3


# Columns


@pytest.mark.parametrize("which", ["fitted", "of_two"])
def test_planted_columns_are_found(which: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(which)
    y = Y if which == "fitted" else Y == "ash"
    found = model.structure(X, y)
    assert_array_equal(found.selected, [True, True, False])
    assert np.argmin(model.feature_importances_) == 2
    assert_allclose(model.feature_importances_.sum(), 1.0)
    relevance = model.feature_relevance_
    n_outputs = 3 if which == "fitted" else 1
    assert np.reshape(relevance.strength, (3, -1)).shape == (3, n_outputs)
    assert_array_equal(relevance.p_value, found.p_values)


def test_a_column_that_matters_for_a_class_in_the_middle_is_found() -> None:
    """Numbers of the classes are as large on average whatever the column says."""
    rng = np.random.default_rng(546)
    table = rng.normal(size=(400, 2))
    middle = np.abs(table[:, 0]) > 0.7
    y = np.where(middle, 1, 2 * rng.integers(0, 2, size=400))
    model = small(max_iter=1).fit(table, y)
    found = model.structure(table, y)
    assert found.selected[0]
    assert found.variance_share[0] > 0.5


def test_names_of_classes_do_not_matter_for_the_structure() -> None:
    other = np.array(["c", "a", "b"])[np.searchsorted(WORDS, Y)]
    first, second = (small(max_iter=1).fit(X, y).structure(X, y) for y in (Y, other))
    assert_array_equal(first.p_values, second.p_values)


def test_importance_says_what_its_numbers_are(fitted: BowTieClassifier) -> None:
    labels = WORDS[NEW_CODES]
    found = fitted.importance(NEW[:1000], labels[:1000])
    p = fitted.predict_proba(NEW[:1000])
    brier = np.mean(np.sum((p - np.eye(3)[NEW_CODES[:1000]]) ** 2, axis=1))
    assert_allclose(found.log_density, fitted.log_score(NEW[:1000], labels[:1000]))
    assert_allclose(found.rmse, np.sqrt(brier))
    assert found.log_density_drop.shape == (3,)
    assert np.argmin(found.log_density_drop) == 2
    assert (found.log_density_drop[:2] > 4.0 * found.log_density_error[:2]).all()
    shown = repr(found)
    for words in ("log probability", "drop in log probability", "rise in root Brier score"):
        assert words in shown
    assert "RMSE" not in shown


@pytest.mark.parametrize("which", ["fitted", "of_two"])
@pytest.mark.parametrize("n_columns", [3, 12])
def test_contributions_add_up_to_the_probability_of_every_class(which: str, n_columns: int) -> None:
    table = features(N, 547, n_columns)
    table[:, :3] = X
    y = Y if which == "fitted" else Y == "ash"
    model = stacked().fit(table, y)
    found, expected = model.explain(table[:4]), model.predict_proba(table[:4])
    assert found.mean_contributions.shape == (4, n_columns, expected.shape[1])
    total = found.base_mean + found.mean_contributions.sum(axis=1)
    assert_allclose(total, expected, atol=1e-10)
    assert_allclose(found.mean_contributions.sum(axis=2), 0.0, atol=1e-10)
    assert_allclose(found.base_mean.sum(), 1.0)
    assert (found.mean_errors is None) == (n_columns == 3)
    shown = repr(found)
    for label in model.classes_.tolist():
        assert f"P(y = {label})" in shown


def test_explanations_by_names_and_groups() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(tree=Y)
    model = stacked().fit(frame, "tree")
    found = model.explain(frame[:2], groups={"both": ["a", "b"]})
    assert found.name.tolist() == ["both", "c"]
    assert found.target_names == ("P(tree = ash)", "P(tree = elm)", "P(tree = oak)")
