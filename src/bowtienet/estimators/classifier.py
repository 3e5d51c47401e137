"""`BowTieClassifier`: calibrated class probabilities from tables."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions

from bowtienet.estimators._base import (
    ClassAnswers,
    Components,
    check_classes,
    classes_of,
    numbered,
)
from bowtienet.estimators._ensemble import CONSTRAINTS, Practical
from bowtienet.estimators._streams import Prepare
from bowtienet.outcomes import Outcome, Softmax
from bowtienet.tables.door import TrainingTable
from bowtienet.tables.sources import Stream

Floats = NDArray[np.float64]


class BowTieClassifier(ClassAnswers, ClassifierMixin, Practical):
    """Calibrated probabilities of two or more classes from a table, without tuning.

    The stacked ensemble of `BowTieRegressor` with the log loss. The weights of the recipes, and a
    temperature for each, come from held-out rows.

    Parameters
    ----------
    hidden_layer_sizes, prior, effort, encoding, max_categories, n_jobs, random_state, verbose :
        As for `BowTieRegressor`.
    class_weight : dict or "balanced", optional
        Weights of classes; row weights are multiplied by them.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet.estimators.classifier import BowTieClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(150, 2))
    >>> model = BowTieClassifier(effort="fast", random_state=0).fit(X, X[:, 0] * X[:, 1] > 0.0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        **CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        prior: str = "student_t",
        effort: str = "balanced",
        encoding: str = "auto",
        class_weight: Any = None,
        max_categories: int = 30,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.effort = effort
        self.encoding = encoding
        self.class_weight = class_weight
        self.max_categories = max_categories
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _targets(self, rows: TrainingTable, stream: Stream | None) -> tuple[Outcome, Prepare]:
        classes, counts = classes_of(rows, stream)
        check_classes(rows, classes)
        by_class = np.ones(len(classes))
        if self.class_weight == "balanced":
            by_class = counts.sum() / (len(counts) * counts)
        elif self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not np.all(by_class > 0.0):
            raise ValueError("class_weight must be positive: leave out rows, or weigh them 0.")
        self.classes_ = classes
        return Softmax(n_classes=len(classes)), partial(numbered, classes, by_class)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, classes) for a table, of the columns of `classes_`."""
        return np.asarray(self._answer(X, lambda dist: dist.mean()))

    def predict_components(self, X: Any) -> Components:
        """Probabilities, and their entropy in nats: epistemic (of the members) and noise."""
        return Components(*self._answer(X, lambda dist: (dist.mean(), *dist.parts())))
