"""Training side by side: Adam written out, exact optima, rows that are held out."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from bowtienet.networks import train as train_module
from bowtienet.networks.column_scales import Columns, local_prior
from bowtienet.networks.networks import Networks, outputs, random_networks
from bowtienet.networks.train import (
    WARM_UP,
    Batch,
    minibatches,
    train,
)
from bowtienet.outcomes import GAUSSIAN, Outcome
from tests.networks.cases import (
    CASES,
    R,
    n_outputs_of,
    objective,
    random_layers,
    random_targets,
)


def full_batches(x: np.ndarray, y: np.ndarray, weights: np.ndarray, n_steps: int) -> list[Batch]:
    """All rows in every step, in double precision."""
    return [(np.column_stack([np.ones(len(x)), x]), y, weights)] * n_steps


def test_adam_written_out(rng: np.random.Generator) -> None:
    """Layer by layer: decays, bias correction, warm-up and cosine, rates, relative penalties."""
    layers, n_steps, learning_rate = random_layers(rng, (3, 4, 2), 2), 40, 0.03
    momentum, squares = 0.9, 0.99
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    weights, penalties = rng.uniform(0.5, 2.0, size=(2, 12)), np.array([0.5, 20.0])
    factors = rng.uniform(0.5, 2.0, size=(2, 3))
    result = train(
        Networks(layers=tuple(layers), factors=factors),
        full_batches(x, y, weights, n_steps),
        outcome=GAUSSIAN,
        penalties=penalties,
        total_weights=weights.sum(axis=1),
        n_steps=n_steps,
        learning_rate=learning_rate,
    )
    slopes_of = jax.jit(jax.grad(lambda layers, c: objective(layers, x, y, c, GAUSSIAN)))
    for r in range(2):
        points = [layer[r].copy() for layer in layers]
        mean, square = ([np.zeros_like(point) for point in points] for _ in range(2))
        for step in range(1, n_steps + 1):
            progress = step / n_steps
            rate = learning_rate * (
                progress / WARM_UP
                if progress < WARM_UP
                else 0.5 + 0.5 * math.cos(math.pi * (progress - WARM_UP) / (1.0 - WARM_UP))
            )
            for i, slope in enumerate(slopes_of(points, weights[r])):
                slope = np.array(slope)
                relative = factors[r] if i == 0 else 1.0
                slope[:, 1:] += penalties[r] / weights[r].sum() * relative * points[i][:, 1:]
                mean[i] = momentum * mean[i] + (1.0 - momentum) * slope
                square[i] = squares * square[i] + (1.0 - squares) * slope**2
                # The constant is next to the root of the biased square.
                unbiased = math.sqrt(1.0 - squares**step) / (1.0 - momentum**step)
                share = rate / math.sqrt(points[i].shape[1] - 1)
                points[i] = points[i] - share * unbiased * mean[i] / (np.sqrt(square[i]) + 1e-6)
        for layer, expected in zip(result.layers, points, strict=True):
            np.testing.assert_allclose(layer[r], expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(result.factors, factors)


def columns_of(shrinks: np.ndarray) -> Columns:
    """Local scales of two columns, the first of which has two inputs."""
    owners = np.array([0, 0, 1])
    return Columns(owners=owners, shrinks=shrinks, prior=local_prior("student_t"))


@pytest.mark.parametrize(("hidden", "outcome"), [CASES[1], CASES[2], CASES[5]], ids=str)
def test_side_by_side_equals_each_alone(
    hidden: tuple[int, ...], outcome: Outcome, rng: np.random.Generator
) -> None:
    """Two of the networks have local scales."""
    layers = random_layers(rng, (3, *hidden, n_outputs_of(outcome)))
    x, y = rng.normal(size=(30, 3)), random_targets(rng, outcome, 30)
    weights, penalties = rng.uniform(0.2, 2.0, size=(R, 30)), np.array([0.1, 1.0, 10.0])
    constant = np.column_stack([np.ones(30), x])
    orders = [rng.choice(30, size=10, replace=False) for _ in range(60)]
    shrinks = np.array([True, False, True])

    def trained(which: slice) -> Networks:
        return train(
            Networks(layers=tuple(layer[which] for layer in layers)),
            [(constant[rows], y[rows], weights[which][:, rows]) for rows in orders],
            outcome=outcome,
            penalties=penalties[which],
            total_weights=weights[which].sum(axis=1),
            n_steps=60,
            columns=columns_of(shrinks[which]),
        )

    together = trained(slice(None))
    assert together.factors is not None
    np.testing.assert_array_equal(np.ptp(together.factors, axis=1) > 0.0, shrinks)
    for r in range(R):
        alone = trained(slice(r, r + 1))
        np.testing.assert_allclose(together.factors[r], alone.factors[0], rtol=1e-5)
        for layer, single in zip(together.layers, alone.layers, strict=True):
            np.testing.assert_allclose(layer[r], single[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("with_scales", [False, True], ids=["", "local scales"])
@pytest.mark.parametrize(("hidden", "outcome"), [CASES[1], CASES[2], CASES[4], CASES[5]], ids=str)
def test_a_held_out_row_has_no_influence(
    hidden: tuple[int, ...], outcome: Outcome, with_scales: bool, rng: np.random.Generator
) -> None:
    """To the bit on the networks that hold it out, and an influence on the others."""
    start = random_networks(rng, rng.normal(size=(30, 3)), hidden, n_outputs_of(outcome), R)
    x, y = rng.normal(size=(30, 3)), random_targets(rng, outcome, 30)
    folds = np.where(np.arange(30) == 4, 0, np.arange(30) % 3 - 1)
    folds[0] = 1

    def trained(x: np.ndarray, y: np.ndarray) -> Networks:
        return train(
            start,
            minibatches(
                x, y, np.ones(30), 10, np.random.default_rng(3), folds, np.array([0, 0, 1])
            ),
            outcome=outcome,
            penalties=np.ones(R),
            total_weights=np.full(R, 20.0),
            n_steps=30,
            columns=columns_of(np.array([True, False, True])) if with_scales else None,
        )

    other_x, other_y = x.copy(), y.copy()
    other_x[4], other_y[4] = -50.0 * x[4], 1.0 - y[4] if not outcome.has_noise else 40.0
    other_y[4] = np.abs(other_y[4])
    before, after = trained(x, y), trained(other_x, other_y)
    for a, b in zip(before.layers, after.layers, strict=True):
        np.testing.assert_array_equal(a[:2], b[:2])
        assert np.any(a[2] != b[2])
    if with_scales:
        np.testing.assert_array_equal(before.factors[:2], after.factors[:2])


def test_no_hidden_layer_is_ridge_regression(rng: np.random.Generator) -> None:
    """The optimum in closed form: only the slopes are penalised, rows count by their weights."""
    x, n = rng.normal(size=(80, 3)), 80
    y = 2.0 + x @ np.array([[1.0, -0.5], [0.0, 0.3], [0.7, 0.0]]) + rng.normal(size=(n, 2))
    weights, penalties = rng.uniform(0.2, 2.0, size=(2, n)), np.array([1.0, 50.0])
    networks = train(
        Networks(layers=(np.zeros((2, 2, 4)),)),
        full_batches(x, y, weights, 1500),
        outcome=GAUSSIAN,
        penalties=penalties,
        total_weights=weights.sum(axis=1),
        n_steps=1500,
    )
    design = np.column_stack([np.ones(n), x])
    for r in range(2):
        matrix = design.T @ (weights[r][:, None] * design) + np.diag([0.0] + 3 * [penalties[r]])
        exact = np.linalg.solve(matrix, design.T @ (weights[r][:, None] * y))
        np.testing.assert_allclose(networks.layers[0][r], exact.T, atol=1e-4)


def test_training_leaves_its_start_and_tells_its_progress(rng: np.random.Generator) -> None:
    layers, told = random_layers(rng, (2, 4, 1)), []
    given = [layer.copy() for layer in layers]
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    result = train(
        Networks(layers=tuple(layers)),
        full_batches(x, y, np.ones((R, 9)), 200),
        outcome=GAUSSIAN,
        penalties=np.ones(R),
        total_weights=np.full(R, 9.0),
        n_steps=200,
        progress=lambda: told.append(1),
    )
    assert 12 <= len(told) <= 60
    assert result.factors is None
    for layer, before, after in zip(layers, given, result.layers, strict=True):
        np.testing.assert_array_equal(layer, before)
        assert np.all(np.any(after != before, axis=(1, 2)))


def test_minibatches_take_every_row_once_an_epoch(rng: np.random.Generator) -> None:
    x, weights = np.arange(11.0)[:, None], np.arange(11.0) + 0.5
    batches = minibatches(x, 10.0 * x, weights, 3, rng)
    epochs = [[next(batches) for _ in range(3)] for _ in range(2)]
    orders = []
    for epoch in epochs:
        for inputs, targets, row_weights in epoch:
            assert (inputs.dtype, targets.dtype, row_weights.dtype) == (np.float32,) * 3
            np.testing.assert_array_equal(inputs[:, 0], 1.0)
            np.testing.assert_array_equal(targets[:, 0], 10.0 * inputs[:, 1])
            np.testing.assert_array_equal(row_weights, [inputs[:, 1] + 0.5])
        orders.append(np.concatenate([inputs[:, 1] for inputs, _, _ in epoch]))
        assert len(set(orders[-1])) == 9
    assert np.any(orders[0] != orders[1])


def test_minibatches_hold_the_fold_of_each_network_out(rng: np.random.Generator) -> None:
    """A row of fold -1 is held out by none."""
    x, weights = np.arange(11.0)[:, None], np.arange(11.0) + 0.5
    folds, held_out = np.arange(11) % 4 - 1, np.array([0, 2, 1, 1])
    batches = minibatches(x, 10.0 * x, weights, 5, rng, folds, held_out)
    for inputs, _, row_weights in (next(batches) for _ in range(4)):
        rows = inputs[:, 1].astype(int)
        expected = np.where(folds[rows] == held_out[:, None], 0.0, weights[rows])
        np.testing.assert_array_equal(row_weights, expected)
        assert row_weights.dtype == np.float32


def test_decayed_weights_are_zero(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not ever smaller numbers, with which a processor is slow; outputs stay as they are."""
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 1))
    start = random_networks(rng, x, (20,), 1, 1)

    def trained() -> Networks:
        return train(
            start,
            minibatches(x, y, np.ones(60), 20, np.random.default_rng(3)),
            outcome=GAUSSIAN,
            penalties=np.full(1, 30.0),
            total_weights=np.full(1, 60.0),
            n_steps=1_500,
        )

    forgotten = trained()
    sizes = np.abs(np.concatenate([layer[:, :, 1:].ravel() for layer in forgotten.layers]))
    assert np.mean(sizes == 0.0) > 0.5
    assert not np.any((sizes > 0.0) & (sizes < np.finfo(np.float32).smallest_normal))
    monkeypatch.setattr(train_module, "DECAYED", 0.0)
    kept = trained()
    sizes = np.abs(np.concatenate([layer[:, :, 1:].ravel() for layer in kept.layers]))
    assert np.mean((sizes > 0.0) & (sizes < 1e-12)) > 0.5
    np.testing.assert_allclose(outputs(forgotten, x), outputs(kept, x), atol=1e-4)
