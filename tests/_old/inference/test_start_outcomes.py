"""Networks that learn classes, counts and targets with outliers: exact cases and hard tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from bowtienet._old.inference.start import (
    Networks,
    RowBatch,
    fit_networks,
    fit_networks_by_batches,
    network_outputs,
    random_networks,
)
from bowtienet._old.model.outcomes import Binary, Classes, Counts, Gaussian, Outcome, StudentT
from bowtienet._old.model.outcomes.counts import start_counts

OUTCOMES = {
    "gaussian": Gaussian(),
    "student_t": StudentT(),
    "binary": Binary(),
    "classes": Classes(n_classes=3),
    "counts": Counts(dispersion=2.0, offset=0.3),
}


def targets_of(outcome: Outcome, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets that depend on the first two inputs."""
    signal, n = np.sin(2.0 * inputs[:, :1]) + inputs[:, 1:2], len(inputs)
    noisy = signal + 0.3 * rng.normal(size=(n, 1))
    if isinstance(outcome, Binary):
        return (noisy > 0.0).astype(float)
    if isinstance(outcome, Classes):
        return (noisy > -0.7).astype(float) + (noisy > 0.7)
    if isinstance(outcome, Counts):
        logs = rng.normal(0.0, 0.3, size=(n, 1))
        return np.hstack([rng.poisson(2.0 * np.exp(signal + logs)), logs])
    return noisy


def fit(
    inputs: np.ndarray,
    targets: np.ndarray,
    outcome: Outcome,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
    *,
    row_weights: np.ndarray | None = None,
    penalty: float = 0.1,
    length: int = 100,
) -> tuple[Networks, Networks]:
    """Networks before and after a fit."""
    weights = np.ones((2, len(inputs))) if row_weights is None else row_weights
    start = random_networks(hidden, inputs, targets, weights, rng, outcome)
    penalties = np.full(len(weights), penalty)
    (found,) = fit_networks(
        inputs, targets, weights, start, penalties, lengths=[length], outcome=outcome
    )
    return start, found


def mean_losses(
    networks: Networks, inputs: np.ndarray, targets: np.ndarray, outcome: Outcome
) -> np.ndarray:
    return np.mean(outcome.loss(targets, network_outputs(networks, inputs))[0], axis=1)


def batches_of(
    inputs: np.ndarray, targets: np.ndarray, row_weights: np.ndarray, size: int
) -> Callable[[int], Iterator[RowBatch]]:
    """Batches of a pass, in an order of its own."""

    def batches(n_passes: int) -> Iterator[RowBatch]:
        order = np.random.default_rng(n_passes).permutation(len(inputs))
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            yield inputs[rows], targets[rows], row_weights[:, rows]

    return batches


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_without_hidden_layer_it_is_a_logistic_regression(
    penalty: float, rng: np.random.Generator
) -> None:
    inputs = rng.normal(size=(200, 3))
    labels = (inputs @ [1.0, -2.0, 0.0] + rng.logistic(size=200) > 0.7).astype(float)
    weights = rng.uniform(0.2, 2.0, size=(2, 200))
    _, found = fit(inputs, labels[:, None], Binary(), (), rng, row_weights=weights, penalty=penalty)
    for r in range(2):
        theirs = LogisticRegression(C=1.0 / penalty, tol=1e-8, max_iter=1000)
        theirs.fit(inputs, labels, sample_weight=weights[r])
        expected = np.column_stack([theirs.intercept_, theirs.coef_])
        np.testing.assert_allclose(found.layers[0][r], expected, atol=1e-3)


def test_without_hidden_layer_it_is_a_poisson_regression(rng: np.random.Generator) -> None:
    """Dispersion 1e4 is Poisson noise; exposures are weights of rates there and offsets here."""
    inputs, logs = rng.normal(size=(300, 3)), rng.normal(0.0, 0.5, size=300)
    count = rng.poisson(np.exp(0.5 + inputs @ [0.6, -0.4, 0.0] + logs))
    outcome = Counts(dispersion=1e4, offset=-np.log(1e4))
    targets = np.column_stack([count, logs])
    _, found = fit(inputs, targets, outcome, (), rng, penalty=2.0)
    exposures = np.exp(logs)
    theirs = PoissonRegressor(alpha=2.0 / exposures.sum(), tol=1e-8, max_iter=1000)
    theirs.fit(inputs, count / exposures, sample_weight=exposures)
    expected = np.concatenate([[theirs.intercept_], theirs.coef_])
    np.testing.assert_allclose(found.layers[0][0, 0], expected, atol=2e-3)


def test_wild_targets_are_ignored_by_student_t(rng: np.random.Generator) -> None:
    inputs = rng.normal(size=(300, 2))
    clean = np.sin(2.0 * inputs[:, :1]) + 0.5 * inputs[:, 1:]
    targets = clean + 0.1 * rng.normal(size=(300, 1))
    targets[:15] = 50.0
    errors = {}
    for outcome in (Gaussian(), StudentT()):
        _, found = fit(inputs, targets, outcome, (15,), rng, length=300)
        outputs = network_outputs(found, inputs)[0]
        errors[outcome.name] = np.sqrt(np.mean((outputs[15:] - clean[15:]) ** 2))
    assert errors["student_t"] < 0.15
    assert errors["gaussian"] > 0.5


def test_classes_reach_the_accuracy_of_the_best_rule(rng: np.random.Generator) -> None:
    """Four clouds at the corners of a square, of which neighbours overlap a little.

    The best rule is right in 0.954 of cases; 2,000 new rows have a standard error of 0.005.
    """
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    labels = rng.integers(4, size=2600)
    inputs = corners[labels] + 0.5 * rng.normal(size=(2600, 2))
    targets, outcome = labels[:, None].astype(float), Classes(n_classes=4)
    _, found = fit(inputs[:600], targets[:600], outcome, (10,), rng, penalty=1.0)
    outputs = network_outputs(found, inputs[600:])[0]
    accuracy = np.mean(outputs.argmax(axis=1) == labels[600:])
    best = np.mean(np.all(np.sign(inputs[600:]) == corners[labels[600:]], axis=1))
    assert accuracy > best - 0.02


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("hidden", [(), (6,), (5, 4)])
def test_held_out_rows_have_no_influence(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    outcome, inputs = OUTCOMES[name], rng.normal(size=(60, 3))
    targets = targets_of(outcome, inputs, rng)
    weights = rng.uniform(0.5, 2.0, size=(2, 60))
    weights[:, 50:] = 0.0
    _, before = fit(
        inputs, targets, outcome, hidden, np.random.default_rng(7), row_weights=weights, length=5
    )
    targets[50:] = targets[:10]
    inputs[50:] *= 10.0
    _, after = fit(
        inputs, targets, outcome, hidden, np.random.default_rng(7), row_weights=weights, length=5
    )
    for a, b in zip(before.layers, after.layers, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", OUTCOMES)
def test_starts_are_fair_and_fits_are_better(name: str, rng: np.random.Generator) -> None:
    """A start beats outputs of zero, and a fit beats its start."""
    outcome, inputs = OUTCOMES[name], rng.normal(size=(400, 3))
    targets = targets_of(outcome, inputs, rng)
    start, found = fit(inputs, targets, outcome, (12,), rng)
    nothing = np.mean(outcome.loss(targets, 0.0 * network_outputs(start, inputs)[0])[0])
    assert np.all(mean_losses(start, inputs, targets, outcome) < nothing)
    assert np.all(
        mean_losses(found, inputs, targets, outcome) < mean_losses(start, inputs, targets, outcome)
    )


@pytest.mark.parametrize("name", ["student_t", "binary", "classes", "counts"])
def test_batches_end_about_as_low_as_all_rows(name: str, rng: np.random.Generator) -> None:
    """Without hidden layer, where a start is not yet at the minimum.

    Weights are not compared: a shift of all outputs far below zero changes no class.
    """
    outcome, inputs = OUTCOMES[name], rng.normal(size=(200, 3))
    targets = targets_of(outcome, inputs, rng)
    start, exact = fit(inputs, targets, outcome, (), rng, penalty=1.0)
    weights = np.ones((2, 200))
    (found,) = fit_networks_by_batches(
        batches_of(inputs, targets, weights, 20),
        start,
        np.ones(2),
        weights.sum(axis=1),
        lengths=[60],
        outcome=outcome,
    )
    before, there, here = (
        mean_losses(networks, inputs, targets, outcome)
        + 0.5 * np.sum(networks.layers[0][:, :, 1:] ** 2, axis=(1, 2)) / 200
        for networks in (start, exact, found)
    )
    assert np.all(before > 1.005 * there)
    np.testing.assert_allclose(here, there, rtol=2e-3)


@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
@pytest.mark.parametrize("outcome", ["binary", "classes", "counts", "student_t"])
def test_rows_of_every_library_give_the_same_fit(
    name: str, outcome: str, rng: np.random.Generator
) -> None:
    library, own = pytest.importorskip(name), OUTCOMES[outcome]
    inputs = rng.normal(size=(60, 3))
    targets, weights = targets_of(own, inputs, rng), np.ones((2, 60))
    start = random_networks((5,), inputs, targets, weights, rng, own)
    here, there = (
        fit_networks(x, y, weights, start, np.ones(2), lengths=[5], outcome=own)[0]
        for x, y in ((inputs, targets), (library.asarray(inputs), library.asarray(targets)))
    )
    np.testing.assert_allclose(
        mean_losses(there, inputs, targets, own), mean_losses(here, inputs, targets, own), rtol=1e-3
    )


@pytest.mark.parametrize("hidden", [(), (6,)])
@pytest.mark.parametrize(
    "trouble",
    ["one row of a class", "one class", "separable", "one row for each class", "no such class"],
)
def test_hard_tables_of_classes(
    trouble: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Weights stay finite without a warning, and classes that are there are told apart."""
    n = 3 if trouble == "one row for each class" else 90
    inputs = rng.normal(size=(n, 2))
    labels = np.digitize(inputs[:, 0], [-0.5, 0.5]).astype(float)
    if trouble == "one row of a class":
        labels[:] = 0.0
        labels[0] = 2.0
    elif trouble == "one class":
        labels[:] = 1.0
    elif trouble == "one row for each class":
        labels[:] = [0.0, 1.0, 2.0]
    elif trouble == "no such class":
        labels[labels == 2.0] = 0.0
    for outcome, targets in (
        (Classes(n_classes=3), labels),
        (Binary(), (labels > 0.0).astype(float)),
    ):
        start, found = fit(inputs, targets[:, None], outcome, hidden, rng, penalty=1e-3, length=300)
        for layer in found.layers:
            assert np.isfinite(layer).all()
            assert np.abs(layer).max() < 1e3
        after = mean_losses(found, inputs, targets[:, None], outcome)
        assert np.all(after <= mean_losses(start, inputs, targets[:, None], outcome))
        if hidden and trouble in ("separable", "one class", "one row for each class"):
            assert np.all(after < 0.1)


@pytest.mark.parametrize("trouble", ["huge", "little exposure", "zeros", "one count"])
@pytest.mark.parametrize("by_batches", [False, True])
def test_hard_tables_of_counts(trouble: str, by_batches: bool, rng: np.random.Generator) -> None:
    """Neither overflows nor warns, and means are near the counts."""
    inputs = rng.normal(size=(120, 2))
    means, logs = np.exp(0.5 * inputs[:, 0]), np.zeros(120)
    if trouble == "huge":
        means *= 1e6
    elif trouble == "little exposure":
        logs[::2] = np.log(1e-30)
    count = rng.poisson(means * np.exp(logs)).astype(float)
    if trouble in ("zeros", "one count"):
        count[:] = 0.0
        count[0] = float(trouble == "one count")
    targets, weights = np.column_stack([count, logs]), np.ones((2, 120))
    outcome = start_counts(targets, weights[0])
    start, found = fit(inputs, targets, outcome, (6,), rng)
    if by_batches:
        (found,) = fit_networks_by_batches(
            batches_of(inputs, targets, weights, 30),
            start,
            np.full(2, 0.1),
            weights.sum(axis=1),
            lengths=[40],
            outcome=outcome,
        )
    assert all(np.isfinite(layer).all() for layer in found.layers)
    fitted = outcome.dispersion * np.exp(
        network_outputs(found, inputs)[..., 0] + logs + outcome.offset
    )
    np.testing.assert_allclose(fitted.mean(axis=1), count.mean(), rtol=0.1, atol=0.05)
    if trouble == "huge":
        assert np.all(np.abs(np.log(fitted / count)).mean(axis=1) < 0.1)
