"""Other models for `compare`, and predictive distributions for those that only have means."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline

from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import open_features, open_rows, refuse_others
from bowtienet.tables.frames import frame_of, separate
from bowtienet.tables.representation import learn_representation, standardize

OURS: dict[str, Any] = {
    "numbers": BowTieRegressor,
    "classes": BowTieClassifier,
    "counts": BowTieCountRegressor,
}


def outcome_of(model: Any) -> str:
    """What a fitted estimator predicts: numbers, classes or counts."""
    if hasattr(model, "predict_proba"):
        return "classes"
    return "counts" if isinstance(model, BowTieCountRegressor) else "numbers"


def default_models(outcome: str = "numbers", random_state: int = 0) -> dict[str, Any]:
    """The bow tie estimator with its defaults, and models to compare it with, by name.

    These are a linear model, a constant, scikit-learn's gradient boosting, and LightGBM and
    CatBoost when they are installed, all behind the bow tie estimators' encoding of the columns.
    """
    seed: dict[str, Any] = {"random_state": random_state}
    models: dict[str, Any]
    if outcome == "classes":
        models = {"linear": LogisticRegression(max_iter=1000), "constant": DummyClassifier()}
        models["gradient boosting"] = HistGradientBoostingClassifier(**seed)
    else:
        # scikit-learn's penalty of 1 on the mean Poisson loss would be a strong one.
        poisson = PoissonRegressor(alpha=1e-3, max_iter=1000)
        linear = poisson if outcome == "counts" else RidgeCV((0.1, 1, 10))
        loss = "poisson" if outcome == "counts" else "squared_error"
        models = {"linear": linear, "constant": DummyRegressor()}
        models["gradient boosting"] = HistGradientBoostingRegressor(loss=loss, **seed)
    kind = "Classifier" if outcome == "classes" else "Regressor"
    if find_spec("lightgbm"):
        more = {"objective": "poisson"} if outcome == "counts" else {}
        LightGBM = getattr(import_module("lightgbm"), f"LGBM{kind}")
        models["LightGBM"] = LightGBM(verbose=-1, n_jobs=1, **more, **seed)
    if find_spec("catboost"):
        more = {"loss_function": "Poisson"} if outcome == "counts" else {}
        CatBoost = getattr(import_module("catboost"), f"CatBoost{kind}")
        quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
        models["CatBoost"] = CatBoost(**quiet, **more, **seed)
    encoded = {
        name: make_pipeline(TableEncoder(labels=outcome == "classes"), model)
        for name, model in models.items()
    }
    return {"bow tie": OURS[outcome](**seed), **encoded}


def with_distribution(model: Any, outcome: str, fifths: int = 1) -> Any:
    """The model itself if it predicts distributions or classes, else a `Widened` one."""
    inner = getattr(model, "estimator", model)  # of a search
    inner = inner[-1] if isinstance(inner, Pipeline) else inner
    if outcome == "classes" or hasattr(inner, "predict_dist"):
        return model
    return Widened(model, counts=outcome == "counts", fifths=fifths)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as standardised numbers, as the bow tie estimators see them."""

    def __init__(self, labels: bool = False) -> None:
        self.labels = labels

    def fit_transform(self, X: Any, y: Any) -> Any:
        """Numbers of the rows that it learns from, with statistics of the target out of fold."""
        training = open_rows(self, X, y, labels=self.labels)
        self.representation_, inputs = learn_representation(training, 30)
        return inputs

    def transform(self, X: Any) -> Any:
        """Numbers (n, encoded)."""
        return standardize(self.representation_, open_features(self, X, reset=False))


class Widened(RegressorMixin, BaseEstimator):
    """A regressor with a distribution around its predictions, as wide as held-out errors.

    For numbers the variance is the mean square of the errors, for counts m + α m² with α from the
    moments of the errors. `fifths` is the number of held-out fifths of the rows whose errors count:
    more than one for small tables.
    """

    def __init__(self, model: Any, counts: bool = False, fifths: int = 1) -> None:
        self.model, self.counts, self.fifths = model, counts, fifths

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to four fifths for the errors in another, then to all rows."""
        folds = KFold(min(5, len(y)), shuffle=True, random_state=0).split(y)
        pairs = []
        for train, test in islice(folds, self.fifths):
            self.model_ = clone(self.model).fit(rows_of(X, train), y[train])
            pairs.append((self._means(rows_of(X, test)), y[test]))
        means, actual = map(np.concatenate, zip(*pairs, strict=True))
        squares = (actual - means) ** 2
        self.deviation_ = np.sqrt(np.mean(squares))
        self.dispersion_ = np.maximum(np.sum(squares - means, keepdims=True) / np.sum(means**2), 0)
        self.model_ = clone(self.model).fit(X, y)
        return self

    def predict_dist(self, X: Any) -> Mixture | CountMixture:
        """Gaussian or negative binomial distributions."""
        means, weights = self._means(X)[None, :], np.ones(1)
        if self.counts:
            return CountMixture(weights=weights, means=means, dispersion=self.dispersion_)
        zeros = np.zeros_like(means)
        return Mixture(weights=weights, means=means, epistemic=zeros, noise=zeros + self.deviation_)

    def _means(self, X: Any) -> Any:
        means = np.asarray(self.model_.predict(X), dtype=float)
        # A rate of zero would forbid counts.
        return np.maximum(means, 1e-6) if self.counts else means


def features_and_targets(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Features, and targets that may be the name of a column."""
    refuse_others(X)
    X, y, _ = separate(X, y)
    return X, np.asarray(y)


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array or a frame of any library."""
    frame = frame_of(X)
    return np.asarray(X)[rows] if frame is None else frame[rows].to_native()
