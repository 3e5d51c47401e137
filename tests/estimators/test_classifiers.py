"""Both classifiers: probabilities near the truth, and labels of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from scipy.stats import entropy
from sklearn.metrics import log_loss

from bowtienet import BowTieClassifier, BowTieNetworkClassifier
from bowtienet.estimators.network import _mean_logistic_softmax, _mean_sigmoid

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = np.array(["a", "b", "c", "d", "e"])


def planted(n_classes: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, probabilities and numbers of classes, around a circle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    angles = 2.0 * np.pi * np.arange(n_classes) / n_classes
    truth = softmax(3.0 * X @ np.array([np.cos(angles), np.sin(angles)]), axis=1)
    return X, truth, (rng.uniform(size=(n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)


def quick(cls: Any = BowTieClassifier, **changes: Any) -> Any:
    settings: dict[str, Any] = {"hidden_layer_sizes": (8,), "effort": "fast"}
    if cls is BowTieNetworkClassifier:
        settings = {"hidden_layer_sizes": (5,), "n_members": 2, "init": "laplace", "max_iter": 10}
    return cls(**{**settings, "random_state": 0, **changes})


BOTH = pytest.mark.parametrize("cls", [BowTieClassifier, BowTieNetworkClassifier])


@pytest.fixture(scope="module", params=[("ensemble", 2), ("ensemble", 5), ("bow", 2), ("bow", 3)])
def fitted(request: pytest.FixtureRequest) -> tuple[int, Any]:
    """Of networks the defaults, but for size."""
    name, n_classes = request.param
    X, _, y = planted(n_classes, 150 if name == "bow" else 120, 0)
    network = BowTieNetworkClassifier((6,), n_members=2, random_state=0)
    return n_classes, (network if name == "bow" else quick()).fit(X, NAMES[y])


def test_probabilities_are_near_the_truth(fitted: tuple[int, Any]) -> None:
    """150 rows leave about (parameters that matter) / 2n = 0.02 to the log loss of a network."""
    n_classes, model = fitted
    X, truth, y = planted(n_classes, 2000, 1)
    found = model.predict_proba(X)
    assert found.shape == truth.shape
    assert np.all((found > 0.0) & (found < 1.0))
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    is_network = isinstance(model, BowTieNetworkClassifier)
    assert log_loss(y, found) < log_loss(y, truth) + (0.06 if is_network else 0.05 * n_classes)
    assert not is_network or np.sqrt(np.mean((found - truth) ** 2)) < 0.12
    for c in range(n_classes):  # calibrated: rows of like answers have that share of the class
        order = np.array_split(np.argsort(found[:, c]), 5)
        assert_allclose(
            [found[b, c].mean() for b in order], [truth[b, c].mean() for b in order], atol=0.15
        )


def test_answers_agree(fitted: tuple[int, Any]) -> None:
    n_classes, model = fitted
    X, _, y = planted(n_classes, 300, 2)
    found = model.predict_proba(X)
    assert_array_equal(model.classes_, NAMES[:n_classes])
    assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(X)), found)
    assert model.score(X, NAMES[y]) == np.mean(model.predict(X) == NAMES[y]) > 0.6
    text = model.summary()
    assert type(model).__name__ in text
    assert "temperature" in text
    parts = model.predict_components(X)
    assert_array_equal(parts.mean, found)
    assert parts.epistemic.min() >= 0.0
    assert_allclose(parts.epistemic + parts.noise, entropy(found, axis=1), atol=1e-9)


@BOTH
@pytest.mark.parametrize(
    "labels",
    [["b", "a"], [7, -3], [True, False], [2.0, 1.0], ["z", "y", "x"], [10, 30, 20], [None, None]],
    ids=str,
)
def test_labels_of_every_kind(cls: Any, labels: list[Any]) -> None:
    X, _, y = planted(2, 60, 3)
    y = np.array(labels)[np.arange(60) % len(labels)]
    if labels[0] is None:
        with pytest.raises(ValueError, match="no row has a target"):
            quick(cls).fit(X, y)
        return
    model = quick(cls).fit(X, y)
    assert_array_equal(model.classes_, np.sort(labels))
    assert model.predict(X).dtype == y.dtype
    assert model.predict_proba(X).shape == (60, len(labels))


@BOTH
def test_targets_that_are_no_classes(cls: Any) -> None:
    X, _, y = planted(2, 60, 8)
    with pytest.raises(ValueError, match="one class, 1"):
        quick(cls).fit(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="one class, 0"):
        quick(cls).fit(X, y, y == 0)  # rows of weight zero have no say
    with pytest.raises(ValueError, match="continuous"):
        quick(cls).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one label"):
        quick(cls).fit(X, np.column_stack([y, y]))


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


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_probabilities_are_means_over_the_weights() -> None:
    """Against 2,000 drawn networks of two members; far away they are unsure."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2))
    y = rng.uniform(size=40) < expit(2.0 * X[:, 0] - X[:, 1])
    model = quick(BowTieNetworkClassifier, max_iter=40).fit(X, y)
    far = 4.0 * X
    draws = model._draw_outputs(far, 2000, np.random.default_rng(0))[..., 0]
    found = model.predict_proba(far)[:, 1]
    assert_allclose(found, expit(draws).mean(axis=0), atol=0.04)
    assert np.abs(found - expit(draws.mean(axis=0))).max() > 0.1


def test_batches_approach_a_fit() -> None:
    X, truth, y = planted(3, 200, 6)
    model = quick(BowTieNetworkClassifier, init="relu_network")
    for part in np.split(np.arange(200), 4):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    settings = {"init": "relu_network", "solver": "svi", "max_iter": 5, "batch_size": 50}
    whole = quick(BowTieNetworkClassifier, **settings).fit(X, y)
    losses = [log_loss(y, fit.predict_proba(X)) for fit in (model, whole)]
    assert losses[0] < losses[1] + 0.1
    assert losses[0] < log_loss(y, truth) + 0.1


def test_batches_of_classes_that_are_not_there() -> None:
    X, _, y = planted(2, 60, 7)
    model = quick(BowTieNetworkClassifier)
    with pytest.raises(ValueError, match="one class, 1"):
        model.partial_fit(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="class 5"):
        model.partial_fit(X, y + 5, classes=[0, 1])
    model.partial_fit(X, 0 * y, classes=[0, 1])  # a batch may lack a class that was named
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="class 2"):
        model.partial_fit(X, y + 1)
    assert_array_equal(model.predict_proba(X), before)


def test_means_over_the_weights_against_draws(rng: np.random.Generator) -> None:
    """100,000 draws are good to 0.002; the softmax is to first order in its sum."""
    mean, variance = rng.normal(0.0, 2.0, size=(4, 3)), rng.uniform(0.0, 3.0, size=(4, 3))
    draws = expit(mean + np.sqrt(variance) * rng.normal(size=(100_000, 4, 3)))
    assert_allclose(_mean_sigmoid(mean, variance), draws.mean(axis=0), atol=0.006)
    exact = (draws / draws.sum(axis=-1, keepdims=True)).mean(axis=0)
    assert_allclose(_mean_logistic_softmax(mean, variance), exact, atol=0.08)
    sure = _mean_logistic_softmax(mean, 0.0 * variance)
    assert_allclose(sure, expit(mean) / expit(mean).sum(axis=-1, keepdims=True), rtol=1e-12)
