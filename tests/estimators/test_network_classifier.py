"""`BowTieNetworkClassifier`: probabilities near the truth, and labels of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.metrics import log_loss

from bowtienet import BowTieNetworkClassifier
from bowtienet.estimators.network import _mean_logistic_softmax, _mean_sigmoid

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = {2: ["no", "yes"], 3: ["low", "mid", "top"]}


def planted(n_classes: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, probabilities and numbers of classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if n_classes == 2:
        yes = expit(2.0 * X[:, 0] - X[:, 1])
        truth = np.column_stack([1.0 - yes, yes])
    else:
        truth = softmax(np.column_stack([2.0 * X[:, 0], 0.0 * X[:, 0], -2.0 * X[:, 1]]), axis=1)
    return X, truth, (rng.uniform(size=(n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)


def quick(**changes: Any) -> BowTieNetworkClassifier:
    settings = {"hidden_layer_sizes": (5,), "n_members": 2, "init": "laplace", "max_iter": 10}
    return BowTieNetworkClassifier(**{**settings, "random_state": 0, **changes})


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request: pytest.FixtureRequest) -> tuple[int, BowTieNetworkClassifier]:
    """The defaults, but for size."""
    X, _, y = planted(request.param, 150, 0)
    model = BowTieNetworkClassifier((6,), n_members=2, random_state=0)
    return request.param, model.fit(X, np.array(NAMES[request.param])[y])


def test_probabilities_are_near_the_truth(fitted: tuple[int, BowTieNetworkClassifier]) -> None:
    """150 rows leave about (parameters that matter) / 2n = 0.02 to the log loss."""
    n_classes, model = fitted
    X, truth, y = planted(n_classes, 2000, 1)
    found = model.predict_proba(X)
    assert found.shape == truth.shape
    assert np.all((found > 0.0) & (found < 1.0))
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(y, found) < log_loss(y, truth) + 0.06
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.12
    for c in range(n_classes):  # calibrated: rows of like answers have that share of the class
        order = np.array_split(np.argsort(found[:, c]), 5)
        assert_allclose(
            [found[b, c].mean() for b in order], [truth[b, c].mean() for b in order], atol=0.15
        )


def test_answers_agree(fitted: tuple[int, BowTieNetworkClassifier]) -> None:
    n_classes, model = fitted
    X, _, y = planted(n_classes, 300, 2)
    found = model.predict_proba(X)
    assert list(model.classes_) == NAMES[n_classes]
    assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(X)), found)
    labels = np.array(NAMES[n_classes])[y]
    assert model.score(X, labels) == np.mean(model.predict(X) == labels)


@pytest.mark.parametrize(
    "labels",
    [["b", "a"], [7, -3], [True, False], [2.0, 1.0], ["z", "y", "x"], [10, 30, 20]],
    ids=str,
)
def test_labels_of_every_kind(labels: list[Any]) -> None:
    X, _, y = planted(2, 60, 3)
    y = np.array(labels)[np.arange(60) % len(labels)]
    model = quick().fit(X, y)
    assert_array_equal(model.classes_, np.sort(labels))
    assert model.predict(X).dtype == y.dtype
    assert model.predict_proba(X).shape == (60, len(labels))


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_probabilities_are_means_over_the_weights() -> None:
    """Against 2,000 drawn networks of two members; far away they are unsure."""
    X, _, y = planted(2, 40, 8)
    model = quick(max_iter=40).fit(X, y)
    far = 4.0 * X
    draws = model._draw_outputs(far, 2000, np.random.default_rng(0))[..., 0]
    found = model.predict_proba(far)[:, 1]
    assert_allclose(found, expit(draws).mean(axis=0), atol=0.04)
    assert np.abs(found - expit(draws.mean(axis=0))).max() > 0.1


def test_batches_approach_a_fit() -> None:
    X, truth, y = planted(3, 200, 6)
    model = quick(init="relu_network")
    for part in np.split(np.arange(200), 4):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    whole = quick(init="relu_network", solver="svi", max_iter=5, batch_size=50).fit(X, y)
    losses = [log_loss(y, fit.predict_proba(X)) for fit in (model, whole)]
    assert losses[0] < losses[1] + 0.1
    assert losses[0] < log_loss(y, truth) + 0.1


def test_classes_that_are_not_there() -> None:
    X, _, y = planted(2, 60, 7)
    model = quick()
    for refused in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="one class, 1"):
            refused(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="class 5"):
        model.partial_fit(X, y + 5, classes=[0, 1])
    model.partial_fit(X, 0 * y, classes=[0, 1])  # a batch may lack a class that was named
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="class 2"):
        model.partial_fit(X, y + 1)
    assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="continuous"):
        quick().fit(X, X[:, 0])


def test_means_over_the_weights_against_draws(rng: np.random.Generator) -> None:
    """100,000 draws are good to 0.002; the softmax is to first order in its sum."""
    mean, variance = rng.normal(0.0, 2.0, size=(4, 3)), rng.uniform(0.0, 3.0, size=(4, 3))
    draws = expit(mean + np.sqrt(variance) * rng.normal(size=(100_000, 4, 3)))
    assert_allclose(_mean_sigmoid(mean, variance), draws.mean(axis=0), atol=0.006)
    exact = (draws / draws.sum(axis=-1, keepdims=True)).mean(axis=0)
    assert_allclose(_mean_logistic_softmax(mean, variance), exact, atol=0.08)
    sure = _mean_logistic_softmax(mean, 0.0 * variance)
    assert_allclose(sure, expit(mean) / expit(mean).sum(axis=-1, keepdims=True), rtol=1e-12)
