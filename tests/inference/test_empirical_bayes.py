"""EM for the global prior: the new hyperparameter is the maximum of Σ_l E_q[log p(tau_l)].

The objective comes from the oracle (mpmath's Bessel function, quadratures); its derivative in the
logarithm of the one free hyperparameter is a central difference.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bowtienet._arrays import map_arrays
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.inference.empirical_bayes import separate_hyperparameters, update_hyperparameters
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.initialize import stacked
from tests import oracle_bridge
from tests.oracle_bridge import Case, assert_same
from tests.oracles import plain_loops as oracle

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
        return oracle.Cauchy(scale=prior.scale)
    return prior.order, prior.scale, prior.rate


def objective(case: Case, prior) -> float:
    values = oracle_prior(prior)
    return sum(oracle.expected_log_scale_prior(values, tau) for tau in case.state.tau)


def along(case: Case, prior, name: str, shift: float) -> float:
    """The objective with the logarithm of one hyperparameter shifted."""
    return objective(case, replace(prior, **{name: getattr(prior, name) * math.exp(shift)}))


def newton_step(case: Case, prior, name: str) -> float:
    """f'/|f''| in the logarithm: how far the maximum is, in relative terms."""
    up, here, down = (along(case, prior, name, shift) for shift in (STEP, 0.0, -STEP))
    slope, curvature = (up - down) / (2 * STEP), (up - 2 * here + down) / STEP**2
    assert curvature < 0.0
    return slope / -curvature


def shrinkage_of(model: BowTieModel, index: int = 0):
    """The global prior of one network, in numbers."""
    return map_arrays(lambda x: float(x[index]), model.global_shrinkage)


def update(case: Case):
    return shrinkage_of(update_hyperparameters(case.model, case.factors))


def random_cases(rng: np.random.Generator, family: str) -> list[Case]:
    """Networks with the same prior, whose q(tau) differ."""
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    cases = [case]
    for _ in range(2):
        factors = rng.uniform(0.3, 3.0, size=(len(case.state.tau), 2))
        tau = [
            (order, float(scale * a), float(rate * b))
            for (order, scale, rate), (a, b) in zip(case.state.tau, factors, strict=True)
        ]
        cases.append(replace(case, state=replace(case.state, tau=tau)))
    return cases


@all_families
def test_update_is_the_maximum_of_each_network(family, rng):
    """Within 1e-5 relative (differences of step 1e-3 are exact to 1e-6), from far away before."""
    cases, name = random_cases(rng, family), FREE[family]
    posterior = stacked([case.factors for case in cases])
    once = update_hyperparameters(cases[0].model, posterior)
    separate = separate_hyperparameters(cases[0].model, len(cases))
    assert_same(update_hyperparameters(separate, posterior), once, rtol=1e-9)
    for index, case in enumerate(cases):
        before, after = case.model.global_shrinkage, shrinkage_of(once, index)
        assert_same(update(case), after, rtol=1e-9)
        assert abs(newton_step(case, after, name)) < 1e-5
        best = objective(case, after)
        assert best > objective(case, before)
        for shift in (-3.0, -0.5, -0.05, 0.05, 0.5, 3.0):
            assert along(case, after, name, shift) < best
        # The test can fail: an answer 1 % off is not stationary.
        wrong = replace(after, **{name: 1.01 * getattr(after, name)})
        assert abs(newton_step(case, wrong, name)) > 1e-3


@all_families
def test_only_the_free_hyperparameter_moves_and_only_once(family, rng):
    """q(tau) keeps its own parameters, so a second update finds the same maximum.

    Nothing else of the bound depends on the hyperparameter: its gain is that of the objective.
    """
    case = oracle_bridge.random_case(rng, WIDTHS, family)
    once = update_hyperparameters(case.model, case.factors)
    before, after = case.model.global_shrinkage, shrinkage_of(once)
    for name in {"order", "scale", "rate"} - {FREE[family]}:
        assert getattr(after, name) == getattr(before, name), name
    assert getattr(after, FREE[family]) != getattr(before, FREE[family])
    unmoved = replace(once, global_shrinkage=before)
    assert_same(unmoved, case.model, rtol=0.0)
    assert_same(update_hyperparameters(once, case.factors), once, rtol=1e-6)
    moved = replace(case, prior=replace(case.prior, global_gig=oracle_prior(after)))
    gain = objective(case, after) - objective(case, before)
    assert gain > 0.0
    assert float((moved.elbo.total - case.elbo.total)[0]) == pytest.approx(gain, rel=1e-7, abs=1e-9)


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
    assert min(oracle.gig_mean(*q) for q in tau) > oracle.gig_mean(order, 0.8, 0.0)
    return replace(case, prior=prior, state=replace(case.state, tau=tau))


def updated(case: Case) -> Case:
    """The case with its prior at the update."""
    return replace(case, prior=replace(case.prior, global_gig=oracle_prior(update(case))))


@pytest.mark.parametrize("order", [-1.5, -3.7])
def test_best_rate_of_nearly_zero(rng, order):
    """The objective falls in the rate everywhere, so the answer goes to the edge of the family."""
    case = far_case(rng, order)
    best = objective(case, replace(case.model.global_shrinkage, rate=0.0))
    for sweep in range(4):
        after = update(case)
        assert 0.0 < after.rate < math.inf
        if sweep == 0:
            # One search spans e^-20; the bound is already within this of its supremum.
            assert best - 1e-6 < objective(case, after) <= best + 1e-10
        case = updated(case)
    assert after.rate * after.scale < 1e-12
    assert objective(case, after) == pytest.approx(best, abs=1e-9)
    # At the edge it stays, and stays a proper member of its family.
    again = update(case)
    assert 0.0 < again.rate * again.scale < 1e-12
    # And the edge is no trap: with small q(tau) the rate comes back to a proper maximum.
    small = [(order, 0.002 * scale, 0.7) for order, scale, _ in case.state.tau]
    case = replace(case, state=replace(case.state, tau=small))
    for _ in range(4):
        case = updated(case)
    assert abs(newton_step(case, case.model.global_shrinkage, "rate")) < 1e-5
