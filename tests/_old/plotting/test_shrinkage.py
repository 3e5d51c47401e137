"""Densities of the scales of weights: against SciPy, mixtures, fixed scales, what pruning left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from bowtienet._old import BowTieRegressor
from bowtienet._old.distributions.generalized_inverse_gaussian import (
    GeneralizedInverseGaussian,
    log_density,
)
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.shrinkage import FAMILIES, build_shrinkage, conjugate_update
from bowtienet._old.plotting import ShrinkageDisplay
from bowtienet._old.plotting.shrinkage import Panel, density_curve, median_note, shrinkage_panels
from tests._old.plotting.fits import quick
from tests._old.sign_pruning import prune_by_signs

Rows = tuple[pd.DataFrame, pd.Series]


def gig(order: float, scale: Any, rate: float) -> GeneralizedInverseGaussian:
    return GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)


CASES = [
    pytest.param(gig(-1.5, 0.5, 0.0), stats.invgamma(1.5, scale=0.5), id="inverse gamma"),
    pytest.param(gig(-1250.0, 70.0, 0.0), stats.invgamma(1250.0, scale=70.0), id="sharp"),
    pytest.param(gig(0.5, 0.0, 2.0), stats.gamma(0.5, scale=0.5), id="gamma"),
    pytest.param(
        gig(-0.5, 0.2, 0.8), stats.geninvgauss(-0.5, 2.0 * 0.4, scale=0.5), id="both tails"
    ),
    pytest.param(
        gig(0.5, 1e-6, 1.0), stats.geninvgauss(0.5, 2e-3, scale=1e-3), id="weight under Laplace"
    ),
]


@pytest.mark.parametrize(("q", "expected"), CASES)
def test_curves_are_densities_of_the_logarithm(
    q: GeneralizedInverseGaussian, expected: Any
) -> None:
    curve = density_curve(q)
    np.testing.assert_allclose(curve.density, curve.x * expected.pdf(curve.x), rtol=1e-8)
    area = trapezoid(curve.density, np.log(curve.x))
    assert 0.97 < area < 1.0001
    peak = np.max(curve.density)
    assert np.all(curve.density >= 0.001 * peak)
    assert max(curve.density[[0, -1]]) < 0.02 * peak


def lines(display: ShrinkageDisplay, place: int) -> tuple[Any, Any]:
    """Prior and posterior of a panel."""
    prior, posterior = display.axes_.flat[place].lines
    return prior, posterior


def test_what_is_drawn_is_the_prior_and_the_posterior(deep: BowTieRegressor) -> None:
    display = ShrinkageDisplay.from_estimator(deep)
    member = deep.ensemble_.members[0]
    assert display.axes_.shape == (3, 2)
    for layer, factors in enumerate(member.factors.layers):
        expected = (
            (member.model.prior.global_shrinkage, factors.global_shrinkage),
            (member.model.prior.local_shrinkage[layer], factors.local_shrinkage),
        )
        for column, (prior, q) in enumerate(expected):
            place = 2 * layer + column
            before, after = lines(display, place)
            drawn = before.get_xydata()
            density = stats.invgamma(-prior.order, scale=prior.scale).pdf(drawn[:, 0])
            np.testing.assert_allclose(drawn[:, 1], density * drawn[:, 0], rtol=1e-8)
            x, height = after.get_xydata()[::50].T
            scales = np.ravel(q.scale)
            density = np.mean([stats.invgamma(-q.order, scale=s).pdf(x) for s in scales], axis=0)
            np.testing.assert_allclose(height, density * x, rtol=1e-8)
    titles = [ax.get_title(loc="left") for ax in display.axes_[:, 0]]
    assert titles == ["inputs → layer 1", "layer 1 → layer 2", "layer 2 → output"]
    assert [line.is_dashed() for line in lines(display, 0)] == [True, False]
    assert display.axes_[0, 0].get_xscale() == "log"


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "gaussian"])
def test_every_prior_and_its_posteriors_have_area_one(family: str) -> None:
    """Scales of weights from nothing to large ones, and the scale of a layer of 50 weights."""
    prior = build_shrinkage(family)
    local = conjugate_update(prior, 1, np.array([1e-9, 1e-4, 0.1, 1.0, 30.0]))
    for q in (prior, local, conjugate_update(prior, 50, np.array(12.0))):
        curve = density_curve(q)
        assert 0.95 < trapezoid(curve.density, np.log(curve.x)) < 1.001


def test_very_many_scales_are_drawn_by_their_quantiles(rng: np.random.Generator) -> None:
    scales = np.exp(rng.normal(size=(90, 100)))
    curve, again = (density_curve(gig(-2.0, s, 0.5)) for s in (scales, scales.ravel()[::-1]))
    np.testing.assert_array_equal(curve.density, again.density)
    densities = [np.exp(log_density(gig(-2.0, scales, 0.5), x)) for x in curve.x[::20]]
    expected = curve.x[::20] * np.mean(densities, axis=(1, 2))
    np.testing.assert_allclose(curve.density[::20], expected, atol=0.01 * np.max(expected))


def test_fixed_scales_are_vertical_lines(rows: Rows) -> None:
    fitted = quick(prior="gaussian", n_estimators=1, tol=1.0).fit(*rows)
    prior = fitted.ensemble_.members[0].model.prior
    display = ShrinkageDisplay.from_estimator(fitted)
    values = [value for local in prior.local_shrinkage for value in (1.0, local.value)]
    for place, (ax, value) in enumerate(zip(display.axes_.flat, values, strict=True)):
        assert [list(line.get_xdata()) for line in lines(display, place)] == [[value] * 2] * 2
        low, high = ax.get_xlim()
        assert low <= value / 5.0 < value * 5.0 <= high
    assert density_curve(PointMass(value=3.0)).x.tolist() == [3.0]


def test_only_weights_that_are_left_count(model: BowTieRegressor, rng: np.random.Generator) -> None:
    member = model.ensemble_.members[0]
    present = rng.uniform(size=(4, 3)) < 0.5
    smaller = replace(member.model, connections=(present, np.ones((1, 4), dtype=bool)))
    q = member.factors.layers[0].local_shrinkage
    for network, scale in ((member.model, q.scale.ravel()), (smaller, q.scale[present])):
        found = shrinkage_panels(replace(member, model=network), 0)[1].posterior
        expected = density_curve(gig(q.order, scale, q.rate))
        np.testing.assert_allclose(found.density, expected.density)


def test_a_layer_may_have_no_weights_left(rng: np.random.Generator) -> None:
    fitted = quick(n_estimators=1, init_penalty=1000.0, max_iter=80).fit(
        rng.normal(size=(40, 2)), rng.normal(size=40)
    )
    constant = prune_by_signs(fitted, 1e-9)
    display = ShrinkageDisplay.from_estimator(constant)
    display.figure_.canvas.draw()
    assert len(display.axes_[0, 1].lines) == 1
    assert [text.get_text() for text in display.axes_[0, 1].texts] == ["no weights left"]


def test_the_note_has_the_medians() -> None:
    before, after = (stats.invgamma(1.5, scale=scale) for scale in (0.5, 5.0))
    curves = [density_curve(gig(-1.5, scale, 0.0)) for scale in (0.5, 5.0)]
    words = median_note(Panel(*curves), "τ")
    assert words == f"median τ: {before.median():.2g} → {after.median():.2g}"
    assert median_note(Panel(curves[0], None), "τ") == ""
