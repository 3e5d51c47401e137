"""The complete prior: settings, size scaling, and the choices made from data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import Rows, build_model, default_scales, take_rows
from bowtienet.model.shrinkage import FAMILIES, Prior, build_shrinkage, scaled
from bowtienet.outcomes import Classes
from tests.builders import log_density

DEEP = build_architecture(4, (10, 6), 2)
LINEAR = build_architecture(1, (), 1)
"""Nothing is scaled with its size."""


def build_rows(inputs: np.ndarray, targets: np.ndarray, weights: Any = None) -> Rows:
    weights = np.ones(len(inputs)) if weights is None else weights
    return Rows(inputs=inputs, targets=targets, weights=weights)


def test_everything_lands_where_it_belongs():
    model = build_model(
        DEEP,
        hidden_noise=(3.0, 0.5),
        output_noise=(4.0, [0.1, 0.2]),
        bias_variance=2.0,
        temperature=0.03,
        outcome=Classes(n_classes=2),
    )
    assert (model.architecture, model.temperature) == (DEEP, 0.03)
    assert model.outcome == Classes(n_classes=2)
    assert model.bias_variance == 2.0
    assert len(model.local_shrinkage) == 3
    for layer in (0, 1):
        noise = model.noise(layer)
        assert (noise.concentration, noise.scale) == (3.0, 0.5)
    assert model.noise(2).concentration == 4.0
    np.testing.assert_array_equal(model.noise(2).scale, [0.1, 0.2])


def gig(order: float, scale: float, rate: float) -> GeneralizedInverseGaussian:
    return GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)


LETTERS: dict[str, tuple[tuple[float | None, ...], Any, Any]] = {
    "student_t": ((-2.0, 3.0, None, -1.0, 0.5, None), gig(-2.0, 4.5, 0.0), gig(-1.0, 0.125, 0.0)),
    "laplace": ((None, None, 2.0, None, None, 3.0), gig(1.0, 0.0, 2.0), gig(1.0, 0.0, 4.5)),
    "normal_gamma": ((2.0, None, 4.0, 3.0, None, 1.0), gig(2.0, 0.0, 8.0), gig(3.0, 0.0, 0.5)),
    "normal_inverse_gaussian": (
        (None, 2.0, 4.0, None, 3.0, 1.0),
        gig(-0.5, 2.0, 8.0),
        gig(-0.5, 4.5, 0.5),
    ),
    "gig": ((1.0, 2.0, 4.0, 3.0, 1.0, 6.0), gig(1.0, 2.0, 8.0), gig(3.0, 0.5, 18.0)),
    "horseshoe": ((None, 3.0, None, None, 0.5), HalfCauchy(scale=9.0), HalfCauchy(scale=0.25)),
    "regularized_horseshoe": ((None, 3.0), HalfCauchy(scale=9.0), HalfCauchy(scale=1.0)),
    "gaussian": ((None, 3.0, None, None, 0.5), PointMass(value=9.0), PointMass(value=0.25)),
}
"""nu, delta and lambda of tau, then of psi, and the priors of both."""


@pytest.mark.parametrize("family", FAMILIES)
def test_letters_of_the_paper(family):
    """x^(nu-1) exp(-(delta²/x + lambda² x)/2): scale delta²/2 and rate lambda²/2.

    Or delta² is the half-Cauchy's scale, or a tau or psi held fixed.
    """
    letters, shared, local = LETTERS[family]
    model = build_model(LINEAR, prior=Prior(family, *letters))
    assert (model.global_shrinkage, *model.local_shrinkage) == (shared, local)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("hidden", [(), (3,), (3, 20, 5, 2, 7)], ids=len)
def test_tau_falls_with_depth_and_psi_with_width(family, hidden):
    """tau is that of one hidden layer over their number, psi over the inputs of its layer."""
    architecture = build_architecture(8, hidden, 1)
    model, plain = build_model(architecture, prior=family), build_shrinkage(family)
    assert model.global_shrinkage == scaled(plain, 1.0 / max(len(hidden), 1))
    expected = tuple(scaled(plain, 1.0 / width) for width in architecture.widths[:-1])
    assert model.local_shrinkage == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_scaled_is_the_density_of_the_scaled_variable(family):
    """p(factor · x) by the change of variables, p_scaled(c x) = p(x) / c, at several points."""
    prior, factor = build_shrinkage(family), 0.3
    x = np.array([0.05, 0.3, 1.0, 2.5, 9.0])
    if isinstance(prior, PointMass):
        assert scaled(prior, factor) == PointMass(value=factor * prior.value)
        return
    np.testing.assert_allclose(
        log_density(scaled(prior, factor), factor * x),
        log_density(prior, x) - np.log(factor),
        rtol=1e-10,
        atol=1e-12,
    )


def test_the_slab_belongs_to_a_single_family():
    """c² ~ IG(v/2, v s²/2), that of a single weight: it does not follow the size."""
    slabs = {f: build_model(DEEP, prior=Prior(f, slab=(3.0, 0.5))).slab for f in FAMILIES}
    slab = slabs.pop("regularized_horseshoe")
    assert (slab.concentration, slab.scale) == (1.5, 0.375)
    assert set(slabs.values()) == {None}


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (Prior("regularized_horseshoe", slab=(0.0, 1.0)), "degrees of freedom of slab"),
        (Prior("regularized_horseshoe", slab=(4.0, float("nan"))), "scale of slab"),
        (Prior("horse"), "'horse'"),
        (Prior("laplace", nu_global=1.0), "'laplace' has no nu_global"),
        (Prior("student_t", lambda_local=1.0), "'student_t' has no lambda_local"),
        (Prior("gaussian", nu_local=1.0), "'gaussian' has no nu_local"),
        (Prior("normal_gamma", delta_global=1.0), "'normal_gamma' has no delta_global"),
        (Prior("student_t", delta_local=-1.0), "delta_local"),
        (Prior("horseshoe", delta_global=float("inf")), "delta_global"),
        (Prior("gaussian", delta_local=0.0), "delta_local"),
        (Prior("gig", lambda_local=float("nan")), "not a proper prior"),
        (Prior("normal_gamma", nu_local=0.0), "not a proper prior"),
        (Prior(["laplace"]), r"\['laplace'\]"),  # type: ignore[arg-type]
        (Prior("student_t", nu_local=1.0), "not a proper prior"),
        (Prior("gig", nu_global="1"), "nu_global"),  # type: ignore[arg-type]
    ],
)
def test_a_prior_that_is_none(prior, words):
    with pytest.raises(ValueError, match=words):
        build_model(DEEP, prior=prior)


@pytest.mark.parametrize("name", ["temperature", "bias_variance"])
@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf"), "0.1"])
def test_temperature_and_bias_variance_must_be_positive(name, bad):
    with pytest.raises(ValueError, match=name):
        build_model(DEEP, **{name: bad})


@pytest.mark.parametrize("name", ["hidden_noise", "output_noise"])
@pytest.mark.parametrize(
    "bad", [(0.0, 1.0), (2.0, 0.0), (np.nan, 1.0), (2.0, np.inf), (2.0, [1, 1, 1]), (2.0, [1, -1])]
)
def test_noise_must_be_a_pair_of_positive_numbers(name, bad):
    with pytest.raises(ValueError, match=name):
        build_model(DEEP, **{name: bad})


def linear_rows(
    rng: np.random.Generator, coefficients: list[list[float]], noise: float, n: int = 400
) -> Rows:
    inputs = rng.normal(size=(n, len(coefficients)))
    targets = inputs @ np.array(coefficients)
    return build_rows(inputs, targets + noise * rng.normal(size=targets.shape))


def test_defaults_agree_with_a_linear_fit(rng):
    rows = linear_rows(rng, [[3.0, 1.0], [-0.2, 0.5]], 0.3, 60)
    rows = replace(rows, targets=rows.targets + np.array([0.4, -7.0]))
    delta, intercept, noise_scale = default_scales(rows)
    design = np.column_stack([np.ones(60), rows.inputs])
    coefficients = np.linalg.lstsq(design, rows.targets, rcond=None)[0]
    residual = (rows.targets - design @ coefficients).var(axis=0)
    np.testing.assert_allclose(noise_scale, residual / 4.0)
    assert delta**2 == pytest.approx(np.abs(coefficients[1:]).max())
    assert intercept == pytest.approx(np.abs(coefficients[0]).max())
    model = build_model(build_architecture(2, (5,), 2), default_delta=delta)
    assert model.global_shrinkage.scale == pytest.approx(delta**2 / 2.0)


@pytest.mark.parametrize("unit", [0.0, 1e-150, 1e6, 1e150])
def test_defaults_stay_within_their_limits(unit, rng):
    rows = linear_rows(rng, [[3.0], [1.0]], 0.5)
    delta, _, noise_scale = default_scales(replace(rows, targets=unit * rows.targets))
    np.testing.assert_array_equal(noise_scale, [30.0 if unit > 1.0 else 1e-6])
    assert delta == pytest.approx(10.0 if unit > 1.0 else 0.1)


def test_only_the_scale_that_is_left_open_follows_the_data():
    given = Prior("student_t", nu_local=-2.0, delta_global=1.25)
    for prior, delta in ((replace(given, delta_global=None), 1.25), (given, 3.0)):
        found = build_model(DEEP, prior=prior, default_delta=delta)
        assert found == build_model(DEEP, prior=given)
    assert build_model(DEEP, prior="laplace", default_delta=3.0) == build_model(
        DEEP, prior="laplace"
    )


@pytest.mark.parametrize(("n", "width"), [(1, 2), (3, 8), (6, 2), (5, 1)])
def test_few_rows_have_the_variance_of_their_targets(n, width, rng):
    """No two rows for each coefficient, unless there is but one input."""
    inputs = rng.normal(size=(n, width))
    _, _, noise_scale = default_scales(build_rows(inputs, inputs[:, :1]))
    expected = 0.0 if n > 2 * (width + 1) else inputs[:, 0].var()
    np.testing.assert_allclose(noise_scale, [max(expected / 4.0, 1e-6)])


def test_rows_count_by_their_weight(rng):
    """Weight 0 is absence and weight 2 the row twice."""
    inputs, targets = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    weights = np.array([0.0] + [1.0] * 20 + [2.0] * 9)
    targets[0] = 1e6
    rows = build_rows(inputs, targets, weights)
    twice = take_rows(rows, np.repeat(np.arange(30), weights.astype(int)))
    expected = default_scales(replace(twice, weights=np.ones(38)))
    for value, other in zip(default_scales(rows), expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-12)


def test_widths_and_counts():
    architecture = build_architecture(3, [5, 4], 2)
    assert architecture.widths == (3, 5, 4, 2)
    assert (architecture.hidden, architecture.n_hidden) == ((5, 4), 2)
    assert build_architecture(3, (), 1).widths == (3, 1)


def test_whole_numbers_of_any_kind():
    architecture = build_architecture(np.int64(3), np.array([4, 2]), np.int32(1))
    assert architecture == build_architecture(3, (w for w in (4, 2)), 1)
    assert all(type(width) is int for width in architecture.widths)


@pytest.mark.parametrize("bad", [0, -1, 2.0, 1.5, "3", None, float("nan")])
def test_a_bad_width_is_named_with_its_value(bad):
    for name, arguments in {
        "n_inputs": (bad, (4,), 1),
        r"hidden_layer_sizes\[1\]": (2, (4, bad), 1),
        "n_outputs": (2, (4,), bad),
    }.items():
        with pytest.raises(ValueError, match=rf"{name}.*at least 1.*{bad!r}"):
            build_architecture(*arguments)


@pytest.mark.parametrize("bad", [50, 5.0, None, "50", b"50"])
def test_hidden_must_be_a_sequence(bad):
    with pytest.raises(ValueError, match=r"hidden.*such as \(50,\)"):
        build_architecture(2, bad, 1)
