"""The predicting half of the estimator: every question is answered from the members' mixture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bowtienet._arrays import Array, to_numpy
from bowtienet._validation import number, whole
from bowtienet.data.rows import Rows, build_weights, concatenate
from bowtienet.data.sources import Source, in_order
from bowtienet.estimators.given import check_source, find_source
from bowtienet.estimators.tables import named_columns, read_inputs, read_targets, with_names
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
from bowtienet.representation.scaling import column_moments, combine_moments

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
    n_outputs_: int
    _single_target: bool

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predictive mean, and if wanted its standard deviation or covariance.

        Parameters
        ----------
        X : table (n, columns) or source
            The columns of training, in their order; or any source that `fit` takes, of which named
            columns are found by their names. All methods but those that look at rows jointly
            (`return_cov`, `sample_y`) take one.
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
        inputs = self._inputs(X) if return_cov else None
        parts = [mean_and_deviation(self.ensemble_, chunk) for chunk in self._chunks(X)]
        mean, deviation = (
            self._squeeze(concatenate(column)) for column in zip(*parts, strict=True)
        )
        if return_std:
            return mean, deviation
        if inputs is not None:
            return mean, self._squeeze(covariance(self.ensemble_, inputs))
        return mean

    def predict_to_parquet(
        self, X: Any, path: str | os.PathLike[str], *, coverage: float | None = 0.9
    ) -> None:
        """Write predictions to a Parquet file, block by block: X may be larger than memory.

        Parameters
        ----------
        X : table or source
            As for `predict`.
        path : str or path
            File to write; one that exists is replaced only when the new one is complete.
        coverage : float or None
            Probability of the central interval in the columns `lower` and `upper`; None for none.

        The columns `mean` and `std` come first, one row for each row of X in its order (with
        several targets `mean_0`, `mean_1`, ...).
        """
        from bowtienet.estimators.writing import refuse_own_input, write_parquet

        check_is_fitted(self)
        if coverage is not None:
            check_coverage(number(coverage, "coverage"))
        if isinstance(X, (str, os.PathLike)):
            refuse_own_input(X, path)
        write_parquet(path, (self._mixture(chunk) for chunk in self._chunks(X)), coverage)

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
        parts = [components(self.ensemble_, chunk) for chunk in self._chunks(X)]
        return Components(
            *(self._squeeze(concatenate(column)) for column in zip(*parts, strict=True))
        )

    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predictive distribution of every row.

        The object has ``mean``, ``var``, ``std``, ``pdf``, ``logpdf``, ``cdf``, ``sf``, ``ppf``,
        ``interval`` and ``rvs``, in the manner of SciPy's distributions.
        """
        parts = [self._mixture(chunk) for chunk in self._chunks(X)]
        return _joined(parts)

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

    def log_score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log predictive density of targets, in the user's units; higher is better.

        With several targets the mean over them of their own densities.
        """
        source = self._source_to_score(X, y, sample_weight)
        if source is None:
            X, y, sample_weight = named_columns(X, y, sample_weight)
            inputs = self._inputs(X)
            targets = to_numpy(read_targets(y, inputs.shape[0])).astype(float)
            weights = build_weights(sample_weight, inputs, name="sample_weight")
            rows: Iterable[Rows] = [Rows(inputs=inputs, targets=targets, weights=weights)]
        else:
            rows = in_order(source)
        total = weight = 0.0
        for block in rows:
            share = to_numpy(block.weights).astype(float)
            total += float(share @ self._log_density(block))
            weight += float(share.sum())
        _check_weight(weight)
        return total / weight

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the mean, averaged over targets."""
        source = self._source_to_score(X, y, sample_weight)
        if source is None:
            X, y, sample_weight = named_columns(X, y, sample_weight)
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        blocks, errors = [], []
        for block in in_order(source):
            blocks.append(column_moments(block.targets, block.weights))
            parts = [mean_and_deviation(self.ensemble_, c)[0] for c in chunks(block.inputs)]
            errors.append(block.weights @ (block.targets - concatenate(parts)) ** 2)
        moments = combine_moments(blocks)
        _check_weight(moments.weight)
        return _determination(
            np.sum(errors, axis=0), (moments.spread * moments.unit) ** 2 * moments.weight
        )

    def _log_density(self, block: Rows) -> np.ndarray:
        """Log density of each row, the mean over targets."""
        parts = [self._mixture(chunk) for chunk in chunks(block.inputs)]
        found = _joined(parts)
        if block.targets.size != found.means[0].size:
            raise ValueError(
                f"y has shape {block.targets.shape}, but the targets of training make it "
                f"{found.means[0].shape}."
            )
        density = found.logpdf(block.targets.reshape(found.means[0].shape))
        return density if density.ndim == 1 else density.mean(axis=1)

    def _source(self, X: Any, y: Any = None, sample_weight: Any = None) -> Source | None:
        """Who reads `X` block by block, if it is not in memory; its columns are those of `fit`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        source = find_source(X, y, sample_weight, names)
        if source is not None:
            check_source(self, source)
        return source

    def _source_to_score(self, X: Any, y: Any, sample_weight: Any) -> Source | None:
        """The same for a source that has the targets too."""
        source = self._source(X, y, sample_weight)
        if source is not None and source.n_targets != self.n_outputs_:
            raise ValueError(
                f"the source has {source.n_targets or 'no'} "
                f"target{'s' if source.n_targets != 1 else ''}, but {self.n_outputs_} "
                f"{'was' if self.n_outputs_ == 1 else 'were'} fitted: name them, as in "
                "score(dataset, 'y'), or let batches be (X, y)."
            )
        return source

    def _chunks(self, X: Any, draws: int = 1) -> Iterator[Array]:
        """Inputs in parts that are small enough to predict at once."""
        source = self._source(X)
        if source is None:
            yield from chunks(self._inputs(X), draws)
            return
        for block in in_order(source):
            yield from chunks(block.inputs, draws)

    def _inputs(self, X: Any) -> Array:
        if self._source(X) is not None:
            raise ValueError("this needs the rows in memory: read X into a table first.")
        inputs = read_inputs(X)
        validate_data(self, with_names(X), reset=False, skip_check_array=True)
        return inputs

    def _chunked(
        self, X: Any, answer: Callable[[GaussianMixture], np.ndarray], draws: int = 1
    ) -> np.ndarray:
        parts = self._chunks(X, draws)
        return np.concatenate([answer(self._mixture(chunk)) for chunk in parts])

    def _mixture(self, inputs: Array) -> GaussianMixture:
        found = mixture(self.ensemble_, inputs)
        return found.of_target(0) if self._single_target else found

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self._single_target else values


def _joined(parts: Sequence[GaussianMixture]) -> GaussianMixture:
    return build_mixture(
        parts[0].weights,
        np.concatenate([part.means for part in parts], axis=1),
        np.concatenate([part.deviations for part in parts], axis=1),
    )


def _check_weight(total: float) -> None:
    if not total > 0.0:
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")


def _determination(errors: np.ndarray, spreads: np.ndarray) -> float:
    """Mean R² over targets; of a constant one it is 1 if all is right and else 0, by convention."""
    constant = spreads == 0.0
    share = np.where(constant, errors > 0.0, errors / np.where(constant, 1.0, spreads))
    return float(np.mean(1.0 - share))


def generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
