"""Standardising: weighted moments, any unit, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from bowtienet._old.representation.scaling import (
    FARTHEST,
    Scaling,
    column_moments,
    combine_moments,
    drawn_in,
    fit_scaling,
    restore_mean,
    scaling_from,
    standardize,
    standardize_features,
)


def test_weighted_mean_and_deviation(rng: np.random.Generator) -> None:
    values = rng.normal(3.0, [1.0, 20.0, 0.1], size=(50, 3))
    weights = rng.uniform(0.0, 3.0, size=50)
    scaling = fit_scaling(values, weights)
    mean = np.average(values, axis=0, weights=weights)
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(scaling.center, mean, rtol=1e-13)
    np.testing.assert_allclose(scaling.scale, deviation, rtol=1e-12)


def test_a_weight_of_two_is_the_row_twice(rng: np.random.Generator) -> None:
    values = rng.normal(size=(20, 3))
    weights = rng.integers(0, 4, size=20)
    weighted = fit_scaling(values, weights.astype(float))
    repeated = fit_scaling(np.repeat(values, weights, axis=0))
    np.testing.assert_allclose(weighted.center, repeated.center, rtol=1e-13)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-13)


@pytest.mark.parametrize("stray", [5.0, 1e20, 1e200, -1e300])
def test_a_weight_of_zero_is_absence(stray: float, rng: np.random.Generator) -> None:
    """Whatever a row of weight 0 holds; squares of a stray 1e200 must not make 0 · inf."""
    values = rng.normal(size=(10, 1)) * 1e-3
    with_stray = np.vstack([values, [[stray]]])
    scaling = fit_scaling(with_stray, np.append(np.ones(10), 0.0))
    expected = fit_scaling(values)
    np.testing.assert_allclose(scaling.center, expected.center, rtol=1e-13)
    np.testing.assert_allclose(scaling.scale, expected.scale, rtol=1e-13)


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e300])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_the_unit_does_not_matter(unit: float, offset: float, rng: np.random.Generator) -> None:
    base = rng.normal(offset, 1.0, size=(40, 2))
    standard = standardize(fit_scaling(base * unit), base * unit)
    np.testing.assert_allclose(standard, standardize(fit_scaling(base), base), atol=1e-13)
    np.testing.assert_allclose(standard.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(standard.std(axis=0), 1.0, rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 1.0, -7.3, 0.1, 1e-150, 1e150, 1e300, 1e-310])
def test_constants_are_centred_and_left_at_zero(value: float) -> None:
    """Also where the mean of equal numbers is not their value to the last digit."""
    for n in (1, 2, 3, 10, 101):
        values = np.full((n, 1), value)
        scaling = fit_scaling(values)
        assert np.all(np.isfinite(scaling.scale))
        assert np.all(scaling.scale > 0.0)
        np.testing.assert_allclose(standardize(scaling, values), 0.0, atol=1e-13)
        np.testing.assert_allclose(restore_mean(scaling, np.zeros((1, 1))), value, rtol=1e-13)


def test_a_small_spread_around_a_large_mean_is_not_a_constant(rng: np.random.Generator) -> None:
    """Mean 1e9, deviation 1e-3: the numbers themselves carry four digits of the spread."""
    values = 1e9 + 1e-3 * rng.normal(size=(200, 1))
    exact = values[:, 0] - 1e9
    scaling = fit_scaling(values)
    np.testing.assert_allclose(scaling.scale, exact.std(), rtol=1e-3)
    standard = standardize(scaling, values)
    np.testing.assert_allclose(standard[:, 0], (exact - exact.mean()) / exact.std(), atol=1e-3)


finite_tables = st_numpy.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 3)),
    elements=st.floats(-1e300, 1e300, allow_subnormal=False),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(finite_tables)
def test_restoring_undoes_standardising(values: np.ndarray) -> None:
    scaling = fit_scaling(values)
    standard = standardize(scaling, values)
    assert np.all(np.isfinite(standard))
    assert np.all(np.abs(standard) <= np.sqrt(len(values)) + 1e-6)
    size = np.abs(values).max(axis=0)
    error = np.abs(restore_mean(scaling, standard) - values)
    assert np.all(error <= 1e-14 * size)


def test_single_precision_stays_single() -> None:
    values = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    scaling = fit_scaling(values)
    assert standardize(scaling, values).dtype == np.float32


@pytest.mark.parametrize(
    ("values", "weights", "name"),
    [
        (np.ones(3), None, "values"),
        (np.ones((0, 2)), None, "values"),
        (np.array([[1.0], [np.nan]]), None, "values"),
        (np.array([[1.0], [np.inf]]), None, "values"),
        (np.ones((2, 1)), np.array([1.0, -0.5]), "weights"),
        (np.ones((2, 1)), np.zeros(2), "weights"),
        (np.ones((2, 1)), np.ones(3), "weights"),
        (np.ones((2, 1)), np.array([1.0, np.nan]), "weights"),
    ],
)
def test_bad_input(values: np.ndarray, weights: np.ndarray | None, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        fit_scaling(values, weights)


def combined(values: np.ndarray, weights: np.ndarray, size: int, *, fold: bool = False) -> Scaling:
    """Scaling from blocks of `size` rows, all at once or one after the other."""
    moments = [
        column_moments(values[i : i + size], weights[i : i + size])
        for i in range(0, len(values), size)
    ]
    if not fold:
        return scaling_from(combine_moments(moments))
    total = moments[0]
    for part in moments[1:]:
        total = combine_moments([total, part])
    return scaling_from(total)


def assert_same_scaling(found: Scaling, expected: Scaling, values: np.ndarray) -> None:
    """To 1e-12, and in columns far from zero to the digits that division by the unit leaves."""
    size = np.abs(values).max(axis=0)
    lost = 4.0 * np.finfo(float).eps * (size / expected.scale)
    assert np.all(np.abs(found.center - expected.center) <= 1e-13 * size)
    assert np.all(np.abs(found.scale / expected.scale - 1.0) <= 1e-12 + lost)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("size", [1, 7, 64, 300, 1000])
def test_blocks_together_are_the_whole(size: int, fold: bool, rng: np.random.Generator) -> None:
    noise = rng.normal(size=1000)
    values = np.column_stack(
        [
            noise,
            5.0 + 3.0 * noise,
            1e9 + noise,
            1e9 + 1e-3 * noise,
            np.full(1000, -7.3),
            np.zeros(1000),
            np.arange(1000) // 64 * 0.1,  # constant within most blocks, not between them
            1e-300 * noise,
            1e300 * noise,
            noise * 10.0 ** rng.integers(-300, 300, size=1000),
            np.where(np.arange(1000) < 500, 0.0, 1e-300 * noise),
        ]
    )
    weights = rng.uniform(0.1, 3.0, size=1000)
    found, expected = combined(values, weights, size, fold=fold), fit_scaling(values, weights)
    assert_same_scaling(found, expected, values)
    assert found.scale[4] == 7.3
    assert found.scale[5] == 1.0


@pytest.mark.parametrize("absent", [slice(0, 20), slice(10, 35), slice(20, 40)])
def test_blocks_of_weight_zero_are_absent(absent: slice, rng: np.random.Generator) -> None:
    values, weights = rng.normal(size=(40, 2)), rng.integers(1, 4, size=40).astype(float)
    values[absent] = 1e200
    weights[absent] = 0.0
    present = weights > 0.0
    expected = fit_scaling(values[present], weights[present])
    for fold in (False, True):
        found = combined(values, weights, 10, fold=fold)
        assert_same_scaling(found, expected, values[present])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(finite_tables, st.integers(1, 6), st.data())
def test_any_cut_gives_the_same_scaling(values: np.ndarray, size: int, data: st.DataObject) -> None:
    counts = st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))
    weights = np.asarray(data.draw(counts.filter(any)), dtype=float)
    found, expected = combined(values, weights, size), fit_scaling(values, weights)
    present = values[weights > 0.0]
    unit = np.abs(present).max(axis=0)
    assert np.all(np.abs(found.center - expected.center) <= 1e-14 * unit)
    constant = np.maximum(found.scale, expected.scale) == np.where(unit > 0.0, unit, 1.0)
    lost = 8.0 * np.finfo(float).eps * unit / expected.scale
    same = np.abs(found.scale / expected.scale - 1.0) <= 1e-12 + lost
    # A spread at the edge of rounding may count as constant in one cut and not in another.
    edge = np.minimum(found.scale, expected.scale) <= 128.0 * np.finfo(float).eps * unit
    assert np.all(same | (constant & edge))


def test_no_weight_at_all() -> None:
    empty = column_moments(np.ones((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="weights"):
        scaling_from(combine_moments([empty, empty]))
    with pytest.raises(ValueError, match="parts"):
        combine_moments([])


def test_weights_of_any_size(rng: np.random.Generator) -> None:
    """Only ratios of weights matter."""
    values, base = rng.normal(size=(40, 2)), rng.uniform(0.5, 1.0, size=40)
    for unit in (1e-300, 1e300):
        found = combined(values, unit * base, 8)
        assert_same_scaling(found, fit_scaling(values, base), values)


LARGEST = {dtype: float(np.finfo(dtype).max) for dtype in (np.float32, np.float64)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-30, 1.0, 1e30, 1e300, 1.7e308])
@pytest.mark.parametrize("center", [0.0, -1e300, 1e-20])
def test_features_are_finite_and_in_order_however_far(
    dtype: type, scale: float, center: float
) -> None:
    scaling = Scaling(center=np.array([center]), scale=np.array([scale]))
    ends = np.log10(np.finfo(dtype).tiny), np.log10(LARGEST[dtype]) - 0.01
    sizes = np.append(10.0 ** np.linspace(*ends, 400), LARGEST[dtype])
    x = np.concatenate([-sizes[::-1], [0.0], sizes]).astype(dtype)[:, None]
    z = standardize_features(scaling, x)
    assert z.dtype == dtype
    assert np.isfinite(z).all()
    assert np.all(np.diff(z[:, 0]) >= 0.0)
    assert np.abs(z).max() < 2e9


def test_nothing_changes_within_a_million_deviations(rng: np.random.Generator) -> None:
    scaling = Scaling(center=np.array([3.0, -1e7]), scale=np.array([0.3, 1e-5]))
    near = scaling.center + scaling.scale * rng.uniform(-FARTHEST, FARTHEST, size=(50, 2))
    far = np.array([[1e20, 0.0]])
    expected = standardize(scaling, near)
    np.testing.assert_array_equal(standardize_features(scaling, near), expected)
    together = standardize_features(scaling, np.concatenate([near, far]))
    np.testing.assert_array_equal(together[:-1], expected)
    assert together[-1, 0] < standardize(scaling, far)[0, 0]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_seam_is_smooth(sign: float) -> None:
    """C (1 + log(z / C)) meets z at C with slope one, and follows its formula beyond."""
    scaling = Scaling(center=np.zeros(1), scale=np.full(1, 2.0))
    step = 1e-4 * FARTHEST
    z = sign * (FARTHEST + step * np.arange(-2.0, 3.0))
    found = standardize_features(scaling, 2.0 * z[:, None])[:, 0]
    np.testing.assert_allclose(np.diff(found) / np.diff(z), 1.0, rtol=3e-4)
    beyond = np.array([1e7, 1e20, 1e300])
    expected = sign * FARTHEST * (1.0 + np.log(beyond / FARTHEST))
    np.testing.assert_allclose(
        standardize_features(scaling, sign * 2.0 * beyond[:, None])[:, 0], expected, rtol=1e-14
    )
    np.testing.assert_allclose(drawn_in(sign * beyond, FARTHEST), expected, rtol=1e-14)


def test_single_precision_is_left_where_it_cannot_hold_the_scaling() -> None:
    scaling = Scaling(center=np.array([0.0, 1e50]), scale=np.array([1e-60, 1e50]))
    x = np.zeros((1, 2), dtype=np.float32)
    for found in (standardize(scaling, x), standardize_features(scaling, x)):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [[0.0, -1.0]])
