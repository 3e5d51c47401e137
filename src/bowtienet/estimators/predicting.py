"""The predicting half of the estimator: every question is answered from the members' mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bowtienet._arrays import Array, to_numpy
from bowtienet._validation import whole
from bowtienet.data.rows import build_weights, concatenate
from bowtienet.estimators.tables import read_inputs, read_targets, with_names
from bowtienet.prediction.ensemble import (
    chunks,
    components,
    covariance,
    draw_functions,
    mean_and_deviation,
    mixture,
)
from bowtienet.prediction.intervals import check_coverage, highest_density
from bowtienet.prediction.mixture import GaussianMixture, build_mixture

KINDS = ("central", "highest_density")


class Components(NamedTuple):
    """Mean and the two parts of the variance, each (n,) or (n, outputs)."""

    mean: Array
    epistemic_variance: Array
    """What is not known about the function: shrinks with more rows."""
    noise_variance: Array
    """What no function of these inputs can explain."""


class PredictingMixin:
    """Prediction from `ensemble_`."""

    ensemble_: Any
    _single_target: bool

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predictive mean, and if wanted its standard deviation or covariance.

        Parameters
        ----------
        X : table (n, columns)
            The columns of training, in their order.
        return_std : bool
            Also the standard deviation of new targets, noise included.
        return_cov : bool
            Also the covariance of new targets between all pairs of rows, noise on the diagonal.
            It needs memory of order n², and comes from the push-forward whatever `predictive` is.

        Returns
        -------
        mean : (n,) or (n, outputs)
        std : same shape, if `return_std`
        cov : (n, n) or (n, n, outputs), if `return_cov`
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: ask for one.")
        inputs = self._inputs(X)
        parts = [mean_and_deviation(self.ensemble_, chunk) for chunk in chunks(inputs)]
        mean, deviation = (
            self._squeeze(concatenate(column)) for column in zip(*parts, strict=True)
        )
        if return_std:
            return mean, deviation
        if return_cov:
            return mean, self._squeeze(covariance(self.ensemble_, inputs))
        return mean

    def predict_interval(
        self,
        X: Any,
        coverage: Any = 0.9,
        *,
        kind: str = "central",
        n_samples: int = 2000,
        random_state: Any = 0,
    ) -> np.ndarray:
        """Intervals that hold a new target with given probability.

        Parameters
        ----------
        X : table (n, columns)
            New inputs.
        coverage : float or sequence of float
            Probability of each interval.
        kind : {"central", "highest_density"}
            Equal tails, computed exactly; they nest as coverage grows. Or the shortest interval,
            from draws.
        n_samples : int
            Draws per row for "highest_density".
        random_state : int, RandomState or None
            Seed of those draws.

        Returns
        -------
        (n, 2) for one coverage, (n, 2, k) for k of them; with several targets (n, outputs, 2) and
        (n, outputs, 2, k).
        """
        check_coverage(coverage)
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}: choose one of {', '.join(KINDS)}.")
        if kind == "central":
            return self._chunked(X, lambda found: found.interval(coverage))
        n_samples = whole(n_samples, "n_samples")
        rng = generator(random_state)
        return self._chunked(
            X,
            lambda found: highest_density(found.rvs(n_samples, random_state=rng), coverage),
            draws=n_samples,
        )

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles (n, q) of new targets; (n, outputs, q) with several. They never cross."""
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        return self._chunked(X, lambda found: found.ppf(levels))

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic variance and noise variance, which add up to the predictive variance."""
        inputs = self._inputs(X)
        parts = [components(self.ensemble_, chunk) for chunk in chunks(inputs)]
        return Components(
            *(self._squeeze(concatenate(column)) for column in zip(*parts, strict=True))
        )

    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predictive distribution of every row.

        The object has ``mean``, ``var``, ``std``, ``pdf``, ``logpdf``, ``cdf``, ``sf``, ``ppf``,
        ``interval`` and ``rvs``, in the manner of SciPy's distributions.
        """
        parts = [self._mixture(chunk) for chunk in chunks(self._inputs(X))]
        return build_mixture(
            parts[0].weights,
            np.concatenate([part.means for part in parts], axis=1),
            np.concatenate([part.deviations for part in parts], axis=1),
        )

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        *,
        joint: bool = False,
        noise: bool = True,
    ) -> np.ndarray:
        """Draws of new targets.

        Parameters
        ----------
        X : table (n, columns)
            New inputs.
        n_samples : int
            Draws for each row.
        random_state : int, RandomState or None
            Seed.
        joint : bool
            Draw whole networks, so that a draw is one function over all rows. Otherwise rows are
            drawn each by itself.
        noise : bool
            Draw targets; without noise, values of the function.

        Returns
        -------
        (n, n_samples), or (n, outputs, n_samples) with several targets.
        """
        inputs = self._inputs(X)
        n_samples = whole(n_samples, "n_samples")
        rng = generator(random_state)
        if joint:
            draws = draw_functions(self.ensemble_, inputs, n_samples, rng, noise=noise)
        else:
            draws = mixture(self.ensemble_, inputs, noise=noise).rvs(n_samples, random_state=rng)
        return np.moveaxis(np.asarray(self._squeeze(draws)), 0, -1)

    def log_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log predictive density of targets, in the user's units; higher is better.

        With several targets the mean over them of their own densities.
        """
        inputs = self._inputs(X)
        targets = to_numpy(read_targets(y, inputs.shape[0])).astype(float)
        weights = to_numpy(build_weights(sample_weight, inputs, name="sample_weight"))
        found = self.predict_dist(X)
        if targets.size != found.means[0].size:
            raise ValueError(
                f"y has shape {targets.shape}, but the targets of training make it "
                f"{found.means[0].shape}."
            )
        density = found.logpdf(targets.reshape(found.means[0].shape))
        by_row = density if density.ndim == 1 else density.mean(axis=1)
        return float(np.average(by_row, weights=weights))

    def _inputs(self, X: Any) -> Array:
        check_is_fitted(self)
        inputs = read_inputs(X)
        validate_data(self, with_names(X), reset=False, skip_check_array=True)
        return inputs

    def _chunked(
        self, X: Any, answer: Callable[[GaussianMixture], np.ndarray], draws: int = 1
    ) -> np.ndarray:
        inputs = self._inputs(X)
        return np.concatenate([answer(self._mixture(chunk)) for chunk in chunks(inputs, draws)])

    def _mixture(self, inputs: Array) -> GaussianMixture:
        found = mixture(self.ensemble_, inputs)
        if not self._single_target:
            return found
        return build_mixture(found.weights, found.means[..., 0], found.deviations[..., 0])

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self._single_target else values


def generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
