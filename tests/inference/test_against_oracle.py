"""Every piece of the engine against plain loops written from the model, at random states.

Random rather than fitted states, so that no term is at its optimum and none can hide behind
another; random row weights; every family of shrinkage prior; no to three hidden layers. The oracle
knows one network: that those side by side do not see each other is shown at the end.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from bowtienet.inference import global_step, local_step
from bowtienet.inference.empirical_bayes import separate_hyperparameters
from bowtienet.prediction import variational
from tests import oracle_bridge
from tests.oracle_bridge import WIDTHS, Case, alone, assert_close, assert_same, single
from tests.oracles import plain_loops as oracle

MIXED = (("gig", "laplace"), ("gaussian", "student_t"), ("student_t", "regularized_horseshoe"))
GLOBAL_UPDATES = ("weights", "noise", "global_shrinkage", "local_shrinkage", "slab")
CASES = (
    *((widths, "gig") for widths in WIDTHS),
    *((WIDTHS[i % 4], families) for i, families in enumerate((*oracle.FAMILIES, *MIXED))),
)
"""Every depth with the most general family, and every family with one of the depths."""

all_widths = pytest.mark.parametrize("widths", WIDTHS, ids=str)
all_cases = pytest.mark.parametrize(("widths", "families"), dict.fromkeys(CASES), ids=str)


@cache
def case(widths: tuple[int, ...], families: str | tuple[str, str] = "gig") -> Case:
    seed = zlib.crc32(f"{widths} {families}".encode())
    return oracle_bridge.random_case(np.random.default_rng(seed), widths, families)


@all_cases
def test_elbo_and_each_of_its_terms(widths, families):
    terms = case(widths, families).elbo
    expected = oracle_bridge.oracle_elbo_terms(case(widths, families))
    size = max(abs(value) for value in expected.values())
    for name, value in expected.items():
        [actual] = getattr(terms, name)
        assert actual == pytest.approx(value, rel=1e-9, abs=1e-11 * size), name


@pytest.mark.parametrize("targets", ["known", "unknown"])
@all_widths
def test_activations(widths, targets):
    c = case(widths)
    y = c.y if targets == "known" else None
    prepare = variational.without_targets if y is None else global_step.update_shared_covariance
    factors = prepare(c.factors)
    actual = local_step.update_activations(c.model, factors, c.x, y, c.memory)
    updated = oracle.update_activations(c.state, c.x, y)
    if len(widths) > 2:
        for row in updated.covariance:
            assert_close(factors.shared_covariance, [row[-1]])
    # Rows share the oracle's last covariance up to rounding only.
    updated = oracle_bridge.with_shared_covariance(updated)
    assert_same(actual, alone(oracle_bridge.to_activations(updated, c.x)))


@all_widths
def test_tilts_and_gates(widths):
    c = case(widths)
    tilt = local_step.update_tilts(c.model, c.factors, c.moments)
    assert_same(tilt, alone(oracle_bridge.stack(oracle.update_tilts(c.state, c.x).tilt)))
    actual, _ = local_step.update_gates(c.model, c.factors, c.moments, tilt)
    expected = alone(oracle_bridge.stack(oracle.update_gates(c.state, c.x).gate))
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
    assert_same(actual, alone(oracle_bridge.to_local(state, c.x)))
    assert_same(moments, replace(c, state=state).moments)


def oracle_update(c: Case, name: str) -> oracle.OracleState:
    data = (c.x, c.y, c.weights) if name in ("weights", "noise") else ()
    return getattr(oracle, f"update_{name}")(c.state, c.prior, *data)


@all_cases
def test_global_updates(widths, families):
    c = case(widths, families)
    model = separate_hyperparameters(c.model, 1)
    for name in GLOBAL_UPDATES:
        sums = (c.statistics,) if name in ("weights", "noise") else ()
        actual = getattr(global_step, f"update_{name}")(model, c.factors, *sums)
        assert_same(actual, alone(oracle_bridge.to_global(oracle_update(c, name))), name=name)


@pytest.mark.parametrize(
    ("widths", "families"),
    [(WIDTHS[0], "gig"), (WIDTHS[1], "regularized_horseshoe"), (WIDTHS[2], "gig")],
    ids=str,
)
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
    model = separate_hyperparameters(c.model, 1)
    actual = global_step.global_step(model, c.factors, c.statistics, rounds=2)
    assert_same(actual, expected.factors, rtol=1e-8)


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
            gate_n.append(expit(z / c.state.temperature))
            tilt_n.append(np.sqrt(square) / c.state.temperature)
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
def test_prediction(widths, monkeypatch):
    """Start, local factors and moments of outputs; Var[z] by the weights is mu~'B mu~."""
    c = case(widths, "gaussian")
    start = local_step.initialize_local(c.model, c.factors, c.x)
    assert_same(start, alone(oracle_bridge.to_memory(start_of_prediction(c))))
    state, iterations = oracle_prediction(widths)
    factors = variational.without_targets(c.factors)
    actual, _ = local_step.settle(c.model, factors, c.x, None, 0.0, iterations + 20)
    assert_same(actual, alone(oracle_bridge.to_local(state, c.x)))
    monkeypatch.setattr(variational, "SETTLED", 0.0)
    monkeypatch.setattr(variational, "MOST_STEPS", iterations + 20)
    moments = single(variational.output_moments(c.model, c.factors, c.x, "variational"))
    noise = variational.output_noise(c.model, c.factors)[0]
    mean, variance, expected_noise = oracle.predict_mean_and_variance(state, c.x)
    assert_close(moments.mean, mean)
    np.testing.assert_allclose(moments.epistemic + moments.chance, variance, rtol=1e-9)
    np.testing.assert_allclose(noise + 0.0 * mean, expected_noise, rtol=1e-12)
    last = len(widths) - 2
    for n, x_n in enumerate(c.x):
        parent = oracle.layer_moments(state, x_n, n, last).parent
        by_weights = [parent @ b @ parent for b in state.weight_covariance[last]]
        np.testing.assert_allclose(moments.epistemic[n], by_weights, rtol=1e-9)
