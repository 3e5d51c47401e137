"""Several networks that predict as one: against a mixture by brute force, draws, and extremes.

Error bars: moments of draws are held to 5 standard errors, a false-alarm rate of 6e-7 for each
comparison and below 5e-5 for the 80 or fewer of any one test. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.ensemble.draws import draw_functions
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Moments,
    check_ensemble,
    components,
    mean_and_deviation,
    member_moments,
    mixture,
    split_variance,
)
from bowtienet._old.ensemble.row_covariance import covariance
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.prediction.covariance import output_covariance
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.representation.representation import Representation
from bowtienet._old.representation.scaling import Scaling
from tests._old import builders
from tests._old.ensemble.fits import only
from tests._old.representation.tables import learn

LIMIT = 5.0
CENTER, SCALE = np.array([3.0, -1.0, 0.5]), np.array([2.0, 0.5, 1.5])
TARGET_CENTER, TARGET_SCALE = np.array([10.0, -4.0]), np.array([3.0, 0.2])
ORDER = np.array([2, 0, 1])
WEIGHTS = np.array([0.5, 0.2, 0.3])
RATIOS = np.array([[4.0, 0.25], [0.5, 3.0], [1.7, 1.0]])


def random_member(rng: np.random.Generator, hidden: tuple[int, ...]) -> FitResult:
    model = builders.fixed_model(hidden, gate_temperature=0.1)
    factors = builders.random_factors(rng, model)
    layers = []
    for layer in factors.layers:
        width = layer.weights.mean.shape[0]
        noise = InverseGamma(
            concentration=np.full(width, 9.0), scale=rng.uniform(1.0, 3.0, size=width)
        )
        layers.append(replace(layer, noise_variance=noise))
    return FitResult(
        model=model,
        factors=replace(factors, layers=tuple(layers)),
        elbo_terms=None,
        elbo_history=(),
        n_sweeps=0,
        status=Status.CONVERGED,
    )


def build(weights: Any = WEIGHTS, **changes: Any) -> Ensemble:
    """Three members with one hidden layer or none, and scaling that nothing leaves alone."""
    rng = np.random.default_rng(1)
    settings: dict[str, Any] = {
        "members": tuple(random_member(rng, hidden) for hidden in ((4,), (), (6,))),
        "weights": np.asarray(weights, dtype=float),
        "representation": Representation(
            columns=learn(np.eye(3)),
            feature_scaling=Scaling(center=CENTER, scale=SCALE),
            target_scaling=Scaling(center=TARGET_CENTER, scale=TARGET_SCALE),
            column_order=ORDER,
        ),
        "views": (0, 0, 0),
        "groups": (0, 1, 2),
        "propagation": "push_forward",
    }
    return Ensemble(**{**settings, **changes})


def with_target_scaling(ensemble: Ensemble, scaling: Scaling) -> Ensemble:
    return replace(
        ensemble, representation=replace(ensemble.representation, target_scaling=scaling)
    )


def rows(n: int = 5, seed: int = 2) -> np.ndarray:
    return CENTER + SCALE * np.random.default_rng(seed).normal(0.0, 1.5, size=(n, 3))


def moments_one_by_one(ensemble: Ensemble, inputs: np.ndarray) -> np.ndarray:
    """Mean, epistemic and noise variance (3, K, n, D): every member and row by itself."""
    found = np.empty((3, len(ensemble.members), len(inputs), 2))
    for k, member in enumerate(ensemble.members):
        for n, row in enumerate(inputs):
            x = [(row[column] - CENTER[column]) / SCALE[column] for column in ORDER]
            new = predict(member.model, member.factors, [x], propagation=ensemble.propagation)
            found[0, k, n] = TARGET_CENTER + TARGET_SCALE * new.mean[0]
            found[1, k, n] = TARGET_SCALE**2 * (new.signal_variance - new.chance_variance)[0]
            found[2, k, n] = TARGET_SCALE**2 * (new.noise_variance + new.chance_variance)[0]
    return found


def mixed(weights: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ w m and Σ w (var + m²) - mean², as the paper writes them."""
    means, variances = found[0], found[1] + found[2]
    mean = np.einsum("k,knd->nd", weights, means)
    return mean, np.einsum("k,knd->nd", weights, variances + means**2) - mean**2


@pytest.mark.parametrize("ratios", [None, RATIOS], ids=["plain", "ratios"])
@pytest.mark.parametrize("propagation", ["push_forward", "variational"])
def test_moments_against_members_one_by_one(propagation: str, ratios: np.ndarray | None) -> None:
    """Of members and of their mixture; ratios multiply both parts of a variance, and no mean."""
    ensemble, inputs = build(propagation=propagation), rows()
    found = moments_one_by_one(ensemble, inputs)
    if ratios is not None:
        ensemble = stretched(ensemble, ratios)
        found[1:] *= ratios[:, None, :]
    moments = member_moments(ensemble, inputs)
    tight = {"rtol": 1e-9} if propagation == "push_forward" else {"rtol": 1e-3}
    np.testing.assert_allclose(TARGET_CENTER + TARGET_SCALE * moments.means, found[0], **tight)
    np.testing.assert_allclose(TARGET_SCALE**2 * moments.epistemic_variances, found[1], **tight)
    np.testing.assert_allclose(TARGET_SCALE**2 * moments.noise_variances, found[2], **tight)
    mean, variance = mixed(WEIGHTS, found)
    same_mean, deviation = mean_and_deviation(ensemble, inputs)
    np.testing.assert_allclose(same_mean, mean, **tight)
    np.testing.assert_allclose(deviation**2, variance, **tight)
    _, epistemic, noise = components(ensemble, inputs)
    np.testing.assert_allclose(noise, np.einsum("k,knd->nd", WEIGHTS, found[2]), **tight)
    np.testing.assert_allclose(epistemic + noise, variance, **tight)
    y = TARGET_CENTER + TARGET_SCALE * np.random.default_rng(3).normal(size=(5, 2))
    spread = found[1] + found[2]
    density = np.exp(-0.5 * (y - found[0]) ** 2 / spread) / np.sqrt(2.0 * np.pi * spread)
    expected = np.einsum("k,knd->nd", WEIGHTS, density)
    np.testing.assert_allclose(mixture(ensemble, inputs).pdf(y), expected, **tight)


def test_disagreement_is_not_noise() -> None:
    """Two members that are sure of different things: all of it is what is not known."""
    moments = Moments(
        means=np.array([[[1.0]], [[5.0]]]),
        epistemic_variances=np.full((2, 1, 1), 0.25),
        noise_variances=np.array([[[1.0]], [[4.0]]]),
    )
    mean, epistemic, noise = split_variance(np.array([0.25, 0.75]), moments)
    assert mean == 4.0
    assert epistemic == 0.25 + 0.25 * 9.0 + 0.75 * 1.0
    assert noise == 0.25 * 1.0 + 0.75 * 4.0


@pytest.mark.parametrize("ratios", [np.ones((3, 2)), RATIOS], ids=["plain", "ratios"])
def test_covariance_against_brute_force(ratios: np.ndarray) -> None:
    """Σ w (r C_k + d_k d_k'), d the members' distance from the mean; variance on the diagonal."""
    ensemble, inputs = stretched(build(), ratios), rows()
    found = moments_one_by_one(ensemble, inputs)
    found[1:] *= ratios[:, None, :]
    mean, variance = mixed(WEIGHTS, found)
    total = covariance(ensemble, inputs)
    x = ((inputs - CENTER) / SCALE)[:, ORDER]
    parts = [output_covariance(member.model, member.factors, x) for member in ensemble.members]
    for i, j in np.ndindex(5, 5):
        expected = np.zeros(2)
        for k, part in enumerate(parts):
            away = (found[0, k, i] - mean[i]) * (found[0, k, j] - mean[j])
            expected += WEIGHTS[k] * (ratios[k] * TARGET_SCALE**2 * part[i, j] + away)
        expected = variance[i] if i == j else expected
        np.testing.assert_allclose(total[i, j], expected, rtol=1e-8, atol=1e-11)


def test_covariance_is_positive_semi_definite() -> None:
    inputs = np.vstack([rows(10), rows(10) + 1e-5])
    total = covariance(build(), inputs)
    for output in range(2):
        np.testing.assert_allclose(total[..., output], total[..., output].T, rtol=1e-10)
        assert np.linalg.eigvalsh(total[..., output])[0] > 0.0


@pytest.mark.parametrize("noise", [True, False])
def test_draws_have_the_moments_of_the_mixture(noise: bool) -> None:
    """Without noise the variance lies between that of the members' means and the epistemic one."""
    ensemble, inputs = build(), rows()
    draws = draw_functions(ensemble, inputs, 3000, np.random.default_rng(4), noise=noise)
    assert draws.shape == (3000, 5, 2)
    mean, epistemic, output = components(ensemble, inputs)
    squares = (draws - draws.mean(axis=0)) ** 2
    bar = LIMIT * squares.std(axis=0) / np.sqrt(3000) + 1e-3 * epistemic
    assert np.all(
        np.abs(draws.mean(axis=0) - mean) < LIMIT * draws.std(axis=0) / np.sqrt(3000) + 1e-3
    )
    if noise:
        assert np.all(np.abs(squares.mean(axis=0) - epistemic - output) < bar)
    else:
        assert np.all(squares.mean(axis=0) < epistemic + bar)


def test_members_are_drawn_by_their_weights() -> None:
    """Members 100 apart can be told from each other: counts within 5 binomial standard errors."""
    ensemble = build([0.1, 0.0, 0.9])
    members = []
    for k, member in enumerate(ensemble.members):
        output = member.factors.layers[-1]
        mean = output.weights.mean * 0.0
        mean[:, 0] = 100.0 * k
        weights = GaussianRows(mean=mean, covariance=1e-4 * output.weights.covariance)
        layers = (*member.factors.layers[:-1], replace(output, weights=weights))
        members.append(replace(member, factors=replace(member.factors, layers=layers)))
    ensemble = replace(ensemble, members=tuple(members))
    draws = draw_functions(ensemble, rows(2), 2000, np.random.default_rng(5), noise=False)
    member = np.round((draws - TARGET_CENTER) / TARGET_SCALE / 100.0).astype(int)
    # One member for a whole draw, all rows and targets.
    assert np.all(member == member[:, :1, :1])
    counts = np.bincount(member[:, 0, 0], minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 200) < LIMIT * np.sqrt(2000 * 0.1 * 0.9)


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_other_libraries_agree(name: str) -> None:
    library = pytest.importorskip(name)
    ensemble, inputs = stretched(build(), RATIOS), rows()
    mean, deviation = mean_and_deviation(ensemble, inputs)
    other = library.asarray(inputs)
    found_mean, found_deviation = mean_and_deviation(ensemble, other)
    assert type(found_deviation) is type(other)
    np.testing.assert_allclose(np.asarray(found_mean), mean, rtol=1e-11)
    np.testing.assert_allclose(np.asarray(found_deviation), deviation, rtol=1e-11)
    np.testing.assert_allclose(covariance(ensemble, other), covariance(ensemble, inputs), rtol=1e-9)
    np.testing.assert_allclose(
        mixture(ensemble, other).ppf(0.1), mixture(ensemble, inputs).ppf(0.1), rtol=1e-9
    )
    draws = [draw_functions(ensemble, x, 2, np.random.default_rng(6), noise=True)
             for x in (inputs, other)]  # fmt: skip
    np.testing.assert_allclose(draws[0], draws[1], rtol=1e-10)


def test_single_precision() -> None:
    ensemble, inputs = build(), rows().astype(np.float32)
    found = mean_and_deviation(ensemble, inputs)
    expected = mean_and_deviation(ensemble, inputs.astype(float))
    for single, double in zip(found, expected, strict=True):
        assert single.dtype == np.float64
        np.testing.assert_allclose(single, double, rtol=2e-5)


@pytest.mark.parametrize("power", [-1000, -560, -40, 40, 500, 560, 1000])
def test_any_unit_of_the_targets(power: int) -> None:
    """A deviation is in range where its square is not: 2^560 is 4e168."""
    ensemble, inputs = build(), rows()
    factor = 2.0**power
    scaling = Scaling(center=TARGET_CENTER * factor, scale=TARGET_SCALE * factor)
    other = with_target_scaling(ensemble, scaling)
    for found, expected in zip(
        mean_and_deviation(other, inputs), mean_and_deviation(ensemble, inputs), strict=True
    ):
        np.testing.assert_allclose(found / factor, expected, rtol=1e-12)


def test_members_that_agree_have_no_spread_of_rounding() -> None:
    """Far from zero, Σ w m² - mean² would lose the variance: 1e8 deviations from it."""
    ensemble, inputs = build(), rows()
    scaling = Scaling(center=np.full(2, 1e8), scale=np.ones(2))
    shifted = with_target_scaling(ensemble, scaling)
    centred = with_target_scaling(ensemble, replace(scaling, center=np.zeros(2)))
    _, found = mean_and_deviation(shifted, inputs)
    _, expected = mean_and_deviation(centred, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# Variances rescaled to match held-out errors


def stretched(ensemble: Ensemble, ratios: np.ndarray) -> Ensemble:
    """The same members with these ratios (K, D)."""
    members = tuple(
        replace(member, variance_ratio=ratio)
        for member, ratio in zip(ensemble.members, ratios, strict=True)
    )
    return replace(ensemble, members=members)


@pytest.mark.parametrize("noise", [True, False])
def test_a_draw_is_as_far_from_its_mean_as_the_ratio_says(noise: bool) -> None:
    """With the same numbers: √r times as far from the member's mean, in every row at once."""
    alone = only(build(), 2)
    wide = stretched(alone, RATIOS[2:])
    mean, _ = mean_and_deviation(alone, rows())
    before, after = (
        draw_functions(each, rows(), 10, np.random.default_rng(9), noise=noise)
        for each in (alone, wide)
    )
    np.testing.assert_allclose(after - mean, np.sqrt(RATIOS[2]) * (before - mean), rtol=1e-9)


def bad_ratio(*ratio: float) -> dict[str, Any]:
    members = build().members
    return {"members": (*members[:2], replace(members[2], variance_ratio=np.array(ratio)))}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": ()}, "members"),
        ({"weights": np.array([0.5, 0.5])}, "weights"),
        ({"weights": np.array([0.5, 0.5, 0.5])}, "weights"),
        ({"weights": np.array([1.5, -0.5, 0.0])}, "weights"),
        ({"weights": np.array([0.5, np.nan, 0.5])}, "weights"),
        ({"propagation": "guess"}, "guess"),
        ({"views": (0, 0)}, "view"),
        ({"views": (0, 0, 1)}, "view"),
        ({"views": (0, 0, -1)}, "view"),
        ({"views": (0, 0, 0.0)}, "view"),
        ({"views": None}, "view"),
        (bad_ratio(1.0), "ratio"),
        (bad_ratio(1.0, -2.0), "ratio"),
        (bad_ratio(np.inf, 1.0), "ratio"),
    ],
)
def test_parts_that_do_not_belong_together(change: dict[str, Any], words: str) -> None:
    ensemble = stretched(build(), RATIOS)
    check_ensemble(ensemble, 3, 2)
    with pytest.raises(ValueError, match=words):
        check_ensemble(replace(ensemble, **change), 3, 2)
    for size in ((4, 2), (3, 1)):
        with pytest.raises(ValueError, match=r"columns|scaling"):
            check_ensemble(ensemble, *size)
