"""The regressor among its neighbours: scikit-learn's tools, MAPIE, skpro, joblib, skops."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from joblib.parallel import ThreadingBackend
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from skpro.regression.adapters.sklearn import SklearnProbaReg

from bowtienet import BowTieRegressor


def small(**changes: Any) -> BowTieRegressor:
    """A regressor that is fitted in a tenth of a second and calls itself converged."""
    settings: dict[str, Any] = {"n_estimators": 2, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (5,), "max_iter": 10, "tol": 1.0}
    return BowTieRegressor(**(settings | changes))


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three columns, of which the last has no part in the target; noise of deviation 0.3."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, 2.0 * np.abs(X[:, 0]) + 2.0 * X[:, 1] + 0.3 * rng.normal(size=n)


# scikit-learn


def test_a_scaler_in_front_changes_nothing_but_rounding() -> None:
    """Inputs are standardised inside. A random start: fitted ones multiply rounding."""
    X, y = rows()
    X = X * [1.0, 100.0, 0.01] + [0.0, 50.0, 3.0]
    plain = small(init="laplace").fit(X, y)
    pipeline = make_pipeline(StandardScaler(), small(init="laplace")).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(X), plain.predict(X), rtol=1e-8, atol=1e-8)
    mean, deviation = pipeline.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, pipeline.predict(X))
    np.testing.assert_allclose(deviation, plain.predict(X, return_std=True)[1], rtol=1e-8)
    assert pipeline.score(X, y) > 0.7


def test_an_imputer_in_front_takes_missing_values() -> None:
    X, y = rows()
    X[::10, 0] = np.nan
    pipeline = make_pipeline(SimpleImputer(), small()).fit(X, y)
    filled = SimpleImputer().fit_transform(X)
    np.testing.assert_array_equal(pipeline.predict(X), small().fit(filled, y).predict(filled))


def test_grid_search_over_prior_and_width() -> None:
    X, y = rows()
    grid = {"prior": ["student_t", "gaussian"], "hidden_layer_sizes": [(), (5,)]}
    search = GridSearchCV(small(), grid, cv=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores.shape == (4,)
    assert np.all(np.isfinite(scores))
    # |x| on (-2, 2) is not a line: the width must be chosen.
    assert search.best_params_["hidden_layer_sizes"] == (5,)
    best = small(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))


def test_cross_validation_is_the_loop_written_out() -> None:
    X, y = rows()
    folds = KFold(3)
    slow = [small().fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X)]
    np.testing.assert_array_equal(cross_val_score(small(), X, y, cv=folds), slow)
    assert min(slow) > 0.5


def test_permutation_importance_finds_the_column_without_a_part() -> None:
    X, y = rows(80)
    found = permutation_importance(small().fit(X, y), X, y, n_repeats=5, random_state=0)
    assert np.argmin(found.importances_mean) == 2
    assert np.argmax(found.importances_mean) == 1
    assert abs(found.importances_mean[2]) < 0.1 * found.importances_mean[0]


def test_partial_dependence_is_the_mean_over_rows() -> None:
    X, y = rows()
    model = small().fit(X, y)
    found = partial_dependence(model, X, [1], grid_resolution=4)
    for value, average in zip(found["grid_values"][0], found["average"][0], strict=True):
        moved = X.copy()
        moved[:, 1] = value
        np.testing.assert_allclose(average, model.predict(moved).mean(), rtol=1e-12)
    assert np.all(np.diff(found["average"][0]) > 0.0)


def test_a_transformed_target() -> None:
    X, y = rows()
    model = small(init="laplace")
    wrapped = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    found = wrapped.fit(X, np.exp(y)).predict(X)
    np.testing.assert_allclose(found, np.exp(clone(model).fit(X, y).predict(X)), rtol=1e-8)


def test_bagging_is_the_mean_of_its_regressors() -> None:
    X, y = rows()
    bag = BaggingRegressor(small(), n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(bag.predict(X), np.mean([m.predict(X) for m in bag], axis=0))
    assert not np.array_equal(bag[0].predict(X), bag[1].predict(X))


def test_stacking_with_a_line_is_better_than_the_line() -> None:
    X, y = rows()
    stack = StackingRegressor(
        [("line", LinearRegression()), ("bow_tie", small())],
        final_estimator=LinearRegression(),
        cv=3,
    ).fit(X, y)
    assert stack.score(X, y) > LinearRegression().fit(X, y).score(X, y) + 0.02


def test_several_targets_at_once() -> None:
    X, y = rows()
    both = small().fit(X, np.column_stack([y, X[:, 2] - 5.0]))
    mean, deviation = both.predict(X, return_std=True)
    assert mean.shape == deviation.shape == (60, 2)
    assert both.n_outputs_ == 2
    assert both.predict_interval(X).shape == (60, 2, 2)
    assert np.corrcoef(mean[:, 0], y)[0, 1] > 0.8
    assert np.corrcoef(mean[:, 1], X[:, 2])[0, 1] > 0.8
    one = small().fit(X, y[:, None])
    np.testing.assert_array_equal(one.predict(X), small().fit(X, y).predict(X)[:, None])


# Settings


def test_a_clone_has_the_settings_and_is_not_fitted() -> None:
    X, y = rows()
    model = small(prior="laplace", gate_temperature=0.05).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not any(name.endswith("_") for name in vars(copy))
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), model.predict(X))


def test_settings_are_read_and_set_by_name_in_a_pipeline_too() -> None:
    model = small()
    assert model.set_params(prior="gig", max_iter=7) is model
    assert (model.get_params()["prior"], model.get_params()["max_iter"]) == ("gig", 7)
    with pytest.raises(ValueError, match="no_such_setting"):
        model.set_params(no_such_setting=1)
    pipeline = Pipeline([("scaler", StandardScaler()), ("reg", small())])
    pipeline.set_params(reg__hidden_layer_sizes=(3, 2))
    assert pipeline.get_params()["reg__hidden_layer_sizes"] == (3, 2)
    assert pipeline["reg"].hidden_layer_sizes == (3, 2)


def test_a_pipeline_of_frames_hands_over_the_names() -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), small()).set_output(transform="pandas")
    pipeline.fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    scaled = pipeline[0].transform(frame).to_numpy()
    np.testing.assert_array_equal(pipeline.predict(frame), small().fit(scaled, y).predict(scaled))


def test_weights_reach_the_regressor_in_a_pipeline() -> None:
    X, y = rows()
    weights = np.arange(60) % 3.0
    pipeline = Pipeline([("imputer", SimpleImputer()), ("reg", small())])
    weighted = small().fit(X, y, sample_weight=weights).predict(X)
    assert not np.array_equal(weighted, small().fit(X, y).predict(X))
    found = pipeline.fit(X, y, reg__sample_weight=weights).predict(X)
    np.testing.assert_array_equal(found, weighted)
    with config_context(enable_metadata_routing=True):
        asking = small().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = Pipeline([("imputer", SimpleImputer()), ("reg", asking)])
        routed.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(routed.predict(X), weighted)
        score = routed.score(X, y, sample_weight=weights)
    assert score == small().fit(X, y, weights).score(X, y, sample_weight=weights)


# Prediction intervals and distributions of other libraries


def test_split_conformal_intervals_cover() -> None:
    """Coverage given the calibration is Beta with mean 0.9 and variance 0.09/202; new rows add
    0.09/400. Four deviations are 0.104; false alarm 6e-5."""
    train, calibration, new = rows(60, 1), rows(200, 2), rows(400, 3)
    model = SplitConformalRegressor(small().fit(*train), confidence_level=0.9, prefit=True)
    mean, ends = model.conformalize(*calibration).predict_interval(new[0])
    np.testing.assert_array_equal(mean, small().fit(*train).predict(new[0]))
    covered = np.mean((ends[:, 0, 0] <= new[1]) & (new[1] <= ends[:, 1, 0]))
    assert abs(covered - 0.9) < 4.0 * np.sqrt(0.09 / 202 + 0.09 / 400)


def test_cross_conformal_intervals_cover() -> None:
    """CV+ promises 1 - 2 alpha = 0.6 at a nominal 0.8. Four deviations of the count of 400 new rows
    and 60 residuals are 0.22 at 0.6; and intervals that cover all are of no use."""
    train, new = rows(60, 4), rows(400, 5)
    model = CrossConformalRegressor(small(), confidence_level=0.8, cv=3, random_state=0)
    _, ends = model.fit_conformalize(*train).predict_interval(new[0])
    covered = np.mean((ends[:, 0, 0] <= new[1]) & (new[1] <= ends[:, 1, 0]))
    assert 0.8 - 0.2 - 4.0 * np.sqrt(0.24 / 62 + 0.24 / 400) < covered < 1.0
    assert np.mean(ends[:, 1, 0] - ends[:, 0, 0]) < np.ptp(train[1])


def test_skpro_reads_mean_and_variance() -> None:
    X, y = rows()
    frame, target = pd.DataFrame(X, columns=["a", "b", "c"]), pd.DataFrame({"y": y})
    adapted = SklearnProbaReg(small()).fit(frame, target)
    mean, deviation = small().fit(frame, y).predict(frame, return_std=True)
    np.testing.assert_array_equal(adapted.predict(frame)["y"], mean)
    np.testing.assert_allclose(adapted.predict_var(frame)["y"], deviation**2, rtol=1e-12)
    distribution = adapted.predict_proba(frame)
    np.testing.assert_array_equal(distribution.mean()["y"], mean)
    np.testing.assert_allclose(distribution.var()["y"], deviation**2, rtol=1e-12)


# Threads and files of others


@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_threads_change_no_bit(combine: str) -> None:
    X, y = rows()
    settings: dict[str, Any] = {"combine": combine, "gate_temperature": 0.01, "init_penalty": 1.0}
    alone = small(**settings).fit(X, y)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        together = small(**settings).fit(X, y)
    np.testing.assert_array_equal(together.predict(X), alone.predict(X))
    np.testing.assert_array_equal(together.member_weights_, alone.member_weights_)
    np.testing.assert_array_equal(together.elbo_history_, alone.elbo_history_)


class AllAtOnce(ThreadingBackend):
    """A backend that, like multiprocessing's, can only answer when all is done."""

    supports_return_generator = False


def test_a_backend_that_answers_all_at_once() -> None:
    X, y = rows()
    joblib.register_parallel_backend("all at once", AllAtOnce)
    with joblib.parallel_config(backend="all at once", n_jobs=2):
        together = small().fit(X, y)
    np.testing.assert_array_equal(together.predict(X), small().fit(X, y).predict(X))


def through_pickle(model: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(model))


def through_joblib(model: Any, folder: Path) -> Any:
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def through_skops(model: Any, folder: Path) -> Any:
    data = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("bowtienet.") for name in unknown), unknown
    return skops.io.loads(data, trusted=unknown)


@pytest.mark.parametrize("through", [through_pickle, through_joblib, through_skops])
def test_files_of_others_give_the_same_predictions(
    through: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = small(hidden_layer_sizes=(4, 3)).fit(frame, np.column_stack([y, -y]))
    loaded = through(model, tmp_path)
    check_is_fitted(loaded)
    for found, expected in zip(
        loaded.predict(frame, return_std=True), model.predict(frame, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(loaded.predict_interval(frame), model.predict_interval(frame))
    assert loaded.get_params() == model.get_params()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (loaded.status_, loaded.converged_) == (model.status_, model.converged_)
