"""What must not matter does not: order of rows, columns, units and outputs, and how rows are cut.

Fits of both sides start from the same factors, made once and rearranged. Rounding differs between
the two and grows over sweeps, so histories are compared at 1e-8, single steps at 1e-11.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet._old import engine as bt
from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, split
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.execution import initialize_memory, local_pass
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.local_step import initialize_local, local_step
from bowtienet._old.inference.statistics import add
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors
from tests._old.oracle_bridge import assert_close, assert_same

HIDDEN = [(), (5,), (4, 3), (3, 4, 2)]
SWEEPS = 12
HISTORY = 1e-8
STEP = 1e-11

all_depths = pytest.mark.parametrize("hidden", HIDDEN, ids=str)
FAMILIES = ("laplace", "normal_inverse_gaussian", "regularized_horseshoe", "gaussian")
depths_and_families = pytest.mark.parametrize(
    ("hidden", "family"),
    [*((hidden, "student_t") for hidden in HIDDEN), *(((4, 3), family) for family in FAMILIES)],
    ids=str,
)


def problem(rng, hidden=(4, 3), family="student_t", count=23):
    """Model, rows with weights, and factors to start from; 3 inputs, 2 outputs."""
    inputs = rng.normal(size=(count, 3))
    targets = np.column_stack([np.sin(2 * inputs[:, 0]) + inputs[:, 1], inputs[:, 2] ** 2])
    targets = targets + 0.1 * rng.normal(size=targets.shape)
    rows = bt.build_rows(inputs, targets, rng.uniform(0.5, 2.0, count))
    model = bt.build_model(
        bt.build_architecture(3, hidden, 2),
        prior=family,
        gate_temperature=0.3,
        output_noise=(2.0, np.array([0.05, 0.2])),
    )
    start = bt.initialize(model, rows, rng, init="laplace")
    # Unequal covariances and noise, so that a permutation that forgets one of them shows.
    layers = tuple(_uneven(layer, rng) for layer in start.layers)
    return model, rows, update_shared_covariance(replace(start, layers=layers))


def _uneven(layer: LayerFactors, rng) -> LayerFactors:
    width, size = layer.weights.mean.shape
    root = 0.1 * rng.normal(size=(width, size, size))
    covariance = root @ root.transpose(0, 2, 1) + 0.01 * np.eye(size)
    noise = layer.noise_variance
    return replace(
        layer,
        weights=GaussianRows(mean=layer.weights.mean, covariance=covariance),
        noise_variance=replace(noise, scale=noise.scale * rng.uniform(50.0, 150.0, width)),
    )


def fit(model, rows, factors, **settings):
    """A few sweeps that never stop early, so that both histories have the same length."""
    return bt.fit(model, rows, factors, max_iter=SWEEPS, tol=0.0, **settings)


def take(rows: Rows, index) -> Rows:
    return Rows(inputs=rows.inputs[index], targets=rows.targets[index], weights=rows.weights[index])


def assert_same_history(first, second) -> None:
    assert len(first.elbo_history) >= 2
    np.testing.assert_allclose(first.elbo_history, second.elbo_history, rtol=HISTORY)


def assert_same_prediction(first, second, outputs=slice(None)) -> None:
    for name in ("mean", "signal_variance", "noise_variance"):
        assert_close(getattr(first, name)[:, outputs], getattr(second, name), rtol=1e-7, name=name)


# ------------------------------------------------------------------------------------------------
# Permutations
# ------------------------------------------------------------------------------------------------


def permute_rows_of(layer: LayerFactors, order) -> LayerFactors:
    """The layer with its units in another order."""
    local = layer.local_shrinkage
    return replace(
        layer,
        weights=GaussianRows(
            mean=layer.weights.mean[order], covariance=layer.weights.covariance[order]
        ),
        noise_variance=replace(
            layer.noise_variance,
            concentration=layer.noise_variance.concentration[order],
            scale=layer.noise_variance.scale[order],
        ),
        local_shrinkage=replace(local, scale=local.scale[order])
        if hasattr(local, "scale")
        else local,
        slab_variance=map_arrays(lambda x: x[order], layer.slab_variance),
    )


def permute_inputs_of(layer: LayerFactors, order) -> LayerFactors:
    """The layer with its inputs in another order; the bias stays first."""
    extended = np.concatenate([[0], np.asarray(order) + 1])
    local = layer.local_shrinkage
    return replace(
        layer,
        weights=GaussianRows(
            mean=layer.weights.mean[:, extended],
            covariance=layer.weights.covariance[:, extended][:, :, extended],
        ),
        local_shrinkage=replace(local, scale=local.scale[:, order])
        if hasattr(local, "scale")
        else local,
        slab_variance=map_arrays(lambda x: x[:, order], layer.slab_variance),
    )


def permute_units(factors: GlobalFactors, hidden_layer: int, order) -> GlobalFactors:
    layers = list(factors.layers)
    layers[hidden_layer] = permute_rows_of(layers[hidden_layer], order)
    layers[hidden_layer + 1] = permute_inputs_of(layers[hidden_layer + 1], order)
    shared = factors.shared_covariance
    if hidden_layer == len(layers) - 2:
        shared = shared[np.ix_(order, order)]
    return GlobalFactors(layers=tuple(layers), shared_covariance=shared)


@all_depths
def test_order_of_rows(rng, hidden):
    model, rows, start = problem(rng, hidden)
    order = rng.permutation(rows.inputs.shape[0])
    first, second = fit(model, rows, start), fit(model, take(rows, order), start)
    assert_same_history(first, second)
    new = rng.normal(size=(6, 3))
    assert_same_prediction(
        bt.predict(first.model, first.factors, new), bt.predict(second.model, second.factors, new)
    )


@depths_and_families
def test_order_of_columns(rng, hidden, family):
    model, rows, start = problem(rng, hidden, family)
    order = np.array([2, 0, 1])
    moved = replace(start, layers=(permute_inputs_of(start.layers[0], order), *start.layers[1:]))
    first = fit(model, rows, start)
    second = fit(model, replace(rows, inputs=rows.inputs[:, order]), moved)
    assert_same_history(first, second)
    new = rng.normal(size=(6, 3))
    assert_same_prediction(
        bt.predict(first.model, first.factors, new),
        bt.predict(second.model, second.factors, new[:, order]),
    )


@pytest.mark.parametrize(
    ("hidden", "layer", "family"),
    [
        ((5,), 0, "student_t"),
        ((4, 3), 0, "student_t"),
        ((4, 3), 1, "laplace"),
        ((4, 3), 1, "gaussian"),
        ((3, 4, 2), 1, "normal_inverse_gaussian"),
    ],
    ids=str,
)
def test_order_of_hidden_units(rng, hidden, layer, family):
    model, rows, start = problem(rng, hidden, family)
    order = np.roll(np.arange(hidden[layer]), 1)
    first = fit(model, rows, start)
    second = fit(model, rows, permute_units(start, layer, order))
    assert_same_history(first, second)
    assert_same(second.factors, permute_units(first.factors, layer, order), rtol=1e-6)
    new = rng.normal(size=(6, 3))
    assert_same_prediction(
        bt.predict(first.model, first.factors, new), bt.predict(second.model, second.factors, new)
    )


@all_depths
def test_order_of_outputs(rng, hidden):
    model, rows, start = problem(rng, hidden)
    order = np.array([1, 0])
    noise = model.prior.output_noise
    prior = replace(model.prior, output_noise=replace(noise, scale=noise.scale[order]))
    moved = replace(start, layers=(*start.layers[:-1], permute_rows_of(start.layers[-1], order)))
    first = fit(model, rows, start)
    second = fit(replace(model, prior=prior), replace(rows, targets=rows.targets[:, order]), moved)
    assert_same_history(first, second)
    new = rng.normal(size=(6, 3))
    assert_same_prediction(
        bt.predict(first.model, first.factors, new),
        bt.predict(second.model, second.factors, new),
        outputs=order,
    )


# ------------------------------------------------------------------------------------------------
# Blocks
# ------------------------------------------------------------------------------------------------


def pass_in_blocks(model, rows, factors, size):
    blocks = split(rows, size)
    memory = initialize_memory(model, factors, blocks)
    _, memory = local_pass(model, factors, blocks, memory)
    # A second pass reads what the first one kept.
    return local_pass(model, factors, blocks, memory)[0]


@pytest.mark.parametrize("size", [1, 7, 22, 23, 100])
@all_depths
def test_blocks_of_any_size_give_the_same_statistics_and_bound(rng, hidden, size):
    model, rows, factors = problem(rng, hidden)
    whole = pass_in_blocks(model, rows, factors, rows.inputs.shape[0])
    cut = pass_in_blocks(model, rows, factors, size)
    assert_same(cut, whole, rtol=STEP)
    assert_same(elbo(model, factors, cut), elbo(model, factors, whole), rtol=STEP)


@pytest.mark.parametrize("size", [1, 7])
@all_depths
def test_blocks_of_any_size_give_the_same_fit(rng, hidden, size):
    model, rows, start = problem(rng, hidden)
    assert_same_history(fit(model, rows, start, block_size=size), fit(model, rows, start))


@all_depths
def test_addition_of_statistics_is_associative_and_commutative(rng, hidden):
    model, rows, factors = problem(rng, hidden)
    parts = [take(rows, slice(a, b)) for a, b in ((0, 5), (5, 6), (6, 23))]
    a, b, c = (pass_in_blocks(model, part, factors, 100) for part in parts)
    assert_same(add(add(a, b), c), add(a, add(b, c)), rtol=STEP)
    assert_same(add(a, b), add(b, a), rtol=0.0)
    assert_same(add(add(c, a), b), pass_in_blocks(model, rows, factors, 100), rtol=STEP)


@all_depths
def test_addition_of_statistics_adds_every_field(rng, hidden):
    model, rows, factors = problem(rng, hidden)
    one = pass_in_blocks(model, rows, factors, 100)
    two = pass_in_blocks(model, replace(rows, weights=2.0 * rows.weights), factors, 100)
    assert_same(add(one, one), two, rtol=STEP)


@pytest.mark.parametrize("hidden", HIDDEN[1:], ids=str)
def test_local_step_of_a_row_does_not_see_other_rows(rng, hidden):
    model, rows, factors = problem(rng, hidden)

    def step(index):
        part = take(rows, index)
        memory = initialize_local(model, factors, part.inputs)
        return local_step(model, factors, part.inputs, part.targets, memory)

    local, moments = step(slice(None))
    for n in (0, 11, 22):
        alone, moments_alone = step(slice(n, n + 1))
        for whole, single in zip(local.activations, alone.activations, strict=True):
            assert_close(single.offset[0], whole.offset[n], rtol=STEP)
            if whole.gain is not None:
                assert_close(single.gain[0], whole.gain[n], rtol=STEP)
            shared = whole.covariance.shape[0] == 1
            assert_close(single.covariance[0], whole.covariance[0 if shared else n], rtol=STEP)
        for name in ("gate_probability", "tilt"):
            pairs = zip(getattr(local, name), getattr(alone, name), strict=True)
            for whole, single in pairs:
                assert_close(single[0], whole[n], rtol=STEP)
        for whole, single in zip(moments.inputs, moments_alone.inputs, strict=True):
            assert_close(single[0], whole[n], rtol=STEP)


# ------------------------------------------------------------------------------------------------
# Row weights
# ------------------------------------------------------------------------------------------------


@all_depths
def test_weight_two_is_the_row_twice(rng, hidden):
    model, rows, start = problem(rng, hidden)
    weights = np.where(np.arange(23) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(23), weights.astype(int))
    first = fit(model, replace(rows, weights=weights), start)
    second = fit(model, take(replace(rows, weights=np.ones(23)), twice), start)
    assert_same_history(first, second)
    assert_same(first.factors, second.factors, rtol=1e-6)


@all_depths
def test_weight_zero_is_absence(rng, hidden):
    model, rows, start = problem(rng, hidden)
    present = np.arange(23) % 4 != 1
    first = fit(model, replace(rows, weights=np.where(present, rows.weights, 0.0)), start)
    second = fit(model, take(rows, present), start)
    assert_same_history(first, second)
    assert_same(first.factors, second.factors, rtol=1e-6)


@all_depths
def test_what_a_row_of_weight_zero_says_does_not_matter(rng, hidden):
    model, rows, start = problem(rng, hidden)
    weights = np.where(np.arange(23) == 4, 0.0, rows.weights)
    other = rows.inputs.copy(), rows.targets.copy()
    other[0][4], other[1][4] = 30.0, -50.0
    first = fit(model, replace(rows, weights=weights), start)
    second = fit(model, Rows(inputs=other[0], targets=other[1], weights=weights), start)
    assert_same_history(first, second)
