"""ReLU networks side by side: autodiff, plain loops, exact optima, penalties, the limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import Rows, build_model
from bowtienet.networks import penalty as penalty_module
from bowtienet.networks.loss import gradients
from bowtienet.networks.networks import Networks, outputs, preactivations, random_networks
from bowtienet.networks.penalty import MOST_ROWS, PENALTIES, choose_penalty, fit_networks
from bowtienet.networks.train import (
    MOMENTUM,
    SMALLEST,
    SQUARES,
    WARM_UP,
    Batch,
    _schedule,
    batch_and_steps,
    minibatches,
    train,
)
from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome, StudentT
from bowtienet.posterior import initialize
from bowtienet.posterior.initialize import around
from bowtienet.prediction.push_forward import push_forward

R = 3
"""Networks side by side."""
CASES = [
    ((), GAUSSIAN),
    ((4,), GAUSSIAN),
    ((5, 3), StudentT(freedom=3.3)),
    ((4,), StudentT(freedom=5.0)),
    ((4,), Binary()),
    ((5, 3), Classes(n_classes=3)),
    ((4,), Classes(n_classes=4)),
    ((4, 2, 3), Binary()),
]


def n_outputs_of(outcome: Outcome) -> int:
    return outcome.n_classes if isinstance(outcome, Classes) else 1 if outcome == Binary() else 2


def random_layers(
    rng: np.random.Generator, widths: tuple[int, ...], count: int = R
) -> list[np.ndarray]:
    """In double precision, so that nothing hides behind rounding."""
    return [
        rng.normal(0.0, 0.8, size=(count, width, below + 1)) for below, width in pairwise(widths)
    ]


def random_targets(rng: np.random.Generator, outcome: Outcome, n: int) -> np.ndarray:
    if outcome.has_noise:
        return rng.normal(size=(n, n_outputs_of(outcome)))
    return rng.integers(0, max(n_outputs_of(outcome), 2), size=(n, 1)).astype(float)


def loss_by_hand(outcome: Outcome, y: Any, z: Any) -> Any:
    """-log p(y | z) of rows, from the formulas and nothing of the library."""
    if isinstance(outcome, StudentT):
        width = 0.1 * outcome.freedom
        return jnp.sum(0.5 * width * jnp.log(1.0 + (y - z) ** 2 / width), axis=-1)
    if isinstance(outcome, Binary):
        chance = 1.0 / (1.0 + jnp.exp(-z[:, 0]))
        return -jnp.log(jnp.where(y[:, 0] == 1.0, chance, 1.0 - chance))
    if isinstance(outcome, Classes):
        each = 1.0 / (1.0 + jnp.exp(-z))
        chances = each / jnp.sum(each, axis=1, keepdims=True)
        return -jnp.log(jnp.take_along_axis(chances, y.astype(int), axis=1)[:, 0])
    return 0.5 * jnp.sum((y - z) ** 2, axis=-1)


def objective(layers: list[Any], x: Any, y: Any, weights: Any, outcome: Outcome) -> Any:
    """Σ c l / Σ c of a single network."""
    values = x
    for layer in layers[:-1]:
        values = jnp.maximum(layer[:, 0] + values @ layer[:, 1:].T, 0.0)
    z = layers[-1][:, 0] + values @ layers[-1][:, 1:].T
    return jnp.sum(weights * loss_by_hand(outcome, y, z)) / jnp.sum(weights)


# Gradients


@pytest.mark.parametrize(("hidden", "outcome"), CASES, ids=str)
def test_gradients_against_autodiff(
    hidden: tuple[int, ...], outcome: Outcome, rng: np.random.Generator
) -> None:
    layers = random_layers(rng, (3, *hidden, n_outputs_of(outcome)))
    x, y = rng.normal(size=(7, 3)), random_targets(rng, outcome, 7)
    weights = rng.uniform(0.2, 2.0, size=(R, 7)) * (rng.random((R, 7)) < 0.7)
    into = [np.full_like(layer, np.nan) for layer in layers]
    given = [layer.copy() for layer in layers]
    with_constant = np.column_stack([np.ones(7), x])
    losses = gradients(layers, with_constant, y, weights, outcome, into)
    for r in range(R):
        value, slopes = jax.value_and_grad(objective)(
            [layer[r] for layer in given], x, y, weights[r], outcome
        )
        assert losses[r] == pytest.approx(float(value), rel=1e-6)
        for slope, expected in zip(into, slopes, strict=True):
            np.testing.assert_allclose(slope[r], expected, rtol=1e-10, atol=1e-13)
    for layer, before in zip(layers, given, strict=True):
        np.testing.assert_array_equal(layer, before)


def test_targets_of_each_network(rng: np.random.Generator) -> None:
    layers, x = random_layers(rng, (3, 4, 1)), rng.normal(size=(6, 4))
    y, weights = rng.normal(size=(R, 6, 1)), rng.uniform(0.5, 2.0, size=(R, 6))
    into = [np.zeros_like(layer) for layer in layers]
    losses = gradients(layers, x, y, weights, GAUSSIAN, into)
    for r in range(R):
        alone = [np.zeros_like(layer[:1]) for layer in layers]
        single = [layer[r : r + 1] for layer in layers]
        loss = gradients(single, x, y[r], weights[r : r + 1], GAUSSIAN, alone)
        assert loss[0] == pytest.approx(losses[r], rel=1e-6)
        for slope, expected in zip(into, alone, strict=True):
            np.testing.assert_allclose(slope[r], expected[0], rtol=1e-12, atol=1e-14)


def test_a_network_without_rows_has_no_gradient(rng: np.random.Generator) -> None:
    layers, weights = random_layers(rng, (3, 4, 1), 2), np.array([[0.0] * 5, [1.0] * 5])
    into = [np.full_like(layer, np.nan) for layer in layers]
    losses = gradients(layers, rng.normal(size=(5, 4)), np.ones((5, 1)), weights, GAUSSIAN, into)
    assert losses[0] == 0.0
    assert all(np.all(slope[0] == 0.0) and np.any(slope[1] != 0.0) for slope in into)


# Networks


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3), (2, 3, 4, 3)], ids=str)
def test_outputs_in_plain_loops(hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 3))
    networks = random_networks(rng, x, hidden, 2, R)
    assert [layer.shape[:2] for layer in networks.layers] == [(R, w) for w in (*hidden, 2)]
    assert all(layer.dtype == np.float32 for layer in networks.layers)
    result = outputs(networks, x)
    assert result.shape == (R, 6, 2)
    for r, n in np.ndindex(R, 6):
        values = list(x[n])
        for index, layer in enumerate(networks.layers):
            rows = layer[r].astype(float)
            values = [
                row[0] + sum(w * v for w, v in zip(row[1:], values, strict=True)) for row in rows
            ]
            if index < len(hidden):
                values = [max(value, 0.0) for value in values]
        np.testing.assert_allclose(result[r, n], values, rtol=1e-4, atol=1e-5)


def test_every_unit_bends_at_a_row(rng: np.random.Generator) -> None:
    x = rng.normal(size=(40, 3)) * 7.0
    networks = random_networks(rng, x, (30, 20), 1, 2)
    values = x.T.astype(np.float32)[None]
    for layer in networks.layers[:-1]:
        z = preactivations(layer, values)
        assert np.all(np.abs(z).min(axis=2) < 1e-4)
        # Whatever the unit of the layer below, preactivations are near one.
        assert 0.3 < np.sqrt(np.mean(z**2)) < 3.0
        values = np.maximum(z, 0.0)
    assert np.abs(outputs(networks, x)).max() < 1.0


def test_a_table_that_says_nothing_starts_small(rng: np.random.Generator) -> None:
    networks = random_networks(rng, np.zeros((9, 2)), (6, 4), 1, 2)
    assert max(np.abs(layer).max() for layer in networks.layers[:1]) < 10.0
    assert np.abs(outputs(networks, np.ones((1, 2)))).max() < 100.0


# Training


def full_batches(x: np.ndarray, y: np.ndarray, weights: np.ndarray, n_steps: int) -> list[Batch]:
    """All rows in every step, in double precision."""
    return [(np.column_stack([np.ones(len(x)), x]), y, weights)] * n_steps


def test_adam_written_out(rng: np.random.Generator) -> None:
    """Layer by layer: decays, bias correction, warm-up and cosine, rates, penalties."""
    layers, n_steps, learning_rate = random_layers(rng, (3, 4, 2), 2), 40, 0.03
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    weights, penalties = rng.uniform(0.5, 2.0, size=(2, 12)), np.array([0.5, 20.0])
    result = train(
        Networks(layers=tuple(layers)),
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
                slope[:, 1:] += penalties[r] / weights[r].sum() * points[i][:, 1:]
                mean[i] = MOMENTUM * mean[i] + (1.0 - MOMENTUM) * slope
                square[i] = SQUARES * square[i] + (1.0 - SQUARES) * slope**2
                # The constant below the root is next to the biased square.
                unbiased = math.sqrt(1.0 - SQUARES**step) / (1.0 - MOMENTUM**step)
                share = rate / math.sqrt(points[i].shape[1] - 1)
                points[i] = points[i] - share * unbiased * mean[i] / (np.sqrt(square[i]) + SMALLEST)
        for layer, expected in zip(result.layers, points, strict=True):
            np.testing.assert_allclose(layer[r], expected, rtol=1e-7, atol=1e-9)


def test_schedule() -> None:
    assert _schedule(0.0) == 0.0
    assert _schedule(0.5 * WARM_UP) == pytest.approx(0.5)
    assert _schedule(WARM_UP) == pytest.approx(1.0)
    assert _schedule(0.5 * (1.0 + WARM_UP)) == pytest.approx(0.5)
    assert _schedule(1.0) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(("hidden", "outcome"), [CASES[1], CASES[2], CASES[5]], ids=str)
def test_side_by_side_equals_each_alone(
    hidden: tuple[int, ...], outcome: Outcome, rng: np.random.Generator
) -> None:
    layers = random_layers(rng, (3, *hidden, n_outputs_of(outcome)))
    x, y = rng.normal(size=(30, 3)), random_targets(rng, outcome, 30)
    weights, penalties = rng.uniform(0.2, 2.0, size=(R, 30)), np.array([0.1, 1.0, 10.0])
    constant = np.column_stack([np.ones(30), x])
    orders = [rng.choice(30, size=10, replace=False) for _ in range(60)]

    def trained(which: slice) -> Networks:
        return train(
            Networks(layers=tuple(layer[which] for layer in layers)),
            [(constant[rows], y[rows], weights[which][:, rows]) for rows in orders],
            outcome=outcome,
            penalties=penalties[which],
            total_weights=weights[which].sum(axis=1),
            n_steps=60,
        )

    together = trained(slice(None))
    for r in range(R):
        for layer, single in zip(together.layers, trained(slice(r, r + 1)).layers, strict=True):
            np.testing.assert_allclose(layer[r], single[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("hidden", "outcome"), [CASES[1], CASES[2], CASES[4], CASES[5]], ids=str)
def test_a_row_of_weight_zero_has_no_influence(
    hidden: tuple[int, ...], outcome: Outcome, rng: np.random.Generator
) -> None:
    """To the bit on the networks that hold it out, and an influence on the others."""
    start = random_networks(rng, rng.normal(size=(30, 3)), hidden, n_outputs_of(outcome), R)
    x, y = rng.normal(size=(30, 3)), random_targets(rng, outcome, 30)
    weights = np.ones((R, 30))
    weights[0, 4] = weights[1, 4] = 0.0

    def trained(x: np.ndarray, y: np.ndarray) -> Networks:
        return train(
            start,
            minibatches(x, y, weights, 10, np.random.default_rng(3)),
            outcome=outcome,
            penalties=np.ones(R),
            total_weights=weights.sum(axis=1),
            n_steps=30,
        )

    other_x, other_y = x.copy(), y.copy()
    other_x[4], other_y[4] = -50.0 * x[4], 1.0 - y[4] if not outcome.has_noise else 40.0
    other_y[4] = np.abs(other_y[4])
    for a, b in zip(trained(x, y).layers, trained(other_x, other_y).layers, strict=True):
        np.testing.assert_array_equal(a[:2], b[:2])
        assert np.any(a[2] != b[2])


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


def test_no_hidden_layer_is_logistic_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=(150, 2))
    y = (rng.random(150) < 1.0 / (1.0 + np.exp(-x[:, 0] - 1.0))).astype(float)[:, None]
    networks = train(
        Networks(layers=(np.zeros((1, 1, 3)),)),
        full_batches(x, y, np.ones((1, 150)), 1500),
        outcome=Binary(),
        penalties=np.array([2.0]),
        total_weights=np.array([150.0]),
        n_steps=1500,
    )
    exact = LogisticRegression(C=0.5, tol=1e-10).fit(x, y[:, 0])
    expected = [exact.intercept_[0], *exact.coef_[0]]
    np.testing.assert_allclose(networks.layers[0][0, 0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("hidden", "function"), [((10,), np.abs), ((8, 8), lambda t: np.sin(2.0 * t))], ids=["1", "2"]
)
def test_training_reaches_a_known_function(
    hidden: tuple[int, ...], function: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    x = rng.uniform(-2.0, 2.0, size=(150, 1))
    y = function(x)
    data = (x, y, np.ones((2, 150)), hidden, np.full(2, 0.003), GAUSSIAN)
    error = outputs(fit_networks(*data, rng), x) - y
    assert np.sqrt(np.mean(error**2, axis=(1, 2))).max() < 0.05 * np.std(y)


def test_minibatches_take_every_row_once_an_epoch(rng: np.random.Generator) -> None:
    x, weights = np.arange(11.0)[:, None], np.stack([np.arange(11.0), np.ones(11)])
    batches = minibatches(x, 10.0 * x, weights, 3, rng)
    epochs = [[next(batches) for _ in range(3)] for _ in range(2)]
    orders = []
    for epoch in epochs:
        for inputs, targets, row_weights in epoch:
            np.testing.assert_array_equal(inputs[:, 0], 1.0)
            np.testing.assert_array_equal(targets[:, 0], 10.0 * inputs[:, 1])
            np.testing.assert_array_equal(row_weights, [inputs[:, 1], np.ones(3)])
        orders.append(np.concatenate([inputs[:, 1] for inputs, _, _ in epoch]))
        assert len(set(orders[-1])) == 9
    assert np.any(orders[0] != orders[1])


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, (1, 1_000)), (399, (133, 1_000)), (400, (64, 2_500)), (9_999, (256, 2_500))],
)
def test_batches_and_steps(n: int, expected: tuple[int, int]) -> None:
    assert batch_and_steps(n) == expected
    assert batch_and_steps(100_000) == (256, 60 * 100_000 // 256)


# The penalty


def planted(rng: np.random.Generator, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1.7, 1.7, size=(n, 2))
    return x, (np.sin(2.0 * x[:, :1]) + 0.5 * x[:, 1:]) + noise * rng.normal(size=(n, 1))


def test_little_noise_takes_a_weak_penalty_and_much_a_strong_one(rng: np.random.Generator) -> None:
    chosen = []
    for noise in (0.01, 2.0):
        x, y = planted(rng, 90, noise)
        chosen.append(choose_penalty(x, y, np.ones(90), (8,), GAUSSIAN, rng).penalty)
    assert set(chosen) <= set(PENALTIES)
    assert chosen[0] <= 0.1
    assert chosen[1] >= 3.0


def test_noise_variance_of_a_planted_table(rng: np.random.Generator) -> None:
    """To four standard errors of a mean of n squares, √(2/n) each, and the error of the fit."""
    x, y = planted(rng, 300, 0.4)
    result = choose_penalty(x, y, np.ones(300), (8,), GAUSSIAN, rng)
    assert result.noise_variance.shape == (1,)
    assert result.noise_variance[0] == pytest.approx(0.16, rel=4.0 * math.sqrt(2.0 / 300.0) + 0.05)


class Captured:
    """Stands in for the training, keeps what it was asked, and answers by the row weights."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: Any = None) -> None:
        self.answers = answers
        monkeypatch.setattr(penalty_module, "fit_networks", self._fit)
        monkeypatch.setattr(penalty_module, "outputs", self._outputs)

    def _fit(self, x: Any, y: Any, weights: Any, hidden: Any, penalties: Any, *_: Any) -> None:
        self.inputs, self.targets, self.weights, self.penalties = x, y, weights, penalties

    def _outputs(self, networks: None, x: np.ndarray) -> np.ndarray:
        if self.answers is None:
            return np.zeros((len(self.penalties), len(x), 1))
        return self.answers(self)


@pytest.mark.parametrize(("n", "n_folds"), [(60, 10), (450, 5)])
def test_every_row_is_held_out_once_and_equal_rows_together(
    n: int, n_folds: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = Captured(monkeypatch)
    x = rng.normal(size=(n // 3, 2)).repeat(3, axis=0)
    y, weights = x[:, :1] ** 2, rng.uniform(0.5, 2.0, size=n)
    choose_penalty(x, y, weights, (3,), GAUSSIAN, rng)
    assert captured.penalties.reshape(len(PENALTIES), -1).tolist() == [
        [p] * (2 * n_folds) for p in PENALTIES
    ]
    held_out = (captured.weights == 0.0).reshape(len(PENALTIES), n_folds, 2, n)
    assert np.all(held_out.sum(axis=1) == 1)
    assert np.all(held_out == held_out[:1, :, :1])
    np.testing.assert_array_equal(captured.weights, np.where(captured.weights > 0.0, weights, 0.0))
    triples = held_out[0, :, 0].reshape(n_folds, -1, 3)
    assert np.all(triples == triples[:, :, :1])
    sizes = triples[:, :, 0].sum(axis=1)
    assert sizes.max() - sizes.min() <= 1


def test_held_out_rows_alone_choose_by_their_weights(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twins that say y ± (d ± s) where the row is held out, and nonsense elsewhere."""
    errors = np.array([5.0, 4.0, 1.0, 3.0, 6.0, 2.0, 7.0])

    def answers(captured: Captured) -> np.ndarray:
        wrong = errors.repeat(len(captured.penalties) // 7)
        twin = 0.25 * np.resize([1.0, -1.0], len(wrong))
        signs = np.resize([1.0, -1.0], len(captured.inputs))
        # The penalty of error 1 is bad on a row that hardly counts.
        each = (wrong[:, None] + twin[:, None]) * signs
        each = np.where((wrong[:, None] == 1.0) & (captured.inputs[:, 0] > 90.0), 1e3, each)
        predicted = captured.targets[:, 0] + each
        return np.where(captured.weights == 0.0, predicted, 1e5)[:, :, None]

    captured = Captured(monkeypatch, answers)
    x = np.append(np.arange(39.0), 99.0)[:, None]
    weights = np.append(np.ones(39), 1e-12)
    result = choose_penalty(x, np.sin(x), weights, (3,), GAUSSIAN, rng)
    assert result.penalty == captured.penalties[2 * 2 * 10] == PENALTIES[2]
    # Mean of 1.25² and 0.75², less the variance ½ · 0.5² of the twins.
    assert result.noise_variance[0] == pytest.approx(1.0 + 0.0625 - 0.125, abs=1e-5)


def test_of_many_rows_some_are_looked_at(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = Captured(monkeypatch)
    x = np.arange(6_000.0)[:, None]
    choose_penalty(x, 2.0 * x, 1.0 + x[:, 0], (3,), GAUSSIAN, rng)
    assert len(np.unique(captured.inputs)) == MOST_ROWS
    np.testing.assert_array_equal(captured.targets, 2.0 * captured.inputs)
    np.testing.assert_array_equal(captured.weights.max(axis=0), 1.0 + captured.inputs[:, 0])


@pytest.mark.parametrize("outcome", [Binary(), Classes(n_classes=3)], ids=str)
def test_the_penalty_of_classes(outcome: Outcome, rng: np.random.Generator) -> None:
    """Labels that a line parts take a weaker one than labels by chance."""
    x, n_classes = rng.normal(size=(60, 2)), max(n_outputs_of(outcome), 2)
    parted = np.searchsorted(np.quantile(x[:, 0], np.arange(1, n_classes) / n_classes), x[:, 0])
    chance = rng.integers(0, n_classes, size=60)
    clear, noisy = (
        choose_penalty(x, y[:, None].astype(float), np.ones(60), (5,), outcome, rng).penalty
        for y in (parted, chance)
    )
    assert clear < 1.0 < noisy


@pytest.mark.parametrize("n", [1, 6])
def test_rows_that_are_all_the_same(n: int, rng: np.random.Generator) -> None:
    """One fold has them all: its networks are trained on nothing."""
    result = choose_penalty(np.ones((n, 1)), np.zeros((n, 1)), np.ones(n), (3,), GAUSSIAN, rng)
    assert result.penalty in PENALTIES
    assert np.isfinite(result.noise_variance).all()


# The limit


@pytest.mark.parametrize("hidden", [(6,), (5, 4)], ids=str)
def test_a_bow_tie_network_at_temperature_zero(
    hidden: tuple[int, ...], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q around a ReLU network's weights predicts what the network does, in the limit T -> 0."""
    x, y = planted(rng, 60, 0.1)
    networks = fit_networks(x, y, np.ones((2, 60)), hidden, np.full(2, 0.3), GAUSSIAN, rng)
    layers = [layer.astype(np.float64) for layer in networks.layers]
    rows, expected = Rows(inputs=x, targets=y, weights=np.ones(60)), outputs(networks, x)

    def error(temperature: float) -> float:
        model = build_model(
            build_architecture(2, hidden, 1),
            hidden_noise=(2.0, 1e-14),
            temperature=temperature,
            outcome=GAUSSIAN,
        )
        moments = push_forward(model, around(model, layers, rows, rng), x)
        return float(np.abs(moments.mean - expected).max())

    # Weights of variance 1e-6 blur the kinks by about their deviation.
    assert error(1e-6) < 5e-3
    monkeypatch.setattr(initialize, "NETWORK_VARIANCE", 1e-14)
    errors = [error(temperature) for temperature in (1.0, 0.1, 0.01, 1e-3, 1e-5)]
    assert errors[0] > 0.05
    assert all(after < 0.5 * before for before, after in pairwise(errors))
    assert errors[-1] < 2e-5  # the networks are in single precision
