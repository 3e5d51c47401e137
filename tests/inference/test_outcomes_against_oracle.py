"""The engine with each outcome against plain loops with free latent variables, at random states.

The oracle's bounds are written from the augmented likelihoods (`oracles/outcome_loops`) and the
chain of activations from its dense joint Gaussian, so that nothing here repeats the engine's route.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

from bowtienet.inference import global_step, local_step
from bowtienet.inference.statistics import block_statistics
from bowtienet.posterior.moments import chain_moments, output_moments
from tests import oracle_bridge
from tests.oracle_bridge import Case, alone, assert_close, assert_same
from tests.oracles import outcome_loops
from tests.oracles import plain_loops as oracle
from tests.oracles.outcome_loops import OracleOutcome

OUTCOMES = {
    "student_t": (OracleOutcome(kind="student_t", freedom=3.3), 2),
    "student_t of one": (OracleOutcome(kind="student_t", freedom=5.1), 1),
    "binary": (OracleOutcome(kind="binary"), 1),
    "classes": (OracleOutcome(kind="classes"), 3),
}
WITH_COMMON_AXES = (((4,), "binary"), ((4,), "student_t of one"))
"""One hidden layer below one output."""
CASES = (
    *WITH_COMMON_AXES,
    ((4,), "student_t"),
    ((4,), "classes"),
    ((), "student_t"),
    ((), "binary"),
    ((3, 2), "student_t of one"),
    ((3, 2), "classes"),
    ((3, 2, 3), "binary"),
    ((3, 2, 3), "student_t"),
)

all_cases = pytest.mark.parametrize(("hidden", "name"), CASES, ids=str)


@cache
def case(hidden: tuple[int, ...], name: str) -> Case:
    outcome, n_outputs = OUTCOMES[name]
    seed = zlib.crc32(f"{hidden} {name}".encode())
    widths = (2, *hidden, n_outputs)
    return oracle_bridge.random_case(
        np.random.default_rng(seed), widths, "student_t", count=4, outcome=outcome
    )


@all_cases
def test_bound_and_each_of_its_terms(hidden, name):
    c = case(hidden, name)
    expected = oracle_bridge.oracle_elbo_terms(c)
    size = max(abs(value) for value in expected.values())
    for term, value in expected.items():
        [actual] = getattr(c.elbo, term)
        assert actual == pytest.approx(value, rel=1e-9, abs=1e-11 * size), term


def check_output_moments(c: Case, activations, state: oracle.OracleState) -> None:
    weights = c.factors.layers[-1].weights
    actual = output_moments(weights, activations, chain_moments(activations, c.x))
    rows = [oracle.output_moments(state, c.x[n], n) for n in range(len(c.x))]
    for values, expected in zip(actual, zip(*rows, strict=True), strict=True):
        assert_close(values, [expected])


@all_cases
def test_activations_and_moments_of_the_output(hidden, name):
    """One output: from common axes; several: by inverses. Moments of z follow from either."""
    c = case(hidden, name)
    check_output_moments(c, c.local.activations, c.state)
    actual = local_step.update_activations(c.model, c.factors, c.x, c.y, c.memory)
    state = oracle.update_activations(c.state, c.x, c.y)
    axes = [isinstance(factor.covariance, tuple) for factor in actual]
    assert any(axes) == ((hidden, name) in WITH_COMMON_AXES)
    assert_same(tuple(map(dense, actual)), alone(oracle_bridge.to_activations(state, c.x)))
    check_output_moments(c, actual, state)


def dense(factor):
    """An only layer's covariances, multiplied out."""
    if not isinstance(factor.covariance, tuple):
        return factor
    axes, variances = factor.covariance
    return replace(factor, covariance=np.einsum("mij,mnj,mkj->mnik", axes, variances, axes))


@pytest.mark.parametrize(("hidden", "name"), WITH_COMMON_AXES, ids=str)
def test_statistics_of_common_axes_are_those_of_matrices(hidden, name):
    c = case(hidden, name)
    local, moments = local_step.local_step(c.model, c.factors, c.x, c.y, c.memory)
    as_matrices = replace(local, activations=tuple(map(dense, local.activations)))
    actual, expected = (block_statistics(q, moments, c.y, c.weights) for q in (local, as_matrices))
    assert_same(actual, expected)


@all_cases
def test_local_factors_of_the_outcome(hidden, name):
    """p, k and the constant, after the activations were updated; and in this order in a step."""
    c = case(hidden, name)
    state = oracle.update_activations(c.state, c.x, c.y)
    state = oracle.update_outcome(state, c.x, c.y)
    local, _ = local_step.local_step(c.model, c.factors, c.x, c.y, c.memory)
    expected = alone(oracle_bridge.to_row_terms(state, c.x, c.y))
    assert_same(local.outcome, expected, 1e-8)
    _, _, parabola = local_step.local_memory(local)
    assert_same(parabola, (expected.precision, expected.linear), 1e-8)


@pytest.mark.parametrize("name", ["student_t", "binary", "classes"])
def test_latent_variables_are_stationary(name):
    """The oracle's own bound has no slope in q of the latent variables at their update."""
    c = case((4,), name)
    state = oracle.update_outcome(c.state, c.x, c.y)
    noise = oracle.output_noise(state)
    for n in range(len(c.x)):
        moments = oracle.output_moments(state, c.x[n], n)

        def bound(local, n=n, moments=moments):
            return outcome_loops.bound(state.outcome, local, c.y[n], *moments, *noise)

        slope = jax.grad(bound)
        for key, value in slope(state.outcome_local[n]).items():
            before = np.abs(slope(c.state.outcome_local[n])[key]).max()
            assert before > 1e-4
            assert np.abs(value).max() < 1e-9 * (1.0 + before), key


@all_cases
def test_global_updates(hidden, name):
    c = case(hidden, name)
    for kind in ("weights", "noise"):
        factors = getattr(global_step, f"update_{kind}")(c.model, c.factors, c.statistics)
        state = getattr(oracle, f"update_{kind}")(c.state, c.prior, c.x, c.y, c.weights)
        assert_same(factors, alone(oracle_bridge.to_global(state)), name=kind)
    factors = global_step.global_step(c.model, c.factors, c.statistics, 2)
    assert factors.shared_covariance is None
