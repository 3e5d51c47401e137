"""EM for the global prior: the new hyperparameter is the maximum of Σ_l E_q[log p(tau_l)].

The objective comes from the oracle (mpmath's Bessel function, quadratures); its derivative in the
logarithm of the one free hyperparameter is a central difference.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bowtienet._old import engine as bt
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.inference.empirical_bayes import update_hyperparameters
from tests._old import oracle_bridge
from tests._old.oracle_bridge import Case
from tests._old.oracles import plain_loops as oracle

FREE = {
    "student_t": "scale",
    "laplace": "rate",
    "normal_gamma": "rate",
    "normal_inverse_gaussian": "rate",
    "gig": "rate",
    "horseshoe": "scale",
    "regularized_horseshoe": "scale",
}
STEP = 1e-3
WIDTHS = (2, 3, 2, 2)

all_families = pytest.mark.parametrize("family", FREE)


def oracle_prior(prior) -> oracle.ScalePrior:
    if isinstance(prior, HalfCauchy):
        return oracle.Cauchy(scale=float(prior.scale))
    return float(prior.order), float(prior.scale), float(prior.rate)


def objective(case: Case, prior) -> float:
    found = oracle_prior(prior)
    return sum(oracle.expected_log_scale_prior(found, tau) for tau in case.state.tau)


def along(case: Case, prior, name: str, shift: float) -> float:
    """The objective with the logarithm of one hyperparameter shifted."""
    value = float(getattr(prior, name)) * math.exp(shift)
    return objective(case, replace(prior, **{name: value}))


def newton_step(case: Case, prior, name: str) -> float:
    """f'/|f''| in the logarithm: how far the maximum is, in relative terms."""
    up, here, down = (along(case, prior, name, shift) for shift in (STEP, 0.0, -STEP))
    slope, curvature = (up - down) / (2 * STEP), (up - 2 * here + down) / STEP**2
    assert curvature < 0.0
    return slope / -curvature


def update(case: Case):
    return update_hyperparameters(case.model, case.factors).prior.global_shrinkage


@pytest.mark.parametrize("seed", range(3))
@all_families
def test_maximum_is_stationary(family, seed):
    """Within 1e-5 relative (differences of step 1e-3 are exact to 1e-6), from far away before."""
    case = oracle_bridge.random_case(np.random.default_rng(seed), WIDTHS, family)
    before = case.model.prior.global_shrinkage
    after = update(case)
    assert abs(newton_step(case, after, FREE[family])) < 1e-5
    assert objective(case, after) > objective(case, before)
    # The test can fail: an answer 1 % off is not stationary.
    wrong = replace(after, **{FREE[family]: 1.01 * float(getattr(after, FREE[family]))})
    assert abs(newton_step(case, wrong, FREE[family])) > 1e-3


@all_families
def test_no_other_value_is_better(family, rng):
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    after = update(case)
    best = objective(case, after)
    for shift in (-3.0, -0.5, -0.05, 0.05, 0.5, 3.0):
        assert along(case, after, FREE[family], shift) < best


@all_families
def test_only_the_free_hyperparameter_moves(family, rng):
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    model = update_hyperparameters(case.model, case.factors)
    before, after = case.model.prior.global_shrinkage, model.prior.global_shrinkage
    for name in {"order", "scale", "rate"} - {FREE[family]}:
        assert getattr(after, name) == getattr(before, name), name
    assert getattr(after, FREE[family]) != getattr(before, FREE[family])
    prior = replace(model.prior, global_shrinkage=before)
    oracle_bridge.assert_same(prior, case.model.prior, rtol=0.0)
    assert model.gate_temperature == case.model.gate_temperature


@all_families
def test_update_is_idempotent(family, rng):
    """q(tau) keeps its own parameters, so a second update finds the same maximum."""
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    once = update_hyperparameters(case.model, case.factors)
    twice = update_hyperparameters(once, case.factors)
    oracle_bridge.assert_same(twice.prior, once.prior, rtol=1e-6)


def far_case(rng, order: float) -> Case:
    """A gig prior whose own mean cannot reach the mean of q(tau), even at rate 0.

    Only below order -1 is that mean finite, s / (-p - 1).
    """
    case = oracle_bridge.random_case(rng, WIDTHS, "gig")
    prior = replace(case.prior, global_gig=(order, 0.8, 0.7))
    tau = [
        (order - 0.5 * wide * narrow, 40.0 * wide * narrow, 0.7)
        for wide, narrow in zip(WIDTHS[1:], WIDTHS[:-1], strict=True)
    ]
    state = replace(case.state, tau=tau)
    assert min(oracle.gig_mean(*q) for q in tau) > oracle.gig_mean(order, 0.8, 0.0)
    return replace(case, prior=prior, state=state)


@pytest.mark.parametrize("order", [-1.5, -2.0, -3.7])
def test_best_rate_of_nearly_zero(rng, order):
    """The objective falls in the rate everywhere, so the answer goes to the edge of the family."""
    case = far_case(rng, order)
    best = objective(case, replace(case.model.prior.global_shrinkage, rate=0.0))
    for sweep in range(4):
        model = update_hyperparameters(case.model, case.factors)
        after = model.prior.global_shrinkage
        assert after.rate > 0.0
        assert np.isfinite(after.rate)
        if sweep == 0:
            # One search spans e^-20; the bound is already within this of its supremum.
            assert best - 1e-6 < objective(case, after) <= best + 1e-10
        gig = float(after.order), float(after.scale), float(after.rate)
        case = replace(case, prior=replace(case.prior, global_gig=gig))
    assert after.rate * after.scale < 1e-12
    assert objective(case, after) == pytest.approx(best, abs=1e-9)
    # At the edge it stays, and stays a proper member of its family.
    again = update(case)
    assert 0.0 < again.rate * again.scale < 1e-12


def test_best_rate_of_nearly_zero_returns_when_tau_shrinks(rng):
    """The edge is no trap: with small q(tau) the rate comes back to a proper maximum."""
    case = far_case(rng, -1.5)
    for _ in range(4):
        gig = update(case)
        prior = replace(case.prior, global_gig=(gig.order, float(gig.scale), float(gig.rate)))
        case = replace(case, prior=prior)
    small = [(order, 0.002 * scale, 0.7) for order, scale, _ in case.state.tau]
    case = replace(case, state=replace(case.state, tau=small))
    for _ in range(4):
        gig = update(case)
        prior = replace(case.prior, global_gig=(gig.order, float(gig.scale), float(gig.rate)))
        case = replace(case, prior=prior)
    assert abs(newton_step(case, gig, "rate")) < 1e-5


def test_gaussian_prior_is_left_alone(rng):
    case = oracle_bridge.random_case(rng, WIDTHS, "gaussian")
    assert isinstance(case.model.prior.global_shrinkage, PointMass)
    model = case.model
    assert update_hyperparameters(model, case.factors) is model


@all_families
def test_update_raises_the_bound_by_the_gain_of_its_objective(family, rng):
    """Nothing else of the bound depends on the hyperparameter."""
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    after = update(case)
    moved = replace(case, prior=replace(case.prior, global_gig=oracle_prior(after)))
    gain = objective(case, after) - objective(case, case.model.prior.global_shrinkage)
    assert gain > 0.0
    assert float(moved.elbo.total - case.elbo.total) == pytest.approx(gain, rel=1e-7, abs=1e-9)


@all_families
def test_fit_with_empirical_bayes_ends_higher(family, rng):
    inputs = rng.normal(size=(30, 2))
    rows = bt.build_rows(inputs, np.sin(inputs[:, 0]) + 0.1 * rng.normal(size=30))
    model = bt.build_model(bt.build_architecture(2, (4,), 1), prior=family)
    start = bt.initialize(model, rows, rng, init="laplace")
    results = [
        bt.fit(model, rows, start, max_iter=20, empirical_bayes=flag, accelerate=False)
        for flag in (False, True)
    ]
    assert results[0].model is model
    assert results[1].model != model
    assert results[1].elbo_history[-1] > results[0].elbo_history[-1]
    assert np.all(np.diff(results[1].elbo_history) > -1e-9)
