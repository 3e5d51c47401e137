"""Densities of the scales of weights: against SciPy, mixtures, fixed scales, what pruning left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy import stats

from bowtienet import BowTieRegressor
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.point_mass import PointMass
from bowtienet.estimators.table_pipeline import TablePipeline
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.plotting import ShrinkageDisplay
from bowtienet.plotting.shrinkage import density_curve, shrinkage_panels
from tests.plotting.fits import quick

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
    area = np.trapezoid(curve.density, np.log(curve.x))
    assert 0.97 < area < 1.0001
    peak = np.max(curve.density)
    assert np.all(curve.density >= 0.004 * peak)
    assert max(curve.density[[0, -1]]) < 0.02 * peak


def test_several_scales_are_averaged(rng: np.random.Generator) -> None:
    scales = rng.gamma(1.0, size=6) + np.array([0, 0, 0, 0, 0, 50.0])
    curve = density_curve(gig(-2.0, scales, 0.0))
    expected = np.mean(
        [curve.x * stats.invgamma(2.0, scale=scale).pdf(curve.x) for scale in scales], axis=0
    )
    np.testing.assert_allclose(curve.density, expected)
    assert 0.97 < np.trapezoid(curve.density, np.log(curve.x)) < 1.001


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
            drawn = display.prior_lines_[place].get_xydata()
            density = stats.invgamma(-prior.order, scale=prior.scale).pdf(drawn[:, 0])
            np.testing.assert_allclose(drawn[:, 1], density * drawn[:, 0], rtol=1e-8)
            x, height = display.posterior_lines_[place].get_xydata()[::50].T
            scales = np.ravel(q.scale)
            density = np.mean([stats.invgamma(-q.order, scale=s).pdf(x) for s in scales], axis=0)
            np.testing.assert_allclose(height, density * x, rtol=1e-8)
    titles = [ax.get_title(loc="left") for ax in display.axes_[:, 0]]
    assert titles == ["inputs → layer 1", "layer 1 → layer 2", "layer 2 → output"]
    assert display.prior_lines_[0].is_dashed()
    assert not display.posterior_lines_[0].is_dashed()
    assert display.axes_[0, 0].get_xscale() == "log"


def test_a_single_layer(deep: BowTieRegressor) -> None:
    display = ShrinkageDisplay.from_estimator(deep, layer=1)
    assert display.axes_.shape == (1, 2)
    assert display.axes_[0, 0].get_title(loc="left") == "layer 1 → layer 2"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_prior_can_be_drawn(family: str, rows: Rows) -> None:
    fitted = quick(prior=family, n_estimators=1, tol=1.0).fit(*rows)
    display = ShrinkageDisplay.from_estimator(fitted)
    display.figure_.canvas.draw()
    if family != "gaussian":
        for panel in display.panels:
            for curve in (panel.prior, panel.posterior):
                assert 0.95 < np.trapezoid(curve.density, np.log(curve.x)) < 1.001


def test_fixed_scales_are_vertical_lines(rows: Rows) -> None:
    fitted = quick(prior="gaussian", n_estimators=1, tol=1.0).fit(*rows)
    prior = fitted.ensemble_.members[0].model.prior
    display = ShrinkageDisplay.from_estimator(fitted)
    values = [value for local in prior.local_shrinkage for value in (1.0, local.value)]
    for lines in (display.prior_lines_, display.posterior_lines_):
        assert [list(line.get_xdata()) for line in lines] == [[value] * 2 for value in values]
    for ax, value in zip(display.axes_.flat, values, strict=True):
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
    with pytest.warns(UserWarning, match="predicts a constant"):
        constant = fitted.prune(1e-9)
    display = ShrinkageDisplay.from_estimator(constant)
    display.figure_.canvas.draw()
    assert display.posterior_lines_[1] is None
    assert [text.get_text() for text in display.axes_[0, 1].texts] == ["no weights left"]


def test_pipelines_and_members(pipeline: TablePipeline, model: BowTieRegressor) -> None:
    assert ShrinkageDisplay.from_estimator(pipeline).axes_.shape == (2, 2)
    one, two = (ShrinkageDisplay.from_estimator(model, member=member) for member in range(2))
    assert not np.array_equal(one.panels[0].posterior.x, two.panels[0].posterior.x)


def test_it_can_be_plotted_again_elsewhere(model: BowTieRegressor) -> None:
    display = ShrinkageDisplay.from_estimator(model, fig=Figure(layout="constrained"))
    first, fig = display.prior_lines_[0], Figure(layout="constrained")
    assert display.plot(fig=fig) is display
    assert display.figure_ is fig
    np.testing.assert_array_equal(display.prior_lines_[0].get_xydata(), first.get_xydata())
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("layer", [2, -1, 0.5, "output"])
def test_layers_that_are_not_there(model: BowTieRegressor, layer: Any) -> None:
    with pytest.raises(ValueError, match="layer must be a whole number from 0 to 1, got"):
        ShrinkageDisplay.from_estimator(model, layer=layer)
    assert pyplot.get_fignums() == []
