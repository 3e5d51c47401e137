"""Scorers inside scikit-learn's tools, against the scores themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation import (
    crps,
    interval_score,
    log_score,
    neg_crps,
    neg_interval_score,
)
from tests.evaluation.conftest import NAMES, Fitted


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_the_five_estimators(fitted: dict[str, Fitted], name: str) -> None:
    model, X, y = fitted[name]
    weights = np.arange(len(y)) % 3
    if hasattr(model, "predict_proba"):
        logs = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        for scorer in (neg_crps, neg_interval_score):
            with pytest.raises(TypeError, match="predict_dist"):
                scorer(model, X, y)
    else:
        distribution = model.predict_dist(X)
        logs = distribution.logpdf(y)
        assert neg_crps(model, X, y) == pytest.approx(-np.mean(crps(y, distribution)))
        found = neg_interval_score(model, X, y, weights, coverage=0.8)
        each = interval_score(y, model.predict_interval(X, 0.8), 0.8)
        assert found == pytest.approx(-np.average(each, weights=weights))
        assert log_score(model, X, y) == pytest.approx(model.log_score(X, y))
    assert log_score(model, X, y, weights) == pytest.approx(np.average(logs, weights=weights))


def test_inside_scikit_learn(fitted: dict[str, Fitted]) -> None:
    model, X, y = fitted["numbers"]
    folds = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, y, scoring=neg_crps, cv=folds)
    train, test = next(folds.split(X))
    again = clone(model).fit(X.iloc[train], y[train])
    assert scores[0] == pytest.approx(neg_crps(again, X.iloc[test], y[test]))
    grid = {"prior": ["gaussian", "student_t"]}
    search = GridSearchCV(BowTieRegressor((4,), effort="fast"), grid, scoring=log_score, cv=folds)
    search.fit(X, y)
    assert search.score(X, y) == log_score(search, X, y) == log_score(search.best_estimator_, X, y)
    lost = permutation_importance(model, X, y, scoring=log_score, n_repeats=2, random_state=0)
    assert X.columns[np.argmax(lost.importances_mean)] == "size"
    pipeline = make_pipeline(FunctionTransformer(), model)
    assert neg_crps(pipeline, X, y) == neg_crps(model, X, y)
