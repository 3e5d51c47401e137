"""Predictions of continuous targets: means, intervals, quantiles, distributions, draws, scores."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import Array
from bowtienet._validation import number, whole
from bowtienet.data.rows import concatenate
from bowtienet.ensemble.draws import draw_functions, draw_rows
from bowtienet.ensemble.ensemble import components, mean_and_deviation, mixture
from bowtienet.ensemble.row_covariance import covariance
from bowtienet.estimators.base import EnsembleEstimator, generator
from bowtienet.estimators.known_columns import encoded_chunks, open_known
from bowtienet.estimators.scoring import determination, held_out_scores, mean_log_density
from bowtienet.prediction.combined_mixtures import join_mixtures
from bowtienet.prediction.conformal import conformal_interval
from bowtienet.prediction.intervals import check_coverage, highest_density
from bowtienet.prediction.mixture import Mixture


class Components(NamedTuple):
    """Mean and the two parts of the variance, each (n,) or (n, outputs)."""

    mean: Array
    epistemic_variance: Array
    """Uncertainty about the function: shrinks with more rows."""
    noise_variance: Array
    """Aleatoric uncertainty: what no function of these features can explain."""


class EnsemblePredictor(RegressorMixin, EnsembleEstimator):
    """Answers from `ensemble_`, which a subclass fits or a file holds."""

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predictive mean (n,) or (n, outputs), and if wanted its deviation or covariance.

        Parameters
        ----------
        X : table (n, columns) or source
            The columns of training in their order; other columns of a table with names are ignored.
            All methods but those that look at rows jointly take any source that `fit` takes.
        return_std : bool
            Also the standard deviation of new targets, noise included.
        return_cov : bool
            Also the covariance (n, n) or (n, n, outputs) of new targets between all pairs of rows,
            noise on the diagonal; by the push-forward, in memory of order n².
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: ask for one.")
        source = self._features(X)
        if return_cov:
            features = self._in_memory(source)
            mean, _ = mean_and_deviation(self.ensemble_, features)
            return self._squeeze(mean), self._squeeze(covariance(self.ensemble_, features))
        parts = [
            mean_and_deviation(self.ensemble_, chunk) for chunk in encoded_chunks(self, source)
        ]
        mean, deviation = (self._squeeze(concatenate(part)) for part in zip(*parts, strict=True))
        return (mean, deviation) if return_std else mean

    def predict_interval(
        self,
        X: Any,
        coverage: Any = 0.9,
        *,
        method: str = "central",
        calibration: tuple[Any, ...] | None = None,
        n_samples: int = 2000,
        random_state: Any = 0,
    ) -> np.ndarray:
        """Intervals (n, 2) that hold a new target with given probability.

        Parameters
        ----------
        X : table or source
        coverage : float or sequence of float
            Probability of each interval; for k of them the result is (n, 2, k). With several
            targets (n, outputs, 2) and (n, outputs, 2, k).
        method : {"central", "highest_density", "conformal"}
            Equal tails, computed exactly; the shortest interval, from `n_samples` draws; or levels
            that held the stated share of held-out rows. Without `calibration` these are the rows
            that the fit held out in turn: near the coverage in practice, and not guaranteed.
        calibration : tuple (X, y) or (X, y, sample_weight), optional
            For "conformal": rows that the fit has not seen. If they and the new ones are
            exchangeable, an interval holds a new target with at least the stated probability,
            whatever the model; of too few rows, ends are infinite.
        """
        check_coverage(coverage)
        if method not in ("central", "highest_density", "conformal"):
            raise ValueError(
                f"unknown method {method!r}: choose 'central', 'highest_density' or 'conformal'."
            )
        if calibration is not None and method != "conformal":
            raise ValueError("calibration rows are for method='conformal'.")
        if method == "central":
            return self._answers(X, lambda found: found.interval(coverage))
        if method == "conformal":
            check_is_fitted(self)
            held_out = held_out_scores(self, calibration)
            return self._answers(X, lambda found: conformal_interval(found, held_out, coverage))
        n_samples, rng = whole(n_samples, "n_samples"), generator(random_state)
        return self._answers(
            X,
            lambda found: highest_density(found.rvs(n_samples, random_state=rng), coverage),
            draws=n_samples,
        )

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles (n, q) of new targets; (n, outputs, q) with several. They never cross."""
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        return self._answers(X, lambda found: found.ppf(levels))

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic variance and noise variance, which add up to the predictive variance."""
        source = self._features(X)
        parts = [components(self.ensemble_, chunk) for chunk in encoded_chunks(self, source)]
        return Components(*(self._squeeze(concatenate(part)) for part in zip(*parts, strict=True)))

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of every row, in the manner of SciPy's distributions.

        It has ``mean``, ``var``, ``std``, ``pdf``, ``logpdf``, ``cdf``, ``sf``, ``ppf``,
        ``interval`` and ``rvs``.
        """
        source = self._features(X)
        return join_mixtures([self._mixture(chunk) for chunk in encoded_chunks(self, source)])

    def predict_to_parquet(
        self, X: Any, path: str | os.PathLike[str], *, coverage: float | None = 0.9
    ) -> None:
        """Write predictions larger than memory to a Parquet file, block by block.

        The columns are `mean`, `std`, and `lower` and `upper` of the central interval unless
        `coverage` is None (with several targets `mean_0`, ...), one row for each row of X in its
        order. A file that exists is replaced only when the new one is complete.
        """
        from bowtienet.ensemble.parquet import refuse_own_input, write_parquet

        if coverage is not None:
            check_coverage(number(coverage, "coverage"))
        if isinstance(X, (str, os.PathLike)):
            refuse_own_input(X, path)
        source = self._features(X)
        write_parquet(path, map(self._mixture, encoded_chunks(self, source)), coverage)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        *,
        joint: bool = False,
        noise: bool = True,
    ) -> np.ndarray:
        """Draws (n, n_samples) of new targets; (n, outputs, n_samples) with several.

        With `joint` whole networks are drawn, so that a draw is one function over all rows;
        otherwise rows are drawn each by itself. Without `noise`, values of the function: the mean
        of a target given the network.
        """
        features = self._in_memory(self._features(X))
        n_samples, rng = whole(n_samples, "n_samples"), generator(random_state)
        if joint:
            draws = draw_functions(self.ensemble_, features, n_samples, rng, noise=noise)
        else:
            draws = draw_rows(self.ensemble_, features, n_samples, rng, noise=noise)
        return np.moveaxis(np.asarray(self._squeeze(draws)), 0, -1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the mean, averaged over targets."""
        check_is_fitted(self)
        return determination(self, open_known(self, X, y, sample_weight))

    def log_score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log predictive density in the user's units, over rows and targets."""
        check_is_fitted(self)
        return mean_log_density(self, open_known(self, X, y, sample_weight))

    def _answers(
        self, X: Any, answer: Callable[[Mixture], np.ndarray], draws: int = 1
    ) -> np.ndarray:
        chunks = encoded_chunks(self, self._features(X), draws)
        return np.concatenate([answer(self._mixture(chunk)) for chunk in chunks])

    def _mixture(self, features: Array) -> Mixture:
        found = mixture(self.ensemble_, features)
        return found.of_target(0) if self._single_target else found

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self._single_target else values
