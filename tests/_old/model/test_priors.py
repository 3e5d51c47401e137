"""The complete prior: settings, size scaling, and the choices made from data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import build_model, default_model
from bowtienet._old.model.shrinkage import FAMILIES, Shrinkage, build_shrinkage

DEEP = build_architecture(4, (10, 6), 2)
FINITE_MEAN = {"student_t": {"order": -1.5}, "laplace": {}, "normal_gamma": {}}
FINITE_MEAN |= {"normal_inverse_gaussian": {}, "gig": {}, "gaussian": {}}


def mean_of(prior: Shrinkage) -> float:
    return prior.value if isinstance(prior, PointMass) else float(gig.mean(prior))


def test_everything_lands_where_it_belongs() -> None:
    model = build_model(
        DEEP,
        hidden_noise=(3.0, 0.5),
        output_noise=(4.0, [0.1, 0.2]),
        bias_variance=2.0,
        gate_temperature=0.03,
    )
    assert model.architecture is DEEP
    assert model.gate_temperature == 0.03
    assert model.prior.bias_variance == 2.0
    assert len(model.prior.local_shrinkage) == 3
    for layer in (0, 1):
        assert model.prior.noise(layer).concentration == 3.0
        assert model.prior.noise(layer).scale == 0.5
    assert model.prior.noise(2).concentration == 4.0
    np.testing.assert_array_equal(model.prior.noise(2).scale, [0.1, 0.2])


@pytest.mark.parametrize("family", FAMILIES)
def test_families_by_name(family: str) -> None:
    prior = build_model(DEEP, prior=family, scale_with_size=False).prior
    assert prior.global_shrinkage == prior.local_shrinkage[0] == prior.local_shrinkage[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_slab_belongs_to_one_family(family: str) -> None:
    """c² ~ IG(v/2, v s²/2), that of a single weight: it does not follow the size."""
    slab = build_model(DEEP, prior=family, slab=(3.0, 0.5)).prior.slab
    if family == "regularized_horseshoe":
        assert (slab.concentration, slab.scale) == (1.5, 0.375)
    else:
        assert slab is None


@pytest.mark.parametrize(
    ("slab", "words"),
    [((0.0, 1.0), "degrees of freedom of slab"), ((4.0, float("nan")), "scale of slab")],
)
def test_a_slab_that_is_none(slab: tuple[float, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build_model(DEEP, prior="regularized_horseshoe", slab=slab)


@pytest.mark.parametrize("family", ["horseshoe", "regularized_horseshoe"])
def test_medians_of_half_cauchy_scales_fall_with_depth_and_width(family: str) -> None:
    prior = build_model(DEEP, prior=family, global_parameters={"scale": 3.0}).prior
    assert prior.global_shrinkage.scale == pytest.approx(1.5)
    scales = [local.scale for local in prior.local_shrinkage]
    np.testing.assert_allclose(scales, [1 / 4, 1 / 10, 1 / 6])


def test_global_and_local_parameters_are_apart() -> None:
    prior = build_model(
        DEEP,
        prior="laplace",
        global_parameters={"rate": 2.0},
        local_parameters={"rate": 5.0},
        scale_with_size=False,
    ).prior
    assert prior.global_shrinkage.rate == 2.0
    assert [local.rate for local in prior.local_shrinkage] == [5.0] * 3


def test_paper_scaling_of_delta_for_student_t() -> None:
    """delta_global / sqrt(L) and delta_local / sqrt(D_{l-1}), where scale = delta²/2."""
    delta_global, delta_local = 3.0, 0.7
    prior = build_model(
        DEEP,
        global_parameters={"scale": delta_global**2 / 2},
        local_parameters={"scale": delta_local**2 / 2},
    ).prior
    delta = np.sqrt(2.0 * prior.global_shrinkage.scale)
    assert delta == pytest.approx(delta_global / np.sqrt(2))
    deltas = [np.sqrt(2.0 * local.scale) for local in prior.local_shrinkage]
    np.testing.assert_allclose(deltas, delta_local / np.sqrt([4, 10, 6]))


@pytest.mark.parametrize("family", FINITE_MEAN)
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_means_fall_with_depth_and_width(family: str, depth: int) -> None:
    """E[tau] ~ 1/L and E[psi] ~ 1/D_{l-1}, whatever the family."""
    parameters = FINITE_MEAN[family]
    settings: dict[str, Any] = {
        "prior": family,
        "global_parameters": parameters,
        "local_parameters": parameters,
    }
    architecture = build_architecture(8, (3, 20, 5, 2, 7)[:depth], 1)
    plain = build_model(architecture, scale_with_size=False, **settings).prior
    prior = build_model(architecture, **settings).prior
    assert mean_of(prior.global_shrinkage) == pytest.approx(mean_of(plain.global_shrinkage) / depth)
    for local, reference, fan_in in zip(
        prior.local_shrinkage, plain.local_shrinkage, architecture.widths[:-1], strict=True
    ):
        assert mean_of(local) == pytest.approx(mean_of(reference) / fan_in)


def test_no_hidden_layer_has_the_global_scale_of_one() -> None:
    linear = build_model(build_architecture(4, (), 1))
    shallow = build_model(build_architecture(4, (3,), 1))
    assert linear.prior.global_shrinkage == shallow.prior.global_shrinkage
    assert linear.prior.noise(0) is linear.prior.output_noise


@pytest.mark.parametrize("name", ["gate_temperature", "bias_variance"])
@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf"), "0.1"])
def test_temperature_and_bias_variance_must_be_positive(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        build_model(DEEP, **{name: bad})


BAD_PAIRS: list[Any] = [
    (0.0, 1.0),
    (2.0, 0.0),
    (float("nan"), 1.0),
    (2.0, float("inf")),
    (2.0, [0.1, 0.2, 0.3]),
    (2.0, [0.1, -0.2]),
]


@pytest.mark.parametrize("name", ["hidden_noise", "output_noise"])
@pytest.mark.parametrize("bad", BAD_PAIRS)
def test_noise_must_be_a_pair_of_positive_numbers(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        build_model(DEEP, **{name: bad})


def linear_data(
    rng: np.random.Generator, coefficients: np.ndarray, noise: float, n: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    inputs = rng.normal(size=(n, len(coefficients)))
    targets = inputs @ coefficients + rng.normal(size=(n, coefficients.shape[1])) * noise
    return inputs, targets


def test_default_model_agrees_with_a_linear_fit(rng: np.random.Generator) -> None:
    inputs, targets = linear_data(rng, np.array([[3.0, 1.0], [-0.2, 0.5]]), 0.3, 60)
    model = default_model(build_architecture(2, (5,), 2), inputs, targets)
    design = np.column_stack([np.ones(60), inputs])
    fit = np.linalg.lstsq(design, targets, rcond=None)[0]
    residual = (targets - design @ fit).var(axis=0)
    np.testing.assert_allclose(model.prior.output_noise.scale, residual / 4)
    assert model.prior.global_shrinkage.scale == pytest.approx(np.abs(fit[1:]).max() / 2)


def test_default_model_stays_within_its_limits(rng: np.random.Generator) -> None:
    inputs, targets = linear_data(rng, np.array([[1e4]]), 100.0)
    architecture = build_architecture(1, (5,), 1)
    large = default_model(architecture, inputs, targets).prior
    np.testing.assert_array_equal(large.output_noise.scale, [30.0])
    assert large.global_shrinkage.scale == 50.0
    constant = default_model(architecture, inputs, np.zeros(len(inputs))).prior
    assert np.all(constant.output_noise.scale > 0.0)
    assert constant.global_shrinkage.scale > 0.0


def test_settings_win_over_the_data(rng: np.random.Generator) -> None:
    inputs, targets = linear_data(rng, np.array([[3.0]]), 0.5)
    model = default_model(
        build_architecture(1, (5,), 1),
        inputs,
        targets,
        output_noise=(3.0, 7.0),
        global_parameters={"scale": 1.25},
        gate_temperature=0.02,
    )
    assert model.prior.output_noise.scale == 7.0
    assert model.prior.global_shrinkage.scale == 1.25
    assert model.gate_temperature == 0.02


@pytest.mark.parametrize("family", FAMILIES)
def test_default_model_for_every_family(family: str, rng: np.random.Generator) -> None:
    inputs, targets = linear_data(rng, np.array([[3.0]]), 0.5)
    model = default_model(build_architecture(1, (5,), 1), inputs, targets, prior=family)
    assert type(model.prior.global_shrinkage) is type(build_shrinkage(family))
    assert 0.0 < float(model.prior.output_noise.scale[0]) < 30.0


@pytest.mark.parametrize("shape", [(1, 2), (3, 8), (5, 1)])
def test_default_model_with_few_rows(shape: tuple[int, int], rng: np.random.Generator) -> None:
    inputs = rng.normal(size=shape)
    model = default_model(build_architecture(shape[1], (5,), 1), inputs, inputs[:, 0])
    assert np.all(model.prior.output_noise.scale > 0.0)


SMALL = build_architecture(2, (4,), 1)


def test_default_model_before_scaling_gives_no_warning(rng: np.random.Generator) -> None:
    """Its limits make it finite in any unit, so a huge unit must not overflow on the way."""
    inputs = rng.normal(size=(20, 2))
    for unit in (1e-150, 1e150, 1e200):
        model = default_model(SMALL, inputs * unit, inputs[:, 0] * unit)
        assert np.all(np.isfinite(model.prior.output_noise.scale))


def test_default_model_counts_rows_by_their_weight() -> None:
    """Weight 0 is absence and weight 2 the row twice, also for the linear fit behind the prior."""
    rng = np.random.default_rng(4)
    inputs, targets = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    weights = np.array([0.0] + [1.0] * 20 + [2.0] * 9)
    targets[0] = 1e6
    twice = np.repeat(np.arange(30), weights.astype(int))
    architecture = build_architecture(2, (4,), 1)
    found = default_model(architecture, inputs, targets, weights)
    expected = default_model(architecture, inputs[twice], targets[twice])
    np.testing.assert_allclose(
        found.prior.output_noise.scale, expected.prior.output_noise.scale, rtol=1e-12
    )
    assert found.prior.global_shrinkage.scale == pytest.approx(
        expected.prior.global_shrinkage.scale, rel=1e-12
    )
