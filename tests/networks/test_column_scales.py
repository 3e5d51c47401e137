"""Local scales: closed forms, maxima of their bounds, and what they do to columns without use."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.model.shrinkage import FAMILIES, ShrinkagePrior
from bowtienet.networks.column_scales import (
    Columns,
    local_prior,
    local_scales,
    relative_penalties,
)
from bowtienet.networks.networks import random_networks
from bowtienet.networks.train import minibatches, train
from bowtienet.outcomes import GAUSSIAN
from tests.builders import log_density

OWNERS = np.array([0, 0, 1, 2, 2, 2, 4])
"""A column of two inputs, one of three, and one (number 3) without inputs."""
FIRST = np.array([0, 2, 3, 6])
"""An input of each column."""


def columns_of(family: str, owners: np.ndarray = OWNERS, count: int = 2) -> Columns:
    return Columns(owners=owners, shrinks=np.ones(count, bool), prior=local_prior(family))


def random_weights(rng: np.random.Generator) -> np.ndarray:
    sizes = np.array([1.0, 0.5, 0.1, 1e-3, 1e-2, 0.0, 1e-4])
    return (rng.normal(size=(2, 5, 7)) * sizes).astype(np.float32)


# The closed form


def test_student_t_written_out(rng: np.random.Generator) -> None:
    """f_j = (a + ½) / (a + ½ w_j / tau), then over the mean of 1 / f_j."""
    weights, a = random_weights(rng), 5e-4
    result = relative_penalties(columns_of("student_t"), weights)
    assert (result.shape, result.dtype) == ((2, 7), np.float32)
    for r in range(2):
        squares = {}
        for owner in (0, 1, 2, 4):
            each = [float(w) ** 2 for w in weights[r][:, owner == OWNERS].ravel()]
            squares[owner] = sum(each) / len(each)
        tau = sum(squares.values()) / 4.0
        f = {j: (a + 0.5) / (a + 0.5 * w / tau) for j, w in squares.items()}
        mean = sum(1.0 / each for each in f.values()) / 4.0
        np.testing.assert_allclose(result[r], [f[j] * mean for j in OWNERS], rtol=1e-5)


def bound(prior: ShrinkagePrior, q: GeneralizedInverseGaussian, square: float) -> float:
    """E_q[log prior(psi) N(√square | 0, psi) - log q(psi)] by quadrature over log psi.

    The prior of a square of a half-Cauchy variable is the bound of its mixture over nu, at the best
    q(nu): E[log p(psi | nu)] is -½ log nu - E[1/psi] / nu and terms without nu.
    """
    t = np.linspace(-60.0, 80.0, 14_001)
    psi = np.exp(t)
    log_mass = log_density(q, psi) + t + np.log(t[1] - t[0])
    mass = np.exp(log_mass)
    assert mass.sum() == pytest.approx(1.0, abs=1e-7)
    if isinstance(prior, HalfCauchy):
        inverse = mass @ (1.0 / psi) + 1.0 / prior.scale
        log_prior = -np.log(np.pi) - 0.5 * np.log(prior.scale) - np.log(inverse) - 1.5 * t
    else:
        log_prior = log_density(prior, psi)
    log_likelihood = -0.5 * np.log(2.0 * np.pi * psi) - 0.5 * square / psi
    log_ratio = log_prior + log_likelihood - (log_mass - t - np.log(t[1] - t[0]))
    return float(np.sum(np.where(mass > 0.0, mass, 0.0) * np.where(mass > 0.0, log_ratio, 0.0)))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "gaussian"])
def test_the_step_maximises_its_bound(family: str) -> None:
    """In order, scale and rate of q: lower on both sides, and level between them."""
    weights = np.sqrt(np.array([[[0.02, 0.6, 2.38]]], dtype=np.float32))
    columns = columns_of(family, np.arange(3), 1)
    scales, tau = local_scales(columns, weights)
    for j, square in enumerate(weights[0, 0].astype(float) ** 2 / tau[0, 0]):
        best = {"order": scales.order, "scale": float(scales.scale[0, j]), "rate": scales.rate}
        at_best = bound(columns.prior, GeneralizedInverseGaussian(**best), square)
        for name, value in best.items():
            step = 0.02 * (abs(value) or 1.0)
            values = [value + step, value - step] if value else [value + step]
            others = [
                bound(columns.prior, GeneralizedInverseGaussian(**{**best, name: v}), square)
                for v in values
            ]
            assert max(others) < at_best - 1e-7
            if len(others) == 2:
                # A slope that is not zero would make the difference a part of the fall.
                assert abs(others[0] - others[1]) < 0.2 * (at_best - min(others))


# Relative penalties


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_finite_penalties(family: str, rng: np.random.Generator) -> None:
    """Of one mean of 1 / f over the columns, whatever the unit; also of weights that are zero."""
    weights = random_weights(rng)
    for given in (weights, 1e-15 * weights, 1e15 * weights, 0.0 * weights):
        result = relative_penalties(columns_of(family), given)
        assert np.isfinite(result).all()
        np.testing.assert_allclose(np.mean(1.0 / result[:, FIRST], axis=1), 1.0, rtol=1e-5)
        expected = relative_penalties(columns_of(family), weights) if given.any() else 1.0
        np.testing.assert_allclose(result, expected * np.ones((2, 7)), rtol=1e-4)
    if family == "gaussian":
        np.testing.assert_array_equal(result, 1.0)
    else:
        used = relative_penalties(columns_of(family), weights)[:, FIRST]
        assert np.all(np.diff(used, axis=1) > 0.0)


def test_training_shrinks_a_column_without_use(rng: np.random.Generator) -> None:
    """Next to the column that matters: far more than the same penalty without local scales."""
    x = rng.normal(size=(150, 4))
    y = np.sin(1.5 * x[:, :1]) + 0.5 * rng.normal(size=(150, 1))
    start = random_networks(rng, x, (8,), 1, 2)

    def shares(columns: Columns | None) -> np.ndarray:
        trained = train(
            start,
            minibatches(x, y, np.ones(150), 50, np.random.default_rng(1)),
            outcome=GAUSSIAN,
            penalties=np.ones(2),
            total_weights=np.full(2, 150.0),
            n_steps=600,
            columns=columns,
        )
        sizes = np.sqrt(np.sum(trained.layers[0][:, :, 1:] ** 2, axis=1))
        return sizes[:, 1:] / sizes[:, :1]

    with_scales, without = shares(columns_of("student_t", np.arange(4))), shares(None)
    assert np.all(with_scales < 0.2 * without)
