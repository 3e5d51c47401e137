"""Losses of networks and their gradients: autodiff, every array library, the fast version."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bowtienet._old.inference import network_loss
from bowtienet._old.inference.network_loss import (
    Batch,
    build_workspace,
    enough_workspace,
    network_losses,
    outputs_of,
    plain_losses,
    plain_outputs,
    split,
)
from bowtienet._old.model.outcomes import Binary, Classes, Counts, Gaussian, Outcome, StudentT
from bowtienet._old.model.outcomes.student_t import START_SCALE

LIBRARIES = ("torch", "jax.numpy", "array_api_strict")
HIDDEN = ((), (5,), (4, 2, 3))
OUTCOMES = {
    "gaussian": (Gaussian(), 2),
    "student_t": (StudentT(freedom=3.0), 2),
    "binary": (Binary(), 1),
    "classes": (Classes(n_classes=4), 4),
    "counts": (Counts(dispersion=1.7, offset=0.4), 1),
}
"""Outcomes, with a number of outputs."""


def random_problem(
    rng: np.random.Generator, hidden: tuple[int, ...], outputs: int = 2, n_inputs: int = 3
) -> tuple[Batch, list[np.ndarray], tuple[tuple[int, int], ...]]:
    """Four networks away from any minimum, on 50 rows of which some are held out."""
    widths = (n_inputs, *hidden, outputs)
    shapes = tuple((d, k + 1) for k, d in pairwise(widths))
    layers = [rng.normal(0.0, 0.7, size=(4, *shape)) for shape in shapes]
    row_weights = rng.uniform(0.1, 2.0, size=(4, 50)) * (rng.random((4, 50)) > 0.3)
    inputs, targets = rng.normal(size=(50, n_inputs)), rng.normal(size=(50, outputs))
    return Batch(inputs=inputs, targets=targets, row_weights=row_weights), layers, shapes


def targets_of(outcome: Outcome, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(outcome, Classes):
        return rng.integers(outcome.n_classes, size=(n_rows, 1)).astype(float)
    if isinstance(outcome, Counts):
        return np.column_stack([rng.poisson(4.0, n_rows), rng.normal(size=n_rows)])
    if isinstance(outcome, Binary):
        return rng.integers(2, size=(n_rows, 1)).astype(float)
    return rng.normal(size=(n_rows, 2))


def outcome_problem(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> tuple[Outcome, Batch, list[np.ndarray], tuple[tuple[int, int], ...]]:
    outcome, n_outputs = OUTCOMES[name]
    batch, layers, shapes = random_problem(rng, hidden, n_outputs)
    return outcome, replace(batch, targets=targets_of(outcome, 50, rng)), layers, shapes


def loss_of_row(outcome: Outcome, y: np.ndarray, z: np.ndarray) -> float:
    """The loss of one row as the formula has it, in plain Python."""
    if isinstance(outcome, Binary):
        return math.log(1.0 + math.exp(z[0])) - y[0] * z[0]
    if isinstance(outcome, Classes):
        sigmoids = [1.0 / (1.0 + math.exp(-value)) for value in z]
        return -math.log(sigmoids[int(y[0])] / sum(sigmoids))
    if isinstance(outcome, Counts):
        r, x = float(outcome.dispersion), z[0] + y[1] + float(outcome.offset)
        p = 1.0 / (1.0 + math.exp(-x))
        return -r * math.log(1.0 - p) - y[0] * math.log(p)
    if isinstance(outcome, StudentT):
        width = float(outcome.freedom) * START_SCALE
        return sum(
            0.5 * width * math.log(1.0 + (a - b) ** 2 / width) for a, b in zip(y, z, strict=True)
        )
    return sum(0.5 * (a - b) ** 2 for a, b in zip(y, z, strict=True))


def flat(layers: list[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(layer).reshape(len(layer), -1) for layer in layers], axis=1)


def in_library(batch: Batch, library: Any) -> Batch:
    rows = (library.asarray(x, dtype=library.float32) for x in (batch.inputs, batch.targets))
    inputs, targets = rows
    return Batch(inputs=inputs, targets=targets, row_weights=batch.row_weights)


def assert_same_gradients(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """To a part of each network's longest gradient."""
    longest = np.max(np.abs(expected), axis=1, keepdims=True)
    np.testing.assert_allclose(found / longest, expected / longest, atol=tolerance)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("outputs", [1, 2])
def test_plain_gradient_is_that_of_autodiff(
    hidden: tuple[int, ...], outputs: int, rng: np.random.Generator
) -> None:
    jax = pytest.importorskip("jax")
    batch, layers, _ = random_problem(rng, hidden, outputs)
    arguments = [jax.numpy.asarray(x) for x in (batch.inputs, batch.targets, batch.row_weights)]

    def total(weights: list[Any]) -> Any:
        residuals = plain_outputs(weights, arguments[0])[0][-1] - arguments[1]
        return 0.5 * jax.numpy.sum(arguments[2][:, :, None] * residuals**2)

    weights = [jax.numpy.asarray(layer) for layer in layers]
    values, gradients = plain_losses(weights, *arguments, Gaussian())
    np.testing.assert_allclose(values.sum(), total(weights), rtol=1e-12)
    assert_same_gradients(flat(gradients), flat(jax.grad(total)(weights)), 1e-12)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("n_inputs", [3, network_loss.FEW_INPUTS + 1])
@pytest.mark.parametrize("block_rows", [17, 1024])
def test_fast_as_plain(
    hidden: tuple[int, ...],
    outputs: int,
    n_inputs: int,
    block_rows: int,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of some networks in another order, and three of them at a time with small blocks."""
    monkeypatch.setattr(network_loss, "BLOCK_ROWS", block_rows)
    if block_rows == 17:
        monkeypatch.setattr(network_loss, "BLOCK_NUMBERS", 3 * 17 * (1 + max((*hidden, outputs))))
    batch, layers, shapes = random_problem(rng, hidden, outputs, n_inputs)
    some = np.array([2, 0, 3, 1])[: 4 - len(hidden)]
    values, gradients = network_losses(batch, shapes, Gaussian())(flat(layers)[some], some)
    expected, slopes = plain_losses(
        layers, batch.inputs, batch.targets, batch.row_weights, Gaussian()
    )
    np.testing.assert_allclose(values, expected[some], rtol=1e-5)
    assert_same_gradients(gradients, flat(slopes)[some], 1e-5)


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_losses_of_outcomes_are_those_of_plain_loops(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Values row by row, and gradients by finite differences of them."""
    outcome, batch, layers, _ = outcome_problem(name, hidden, rng)

    def total(r: int) -> float:
        outputs = plain_outputs([layer[r : r + 1] for layer in layers], batch.inputs)[0][-1][0]
        rows = zip(batch.row_weights[r], batch.targets, outputs, strict=True)
        return sum(w * loss_of_row(outcome, y, z) for w, y, z in rows)

    values, gradients = plain_losses(
        layers, batch.inputs, batch.targets, batch.row_weights, outcome
    )
    np.testing.assert_allclose(values, [total(r) for r in range(4)], rtol=1e-10)
    for layer, gradient in zip(layers, gradients, strict=True):
        for place in [*np.ndindex(layer.shape)][:: max(1, layer.size // 12)]:
            at, change = layer[place], []
            for step in (1e-5, -1e-5):
                layer[place] = at + step
                change.append(total(place[0]))
            layer[place] = at
            slope = (change[0] - change[1]) / 2e-5
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("small_blocks", [False, True])
def test_fast_as_plain_for_every_outcome(
    name: str,
    hidden: tuple[int, ...],
    small_blocks: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome, batch, layers, shapes = outcome_problem(name, hidden, rng)
    if small_blocks:  # of 17 rows of one network, or two
        monkeypatch.setattr(network_loss, "LOSS_NUMBERS", 17 * shapes[-1][0])
        assert build_workspace([shapes[-1][0]], 4, 50).rows == 17
    some = np.array([2, 0, 3])
    values, gradients = network_losses(batch, shapes, outcome)(flat(layers)[some], some)
    expected, slopes = plain_losses(layers, batch.inputs, batch.targets, batch.row_weights, outcome)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected[some], rtol=1e-5)
    assert_same_gradients(gradients, flat(slopes)[some], 1e-5)


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_as_numpy_for_every_outcome(
    name: str, library: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_loss, "DEVICE_NUMBERS", 200)
    outcome, batch, layers, shapes = outcome_problem(name, (5,), rng)
    there, some = in_library(batch, pytest.importorskip(library)), np.array([3, 1])
    values, gradients = network_losses(there, shapes, outcome)(flat(layers)[some], some)
    expected, slopes = network_losses(batch, shapes, outcome)(flat(layers)[some], some)
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert_same_gradients(gradients, slopes, 1e-5)


@pytest.mark.parametrize("name", ["binary", "classes", "counts"])
def test_losses_of_sure_outputs_keep_their_digits(name: str) -> None:
    """Right by far and wrong by far, in single precision: neither is rounded away nor overflows.

    Classes have a sum of about one in their loss, which leaves the rounding of one.
    """
    outcome, width = OUTCOMES[name]
    sizes = np.array([3.0, 15.0, 60.0, 500.0])
    targets = {"binary": [1.0], "classes": [0.0], "counts": [0.0, 0.0]}[name]
    y = np.tile(targets, (4, 1)).astype(np.float32)
    right = np.full((4, width), -1.0) * sizes[:, None]
    right[:, 0] *= -1.0 if name != "counts" else 1.0
    for outputs in (right, -right):
        values, derivatives = outcome.loss(y, outputs.astype(np.float32))
        expected, slopes = outcome.loss(y.astype(float), outputs)
        np.testing.assert_allclose(
            values, expected, rtol=1e-5, atol=2e-7 if name == "classes" else 1e-37
        )
        np.testing.assert_allclose(derivatives, slopes, rtol=1e-5, atol=1e-6)
    assert np.all(np.isfinite(values))
    assert np.all(values > 0.0)


def test_jax_compiles_for_each_outcome(rng: np.random.Generator) -> None:
    """Two with other parameters have other losses, equal ones are compiled once."""
    jax = pytest.importorskip("jax.numpy")
    _, batch, layers, shapes = outcome_problem("counts", (7,), rng)
    there, networks = in_library(batch, jax), np.arange(4)
    before, found = network_loss._compiled()._cache_size(), []
    for dispersion in (1.0, 2.0, 1.0):
        outcome = Counts(dispersion=dispersion)
        found.append(network_losses(there, shapes, outcome)(flat(layers), networks)[0])
    assert network_loss._compiled()._cache_size() - before == 2
    np.testing.assert_array_equal(found[0], found[2])
    assert np.all(np.abs(found[0] - found[1]) > 1e-3)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("small_blocks", [False, True])
def test_every_library_as_numpy(
    name: str,
    hidden: tuple[int, ...],
    small_blocks: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if small_blocks:
        monkeypatch.setattr(network_loss, "DEVICE_NUMBERS", 200)
    batch, layers, shapes = random_problem(rng, hidden)
    there, some = in_library(batch, pytest.importorskip(name)), np.array([3, 1])
    values, gradients = network_losses(there, shapes, Gaussian())(flat(layers)[some], some)
    expected, slopes = network_losses(batch, shapes, Gaussian())(flat(layers)[some], some)
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert_same_gradients(gradients, slopes, 1e-5)
    outputs = outputs_of(layers, there.inputs)
    assert outputs.dtype == np.float64
    np.testing.assert_allclose(outputs, outputs_of(layers, batch.inputs), rtol=1e-4, atol=1e-5)


def test_jax_compiles_for_few_numbers_of_networks(rng: np.random.Generator) -> None:
    jax = pytest.importorskip("jax.numpy")
    batch, layers, shapes = random_problem(rng, (6,))
    many = Batch(
        inputs=jax.asarray(batch.inputs),
        targets=jax.asarray(batch.targets),
        row_weights=np.tile(batch.row_weights, (5, 1)),
    )
    errors, points = network_losses(many, shapes, Gaussian()), np.tile(flat(layers), (5, 1))
    before = network_loss._compiled()._cache_size()
    for count in range(1, 21):
        values, gradients = errors(points[:count], np.arange(count))
        assert (len(values), len(gradients)) == (count, count)
    assert network_loss._compiled()._cache_size() - before == 4  # 1, 4, 16 and 20 networks


def test_a_workspace_serves_smaller_batches(rng: np.random.Generator) -> None:
    batch, layers, shapes = random_problem(rng, (5,))
    large = build_workspace([5, 2], 4, 80)
    assert enough_workspace(large, shapes, 4, 50) is large
    assert enough_workspace(large, shapes, 4, 81) is not large
    values, gradients = network_losses(batch, shapes, Gaussian(), large)(flat(layers), np.arange(4))
    expected, slopes = network_losses(batch, shapes, Gaussian())(flat(layers), np.arange(4))
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert_same_gradients(gradients, slopes, 1e-6)


def test_points_are_split_without_a_copy(rng: np.random.Generator) -> None:
    points = rng.normal(size=(3, 5 * 4 + 2 * 6))
    first, second = split(points, ((5, 4), (2, 6)))
    assert (first.shape, second.shape) == ((3, 5, 4), (3, 2, 6))
    assert np.shares_memory(first, points)
    np.testing.assert_array_equal(flat([first, second]), points)
