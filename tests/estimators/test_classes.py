"""`BowTieClassifier`: probabilities near the truth, and labels of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.metrics import log_loss

from bowtienet.estimators.classifier import BowTieClassifier

NAMES = {2: ["no", "yes"], 5: ["a", "b", "c", "d", "e"]}


def planted(n_classes: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, probabilities and numbers of classes, around a circle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    angles = 2.0 * np.pi * np.arange(n_classes) / n_classes
    truth = softmax(3.0 * X @ np.array([np.cos(angles), np.sin(angles)]), axis=1)
    return X, truth, (rng.uniform(size=(n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)


def quick(**changes: Any) -> BowTieClassifier:
    return BowTieClassifier(
        **{"hidden_layer_sizes": (8,), "effort": "fast", "random_state": 0, **changes}
    )


@pytest.fixture(scope="module", params=[2, 5])
def fitted(request: pytest.FixtureRequest) -> tuple[int, BowTieClassifier]:
    X, _, y = planted(request.param, 120, 0)
    return request.param, quick().fit(X, np.array(NAMES[request.param])[y])


def test_probabilities_are_near_the_truth(fitted: tuple[int, BowTieClassifier]) -> None:
    """120 rows, few of which are unsure."""
    n_classes, model = fitted
    X, truth, y = planted(n_classes, 2000, 1)
    found = model.predict_proba(X)
    assert found.shape == truth.shape
    assert np.all((found > 0.0) & (found < 1.0))
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(y, found) < log_loss(y, truth) + 0.05 * n_classes
    for c in range(n_classes):  # calibrated: rows of like answers have that share of the class
        order = np.array_split(np.argsort(found[:, c]), 5)
        assert_allclose(
            [found[b, c].mean() for b in order], [truth[b, c].mean() for b in order], atol=0.15
        )


def test_answers_agree(fitted: tuple[int, BowTieClassifier]) -> None:
    n_classes, model = fitted
    X, _, y = planted(n_classes, 300, 2)
    found = model.predict_proba(X)
    assert list(model.classes_) == NAMES[n_classes]
    assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(X)), found)
    assert model.score(X, np.array(NAMES[n_classes])[y]) > 0.6
    parts = model.predict_components(X)
    assert_array_equal(parts.mean, found)
    assert parts.epistemic.min() >= 0.0
    assert_allclose(parts.epistemic + parts.noise, entropy(found, axis=1), atol=1e-9)
    text = model.summary()
    assert "BowTieClassifier" in text
    assert "temperature" in text


@pytest.mark.parametrize(
    "labels",
    [["b", "a"], [7, -3], [True, False], [2.0, 1.0], ["z", "y", "x"], [None, None]],
    ids=str,
)
def test_labels_of_every_kind(labels: list[Any]) -> None:
    X, _, y = planted(2, 60, 3)
    y = np.array(labels)[np.arange(60) % len(labels)]
    if labels[0] is None:
        with pytest.raises(ValueError, match="no row has a target"):
            quick().fit(X, y)
        return
    model = quick().fit(X, y)
    assert_array_equal(model.classes_, np.sort(labels))
    assert model.predict(X).dtype == y.dtype
    assert model.predict_proba(X).shape == (60, len(labels))


def test_class_weights_are_row_weights() -> None:
    X, _, y = planted(2, 100, 6)
    given = quick(class_weight={0: 1.0, 1: 3.0}).fit(X, y).predict_proba(X)
    assert_array_equal(given, quick().fit(X, y, 1.0 + 2.0 * y).predict_proba(X))
    assert given[:, 1].mean() > quick().fit(X, y).predict_proba(X)[:, 1].mean() + 0.05
    uneven = y * (np.arange(100) % 3 == 0)
    share = quick(class_weight="balanced").fit(X, uneven).predict_proba(X)[:, 1].mean()
    assert 0.35 < share < 0.65
    with pytest.raises(ValueError, match="class_weight"):
        quick(class_weight={0: 0.0, 1: 1.0}).fit(X, y)


def test_a_class_with_one_row_and_classes_that_are_all_sure() -> None:
    X, _, y = planted(2, 60, 7)
    y[5] = 2
    found = quick().fit(X, y).predict_proba(X)
    assert found.shape == (60, 3)
    assert np.all(np.isfinite(np.log(found)))
    assert found[:, 2].max() < 0.5
    # Separable classes: probabilities stay inside 0 and 1, and nothing overflows.
    found = quick(effort="balanced").fit(X, X[:, 0] > 0.0).predict_proba(X)
    assert np.all(np.isfinite(found))
    assert log_loss(X[:, 0] > 0.0, found) < 0.1


def test_targets_that_are_no_classes() -> None:
    X, _, y = planted(2, 60, 8)
    with pytest.raises(ValueError, match="one class, 1"):
        quick().fit(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="one class, 0"):
        quick().fit(X, y, y == 0)  # rows of weight zero have no say
    with pytest.raises(ValueError, match="continuous"):
        quick().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one label"):
        quick().fit(X, np.column_stack([y, y]))
