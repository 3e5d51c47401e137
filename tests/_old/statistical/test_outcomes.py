"""The bound of every outcome against draws from q, its latent variables included.

As in `test_monte_carlo`: z-scores with a limit of 5 standard errors, 6e-7 false alarms for each.
"""

from __future__ import annotations

import numpy as np
import polyagamma
import pytest
from scipy import stats
from scipy.special import gammaln

from tests._old import oracle_bridge
from tests._old.inference.test_outcomes_against_oracle import OUTCOMES
from tests._old.oracle_bridge import Case
from tests._old.statistical.test_monte_carlo import (
    LIMIT,
    assert_within_error,
    draw,
    log_normal,
    preactivations,
)

SIZE = 40_000


def omega_terms(rng, count, tilt, x):
    """Draws of log of sigmoid's augmentation but for its e^{kappa x}: counts (size,), tilt ()."""
    some = np.where(count > 0.0, count, 1.0)
    omega = polyagamma.random_polyagamma(some, tilt, size=SIZE, random_state=rng)
    omega = np.where(count > 0.0, omega, 0.0)
    ratio = 0.5 * tilt**2 * omega - count * np.log(np.cosh(tilt / 2))
    return -count * np.log(2.0) - 0.5 * omega * x**2 + ratio


def likelihood_draws(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Σ_n w_n (log p(y, latents | z) - log q(latents)) of every draw."""
    state, draws = case.state, draw(case, rng, SIZE)
    outcome, width = state.outcome, state.widths[-1]
    z, total = preactivations(case, draws)[-1], np.zeros(SIZE)
    for n, weight in enumerate(case.weights):
        q, y, found = state.outcome_local[n], case.y[n], np.zeros(SIZE)
        if outcome.kind == "classes":
            law = stats.gamma(q["shape"][0], scale=1.0 / width)
            rate = law.rvs(size=SIZE, random_state=rng)
            found -= law.logpdf(rate)
        for d in range(width):
            if outcome.kind == "student_t":
                own = stats.gamma(q["shape"][d], scale=1.0 / q["rate"][d])
                scale = own.rvs(size=SIZE, random_state=rng)
                prior = stats.gamma(0.5 * outcome.freedom, scale=2.0 / outcome.freedom)
                found += log_normal(y[d], z[:, n, d], draws.noise[-1][:, d] / scale)
                found += prior.logpdf(scale) - own.logpdf(scale)
                continue
            x = z[:, n, d]
            if outcome.kind == "binary":
                for_it, against = y[0], 1.0 - y[0]
            elif outcome.kind == "counts":
                x = x + outcome.offset + y[1]
                for_it, against = y[0], outcome.dispersion
                found += gammaln(y[0] + against) - gammaln(against) - gammaln(y[0] + 1.0)
            else:
                poisson = stats.poisson(q["poisson"][d])
                for_it, against = float(y[0] == d), poisson.rvs(size=SIZE, random_state=rng)
                found += stats.poisson(rate).logpmf(against) - poisson.logpmf(against)
            found += 0.5 * (for_it - against) * x
            count = np.broadcast_to(np.asarray(for_it + against, dtype=float), (SIZE,))
            found += omega_terms(rng, count, q["tilt"][d], x)
        total += weight * found
    return total


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("sweeps", [0, 8])
def test_likelihood(name, sweeps, rng):
    """At a random state and near an optimum; the other terms are those of Gaussian targets."""
    outcome, n_outputs = OUTCOMES[name]
    case = oracle_bridge.random_case(rng, (2, 3, 2, n_outputs), count=3, outcome=outcome)
    case = oracle_bridge.swept(case, sweeps)
    draws = likelihood_draws(case, rng)
    assert_within_error(case.elbo.likelihood, draws)
    error = draws.std() / np.sqrt(SIZE)
    assert sweeps == 0 or LIMIT * error < 0.3
