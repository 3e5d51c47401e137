"""After each update the autodiff gradient of the ELBO in that factor is zero; before, it is not.

The strongest test of the updates: the bound is the library's own, run on JAX arrays and
differentiated in every free parameter of the variational distribution at once. An update that is
merely uphill fails here. Points are generic (see `builders`): L = 1, 2, 3, unequal widths, two
outputs, row weights that are not 1, and no factor at its optimum.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from tests._old import builders
from tests._old.autodiff import bessel_by_recurrence, gradient, quadrature
from tests._old.builders import Point

TOLERANCE = 1e-10
"""Largest gradient after an update, relative to 1 + the largest before it, of each parameter."""
SEARCH_TOLERANCE = 1e-6
"""The same for the rate of a general GIG: a minimum is only known to the root of rounding."""
CLEARLY_NOT_ZERO = 1e-4

MOVED_BY = {
    "shared_covariance": ("shared_covariance",),
    "activations": ("activations", "shared_covariance"),
    "tilts": ("tilts",),
    "gates": ("gates",),
    "weights": ("weights",),
    "noise": ("noise",),
    "global_shrinkage": ("global_shrinkage",),
    "local_shrinkage": ("local_shrinkage",),
    "slab": ("slab",),
    "hyperparameters": ("hyperparameters",),
}
"""The parameters that each update sets to their joint optimum."""

LOCAL = ("shared_covariance", "activations", "tilts", "gates", "noise")
LOCAL_CASES = (*((hidden, "student_t") for hidden in builders.HIDDEN), ((4, 3), "laplace"))
"""Local factors and noise never meet the shrinkage: every family would only repeat the first."""
SHRINKAGE = ("weights", "global_shrinkage", "local_shrinkage", "hyperparameters")
SHRINKAGE_CASES = (
    *((hidden, "student_t") for hidden in builders.HIDDEN),
    *(((4, 3), family) for family in builders.LEARNT_FAMILIES[1:]),
    *(
        pytest.param((4,), family, marks=pytest.mark.slow)  # a compilation each
        for family in builders.LEARNT_FAMILIES[1:]
    ),
    *(pytest.param((3, 5, 2), family, marks=pytest.mark.slow) for family in ("laplace", "gig")),
)


def check_stationary(point: Point, family: str, name: str) -> None:
    """The update `name` zeroes the gradient of what it moves, which was not zero before."""
    names = (*SHRINKAGE, "slab")
    if (point.model.architecture.hidden, family) in LOCAL_CASES:
        names = None
    updated = builders.UPDATES[name](point)
    assert orders(updated) == orders(point)
    before, after = gradient(point, family, names), gradient(updated, family, names)
    tolerance = SEARCH_TOLERANCE if name == "hyperparameters" and family == "gig" else TOLERANCE
    checked = 0
    for factor in MOVED_BY[name]:
        assert before[factor].keys() == after[factor].keys()
        for key in before[factor]:
            scale = np.abs(before[factor][key]).max()
            assert scale > CLEARLY_NOT_ZERO, f"{factor} {key} starts at its optimum"
            left = np.abs(after[factor][key]).max()
            assert left <= tolerance * (1.0 + scale), f"{factor} {key}: {left} of {scale} left"
            checked += 1
    assert checked > 0


def orders(point: Point) -> list[float]:
    """Orders of the GIG factors, fixed from the start: the bound holds for no others."""
    shrinkage = (
        q for layer in point.factors.layers for q in (layer.global_shrinkage, layer.local_shrinkage)
    )
    return [q.order for q in shrinkage if isinstance(q, GeneralizedInverseGaussian)]


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize(("hidden", "family"), LOCAL_CASES)
def test_local_factors_and_noise(
    hidden: tuple[int, ...], family: str, name: str, rng: np.random.Generator
) -> None:
    check_stationary(builders.random_point(rng, hidden, family), family, name)


@pytest.mark.parametrize("name", SHRINKAGE)
@pytest.mark.parametrize(("hidden", "family"), SHRINKAGE_CASES)
def test_weights_and_shrinkage(
    hidden: tuple[int, ...], family: str, name: str, rng: np.random.Generator
) -> None:
    check_stationary(builders.random_point(rng, hidden, family), family, name)


def test_slab(rng: np.random.Generator) -> None:
    point = builders.random_point(rng, (4, 3), "regularized_horseshoe")
    check_stationary(point, "regularized_horseshoe", "slab")
    without = builders.random_point(rng, (4, 3), "horseshoe")
    assert builders.UPDATES["slab"](without).factors is without.factors


@pytest.mark.parametrize(
    "hidden",
    [
        (4, 3),
        pytest.param((4,), marks=pytest.mark.slow),  # a compilation each
        pytest.param((3, 5, 2), marks=pytest.mark.slow),
    ],
)
def test_fixed_scales(hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    point = builders.random_point(rng, hidden, "gaussian")
    check_stationary(point, "gaussian", "weights")
    for name in ("global_shrinkage", "local_shrinkage"):
        assert builders.UPDATES[name](point).factors == point.factors
    assert builders.UPDATES["hyperparameters"](point).model is point.model


@pytest.mark.parametrize("order", [0.3, 6.5])
def test_bessel_derivatives(order: float) -> None:
    argument = jnp.asarray([0.2, 1.0, 7.0])
    for index in range(2):
        real, quick = (
            jax.jit(jax.grad(lambda w, f=f: jnp.sum(f(order, w)[index])))(argument)  # noqa: B023
            for f in (quadrature, bessel_by_recurrence)
        )
        np.testing.assert_allclose(quick, real, rtol=1e-11)


@pytest.mark.slow
def test_gradient_through_quadrature(rng: np.random.Generator) -> None:
    point = builders.random_point(rng, (4,), "laplace")
    quick, real = (
        gradient(point, "laplace", SHRINKAGE, recurrence) for recurrence in (True, False)
    )
    for a, b in zip(jax.tree.leaves(quick), jax.tree.leaves(real), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
