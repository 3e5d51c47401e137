"""`TablePipeline`: a table with texts, dates and missing values in, predictions out."""

from __future__ import annotations

import copy
import os
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bowtienet import persistence
from bowtienet.estimators.columns import refuse_sources
from bowtienet.estimators.keeping import load_table_pipeline, save_table_pipeline
from bowtienet.estimators.predicting import Components
from bowtienet.estimators.preparing import TablePreparer
from bowtienet.estimators.pruning import FeatureRelevance, Sparsity
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.estimators.reporting import ReportingMixin
from bowtienet.estimators.tables import as_frame, named_columns
from bowtienet.prediction.mixture import GaussianMixture


class TablePipeline(ReportingMixin, Pipeline):
    """A preparation of tables and a `BowTieRegressor`, to be used like the regressor alone.

    It is made by `make_table_pipeline` and is a scikit-learn ``Pipeline`` in all else: it can be
    cloned, searched and cross-validated (``regressor__hidden_layer_sizes``).

    Parameters
    ----------
    steps, transform_input, memory, verbose :
        As of ``sklearn.pipeline.Pipeline``; the first step is a `TablePreparer`, the last a
        `BowTieRegressor`.

    Attributes
    ----------
    preparer_ : TablePreparer
        The fitted preparation; ``preparer_.columns_`` tells what was learnt of the columns.
    regressor_ : BowTieRegressor
        The fitted regressor.
    target_names_ : list of str
        Names of the targets; y, or y0, y1, ..., if they had none.
    feature_relevance_, sparsity_ :
        Those of the regressor; its inputs are what the preparation gives.

    Examples
    --------
    >>> import pandas as pd
    >>> from bowtienet import BowTieRegressor, make_table_pipeline
    >>> table = pd.DataFrame(
    ...     {
    ...         "city": ["Oslo", "Rome"] * 20,
    ...         "area": [None, *range(39)],
    ...         "price": range(40),
    ...     }
    ... )
    >>> regressor = BowTieRegressor((5,), n_estimators=1, combine="equal", tol=0.01, random_state=0)
    >>> model = make_table_pipeline(regressor)
    >>> model.fit(table, "price").predict(table[:3]).shape
    (3,)
    >>> model.regressor_.feature_names_in_.tolist()
    ['city=Oslo', 'city=Rome', 'area', 'area missing']
    """

    steps: list[tuple[str, Any]]
    target_names_: list[str]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Learn the preparation, then fit the regressor. If it fails, nothing changes.

        Parameters
        ----------
        X : table (n, columns)
            pandas, polars or pyarrow table, or an array, in memory.
        y : (n,) or (n, outputs), or names
            Targets; for tables with named columns also the name of the target, or a list of them.
        sample_weight : (n,) or name, optional
            How many times each row counts for the regressor. Medians and categories do not depend
            on it.
        **params :
            As of ``sklearn.pipeline.Pipeline``.

        Returns
        -------
        self
        """
        refuse_sources(X)
        targets = _target_names(y)
        X, y, sample_weight = named_columns(X, y, sample_weight)
        if sample_weight is not None:
            routed = get_config()["enable_metadata_routing"]
            name = "sample_weight" if routed else f"{self.steps[-1][0]}__sample_weight"
            params = params | {name: sample_weight}
        # A regressor that cannot be fitted stays as it was; other steps do not.
        fresh = copy.copy(self)
        fresh.steps = [
            (name, clone(step, safe=False)) for name, step in self.steps[:-1]
        ] + self.steps[-1:]
        super(TablePipeline, fresh).fit(X, y, **params)
        self.steps, self.target_names_ = fresh.steps, targets
        return self

    def predict(self, X: Any, **options: Any) -> Any:
        """Predictive mean, and what the options of `BowTieRegressor.predict` ask for.

        Here and below X is a table with the columns of training, in any order if they have names;
        other columns, such as that of the target, are ignored.
        """
        return self._ask("predict", X, **options)

    def predict_interval(self, X: Any, coverage: Any = 0.9, **options: Any) -> np.ndarray:
        """Intervals that hold a new target with given probability, as of the regressor."""
        return self._ask("predict_interval", X, coverage, **options)

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles (n, q) of new targets; (n, outputs, q) with several."""
        return self._ask("predict_quantiles", X, quantiles)

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic variance and noise variance, which add up to the predictive variance."""
        return self._ask("predict_components", X)

    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predictive distribution of every row."""
        return self._ask("predict_dist", X)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, **options: Any
    ) -> np.ndarray:
        """Draws of new targets, as of the regressor."""
        return self._ask("sample_y", X, n_samples, random_state, **options)

    def log_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log predictive density of targets, which may be named; higher is better."""
        X, y, sample_weight = named_columns(X, y, sample_weight)
        return self._ask("log_score", X, y, sample_weight)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the mean, averaged over targets."""
        if y is None:
            raise ValueError(
                "y is None: give the targets, score(X, y), or the name of their column."
            )
        X, y, sample_weight = named_columns(X, y, sample_weight)
        return self._ask("score", X, y, sample_weight)

    def prune(
        self,
        false_sign_rate: float | None = None,
        *,
        refit: bool = False,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """A new pipeline with the same preparation and `BowTieRegressor.prune` of the regressor."""
        check_is_fitted(self)
        if X is not None:
            X, y, sample_weight = named_columns(X, y, sample_weight)
            X = self._prepared(X)
        regressor = self.regressor_.prune(
            false_sign_rate, refit=refit, X=X, y=y, sample_weight=sample_weight
        )
        pruned = copy.copy(self)
        pruned.steps = [(name, copy.copy(step)) for name, step in self.steps[:-1]]
        pruned.steps.append((self.steps[-1][0], regressor))
        return pruned

    @property
    def preparer_(self) -> TablePreparer:
        """The fitted preparation."""
        check_is_fitted(self)
        return self.steps[0][1]

    @property
    def regressor_(self) -> BowTieRegressor:
        """The fitted regressor."""
        check_is_fitted(self)
        return self.steps[-1][1]

    @property
    def sparsity_(self) -> Sparsity:
        """Inputs, nodes and weights of every member before and after pruning."""
        return self.regressor_.sparsity_

    @property
    def feature_relevance_(self) -> FeatureRelevance:
        """Which of the prepared columns matter, by name."""
        names = self[:-1].get_feature_names_out()
        return self.regressor_.feature_relevance_._replace(name=np.asarray(names, dtype=object))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted pipeline to one file that loads without running code.

        Of the settings of the pipeline itself only the names of its steps are kept.
        """
        check_is_fitted(self)
        steps = [step for _, step in self.steps]
        if [type(step) for step in steps] != [TablePreparer, BowTieRegressor]:
            found = ", ".join(type(step).__name__ for step in steps)
            raise ValueError(
                "only a pipeline of a TablePreparer and a BowTieRegressor can be saved, but the "
                f"steps are {found}: use pickle or skops for others."
            )
        save_table_pipeline(self, steps[0], steps[1], path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted pipeline that `save` wrote."""
        return load_table_pipeline(cls, path)

    def _prepared(self, X: Any) -> Any:
        return self[:-1].transform(X)

    def _ask(self, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
        """What the regressor answers for a table that is not prepared yet."""
        regressor = self.regressor_
        return getattr(regressor, method)(self._prepared(X), *arguments, **options)


def make_table_pipeline(
    regressor: BowTieRegressor | None = None, *, max_categories: int = 100
) -> TablePipeline:
    """A `TablePreparer` before a regressor.

    Parameters
    ----------
    regressor : BowTieRegressor, optional
        By default one with default settings.
    max_categories : int
        Most values that a column of texts may have.

    Returns
    -------
    TablePipeline
        With the steps "prepare" and "regressor".
    """
    regressor = BowTieRegressor() if regressor is None else regressor
    prepare = TablePreparer(max_categories=max_categories)
    return TablePipeline([("prepare", prepare), ("regressor", regressor)])


def load(path: str | os.PathLike[str]) -> BowTieRegressor | TablePipeline:
    """Read a fitted `BowTieRegressor` or `TablePipeline`, whichever a file holds."""
    if os.path.isfile(path) and persistence.claimed_kind(path) == TablePipeline.__name__:
        return TablePipeline.load(path)
    return BowTieRegressor.load(path)


def _target_names(y: Any) -> list[str]:
    """Names that targets were called by or have; y, or y0, y1, ..., for others."""
    if isinstance(y, str):
        return [str(y)]
    if isinstance(y, (list, tuple)) and y and all(isinstance(name, str) for name in y):
        return [str(name) for name in y]
    frame = as_frame(y, "y")
    names = [] if frame is None else getattr(frame, "columns", [getattr(frame, "name", "")])
    if names and all(isinstance(name, str) and name for name in names):
        return [str(name) for name in names]
    shape = np.shape(y)
    n_targets = shape[1] if len(shape) == 2 else 1
    return ["y"] if n_targets == 1 else [f"y{index}" for index in range(n_targets)]
