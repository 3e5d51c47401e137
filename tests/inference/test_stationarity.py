"""After each update the autodiff gradient of the ELBO in that factor is zero; before, it is not.

The strongest test of the updates: the bound is the library's own, run on JAX arrays and
differentiated in every free parameter of the variational distribution at once. An update that is
merely uphill fails here. Points are generic (see `builders`): two networks side by side, L = 1, 2,
3, unequal widths, two outputs, row weights that are not 1, and no factor at its optimum.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from tests import builders
from tests.autodiff import assert_stationary, bessel_by_recurrence, gradient, quadrature
from tests.builders import Point

STATIONARY = 1e-10
SEARCHED = 1e-6
"""For the rate of a general GIG: a minimum is only known to the root of rounding."""

LOCAL = ("shared_covariance", "activations", "tilts", "gates", "noise")
SHRINKAGE = ("weights", "global_shrinkage", "local_shrinkage", "slab", "hyperparameters")
MOVED_BY = {name: (name,) for name in (*LOCAL, *SHRINKAGE)}
"""The parameters that each update sets to their joint optimum."""
MOVED_BY["activations"] = ("activations", "shared_covariance")

CASES = {
    ((4,), "student_t"): False,
    ((4, 3), "student_t"): True,
    ((3, 5, 2), "student_t"): False,
    ((4, 3), "laplace"): True,
    ((3, 5, 2), "laplace"): True,
    ((4, 3), "normal_gamma"): False,  # of which the Laplace is a special case
    ((4,), "normal_inverse_gaussian"): False,
    ((4, 3), "gig"): False,
    ((3, 5, 2), "gig"): True,
    ((4,), "horseshoe"): False,
    ((4, 3), "horseshoe"): True,
    ((4, 3), "regularized_horseshoe"): False,
    ((4,), "gaussian"): False,
    ((3, 5, 2), "gaussian"): True,
}
"""Networks and families, and whether they are slow: seconds of compilation each."""


def names_of(family: str) -> tuple[str, ...]:
    """Local factors and noise never meet the shrinkage: one family of them is enough."""
    if family == "gaussian":
        return ("weights",)
    names = (*LOCAL, *SHRINKAGE) if family == "student_t" else SHRINKAGE
    return tuple(n for n in names if n != "slab" or family == "regularized_horseshoe")


def orders(point: Point) -> list[float]:
    """Orders of the GIG factors, fixed from the start: the bound holds for no others."""
    shrinkage = (
        q for layer in point.factors.layers for q in (layer.global_shrinkage, layer.local_shrinkage)
    )
    return [q.order for q in shrinkage if isinstance(q, GeneralizedInverseGaussian)]


@pytest.mark.parametrize(
    ("hidden", "family", "name"),
    [
        pytest.param(hidden, family, name, marks=[pytest.mark.slow] * is_slow)
        for (hidden, family), is_slow in CASES.items()
        for name in names_of(family)
    ],
    ids=str,
)
def test_update_is_stationary(hidden, family, name, rng):
    point = builders.random_point(rng, hidden, family)
    updated = builders.UPDATES[name](point)
    assert orders(updated) == orders(point)
    names = names_of(family)
    before, after = gradient(point, family, names), gradient(updated, family, names)
    tolerance = SEARCHED if (family, name) == ("gig", "hyperparameters") else STATIONARY
    for factor in MOVED_BY[name]:
        assert_stationary(before[factor], after[factor], tolerance)


def test_what_is_fixed_stays(rng):
    point = builders.random_point(rng, (4, 3), "gaussian")
    for name in ("global_shrinkage", "local_shrinkage"):
        assert builders.UPDATES[name](point).factors == point.factors
    assert builders.UPDATES["hyperparameters"](point).model is point.model
    assert builders.UPDATES["slab"](point).factors is point.factors


@pytest.mark.parametrize("order", [0.3, pytest.param(6.5, marks=pytest.mark.slow)])
def test_bessel_derivatives(order):
    argument = jnp.asarray([0.2, 1.0, 7.0])
    ones = jnp.ones_like(argument)
    real, quick = (
        jax.jit(lambda w, f=f: jax.jvp(lambda x: f(order, x), (w,), (ones,))[1])(argument)
        for f in (quadrature, bessel_by_recurrence)
    )
    for a, b in zip(quick, real, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


@pytest.mark.slow
def test_gradient_through_quadrature(rng):
    point = builders.random_point(rng, (4,), "laplace")
    names = names_of("laplace")
    quick, real = (gradient(point, "laplace", names, recurrence) for recurrence in (True, False))
    for a, b in zip(jax.tree.leaves(quick), jax.tree.leaves(real), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
