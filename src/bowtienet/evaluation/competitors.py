"""Other models for `compare`, and predictive distributions for those that only have means."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import open_features
from bowtienet.tables.representation import learn_representation, standardize

OURS = {
    "numbers": ("bowtienet.estimators.regressor", "BowTieRegressor"),
    "classes": ("bowtienet.estimators.classifier", "BowTieClassifier"),
    "counts": ("bowtienet.estimators.counts", "BowTieCountRegressor"),
}
BOOSTED = {
    "LightGBM": ("LGBM", {"verbose": -1}, {"objective": "poisson"}),
    "CatBoost": (
        "CatBoost",
        {"verbose": 0, "allow_writing_files": False},
        {"loss_function": "Poisson"},
    ),
}
"""Prefix of the classes, what keeps them quiet, and the loss of counts."""


def default_models(outcome: str = "numbers", random_state: int = 0) -> dict[str, Any]:
    """The bow tie estimator with its defaults, and models to compare it with, by name.

    These are a linear model, a constant, scikit-learn's gradient boosting, and LightGBM and
    CatBoost when they are installed, all behind the bow tie estimators' encoding of the columns.
    """
    module, name = OURS[outcome]
    seed = {"random_state": random_state}
    ours = getattr(import_module(module), name)(**seed)
    poisson = outcome == "counts"
    models: dict[str, Any]
    if outcome == "classes":
        models = {
            "linear": LogisticRegression(max_iter=1000),
            "constant": DummyClassifier(),
            "gradient boosting": HistGradientBoostingClassifier(**seed),
        }
    else:
        # The penalty of Poisson regression is against a mean loss, and hardly matters.
        linear = PoissonRegressor(alpha=1e-3, max_iter=1000) if poisson else RidgeCV((0.1, 1, 10))
        loss = "poisson" if poisson else "squared_error"
        models = {
            "linear": linear,
            "constant": DummyRegressor(),
            "gradient boosting": HistGradientBoostingRegressor(loss=loss, **seed),
        }
    task = "Classifier" if outcome == "classes" else "Regressor"
    for library, (prefix, quiet, loss_of_counts) in BOOSTED.items():
        if find_spec(library.lower()):
            kind = getattr(import_module(library.lower()), prefix + task)
            models[library] = kind(**quiet, **seed, **(loss_of_counts if poisson else {}))
    behind = {name: make_pipeline(TableEncoder(), model) for name, model in models.items()}
    return {"bow tie": ours, **behind}


def with_distribution(model: Any, outcome: str) -> Any:
    """The model itself if it predicts distributions or classes, else inside a `Widened`."""
    if outcome == "classes" or hasattr(model, "predict_dist"):
        return model
    return Widened(model, counts=outcome == "counts")


def features_and_targets(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Features, and targets that may be the name of a column."""
    if isinstance(y, str):
        frame = nw.from_native(X, eager_only=True)
        if y not in frame.columns:
            raise ValueError(f"the table has no column {y!r}: it has {', '.join(frame.columns)}.")
        X, y = frame.drop(y).to_native(), frame[y].to_numpy()
    return X, np.asarray(y)


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array or a frame of any library."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame[rows].to_native() if isinstance(frame, nw.DataFrame) else np.asarray(X)[rows]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as standardised numbers, as the bow tie estimators see them."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels, medians and scales."""
        table = open_features(self, X, reset=True)
        self.representation_ = learn_representation(table, np.ones(table.n_rows), 30)
        return self

    def transform(self, X: Any) -> Any:
        """Numbers (n, encoded)."""
        return standardize(self.representation_, open_features(self, X, reset=False))


class Widened(RegressorMixin, BaseEstimator):
    """A regressor with a distribution around its predictions, as wide as held-out errors.

    For numbers the variance is the mean square of the errors, for counts m + α m² with α from the
    moments of the errors.
    """

    def __init__(self, model: Any, counts: bool = False) -> None:
        self.model = model
        self.counts = counts

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to four fifths for the errors in the last, then to all rows."""
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
        first = clone(self.model).fit(rows_of(X, train), y[train])
        predicted = self._means(first, rows_of(X, test))
        squares = (y[test] - predicted) ** 2
        self.deviation_ = float(np.sqrt(np.mean(squares)))
        dispersion = float(np.sum(squares - predicted) / np.sum(predicted**2))
        self.dispersion_ = np.array([max(0.0, dispersion)])
        self.model_ = clone(self.model).fit(X, y)
        return self

    def predict_dist(self, X: Any) -> Mixture | CountMixture:
        """Gaussian or negative binomial distributions."""
        means, weights = self._means(self.model_, X)[None, :], np.ones(1)
        if self.counts:
            return CountMixture(weights=weights, means=means, dispersion=self.dispersion_)
        noise = np.full(means.shape, self.deviation_)
        return Mixture(weights=weights, means=means, epistemic=np.zeros_like(means), noise=noise)

    def predict(self, X: Any) -> Any:
        """The model's own predictions."""
        return self._means(self.model_, X)

    def _means(self, model: Any, X: Any) -> Any:
        means = np.asarray(model.predict(X), dtype=float)
        # A count of mean zero has no probability of one.
        return np.maximum(means, 1e-6) if self.counts else means
