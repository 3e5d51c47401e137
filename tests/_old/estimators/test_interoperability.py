"""The regressor among its neighbours: scikit-learn's tools, MAPIE, skpro, joblib, skops.

SHAP and ONNX Runtime are run by the code of docs/guide/libraries.md.
"""

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
from mapie.regression import SplitConformalRegressor
from sklearn import config_context
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from skpro.regression.adapters.sklearn import SklearnProbaReg

from bowtienet._old import BowTieRegressor, FitOptions
from tests._old.estimators import models
from tests._old.estimators.models import assert_same, rows


def small(**changes: Any) -> BowTieRegressor:
    """A regressor that is fitted in a tenth of a second and calls itself converged."""
    return models.small(**({"hidden_layer_sizes": (5,), "max_iter": 10, "tol": 1.0} | changes))


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


def test_options_can_be_searched_too() -> None:
    X, y = rows()
    grid = {"options__gate_temperature": [0.01, 0.5], "options__init": ["laplace", "relu_network"]}
    original = small()
    search = GridSearchCV(original, grid, cv=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 4
    assert search.best_estimator_.options.init == search.best_params_["options__init"]
    # The options of the original are its own.
    assert original.options.gate_temperature == 0.05
    assert search.best_estimator_.options is not original.options


def test_tables_with_texts_through_scikit_learn() -> None:
    X, y = rows()
    sign = np.where(X[:, 1] > 0.0, "plus", "minus")
    frame = pd.DataFrame({"a": X[:, 0], "sign": pd.Categorical(sign), "c": X[:, 2]})
    frame.loc[::8, "a"] = np.nan
    folds = KFold(3)
    slow = [
        small().fit(frame.iloc[a], y[a]).score(frame.iloc[b], y[b]) for a, b in folds.split(frame)
    ]
    np.testing.assert_array_equal(cross_val_score(small(), frame, y, cv=folds), slow)
    model = small().fit(frame, y)
    found = permutation_importance(model, frame, y, n_repeats=2, random_state=0)
    assert np.argmin(found.importances_mean) == 2


# Settings


def test_settings_are_read_and_set_by_name_in_a_pipeline_too() -> None:
    model = small()
    assert model.set_params(prior="gig", options__tol=0.1) is model
    assert model.get_params()["options__tol"] == model.options.tol == 0.1
    assert repr(FitOptions(tol=0.1)) == "FitOptions(tol=0.1)"
    with pytest.raises(ValueError, match="no_such_setting"):
        model.set_params(no_such_setting=1)
    pipeline = Pipeline([("scaler", StandardScaler()), ("reg", small())])
    pipeline.set_params(reg__hidden_layer_sizes=(3, 2), reg__options__weighting="elbo")
    assert pipeline["reg"].hidden_layer_sizes == (3, 2)
    assert pipeline["reg"].options.weighting == "elbo"


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


# Files of others


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
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(text=["yes", "no"] * 30)
    model = small(hidden_layer_sizes=(4, 3)).fit(frame, np.column_stack([y, -y]))
    loaded = through(model, tmp_path)
    check_is_fitted(loaded)
    assert_same(loaded, model)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.predict_interval(frame), model.predict_interval(frame))
    assert loaded.options.get_params() == model.options.get_params()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "text"]
    assert loaded.columns_ == model.columns_
    assert (loaded.status_, loaded.converged_) == (model.status_, model.converged_)
