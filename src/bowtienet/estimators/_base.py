"""What the five estimators share: `fit`, answers, and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import starmap
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from bowtienet import persistence
from bowtienet._format import warn
from bowtienet._params import share, whole
from bowtienet.estimators._streams import Prepare, client_of, column_of
from bowtienet.estimators.summary import describe
from bowtienet.model import Prior
from bowtienet.outcomes import GAUSSIAN, Outcome, StudentT
from bowtienet.tables import sources
from bowtienet.tables.door import Table, TrainingTable, open_known, open_rows
from bowtienet.tables.representation import standardize
from bowtienet.tables.sources import Stream, batches_of, collect, reader_of, source_of

Floats = NDArray[np.float64]


class Estimator(BaseEstimator):
    """Fit, files and tags of the five classes."""

    _fitted: Any
    _single: bool
    _has_one_target = False
    """Whether predictions have one axis also for targets with two."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : array or frame (n, columns), or source
            Numbers, categories, dates, truth values; values may be missing. A source is a path, a
            pyarrow dataset, a Dask collection, or an iterable of batches (X, y).
        y : array (n,) or (n, targets), or name(s)
            Targets, or the names of their columns in the frame X; classes are one column.
        sample_weight : array (n,) or name, optional
            How many times each row counts; weight 0 is absence.
        """
        self._validate_params()
        return self._learn(*open_training(self, X, y, sample_weight))

    def _learn(self, rows: TrainingTable, stream: Stream | None) -> Self:
        """`_fitted`, of the rows of the door, or of a stream and a sample of it."""
        raise NotImplementedError

    def _targets(self, rows: TrainingTable, stream: Stream | None) -> tuple[Outcome, Prepare]:
        """The likelihood of the targets, and how they are made numbers, which most are already."""
        is_robust = getattr(self, "noise", None) == "student_t"
        return StudentT() if is_robust else GAUSSIAN, lambda rows: rows

    def _inputs(self, X: Any) -> Floats:
        """Standardised columns of new rows."""
        check_is_fitted(self)
        return standardize(self._fitted.representation, open_known(self, X))

    def summary(self) -> str:
        """Facts of the fit as text: of an ensemble recipes, weights and held-out errors."""
        check_is_fitted(self)
        return describe(self)

    def plot(self, X: Any, y: Any) -> Any:
        """The plots that apply, for rows that the fit did not see; needs matplotlib.

        Predicted and actual values, calibration, predictions along the columns that move them most,
        and the network of a bow tie network: `bowtienet.plotting` has each alone.

        Parameters
        ----------
        X : table (n, columns)
            Rows.
        y : array (n,) or name
            Their targets.
        """
        from bowtienet.plotting.overview import OverviewDisplay

        check_is_fitted(self)
        return OverviewDisplay.from_estimator(self, X, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file; `bowtienet.load` reads it and runs no code.

        Parameters
        ----------
        path : str or path
            The file; one that exists is replaced when the new one is complete.
        """
        check_is_fitted(self)
        persistence.save(path, type(self).__name__, self._content())

    def _content(self) -> dict[str, Any]:
        """What a file holds: parameters, and what was fitted."""
        parameters = self.get_params(deep=False)
        # Requests of scikit-learn's metadata routing are settings, of which files know nothing.
        settings = {*parameters, "_metadata_request"}
        state: Any = self.__getstate__()
        fitted = {name: value for name, value in state.items() if name not in settings}
        if not isinstance(parameters["random_state"], Integral):
            parameters["random_state"] = None  # a generator has no place in a file
        return {"parameters": parameters, "fitted": fitted}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = not self._has_one_target
        return tags


def open_training(
    estimator: Any, X: Any, y: Any, weight: Any, exposure: Any = None
) -> tuple[TrainingTable, Stream | None]:
    """All rows of a fit, or a sample of them and how all of them are read."""
    source, labels = source_of(X, y), is_classifier(estimator)
    if source is None:
        rows, stream = open_rows(estimator, X, y, weight, exposure, labels=labels), None
    elif exposure is not None:
        raise ValueError(
            "exposure is for rows in memory: load them into a frame, or a sample of them."
        )
    else:
        reader = reader_of(estimator, source, weight, labels=labels)
        if (client := client_of(source)) is None:
            facts: Any = collect(starmap(reader, batches_of(source)), sources.SAMPLE)
        else:
            from bowtienet import cluster

            facts = cluster.facts_of_partitions(client, source, reader)
        if facts.n_without_target:
            warn(f"{facts.n_without_target} rows without a target are left out.")
        rows, stream = facts.sample, Stream(source=source, reader=reader, facts=facts)
        stream = None if facts.n_rows == len(facts.keys) else stream
    name_targets(estimator, rows)
    return rows, stream


def name_targets(estimator: Any, rows: TrainingTable) -> None:
    """Private attributes of the targets."""
    estimator._single = estimator._has_one_target or rows.is_single
    estimator._target_names = rows.target_names


def sizes_of(sizes: Any) -> tuple[int, ...] | None:
    """Widths of the hidden layers; None for "auto"."""
    if isinstance(sizes, str):
        return None
    each = [sizes] if np.ndim(sizes) == 0 else sizes
    return tuple(whole(size, "each of hidden_layer_sizes") for size in each)


def seed_of(random_state: Any) -> int:
    """A seed that scikit-learn's random state gives."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


class Components(NamedTuple):
    """Mean and the two parts of the standard deviation, each (n,) or (n, targets)."""

    mean: Floats
    epistemic: Floats
    """Uncertainty of the weights and disagreement of members: more rows reduce it."""
    noise: Floats
    """Noise of the targets: it remains with any number of rows."""


class Answers:
    """Predictions of numbers from `predict_dist`."""

    predict_dist: Callable[..., Any]
    _answer: Callable[..., Any]
    """A function of the predictive distribution; rows come first in what it returns."""
    _functions: Callable[[Any, int, np.random.Generator], Floats]
    """Draws (draws, n, targets) of functions."""
    _single: bool

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean, and with `return_std` the standard deviation.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        return_std : bool
            Whether to return the standard deviation as well.

        Returns
        -------
        mean : array (n,) or (n, targets)
        std : array of the same shape, with `return_std`
        """
        if return_std:
            return self._answer(X, lambda dist: (dist.mean(), dist.std()))
        return self._answer(X, lambda dist: dist.mean())

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Central intervals (n, 2), or (n, targets, 2), that hold new targets with `coverage`."""
        coverage = share(coverage, "coverage")
        return np.asarray(self._answer(X, lambda dist: np.stack(dist.interval(coverage), axis=-1)))

    def predict_quantiles(self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles (n, m), or (n, targets, m), at m levels between 0 and 1."""
        wanted = np.atleast_1d(levels)
        return np.asarray(self._answer(X, lambda dist: np.moveaxis(dist.ppf(wanted), 0, -1)))

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic and noise standard deviation."""
        return Components(*self._answer(X, lambda dist: (dist.mean(), *dist.parts())))

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, joint: bool = False
    ) -> Floats:
        """Draws (n, n_samples), or (n, targets, n_samples).

        Parameters
        ----------
        X : table (n, columns)
            Rows.
        n_samples : int
            Draws of each row.
        random_state : int, RandomState or None
            Seed of the draws.
        joint : bool
            Draw whole functions, without the noise of the targets; by default targets are drawn,
            each row independently.
        """
        n_samples = whole(n_samples, "n_samples")
        rng = np.random.default_rng(seed_of(random_state))
        if joint:
            draws = self._functions(X, n_samples, rng)
            draws = draws[..., 0] if self._single else draws
        else:
            draws = self.predict_dist(X).rvs(n_samples, rng)
        return np.moveaxis(draws, 0, -1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictive mean.

        Parameters
        ----------
        X : table (n, columns), or source
            Rows.
        y, sample_weight : arrays or names
            Targets and weights of the rows, or the names of their columns in X.
        """
        X, y, sample_weight = named_columns(X, y, sample_weight)
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def log_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log density of targets, minus the NLL: higher is better; arguments as of `score`."""
        X, y, sample_weight = named_columns(X, y, sample_weight)
        distribution = self.predict_dist(X)
        logs = distribution.logpdf(like_mean(y, distribution.mean()))
        logs = logs.reshape(len(logs), -1).sum(axis=1)
        return float(np.average(logs, weights=sample_weight))


class ClassAnswers:
    """Predictions of classes from `predict_proba`."""

    classes_: NDArray[Any]
    predict_proba: Callable[[Any], Floats]
    _has_one_target = True

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; y and sample_weight are arrays or names of columns of X."""
        X, y, sample_weight = named_columns(X, y, sample_weight)
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def named_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Rows, targets and weights, of which the last two may be names of columns."""
    X, y = column_of(X, y)
    X, sample_weight = column_of(X, sample_weight)
    return X, y, sample_weight


def like_mean(y: Any, mean: Floats) -> Floats:
    """Targets in the shape of their predictive mean."""
    targets = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if targets.size != mean.size or len(targets) != len(mean):
        raise ValueError(f"y must have the shape {mean.shape} of predictions, got {targets.shape}.")
    return targets.reshape(mean.shape)


def classes_of(
    rows: TrainingTable, stream: Stream | None
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """All classes, sorted, and how many rows each has."""
    if stream is None:
        return np.unique(rows.targets, return_counts=True)
    labels = stream.facts.labels
    classes = np.unique(np.array(list(labels), dtype=rows.targets.dtype))
    return classes, np.array([labels[label] for label in classes.tolist()])


def check_classes(rows: TrainingTable, classes: NDArray[Any]) -> None:
    """Two classes at least, as labels, with all that the rows have among them."""
    check_classification_targets(rows.targets)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}: a classifier needs two at least."
        )
    unknown = np.setdiff1d(rows.targets, classes)
    if unknown.size:
        raise ValueError(
            f"y has the class {unknown.tolist()[0]!r}, which the first rows did not name."
        )


def numbered(classes: NDArray[Any], by_class: Floats, rows: TrainingTable) -> TrainingTable:
    """Numbers of classes for targets, and weights times those of the classes."""
    numbers = np.searchsorted(classes, rows.targets)
    targets = numbers.astype(np.float64)[:, None]
    return replace(rows, targets=targets, weights=rows.weights * by_class[numbers])


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator that its `save` wrote; nothing that the file holds is run.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        Of the class that was saved, with its parameters, ready to predict.
    """
    from bowtienet.estimators._ensemble import FittedEnsemble
    from bowtienet.estimators._start import FittedNetwork
    from bowtienet.estimators.classifier import BowTieClassifier
    from bowtienet.estimators.counts import BowTieCountRegressor
    from bowtienet.estimators.network import BowTieNetwork, BowTieNetworkClassifier
    from bowtienet.estimators.regressor import BowTieRegressor

    practical = (BowTieClassifier, BowTieCountRegressor, BowTieRegressor)
    everyone: tuple[Any, ...] = (BowTieNetwork, BowTieNetworkClassifier, *practical)
    classes = {cls.__name__: cls for cls in everyone}
    kind, content = persistence.load(path, (FittedEnsemble, FittedNetwork, Prior))
    if kind not in classes:
        raise ValueError(f"{path} holds a {kind}, which this version does not know.")
    try:
        estimator = classes[kind](**content["parameters"])
        vars(estimator).update(content["fitted"])
        estimator._validate_params()
        _predict_nothing(estimator)
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error}. Fit and save again.") from error
    return estimator


def _predict_nothing(estimator: Any) -> None:
    """Predict rows without a single value: arrays whose shapes do not go together fail here."""
    columns, n_rows = estimator._fitted.representation.columns, 7  # one goes with every shape
    table = Table(
        names=tuple(column.name for column in columns),
        matrix=None,
        columns=(np.full(n_rows, None),) * len(columns),
        n_rows=n_rows,
    )
    if is_classifier(estimator):
        answers, width = [estimator.predict_proba(table)], len(estimator.classes_)
    else:
        known = {"exposure": 1.0} if getattr(estimator, "_has_exposure", False) else {}
        answers, width = (
            estimator.predict(table, return_std=True, **known),
            len(estimator._target_names),
        )
    for answer in answers:
        if answer.shape not in ((n_rows,), (n_rows, width)):
            raise ValueError("its arrays do not go together")
        if not np.all(np.isfinite(answer)):
            raise ValueError("it predicts no numbers")
    if len(columns) != estimator.n_features_in_:
        raise ValueError("it has other columns")
