"""Forecasts of counts: ours as it comes, Poisson regression, boosted trees, and the truth.

A method is a function of training rows, test rows and a seed that gives a distribution of the test
counts with `logpmf`, `mean` and `ppf`. Of those that know no exposure, boosted trees of
scikit-learn and Poisson regression predict rates weighted by it, and NGBoost gets its logarithm as
a column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import poisson
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._old.outcomes.count_sets import CountRows
from bowtienet._old import BowTieRegressor

CountMethod = Callable[[CountRows, CountRows, int], Any]


def ours(train: CountRows, test: CountRows, seed: int) -> Any:
    """The default regressor for counts."""
    model = BowTieRegressor(outcome="counts", random_state=seed)
    model.fit(train.features, train.counts, exposure=train.exposure)
    return model.predict_dist(test.features, exposure=test.exposure)


def poisson_regression(train: CountRows, test: CountRows, seed: int) -> Any:
    """A linear log rate; penalty by five folds."""
    model = GridSearchCV(PoissonRegressor(max_iter=1000), {"alpha": np.logspace(-5, 1, 7)}, cv=5)
    scaler = StandardScaler().fit(train.features)
    return _poisson_of(model, train, test, scaler.transform)


def boosting(train: CountRows, test: CountRows, seed: int) -> Any:
    """Boosted trees with the Poisson loss, stopped by a tenth of the rows."""
    model = HistGradientBoostingRegressor(loss="poisson", early_stopping=True, random_state=seed)
    return _poisson_of(model, train, test, np.asarray)


def ngboost(train: CountRows, test: CountRows, seed: int) -> Any:
    """Natural gradient boosting with a Poisson distribution, stopped by a tenth of the rows."""
    from ngboost import NGBRegressor
    from ngboost.distns import Poisson

    model = NGBRegressor(Dist=Poisson, early_stopping_rounds=20, random_state=seed, verbose=False)
    features, held_out, counts, held_out_counts = train_test_split(
        _with_exposure(train), train.counts, test_size=0.1, random_state=seed
    )
    model.fit(features, counts, X_val=held_out, Y_val=held_out_counts)
    return poisson(model.pred_dist(_with_exposure(test)).params["mu"])


def truth(train: CountRows, test: CountRows, seed: int) -> Any:
    """What the counts were drawn from."""
    return test.truth


COUNT_METHODS: dict[str, CountMethod] = {
    "bowtienet": ours,
    "Poisson regression": poisson_regression,
    "boosting, Poisson": boosting,
    "NGBoost, Poisson": ngboost,
    "truth": truth,
}


def _poisson_of(
    model: Any, train: CountRows, test: CountRows, prepare: Callable[[np.ndarray], np.ndarray]
) -> Any:
    """Poisson with exposure x predicted rate."""
    exposure = np.ones(len(train.counts)) if train.exposure is None else train.exposure
    model.fit(prepare(train.features), train.counts / exposure, sample_weight=exposure)
    rate = model.predict(prepare(test.features))
    return poisson(rate if test.exposure is None else rate * test.exposure)


def _with_exposure(rows: CountRows) -> np.ndarray:
    if rows.exposure is None:
        return rows.features
    return np.column_stack([rows.features, np.log(rows.exposure)])
