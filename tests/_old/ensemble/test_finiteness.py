"""What is refused because no double can hold it, and fits that ended without numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import build_rows
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.finiteness import (
    LEAST_WEIGHT,
    check_finite,
    check_outliers,
    check_spread,
    check_total_weight,
)
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.representation.scaling import Scaling
from tests._old.estimators.models import rows, small, stacked

X, Y = rows()
SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def brief(**changes: Any) -> Any:
    """One member after two sweeps."""
    return small(max_iter=2, n_estimators=1, init_penalty=1.0, **changes)


@pytest.fixture(scope="module")
def fitted() -> Ensemble:
    return stacked().fit(X, Y).ensemble_


def first_member(ensemble: Ensemble, change: Callable[[Any], Any]) -> Ensemble:
    first, *others = ensemble.members
    return replace(ensemble, members=(change(first), *others))


def spoiled(value: float, name: str) -> Callable[[Any], Any]:
    """One number of one array of the last layer is another."""

    def spoil(member: Any) -> Any:
        *layers, last = member.factors.layers
        part = map_arrays(np.copy, getattr(last, name))
        array = part.covariance if name == "weights" else part.scale
        array.flat[0] = value
        last = replace(last, **{name: part})
        return replace(member, factors=replace(member.factors, layers=(*layers, last)))

    return spoil


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["weights", "noise_variance", "local_shrinkage"])
def test_an_ensemble_with_a_number_that_is_none_is_refused(
    fitted: Ensemble, name: str, value: float
) -> None:
    broken = first_member(fitted, spoiled(value, name))
    with pytest.raises(ValueError, match="not finite"):
        check_finite(broken)
    with pytest.raises(ValueError, match="sample_weight"):
        ensemble_attributes(broken, "cavi")


def test_weights_levels_and_ratios_are_looked_at_too(fitted: Ensemble) -> None:
    assert fitted.levels is not None
    assert fitted.outside is not None
    check_finite(fitted)
    nan = np.full_like
    levels = replace(fitted.levels, scale=nan(fitted.levels.scale, np.nan))
    slopes = nan(fitted.outside.slope_variances, np.inf)
    for broken in (
        replace(fitted, weights=nan(fitted.weights, np.nan)),
        replace(fitted, levels=levels),
        replace(fitted, outside=replace(fitted.outside, slope_variances=slopes)),
        first_member(fitted, lambda member: replace(member, variance_ratio=np.array([np.nan]))),
    ):
        with pytest.raises(ValueError, match="not finite"):
            check_finite(broken)


@SHORT
@pytest.mark.parametrize("prior", FAMILIES)
def test_every_prior_has_finite_factors(prior: str) -> None:
    check_finite(brief(prior=prior).fit(X[:9], Y[:9]).ensemble_)


def test_a_fit_that_ends_without_numbers_leaves_the_estimator_as_it_was(
    fitted: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bowtienet._old.ensemble.fit_ensemble import EnsembleFit
    from bowtienet._old.estimators import base

    broken = first_member(fitted, spoiled(np.nan, "weights"))
    found = EnsembleFit(ensemble=broken, solver="cavi", interrupted=False)
    monkeypatch.setattr(base, "fit_ensemble", lambda *_, **__: found)
    model = small()
    with pytest.raises(ValueError, match="not finite"):
        model.fit(X, Y)
    assert not hasattr(model, "ensemble_")


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_targets_whose_predictions_would_be_no_doubles_are_refused(unit: float) -> None:
    with pytest.raises(ValueError, match=r"spread of .* divide it by"):
        small().fit(X, unit * Y)
    two = Scaling(center=np.zeros(2), scale=np.array([1.0, unit]))
    with pytest.raises(ValueError, match="'price'"):
        check_spread(two, ("rooms", "price"))


@SHORT
@pytest.mark.parametrize("unit", [1e-200, 1e160, 1e-289, 1e289])
def test_variances_that_are_no_doubles_are_an_error_and_deviations_are_right(unit: float) -> None:
    far = np.concatenate([X, 1e300 * X[:5]])
    usual, model = brief().fit(X, Y), brief().fit(X, unit * Y)
    with pytest.raises(ValueError, match="return_std=True"):
        model.predict_components(X)
    with pytest.raises(ValueError, match="divided by"):
        model.predict(X, return_cov=True)
    mean, deviation = model.predict(X, return_std=True)
    known = usual.predict(X, return_std=True)
    np.testing.assert_allclose(mean / unit, known[0], rtol=0.1, atol=0.1)
    np.testing.assert_allclose(deviation / unit, known[1], rtol=0.1)
    assert np.isfinite(model.predict(far, return_std=True)).all()
    assert np.isfinite(model.predict_interval(far)).all()
    assert np.isfinite(model.sample_y(far, 2)).all()


@SHORT
@pytest.mark.parametrize("unit", [1e-140, 1e-20, 1e130])
def test_components_are_doubles_for_all_others(unit: float) -> None:
    """Also of rows far away."""
    far = np.concatenate([X, 1e300 * X[:5]])
    model = brief().fit(X, unit * Y)
    _, epistemic, noise = model.predict_components(far)
    for part in (epistemic, noise):
        assert np.all((part > 0.0) & np.isfinite(part))
    deviation = model.predict(far, return_std=True)[1]
    np.testing.assert_allclose(np.sqrt(epistemic + noise), deviation, rtol=1e-9)


def test_counts_and_classes_have_no_spread_to_refuse() -> None:
    check_spread(Scaling(center=np.zeros(1), scale=np.ones(1)), None)


@pytest.mark.parametrize(
    ("weights", "word"),
    [
        (10.0 ** np.linspace(-300.0, 300.0, 60), r"sample_weight holds 1e\+300"),
        (np.full(60, np.finfo(float).max), r"sample_weight holds 1\.8e\+308"),
        (np.full(60, 1e-320), "sample_weight has a sum of"),
    ],
    ids=["600 orders", "largest", "smallest"],
)
def test_weights_that_no_sum_can_be_made_of_are_refused(weights: np.ndarray, word: str) -> None:
    for model in (small(), stacked(prior="laplace"), stacked(outcome="student_t")):
        with pytest.raises(ValueError, match=word):
            model.fit(X, Y, sample_weight=weights)


def test_the_least_sum_of_weights_is_of_all_rows() -> None:
    check_total_weight(np.array([0.0, 1e-320, LEAST_WEIGHT]))
    with pytest.raises(ValueError, match="sample_weight"):
        check_total_weight(np.array([0.0, 0.1 * LEAST_WEIGHT]))


@SHORT
@pytest.mark.parametrize(
    ("prior", "weights"),
    [
        ("student_t", np.append(1e20, np.ones(59))),
        ("laplace", np.append(1e20, np.ones(59))),
        ("laplace", np.full(60, 1e5)),
        ("normal_gamma", 10.0 ** np.linspace(-7.5, 7.5, 60)),
        ("gig", 10.0 ** np.linspace(-15.0, 15.0, 60)),
    ],
    ids=["one row", "one row, laplace", "survey", "15 orders", "30 orders"],
)
def test_weights_of_many_sizes_give_a_fit(prior: str, weights: np.ndarray) -> None:
    """Or one that stopped early and says so: never NaN, and no error of arithmetic."""
    model = brief(prior=prior).fit(X, Y, sample_weight=weights)
    assert np.isfinite(model.predict(X, return_std=True)).all()


@SHORT
def test_one_enormous_weight_is_no_error_of_stacking() -> None:
    model = stacked(n_estimators=1).fit(X, Y, sample_weight=np.append(1e20, np.ones(59)))
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.parametrize("value", [1e100, -1e300])
def test_outliers_that_hide_all_others_are_refused(value: float) -> None:
    """Quartiles do not see them, and their squares overflow."""
    y = Y.copy()
    y[7] = value
    with pytest.raises(ValueError, match=r"holds .*: correct or drop it"):
        stacked(outcome="student_t").fit(X, y)


def test_outliers_without_weight_are_absent() -> None:
    scaling = Scaling(center=np.zeros(1), scale=np.ones(1))
    targets = np.array([0.0, 1e11, 1e13])
    check_outliers(build_rows(np.ones((3, 1)), targets, [1.0, 1.0, 0.0]), scaling, None)
    with pytest.raises(ValueError, match=r"1e\+13"):
        check_outliers(build_rows(np.ones((3, 1)), targets), scaling, None)


def test_counts_that_are_no_whole_numbers_any_more_are_refused() -> None:
    counts = np.ones(60)
    counts[4] = 1e300
    with pytest.raises(ValueError, match="row 4"):
        small(outcome="counts").fit(X, counts)
