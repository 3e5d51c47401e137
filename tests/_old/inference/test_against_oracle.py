"""Every piece of the engine against plain loops written from the model, at random states.

Random rather than fitted states, so that no term is at its optimum and none can hide behind
another; random row weights; every family of shrinkage prior; no to three hidden layers.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._old.inference import global_step, local_step
from bowtienet._old.inference.empirical_bayes import update_hyperparameters
from bowtienet._old.prediction.predictive import predict, without_targets
from tests._old import oracle_bridge
from tests._old.oracle_bridge import WIDTHS, Case, assert_close, assert_same
from tests._old.oracles import plain_loops as oracle

MIXED = (("gig", "laplace"), ("gaussian", "student_t"), ("student_t", "regularized_horseshoe"))
FAMILIES = (*oracle.FAMILIES, *MIXED)
GLOBAL_UPDATES = ("weights", "noise", "global_shrinkage", "local_shrinkage", "slab")

all_widths = pytest.mark.parametrize("widths", WIDTHS, ids=str)
all_families = pytest.mark.parametrize("families", FAMILIES, ids=str)


@cache
def case(widths: tuple[int, ...], families: str | tuple[str, str] = "gig") -> Case:
    seed = zlib.crc32(f"{widths} {families}".encode())
    return oracle_bridge.random_case(np.random.default_rng(seed), widths, families)


# ------------------------------------------------------------------------------------------------
# ELBO
# ------------------------------------------------------------------------------------------------


@all_families
@all_widths
def test_elbo_and_each_of_its_terms(widths, families):
    terms = case(widths, families).elbo
    expected = oracle_bridge.oracle_elbo_terms(case(widths, families))
    size = max(abs(value) for value in expected.values())
    for name, value in expected.items():
        actual = float(getattr(terms, name))
        assert actual == pytest.approx(value, rel=1e-9, abs=1e-11 * size), name


@all_widths
def test_expected_residuals(widths):
    c = case(widths)
    for layer in range(len(widths) - 1):
        expected = np.zeros(widths[layer + 1])
        for n in range(c.x.shape[0]):
            moments = oracle.layer_moments(c.state, c.x[n], n, layer)
            for d in range(expected.size):
                expected[d] += c.weights[n] * oracle.expected_square_error(
                    c.state, moments, c.y[n], n, layer, d
                )
        actual = global_step.expected_residual(c.factors, c.statistics, layer)
        np.testing.assert_allclose(actual, expected, rtol=1e-9)


# ------------------------------------------------------------------------------------------------
# Local updates
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", ["known", "unknown"])
@all_widths
def test_activations(widths, targets):
    c = case(widths)
    y = c.y if targets == "known" else None
    if y is None:
        factors = without_targets(c.factors)
    else:
        factors = global_step.update_shared_covariance(c.factors)
    actual = local_step.update_activations(c.model, factors, c.x, y, c.memory)
    updated = oracle.update_activations(c.state, c.x, y)
    if len(widths) > 2:
        for row in updated.covariance:
            assert_close(factors.shared_covariance, row[-1])
    # Rows share the oracle's last covariance up to rounding only.
    updated = oracle_bridge.with_shared_covariance(updated)
    assert_same(actual, oracle_bridge.to_activations(updated, c.x))


@all_widths
def test_tilts(widths):
    c = case(widths)
    actual = local_step.update_tilts(c.model, c.factors, c.moments)
    assert_same(actual, oracle_bridge.stack(oracle.update_tilts(c.state, c.x).tilt))


@all_widths
def test_gates(widths):
    c = case(widths)
    tilt = local_step.update_tilts(c.model, c.factors, c.moments)
    actual, _ = local_step.update_gates(c.model, c.factors, c.moments, tilt)
    expected = oracle_bridge.stack(oracle.update_gates(c.state, c.x).gate)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
        np.testing.assert_allclose(1 - a, 1 - b, rtol=1e-9, atol=1e-15)


@all_widths
def test_local_step_is_the_three_updates_in_turn(widths):
    c = case(widths)
    factors = global_step.update_shared_covariance(c.factors)
    actual, moments = local_step.local_step(c.model, factors, c.x, c.y, c.memory)
    state = oracle.update_activations(c.state, c.x, c.y)
    state = oracle.update_gates(oracle.update_tilts(state, c.x), c.x)
    state = oracle_bridge.with_shared_covariance(state)
    assert_same(actual, oracle_bridge.to_local(state, c.x))
    assert_same(moments, replace(c, state=state).moments)


@all_widths
def test_chain_moments(widths):
    c = case(widths)
    moments = c.moments
    for n in range(c.x.shape[0]):
        for layer in range(len(widths) - 1):
            expected = oracle.layer_moments(c.state, c.x[n], n, layer)
            assert_close(moments.inputs[layer][n], expected.parent)
            if layer == len(widths) - 2:
                continue
            actual = oracle_bridge.full_second_moment(moments, layer)[n]
            assert_close(actual, expected.parent_square)
            cross = moments.cross[layer]
            product = moments.inputs[layer + 1][n][1:, None] * moments.inputs[layer][n]
            if cross is not None:
                product[:, 1:] += cross[n]
            assert_close(product, expected.a_parent)


# ------------------------------------------------------------------------------------------------
# Global updates
# ------------------------------------------------------------------------------------------------


def oracle_update(c: Case, name: str) -> oracle.OracleState:
    """One kind of update of all layers; given the others, layers do not see each other."""
    state = c.state
    for layer in range(len(state.widths) - 1):
        match name:
            case "weights":
                state = oracle.update_weights(state, c.prior, c.x, c.y, c.weights, layer)
            case "noise":
                state = oracle.update_noise(state, c.prior, c.x, c.y, c.weights, layer)
            case "global_shrinkage":
                state = oracle.update_global_shrinkage(state, c.prior, layer)
            case "local_shrinkage":
                state = oracle.update_local_shrinkage(state, c.prior, layer)
            case "slab":
                state = oracle.update_slab(state, c.prior, layer)
    return state


def bowtie_update(c: Case, name: str):
    update = getattr(global_step, f"update_{name}")
    if name in ("weights", "noise"):
        return update(c.model, c.factors, c.statistics)
    return update(c.model, c.factors)


@pytest.mark.parametrize("name", GLOBAL_UPDATES)
@all_families
@all_widths
def test_global_updates(widths, families, name):
    c = case(widths, families)
    assert_same(bowtie_update(c, name), oracle_bridge.to_global(oracle_update(c, name)))


@pytest.mark.parametrize("families", ["gig", "regularized_horseshoe"])
@all_widths
def test_global_step_is_its_updates_in_turn(widths, families):
    c = case(widths, families)
    expected = c
    for _ in range(2):
        for name in GLOBAL_UPDATES:
            expected = replace(expected, state=oracle_update(expected, name))
        if len(widths) > 2:
            fresh = oracle.update_activations(expected.state, c.x, c.y).covariance[0][-1]
            rows = [[*row[:-1], fresh] for row in expected.state.covariance]
            expected = replace(expected, state=replace(expected.state, covariance=rows))
    actual = global_step.global_step(c.model, c.factors, c.statistics, repeats=2)
    assert_same(actual, expected.factors, rtol=1e-8)


@all_families
@all_widths
def test_hyperparameters(widths, families):
    c = case(widths, families)
    updated = update_hyperparameters(c.model, c.factors)
    expected = oracle_bridge.to_model(c.state, oracle.em_global(c.prior, c.state))
    # A search by values finds a maximum only to the square root of rounding.
    rtol = 1e-6 if families in ("gig", ("gig", "laplace")) else 1e-9
    assert_same(updated.prior, expected.prior, rtol)


# ------------------------------------------------------------------------------------------------
# Prediction
# ------------------------------------------------------------------------------------------------


def start_of_prediction(c: Case) -> oracle.OracleState:
    """Gates sigmoid(E[z]/T) and tilts sqrt(E[z²])/T from a forward pass at mean activations."""
    gate, tilt = [], []
    for x_n in c.x:
        a, gate_n, tilt_n = x_n, [], []
        for mean, covariance in zip(
            c.state.weight_mean[:-1], c.state.weight_covariance[:-1], strict=True
        ):
            extended = np.concatenate([[1.0], a])
            z = mean @ extended
            square = z**2 + np.array([extended @ b @ extended for b in covariance])
            gate_n.append(expit(z / c.state.gate_temperature))
            tilt_n.append(np.sqrt(square) / c.state.gate_temperature)
            a = gate_n[-1] * z
        gate.append(gate_n)
        tilt.append(tilt_n)
    return replace(c.state, gate=gate, tilt=tilt)


@cache
def oracle_prediction(widths: tuple[int, ...]) -> tuple[oracle.OracleState, int]:
    """The oracle's local updates without targets until the gates stand still, and their number."""
    c = case(widths, "gaussian")
    state = start_of_prediction(c)
    for iteration in range(1, 1000):
        before = state.gate
        state = oracle.update_activations(state, c.x, None)
        state = oracle.update_gates(oracle.update_tilts(state, c.x), c.x)
        pairs = zip(oracle_bridge.stack(before), oracle_bridge.stack(state.gate), strict=True)
        if all(np.max(np.abs(a - b)) < 1e-11 for a, b in pairs):
            return oracle_bridge.with_shared_covariance(state), iteration
    raise AssertionError("the oracle's prediction did not converge")


@all_widths
def test_prediction_starts_with_a_forward_pass(widths):
    c = case(widths)
    memory = local_step.initialize_local(c.model, c.factors, c.x)
    assert_same(memory, oracle_bridge.to_memory(start_of_prediction(c)))


@all_widths
def test_prediction(widths):
    c = case(widths, "gaussian")
    state, iterations = oracle_prediction(widths)
    mean, signal, noise = oracle.predict_mean_and_variance(state, c.x)
    settings = {"tolerance": 0.0, "max_iterations": iterations + 20}
    actual = predict(c.model, c.factors, c.x, propagation="variational", **settings)
    assert_close(actual.mean, mean)
    np.testing.assert_allclose(actual.signal_variance, signal, rtol=1e-9)
    np.testing.assert_allclose(actual.noise_variance, noise, rtol=1e-12)


@pytest.mark.parametrize("widths", [w for w in WIDTHS if len(w) > 2], ids=str)
def test_local_factors_of_a_prediction(widths):
    c = case(widths, "gaussian")
    state, iterations = oracle_prediction(widths)
    factors = without_targets(c.factors)
    actual, _ = local_step.settle(c.model, factors, c.x, None, 0.0, iterations + 20)
    assert_same(actual, oracle_bridge.to_local(state, c.x))
