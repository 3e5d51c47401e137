"""`BowTieCountRegressor`: calibrated prediction of counts from tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from bowtienet.estimators._base import Answers, Components, open_training
from bowtienet.estimators._ensemble import CONSTRAINTS, Practical
from bowtienet.estimators._streams import Prepare
from bowtienet.outcomes import Counts, Outcome
from bowtienet.prediction.discrete import CountMixture
from bowtienet.tables.door import TrainingTable
from bowtienet.tables.sources import Stream

Floats = NDArray[np.float64]


class BowTieCountRegressor(Answers, RegressorMixin, Practical):
    """Calibrated prediction of counts 0, 1, 2, ... from a table, without tuning.

    The stacked ensemble of `BowTieRegressor` for the logarithm of the rate, with negative binomial
    noise whose dispersion is fitted to held-out rows. An exposure (time, area, people) multiplies
    the rate; `score`, `log_score` and `sample_y` are for an exposure of 1.

    Parameters
    ----------
    hidden_layer_sizes, prior, effort, encoding, max_categories, n_jobs, random_state, verbose :
        As for `BowTieRegressor`.

    Attributes
    ----------
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet.estimators.counts import BowTieCountRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(200, 2))
    >>> y = rng.poisson(np.exp(1.0 + X[:, 0]))
    >>> model = BowTieCountRegressor(effort="fast", random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3]).shape
    (3, 2)
    """

    _has_one_target = True
    _parameter_constraints = CONSTRAINTS

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        prior: str = "student_t",
        effort: str = "balanced",
        encoding: str = "auto",
        max_categories: int = 30,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.effort = effort
        self.encoding = encoding
        self.max_categories = max_categories
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X, sample_weight :
            As for `BowTieRegressor.fit`.
        y : array (n,) or name
            Whole numbers from 0 on, or the name of their column in the frame X.
        exposure : array (n,) or name, optional
            Positive exposure of each row; 1 if absent. Not for sources.
        """
        self._validate_params()
        self._has_exposure = exposure is not None
        return self._learn(*open_training(self, X, y, sample_weight, exposure))

    def _targets(self, rows: TrainingTable, stream: Stream | None) -> tuple[Outcome, Prepare]:
        return Counts(), _counted

    def predict_dist(self, X: Any, exposure: Any = None) -> CountMixture:
        """Predictive distribution of each row, a mixture of negative binomial distributions."""
        mixture: CountMixture = self._predictive(*self._open(X, exposure))
        return mixture

    def predict(self, X: Any, return_std: bool = False, exposure: Any = None) -> Any:
        """Expected counts, and with `return_std` the standard deviation."""
        if return_std:
            return self._answer(X, lambda dist: (dist.mean(), dist.std()), exposure)
        return self._answer(X, lambda dist: dist.mean(), exposure)

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        method: str = "central",
        calibration: Any = None,
        exposure: Any = None,
    ) -> Floats:
        """Intervals (n, 2) of whole numbers that hold new counts with at least `coverage`.

        Parameters
        ----------
        X, coverage, method, calibration :
            As for `BowTieRegressor.predict_interval`; calibration rows have the exposure 1.
        exposure : array (n,), float or name, optional
            Positive exposures; 1 if absent.
        """
        return self._interval(X, coverage, method, calibration, exposure)

    def predict_quantiles(
        self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95), exposure: Any = None
    ) -> Floats:
        """Quantiles (n, m), whole numbers, at m levels between 0 and 1."""
        wanted = np.atleast_1d(levels)
        return np.asarray(self._answer(X, lambda dist: dist.ppf(wanted).T, exposure))

    def predict_components(self, X: Any, exposure: Any = None) -> Components:
        """Mean, epistemic and noise standard deviation."""
        return Components(*self._answer(X, lambda dist: (dist.mean(), *dist.parts()), exposure))

    def _functions(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        return np.exp(super()._functions(X, n_samples, rng))


def _counted(rows: TrainingTable) -> TrainingTable:
    """Counts and, with exposures, their logarithms."""
    counts = rows.targets
    if counts.shape[1] != 1:
        raise ValueError(f"y must be one column of counts, got {counts.shape[1]}.")
    bad = counts[(counts < 0.0) | (counts != np.round(counts))]
    if bad.size:
        raise ValueError(f"y must be counts 0, 1, 2, ..., got {bad[0]:g}: use BowTieRegressor.")
    if rows.exposure is not None:
        counts = np.column_stack([counts, np.log(rows.exposure)])
    return replace(rows, targets=counts)
