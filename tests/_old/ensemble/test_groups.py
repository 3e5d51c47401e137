"""Groups of members that predict as one Gaussian, levels of noise, and draws of both.

Error bars: moments of draws are held to 5 standard errors, a false-alarm rate of 6e-7 for each
comparison, plus a thousandth of the deviation for quadrature. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from bowtienet._old.ensemble.draws import draw_functions, draw_rows
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    check_ensemble,
    components,
    group_moments,
    group_shares,
    group_warps,
    group_weights,
    mean_and_deviation,
    mean_scales,
    member_moments,
    mixture,
)
from bowtienet._old.ensemble.row_covariance import covariance
from bowtienet._old.prediction.conformal import HeldOut
from bowtienet._old.prediction.levels import Levels
from tests._old.ensemble.fits import viewed_ensemble
from tests._old.ensemble.test_ensemble import (
    CENTER,
    ORDER,
    RATIOS,
    SCALE,
    TARGET_CENTER,
    TARGET_SCALE,
    build,
    rows,
    stretched,
)
from tests._old.ensemble.test_views import TWO, X

LIMIT, QUADRATURE = 5.0, 1e-3
LEVELS = Levels(
    scale=np.array([[0.3, 1.5], [1.0, 0.5], [4.0, 2.5]]),
    gates=np.random.default_rng(8).normal(size=(2, 3, 2)),
    columns=np.array([0, 2]),
)
PAIRED = (1, 0, 1)
"""The first and the last member are a group, and the second is one."""


def paired(**changes: Any) -> Ensemble:
    return replace(stretched(build(), RATIOS), **({"groups": PAIRED} | changes))


def shares_by_loops(inputs: np.ndarray) -> np.ndarray:
    """π (K, n, D) of standardised columns in their order, held within 3 deviations."""
    found = np.empty((3, len(inputs), 2))
    for n, d in np.ndindex(len(inputs), 2):
        x = ((inputs[n] - CENTER) / SCALE)[ORDER][LEVELS.columns]
        seen = np.array([1.0, *np.clip(x, -3.0, 3.0)])
        first, second = (expit(float(LEVELS.gates[k, :, d] @ seen)) for k in range(2))
        found[:, n, d] = first, (1.0 - first) * second, (1.0 - first) * (1.0 - second)
    return found


def group_moments_by_loops(ensemble: Ensemble, inputs: np.ndarray) -> np.ndarray:
    """Mean, epistemic and noise variance (3, G, n, D)."""
    own = member_moments(ensemble, inputs)
    found = np.zeros((3, 2, len(inputs), 2))
    for group in range(2):
        members = [k for k in range(3) if ensemble.groups[k] == group]
        total = sum(ensemble.weights[k] for k in members)
        for k in members:
            found[0, group] += ensemble.weights[k] / total * own.means[k]
        for k in members:
            share = ensemble.weights[k] / total
            apart = (own.means[k] - found[0, group]) ** 2
            found[1, group] += share * (own.epistemic_variances[k] + apart)
            found[2, group] += share * own.noise_variances[k]
    return found


# Moments of groups


def test_moments_of_groups_in_loops() -> None:
    ensemble, inputs = paired(), rows()
    found, expected = group_moments(ensemble, inputs), group_moments_by_loops(ensemble, inputs)
    np.testing.assert_allclose(found.means, expected[0], rtol=1e-12)
    np.testing.assert_allclose(found.epistemic_variances, expected[1], rtol=1e-12)
    np.testing.assert_allclose(found.noise_variances, expected[2], rtol=1e-12)
    np.testing.assert_allclose(group_weights(ensemble), [0.2, 0.8], rtol=1e-15)
    np.testing.assert_allclose(group_shares(ensemble), [[0, 1, 0], [0.625, 0, 0.375]], rtol=1e-12)


def test_groups_change_no_moment_of_the_whole() -> None:
    """Mean, epistemic and noise variance are those of the members; only the shape differs."""
    inputs = rows()
    for one, other in zip(
        components(paired(), inputs), components(paired(groups=(0, 1, 2)), inputs), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_allclose(
        covariance(paired(), inputs), covariance(paired(groups=(0, 1, 2)), inputs), rtol=1e-9
    )


def test_groups_are_gaussian() -> None:
    """The density has one component for each group, of its moments."""
    ensemble, inputs = paired(), rows()
    y = TARGET_CENTER + TARGET_SCALE * np.random.default_rng(3).normal(size=(5, 2))
    mean, epistemic, noise = group_moments_by_loops(ensemble, inputs)
    deviations = TARGET_SCALE * np.sqrt(epistemic + noise)
    densities = norm.pdf(y, TARGET_CENTER + TARGET_SCALE * mean, deviations)
    expected = 0.2 * densities[0] + 0.8 * densities[1]
    np.testing.assert_allclose(mixture(ensemble, inputs).pdf(y), expected, rtol=1e-9)


@pytest.mark.parametrize("levels", [None, LEVELS], ids=["no levels", "levels"])
def test_a_group_of_equal_members_predicts_like_one(levels: Levels | None) -> None:
    alone = stretched(build(), RATIOS).members[2]
    several = paired(members=(alone,) * 3, groups=(0, 0, 0), levels=levels)
    one = replace(
        several, members=(alone,), weights=np.ones(1), groups=(0,), views=(0,), levels=levels
    )
    inputs = rows()
    for found, expected in zip(components(several, inputs), components(one, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    y = TARGET_CENTER + TARGET_SCALE * np.random.default_rng(3).normal(size=(5, 2))
    for name in ("pdf", "cdf"):
        found, expected = (getattr(mixture(each, inputs), name)(y) for each in (several, one))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(covariance(several, inputs), covariance(one, inputs), rtol=1e-9)


def test_groups_in_any_order_are_the_same_mixture() -> None:
    """Groups of one member each, numbered otherwise: weights go with their members."""
    inputs, y = rows(), TARGET_CENTER + TARGET_SCALE * np.random.default_rng(3).normal(size=(5, 2))
    first, second = (paired(groups=groups, levels=LEVELS) for groups in ((0, 1, 2), (2, 0, 1)))
    np.testing.assert_allclose(
        mixture(first, inputs).pdf(y), mixture(second, inputs).pdf(y), rtol=1e-12
    )
    found, expected = (components(each, inputs) for each in (first, second))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_group_without_weight_has_finite_moments() -> None:
    ensemble = paired(weights=np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(group_shares(ensemble), [[0, 1, 0], [0.5, 0, 0.5]])
    alone = paired(weights=np.array([0.0, 1.0, 0.0]), groups=(0, 1, 2))
    np.testing.assert_allclose(
        mean_and_deviation(ensemble, rows()), mean_and_deviation(alone, rows()), rtol=1e-12
    )


# Levels of noise


def test_levels_are_components_with_weights_by_row() -> None:
    """Σ_g w_g Σ_k π_k(x) N(y | m_g, s_k v_g), in loops; far rows are held."""
    ensemble = paired(levels=LEVELS)
    inputs = np.vstack([rows(4), CENTER + 50.0 * SCALE])
    y = TARGET_CENTER + TARGET_SCALE * np.random.default_rng(3).normal(size=(5, 2))
    mean, epistemic, noise = group_moments_by_loops(ensemble, inputs)
    shares, expected = shares_by_loops(inputs), np.zeros((5, 2))
    for group, weight in enumerate((0.2, 0.8)):
        for share, scale in zip(shares, LEVELS.scale, strict=True):
            deviations = TARGET_SCALE * np.sqrt(scale * (epistemic + noise)[group])
            middle = TARGET_CENTER + TARGET_SCALE * mean[group]
            expected += weight * share * norm.pdf(y, middle, deviations)
    np.testing.assert_allclose(mixture(ensemble, inputs).pdf(y), expected, rtol=1e-9)
    scales = np.einsum("kd,knd->nd", LEVELS.scale, shares)
    np.testing.assert_allclose(mean_scales(ensemble, inputs), scales, rtol=1e-12)


def test_parts_of_the_variance_with_levels() -> None:
    """Both parts of a group are stretched by the mean level; groups apart are epistemic."""
    ensemble, inputs = paired(levels=LEVELS), rows()
    mean, epistemic, noise = group_moments_by_loops(ensemble, inputs)
    scales = np.einsum("kd,knd->nd", LEVELS.scale, shares_by_loops(inputs))
    middle = 0.2 * mean[0] + 0.8 * mean[1]
    wanted = [
        0.2 * (scales * epistemic[0] + (mean[0] - middle) ** 2)
        + 0.8 * (scales * epistemic[1] + (mean[1] - middle) ** 2),
        scales * (0.2 * noise[0] + 0.8 * noise[1]),
    ]
    found = components(ensemble, inputs)
    for part, expected in zip(found[1:], wanted, strict=True):
        np.testing.assert_allclose(part, TARGET_SCALE**2 * expected, rtol=1e-9)
    _, deviation = mean_and_deviation(ensemble, inputs)
    np.testing.assert_allclose(found[1] + found[2], deviation**2, rtol=1e-10)
    np.testing.assert_allclose(mixture(ensemble, inputs).var(), deviation**2, rtol=1e-9)
    np.testing.assert_allclose(mixture(ensemble, inputs).mean(), found[0], rtol=1e-9)


# With warps, two targets, groups and levels at once


@pytest.fixture(scope="module")
def all_at_once() -> Ensemble:
    """Plain and warped groups of two members each, with levels."""
    found = viewed_ensemble((X, TWO), max_iter=4)
    plain, _, warped, _ = found.members
    other = viewed_ensemble((X, TWO), max_iter=2)
    members = (plain, warped, other.members[0], other.members[2])
    views = tuple(found.representation.views[place] for place in (0, 2))
    together = replace(
        found,
        members=tuple(
            replace(member, variance_ratio=np.array(ratio))
            for member, ratio in zip(
                members, ([1.3, 0.6], [0.8, 0.7], [0.9, 1.1], [1.0, 0.5]), strict=True
            )
        ),
        representation=replace(found.representation, views=views),
        views=(0, 1, 0, 1),
        groups=(0, 1, 0, 1),
        weights=np.array([0.2, 0.3, 0.1, 0.4]),
        levels=replace(LEVELS, scale=np.array([[0.5, 0.8], [1.0, 0.6], [1.8, 1.4]])),
    )
    check_ensemble(together, 3, 2)
    assert group_warps(together) is not None
    return together


def test_moments_are_those_of_the_mixture(all_at_once: Ensemble) -> None:
    mean, deviation = mean_and_deviation(all_at_once, X[:6])
    found = mixture(all_at_once, X[:6])
    np.testing.assert_allclose(found.mean(), mean, rtol=1e-6)
    np.testing.assert_allclose(found.std(), deviation, rtol=1e-6)
    _, epistemic, noise = components(all_at_once, X[:6])
    np.testing.assert_allclose(epistemic + noise, deviation**2, rtol=1e-9)
    assert np.all(epistemic > 0.0)
    assert np.all(noise > 0.0)


def test_the_diagonal_of_the_covariance_is_the_variance(all_at_once: Ensemble) -> None:
    inputs = np.vstack([X[:8], X[:8] + 1e-5])
    total = covariance(all_at_once, inputs)
    _, deviation = mean_and_deviation(all_at_once, inputs)
    places = np.arange(len(inputs))
    np.testing.assert_allclose(total[places, places], deviation**2, rtol=1e-9)
    for output in range(2):
        np.testing.assert_allclose(total[..., output], total[..., output].T, rtol=1e-10)
        assert np.linalg.eigvalsh(total[..., output])[0] > 0.0


def test_draws_of_rows_have_the_moments_of_the_mixture(all_at_once: Ensemble) -> None:
    inputs, size = X[:5], 40_000
    mean, epistemic, noise = components(all_at_once, inputs)
    for with_noise, variance in ((True, epistemic + noise), (False, epistemic)):
        rng = np.random.default_rng(4)
        draws = draw_rows(all_at_once, inputs, size, rng, noise=with_noise)
        deviation = np.sqrt(epistemic + noise)
        bar = LIMIT * draws.std(axis=0) / np.sqrt(size) + QUADRATURE * deviation
        if not with_noise:
            # E[u | f] has a curve in the level: its mean level is not quite the mean over levels.
            bar += 0.02 * deviation
        assert np.all(np.abs(draws.mean(axis=0) - mean) < bar)
        squares = (draws - mean) ** 2
        bar = LIMIT * squares.std(axis=0) / np.sqrt(size) + 5.0 * QUADRATURE * variance
        if not with_noise:
            bar += 0.1 * variance
        assert np.all(np.abs(squares.mean(axis=0) - variance) < bar)


@pytest.mark.parametrize("groups", [(0, 0, 0), PAIRED, (0, 1, 2)], ids=str)
def test_joint_draws_have_the_moments_of_the_mixture(groups: tuple[int, ...]) -> None:
    """With levels; a member is drawn by its weight, its group's mean is what levels stretch."""
    ensemble, inputs, size = paired(groups=groups, levels=LEVELS), rows(4), 4000
    draws = draw_functions(ensemble, inputs, size, np.random.default_rng(5), noise=True)
    mean, deviation = mean_and_deviation(ensemble, inputs)
    bar = LIMIT * draws.std(axis=0) / np.sqrt(size)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar + 1e-3 * deviation)
    squares = (draws - mean) ** 2
    bar = LIMIT * squares.std(axis=0) / np.sqrt(size) + 5e-3 * deviation**2
    assert np.all(np.abs(squares.mean(axis=0) - deviation**2) < bar)
    # Between rows: without noise, whose levels are drawn row by row.
    calm = draw_functions(ensemble, inputs, size, np.random.default_rng(6), noise=False)
    away = calm - mean
    products = away[:, :, None] * away[:, None, :]
    bar = LIMIT * products.std(axis=0) / np.sqrt(size)
    bar += 5e-3 * deviation[:, None] * deviation[None, :]
    apart = np.abs(products.mean(axis=0) - covariance(ensemble, inputs)) < bar
    assert np.all(apart[~np.eye(4, dtype=bool)])


def test_joint_draws_of_warped_members_are_near_the_mixture(all_at_once: Ensemble) -> None:
    """A network's own targets are not quite Gaussian: a tenth of the deviation is left for that."""
    draws = draw_functions(all_at_once, X[:4], 2000, np.random.default_rng(7), noise=True)
    mean, deviation = mean_and_deviation(all_at_once, X[:4])
    bar = LIMIT * draws.std(axis=0) / np.sqrt(2000)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar + 0.1 * deviation)


# Parts that do not belong together


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": (0, 1)}, "members do not have one group each"),
        ({"groups": None}, "members do not have one group each"),
        ({"groups": (0, 2, 2)}, "groups of members are not counted from 0"),
        ({"groups": (1, 1, 2)}, "groups of members are not counted from 0"),
        ({"levels": 3}, "the levels of noise are none"),
        ({"levels": replace(LEVELS, columns=np.array([0, 3]))}, "columns that there are not"),
        ({"levels": replace(LEVELS, scale=LEVELS.scale[:, :1])}, "other targets"),
        ({"held_out": 3}, "held-out rows is none"),
        ({"held_out": HeldOut(values=np.ones((4, 1)), weights=np.ones(4))}, "other targets"),
        ({"held_out": HeldOut(values=np.ones((4, 2)), weights=np.ones(3))}, "other targets"),
        ({"held_out": HeldOut(values=2.0 * np.ones((4, 2)), weights=np.ones(4))}, "probabilities"),
        ({"held_out": HeldOut(values=np.ones((4, 2)), weights=np.zeros(4))}, "probabilities"),
        (
            {"held_out": HeldOut(values=np.full((4, 2), np.nan), weights=np.ones(4))},
            "probabilities",
        ),
    ],
)
def test_parts_that_do_not_belong_together(change: dict[str, Any], words: str) -> None:
    held_out = HeldOut(values=np.full((4, 2), 0.5), weights=np.ones(4))
    check_ensemble(paired(levels=LEVELS, held_out=held_out), 3, 2)
    with pytest.raises(ValueError, match=words):
        check_ensemble(replace(paired(), **change), 3, 2)


def test_a_group_has_one_view() -> None:
    found = viewed_ensemble((X, TWO), max_iter=1)
    with pytest.raises(ValueError, match="members of a group have different views"):
        check_ensemble(replace(found, groups=(0, 0, 1, 2)), 3, 2)
