"""`BowTieClassifier`: classes behind the scikit-learn contract."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logit
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old._validation import whole
from bowtienet._old.data.labels import check_classes, read_classes
from bowtienet._old.data.source import Source
from bowtienet._old.data.tables import is_names
from bowtienet._old.ensemble.class_ensemble import (
    ClassMoments,
    class_moments,
    class_probabilities,
    draw_probabilities,
)
from bowtienet._old.ensemble.ensemble import group_moments
from bowtienet._old.ensemble.next_rows import next_labels
from bowtienet._old.estimators.base import EnsembleEstimator, generator
from bowtienet._old.estimators.class_weights import check_weighted_classes, weighted_classes
from bowtienet._old.estimators.fit_options import FitOptions
from bowtienet._old.estimators.known_columns import encoded_chunks, open_known, warning_level
from bowtienet._old.estimators.named_predictions import named_class_parts
from bowtienet._old.estimators.progress import with_callbacks
from bowtienet._old.estimators.scoring import accuracy, mean_log_probability
from bowtienet._old.model.outcomes import Binary, Classes, Outcome
from bowtienet._old.prediction.calibration import LEAST_PROBABILITY


class ClassComponents(NamedTuple):
    """Probabilities and the parts of the entropy of the class, in nats."""

    probabilities: np.ndarray
    """(n, classes)."""
    epistemic: np.ndarray
    """(n,): mutual information of class and function, which more rows would take away."""
    aleatoric: np.ndarray
    """(n,): entropy that is left if the function is known."""


class BowTieClassifier(ClassifierMixin, EnsembleEstimator):
    """Ensemble of Bayesian bow tie networks for two or more classes, with calibrated probabilities.

    Tables are taken as they are: numbers, categories, text, dates and missing values; labels may be
    texts, numbers or booleans. Two classes have a logistic likelihood and more a logistic softmax,
    both closed form by Polya-Gamma variables. Every row is held out once: held-out rows choose what
    networks see, how strongly they are penalised and how long they run, and how sure they may be.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(50,)
        Widths of the hidden layers; ``()`` is logistic regression.
    prior : str, default="student_t"
        Shrinkage prior of the weights, as for `BowTieRegressor`.
    n_estimators : int or None, default=None
        Members of the ensemble; None for as many as `effort` brings along.
    effort : {"fast", "balanced", "best"}, default="balanced"
        How many recipes and lengths are compared, and how many members are fitted.
    features : {"auto", "standard", "piecewise", "principal"} or int, default="auto"
        What networks see of a column of numbers, as for `BowTieRegressor`.
    class_weight : dict, "balanced" or None, default=None
        What the rows of each class are weighted by, times `sample_weight`; "balanced" gives all
        classes the same weight. Probabilities are then those of the weighted rows.
    solver : {"auto", "cavi", "svi"}, default="auto"
        What makes posteriors: coordinate ascent, or stochastic variational inference, which "auto"
        takes above 50,000 rows.
    max_iter : int, default=80
        Most sweeps over the rows for each fit; a default fit makes one.
    warm_start : bool, default=False
        Go on from the members of the last fit instead of from new starts.
    checkpoint : path or None, default=None
        File that keeps finished members of a running fit; `resume` goes on from it.
    n_jobs : int, default=None
        Groups of networks, or fits, at the same time; 1 for None. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of starts and held-out rows; an int makes a fit repeatable to the last bit.
    verbose : int, default=0
        1 shows one live line.
    options : FitOptions or None, default=None
        What few people touch.

    Attributes
    ----------
    classes_ : ndarray (classes,)
        The labels, sorted.
    ensemble_ : Ensemble
        The fitted members with their weights and representation.
    columns_ : tuple of Column
        What was learnt of every column of X.
    n_features_in_, feature_names_in_, target_names_ :
        Columns of X and y, with their names.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bowtienet import BowTieClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = BowTieClassifier((20,), effort="fast", random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        **EnsembleEstimator._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    classes_: np.ndarray

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (50,),
        *,
        prior: str = "student_t",
        n_estimators: int | None = None,
        effort: str = "balanced",
        features: str | int = "auto",
        class_weight: Mapping[Any, float] | str | None = None,
        solver: str = "auto",
        max_iter: int = 80,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        options: FitOptions | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.n_estimators = n_estimators
        self.effort = effort
        self.features = features
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.options = options

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table, in memory or not.

        Parameters
        ----------
        X : table (n, columns) or source
            As for `BowTieRegressor.fit`: arrays, frames, files, batches, Dask tables.
        y : (n,) or name
            Labels; for tables with named columns also the name of their column.
        sample_weight : (n,) or name, optional
            How many times each row counts.
        """
        return self._fit(X, y, sample_weight)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def resume(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with a fit that was cut short, from its `checkpoint`, with the same rows."""
        return self._fit(X, y, sample_weight, resume=True)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Take in more rows, as for `fit`.

        Parameters
        ----------
        X, y, sample_weight
            Rows; let the first call have a few hundred.
        classes : sequence, optional
            All labels that will come, in the first call; by default those of its rows.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all rows at once: for partial_fit give the weights "
                "of the classes as a dict."
            )
        if not hasattr(self, "ensemble_"):
            return self._take_in(X, y, sample_weight, classes=classes)
        if classes is not None and not np.array_equal(read_classes(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)!r:.200} are not those of the calls before, "
                f"{self.classes_.tolist()!r:.200}: fit a new estimator for other classes."
            )
        return self._take_in(X, y, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, classes), in the order of `classes_`."""
        source = self._features(X)
        return np.concatenate(
            [class_probabilities(self.ensemble_, part) for part in encoded_chunks(self, source)]
        )

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities (n, classes)."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), LEAST_PROBABILITY)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable labels (n,)."""
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[most_probable])

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds (n,) of the second of two classes; log probabilities (n, classes) of more."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return self.predict_log_proba(X)
        p = np.clip(self.predict_proba(X)[:, 1], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        return np.asarray(logit(p))

    def predict_components(self, X: Any) -> Any:
        """Probabilities, and the entropy of the class in an epistemic and an aleatoric part.

        Arrays in `ClassComponents`; of a pandas or polars frame they are a frame with columns
        `p_label` for each class, `epistemic` and `aleatoric`.
        """
        parts = [self._moments(part) for part in encoded_chunks(self, self._features(X))]
        found = ClassComponents(
            probabilities=np.concatenate([part.mean for part in parts]),
            epistemic=np.concatenate([part.entropy - part.aleatoric_entropy for part in parts]),
            aleatoric=np.concatenate([part.aleatoric_entropy for part in parts]),
        )
        return named_class_parts(X, found, self.classes_.tolist())

    def sample_proba(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, joint: bool = False
    ) -> np.ndarray:
        """Draws (n, classes, n_samples) of the probabilities given the function.

        With `joint` whole networks are drawn, so that a draw is one function over all rows;
        otherwise rows are drawn each by itself.
        """
        features = self._in_memory(self._features(X))
        count, rng = whole(n_samples, "n_samples"), generator(random_state)
        draws = draw_probabilities(self.ensemble_, features, count, rng, joint=joint)
        return np.moveaxis(draws, 0, -1)

    def next_points(self, candidates: Any, n: int = 1, *, random_state: Any = 0) -> np.ndarray:
        """Places (n,) of the rows to label next, the most telling one first.

        By the mutual information of class and function, the epistemic part of the entropy, less
        what the rows that were chosen before would tell already.

        Parameters
        ----------
        candidates : table (m, columns)
            Rows in memory that could be labelled. Of more than 400 a random sample is looked at.
        n : int
            Rows of the batch, at most m.
        random_state : int, RandomState or Generator
            Where samples and draws of functions come from.
        """
        features, count = self._candidates(candidates, n)
        return next_labels(self.ensemble_, features, count, generator(random_state))

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the predictions as an ONNX model, in double precision, for any runtime of ONNX.

        Its outputs are `label` (n,) and `probabilities` (n, classes), and its inputs are those that
        `BowTieRegressor.to_onnx` describes (``pip install 'bowtienet[onnx]'``).
        """
        from bowtienet._old.onnx_export.export import export_classifier

        check_is_fitted(self)
        named = hasattr(self, "feature_names_in_")
        export_classifier(self.ensemble_, path, named=named, classes=self.classes_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of rows whose most probable label is right."""
        check_is_fitted(self)
        return accuracy(self, open_known(self, X, y, sample_weight))

    def log_score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log probability of the labels: minus the log loss."""
        check_is_fitted(self)
        return mean_log_probability(self, open_known(self, X, y, sample_weight))

    def _moments(self, features: Any) -> ClassMoments:
        found = map_arrays(to_numpy, group_moments(self.ensemble_, features))
        return class_moments(self.ensemble_, found)

    def _outcome(self, source: Source | None, options: FitOptions) -> Outcome:
        found = None if source is None else source.classes
        classes = self.classes_ if found is None else found
        return Binary() if len(classes) == 2 else Classes(n_classes=len(classes))

    def _target_settings(self) -> dict[str, Any]:
        return {"target": "label", "classes": self.classes_}

    def _open_new(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        source = super()._open_new(X, y, sample_weight, target="label", **rows)
        assert source.classes is not None
        check_classes(source.classes)
        if not source.single_target and y is not None and not is_names(y):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: give y.ravel().",
                DataConversionWarning,
                stacklevel=warning_level(),
            )
        weighted = weighted_classes(source, self.class_weight)
        check_weighted_classes(weighted)
        return weighted

    def _open_more(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        # The classes are those that were fitted, whatever the first call was told.
        rows.pop("classes", None)
        return weighted_classes(super()._open_more(X, y, sample_weight), self.class_weight)

    def _attributes(self, source: Source) -> dict[str, Any]:
        return {**super()._attributes(source), "classes_": source.classes}

    def _effect_names(self) -> tuple[str, ...]:
        [target] = self.target_names_
        return tuple(f"P({target} = {label})" for label in self.classes_.tolist())

    def _squeeze(self, values: Any) -> Any:
        """Scores of a row are one number; contributions to probabilities are those of classes."""
        return values[..., 0] if values.shape[-1] == 1 else values
