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

from bowtienet._old.inference import global_step, local_step
from bowtienet._old.posterior.factors import CommonAxes
from bowtienet._old.posterior.moments import chain_moments, output_moments
from tests._old import oracle_bridge
from tests._old.oracle_bridge import Case, assert_close, assert_same
from tests._old.oracles import outcome_loops
from tests._old.oracles import plain_loops as oracle
from tests._old.oracles.outcome_loops import OracleOutcome

OUTCOMES = {
    "student_t": (OracleOutcome(kind="student_t", freedom=3.3), 2),
    "student_t of one": (OracleOutcome(kind="student_t", freedom=5.1), 1),
    "binary": (OracleOutcome(kind="binary"), 1),
    "counts": (OracleOutcome(kind="counts", dispersion=2.3, offset=0.4), 1),
    "classes": (OracleOutcome(kind="classes"), 3),
}
HIDDEN = ((), (4,), (3, 2), (3, 2, 3))

all_hidden = pytest.mark.parametrize("hidden", HIDDEN, ids=str)
all_outcomes = pytest.mark.parametrize("name", OUTCOMES)


@cache
def case(hidden: tuple[int, ...], name: str) -> Case:
    outcome, n_outputs = OUTCOMES[name]
    seed = zlib.crc32(f"{hidden} {name}".encode())
    widths = (2, *hidden, n_outputs)
    return oracle_bridge.random_case(
        np.random.default_rng(seed), widths, "student_t", count=4, outcome=outcome
    )


@all_outcomes
@all_hidden
def test_bound_and_each_of_its_terms(hidden, name):
    c = case(hidden, name)
    expected = oracle_bridge.oracle_elbo_terms(c)
    size = max(abs(value) for value in expected.values())
    for term, value in expected.items():
        actual = float(getattr(c.elbo, term))
        assert actual == pytest.approx(value, rel=1e-9, abs=1e-11 * size), term


@all_outcomes
@all_hidden
def test_moments_of_the_output(hidden, name):
    c = case(hidden, name)
    mean, square = output_moments(c.factors.layers[-1].weights, c.local.activations, c.moments)
    expected = [oracle.output_moments(c.state, c.x[n], n) for n in range(len(c.x))]
    assert_close(mean, [e[0] for e in expected])
    assert_close(square, [e[1] for e in expected])


@all_outcomes
@all_hidden
def test_activations(hidden, name):
    """One output: from common axes; several: by inverses. Moments of z follow from either."""
    c = case(hidden, name)
    found = local_step.update_activations(c.model, c.factors, c.x, c.y, c.memory)
    state = oracle.update_activations(c.state, c.x, c.y)
    expected = oracle_bridge.to_activations(state, c.x)
    assert len(found) == len(hidden)
    if hidden:
        is_common = isinstance(found[-1].covariance, CommonAxes)
        assert is_common == (len(hidden) == 1 and c.state.widths[-1] == 1)
    assert_same(tuple(map(dense, found)), expected)
    moments = output_moments(c.factors.layers[-1].weights, found, chain_moments(found, c.x))
    rows = [oracle.output_moments(state, c.x[n], n) for n in range(len(c.x))]
    assert_close(moments[0], [row[0] for row in rows])
    assert_close(moments[1], [row[1] for row in rows])


@all_outcomes
@all_hidden
def test_statistics_of_common_axes_are_those_of_matrices(hidden, name):
    c = case(hidden, name)
    local, moments = local_step.local_step(c.model, c.factors, c.x, c.y, c.memory)
    as_matrices = replace(local, activations=tuple(map(dense, local.activations)))
    settings = {"has_noise": c.model.outcome.has_noise}
    found, expected = (local_step_statistics(q, moments, c, settings) for q in (local, as_matrices))
    assert_same(found, expected)


def local_step_statistics(local, moments, c, settings):
    return oracle_bridge.block_statistics(local, moments, c.y, c.weights, **settings)


def dense(factor):
    """An only layer's covariances, multiplied out."""
    if not isinstance(factor.covariance, CommonAxes):
        return factor
    axes, variances = factor.covariance.axes, factor.covariance.variances
    return replace(factor, covariance=np.einsum("ij,nj,kj->nik", axes, variances, axes))


@all_outcomes
@all_hidden
def test_local_factors_of_the_outcome(hidden, name):
    """p, k and the constant, after the activations were updated; and in this order in a step."""
    c = case(hidden, name)
    state = oracle.update_activations(c.state, c.x, c.y)
    state = oracle.update_outcome(state, c.x, c.y)
    local, _ = local_step.local_step(c.model, c.factors, c.x, c.y, c.memory)
    expected = oracle_bridge.to_row_terms(state, c.x, c.y)
    for field in ("precision", "linear", "constant", "slope"):
        assert_same(getattr(local.outcome, field), getattr(expected, field), 1e-8, field)
    memory = local_step.local_memory(c.model, local)
    assert_same(memory.outcome, oracle_bridge.to_memory(state, c.y).outcome, 1e-8)


@pytest.mark.parametrize("name", OUTCOMES)
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


@all_outcomes
@all_hidden
@pytest.mark.parametrize("kind", ["weights", "noise"])
def test_global_updates(hidden, name, kind):
    c = case(hidden, name)
    factors = getattr(global_step, f"update_{kind}")(c.model, c.factors, c.statistics)
    update = getattr(oracle, f"update_{kind}")
    for layer in range(len(hidden) + 1):
        state = update(c.state, c.prior, c.x, c.y, c.weights, layer)
        assert_same(factors.layers[layer], oracle_bridge.to_global(state).layers[layer])


@all_outcomes
@all_hidden
def test_there_is_no_shared_covariance(hidden, name):
    c = case(hidden, name)
    factors = global_step.global_step(c.model, c.factors, c.statistics, 2)
    assert factors.shared_covariance is None
