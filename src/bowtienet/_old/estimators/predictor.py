"""Predictions of continuous targets: means, intervals, quantiles, distributions, draws, scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bowtienet._old._arrays import Array
from bowtienet._old._validation import number, whole
from bowtienet._old.data.rows import concatenate
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.count_ensemble import (
    count_components,
    count_mixture,
    draw_counts,
    is_counts,
)
from bowtienet._old.ensemble.draws import draw_functions, draw_rows
from bowtienet._old.ensemble.ensemble import components, mean_and_deviation, mixture
from bowtienet._old.ensemble.next_rows import next_rows
from bowtienet._old.ensemble.row_covariance import covariance
from bowtienet._old.estimators.base import EnsembleEstimator, generator
from bowtienet._old.estimators.known_columns import encoded_chunks, exposed_chunks, open_known
from bowtienet._old.estimators.named_predictions import (
    named_intervals,
    named_parts,
    named_quantiles,
)
from bowtienet._old.estimators.scoring import determination, held_out_scores, mean_log_density
from bowtienet._old.prediction.combined_mixtures import join_mixtures
from bowtienet._old.prediction.conformal import conformal_interval
from bowtienet._old.prediction.count_mixture import join_counts
from bowtienet._old.prediction.intervals import check_coverage, highest_density


class Components(NamedTuple):
    """Mean and the two parts of the variance, each (n,) or (n, outputs)."""

    mean: Array
    epistemic_variance: Array
    """Uncertainty about the function: shrinks with more rows."""
    noise_variance: Array
    """Aleatoric uncertainty: what no function of these features can explain."""


class EnsemblePredictor(RegressorMixin, EnsembleEstimator):
    """Answers from `ensemble_`, which a subclass fits or a file holds."""

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, exposure: Any = None
    ) -> Any:
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
        exposure : (n,) or name, optional
            Of counts, here and in all other methods: exposures of the rows, 1 by default.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: ask for one.")
        if self._counts():
            if return_cov:
                raise ValueError("counts have no return_cov: ask for return_std.")
            moments = [
                (part.mean(), part.std()) for part in self._distributions(X, exposure=exposure)
            ]
            mean, deviation = (np.concatenate(part) for part in zip(*moments, strict=True))
            return (mean, deviation) if return_std else mean
        source = self._features(X, exposure)
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
        exposure: Any = None,
    ) -> Any:
        """Intervals (n, 2) that hold a new target with given probability.

        Of a pandas or polars frame they are a frame, with its index and columns `lower` and
        `upper`; of several coverages or targets `lower_0.9` or `lower_price`.

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
        check_is_fitted(self)
        if method == "central":
            ends = self._answers(X, lambda found: found.interval(coverage), exposure=exposure)
        elif method == "conformal":
            if self._counts():
                raise ValueError("conformal intervals are for continuous targets: ask for others.")
            held_out = held_out_scores(self, calibration)
            ends = self._answers(X, lambda found: conformal_interval(found, held_out, coverage))
        else:
            n_samples, rng = whole(n_samples, "n_samples"), generator(random_state)
            ends = self._answers(
                X,
                lambda found: highest_density(found.rvs(n_samples, random_state=rng), coverage),
                draws=n_samples,
                exposure=exposure,
            )
        return named_intervals(X, ends, coverage, self.target_names_)

    def predict_quantiles(
        self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), *, exposure: Any = None
    ) -> Any:
        """Quantiles (n, q) of new targets; (n, outputs, q) with several. They never cross.

        Of a pandas or polars frame they are a frame, with columns `q0.05`, `q0.5`, `q0.95`.
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        found = self._answers(X, lambda found: found.ppf(levels), exposure=exposure)
        return named_quantiles(X, found, levels, self.target_names_)

    def predict_components(self, X: Any, *, exposure: Any = None) -> Any:
        """Mean, epistemic variance and noise variance: the variances sum to the predictive one.

        Arrays in `Components`; of a pandas or polars frame they are the columns of a frame.
        Variances that no double can hold, those of targets of 1e-200 or 1e200, are an error.
        """
        return named_parts(X, self._components(X, exposure), self.target_names_)

    def _components(self, X: Any, exposure: Any) -> Components:
        source = self._features(X, exposure)
        if self._counts():
            found = [
                count_components(self.ensemble_, *part) for part in exposed_chunks(self, source)
            ]
            return Components(*(np.concatenate(part) for part in zip(*found, strict=True)))
        parts = [components(self.ensemble_, chunk) for chunk in encoded_chunks(self, source)]
        return Components(*(self._squeeze(concatenate(part)) for part in zip(*parts, strict=True)))

    def predict_dist(self, X: Any, *, exposure: Any = None) -> Any:
        """Predictive distribution of every row, in the manner of SciPy's distributions.

        It has ``mean``, ``var``, ``std``, ``pdf``, ``logpdf``, ``cdf``, ``sf``, ``ppf``,
        ``interval`` and ``rvs``; of counts ``pmf`` and ``logpmf``.
        """
        parts: list[Any] = list(self._distributions(X, exposure=exposure))
        return join_counts(parts) if self._counts() else join_mixtures(parts)

    def predict_to_parquet(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        coverage: float | None = 0.9,
        exposure: Any = None,
    ) -> None:
        """Write predictions larger than memory to a Parquet file, block by block.

        The columns are `mean`, `std`, and `lower` and `upper` of the central interval unless
        `coverage` is None (with several targets `mean_0`, ...), one row for each row of X in its
        order. A file that exists is replaced only when the new one is complete.
        """
        from bowtienet._old.ensemble.parquet import refuse_own_input, write_parquet

        if coverage is not None:
            check_coverage(number(coverage, "coverage"))
        if isinstance(X, (str, os.PathLike)):
            refuse_own_input(X, path)
        write_parquet(path, self._distributions(X, exposure=exposure), coverage)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        *,
        joint: bool = False,
        noise: bool = True,
        exposure: Any = None,
    ) -> np.ndarray:
        """Draws (n, n_samples) of new targets; (n, outputs, n_samples) with several.

        With `joint` whole networks are drawn, so that a draw is one function over all rows;
        otherwise rows are drawn each by itself. Without `noise`, values of the function: the mean
        of a target given the network.
        """
        source = self._features(X, exposure)
        features = self._in_memory(source)
        n_samples, rng = whole(n_samples, "n_samples"), generator(random_state)
        if self._counts():
            logs = np.concatenate([own for _, own in exposed_chunks(self, source)])
            return draw_counts(
                self.ensemble_, features, logs, n_samples, rng, joint=joint, noise=noise
            ).T
        if joint:
            draws = draw_functions(self.ensemble_, features, n_samples, rng, noise=noise)
        else:
            draws = draw_rows(self.ensemble_, features, n_samples, rng, noise=noise)
        return np.moveaxis(np.asarray(self._squeeze(draws)), 0, -1)

    def next_points(
        self, candidates: Any, n: int = 1, *, to_predict: Any = None, random_state: Any = 0
    ) -> np.ndarray:
        """Places (n,) of the rows to measure next, the most telling one first.

        The batch of candidates that would lower the epistemic variance of the rows to predict most,
        by its covariance between rows: where little is known that many of these rows depend on,
        with little noise, and no question twice. No targets are needed. Fit again with those of the
        batch, and ask for the next one.

        Parameters
        ----------
        candidates : table (m, columns)
            Rows in memory that could be measured. Of more than 400 a random sample is looked at.
        n : int
            Rows of the batch, at most m.
        to_predict : table (r, columns), optional
            Rows in memory like those that the model is for, spread as these are; by default the
            candidates. Of more than 200 a random sample is looked at.
        random_state : int, RandomState or Generator
            Where samples, and draws of counts, come from.
        """
        features, count = self._candidates(candidates, n)
        others = None if to_predict is None else self._in_memory(self._features(to_predict))
        return next_rows(self.ensemble_, features, count, generator(random_state), others)

    def to_onnx(self, path: str | os.PathLike[str], *, quantiles: Any = ()) -> None:
        """Write the predictions as an ONNX model, in double precision, for any runtime of ONNX.

        Its outputs are `mean` and `std` (n,), of several targets (n, outputs), and `quantiles` with
        one axis more (``pip install 'bowtienet[onnx]'``). Its inputs are `X` (n, columns) if the
        model was fitted to a matrix of numbers, and else its columns by their names, (n, 1) each:
        numbers as doubles, NaN where missing; dates and durations in days, dates since 1970; and
        categories as texts, empty where missing. Of counts it has mean and deviation for
        exposure 1.

        Parameters
        ----------
        path : path
            File to write.
        quantiles : sequence of float
            Levels of the quantiles, strictly between 0 and 1; not of counts.
        """
        from bowtienet._old.onnx_export.export import export_regressor

        check_is_fitted(self)
        export_regressor(
            self.ensemble_,
            path,
            named=hasattr(self, "feature_names_in_"),
            single_target=self._single_target,
            quantiles=quantiles,
        )

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
    ) -> float:
        """Coefficient of determination R² of the mean, averaged over targets."""
        check_is_fitted(self)
        return determination(self, open_known(self, X, y, sample_weight, exposure=exposure))

    def log_score(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
    ) -> float:
        """Mean log predictive density in the user's units, over rows and targets.

        Of counts, the mean log probability.
        """
        check_is_fitted(self)
        return mean_log_density(self, open_known(self, X, y, sample_weight, exposure=exposure))

    def _features(self, X: Any, exposure: Any = None) -> Source:
        if not self._counts() and exposure is not None:
            raise ValueError("exposure is for outcome='counts'.")
        return super()._features(X, exposure)

    def _counts(self) -> bool:
        check_is_fitted(self)
        return is_counts(self.ensemble_)

    def _answers(
        self,
        X: Any,
        answer: Callable[[Any], np.ndarray],
        draws: int = 1,
        exposure: Any = None,
    ) -> np.ndarray:
        return np.concatenate([answer(part) for part in self._distributions(X, draws, exposure)])

    def _distributions(self, X: Any, draws: int = 1, exposure: Any = None) -> Iterator[Any]:
        """Predictive distributions of the rows, part by part: `Mixture` or `CountMixture`."""
        counts, source = self._counts(), self._features(X, exposure)
        for features, logs in exposed_chunks(self, source, draws):
            if counts:
                yield count_mixture(self.ensemble_, features, logs)
            else:
                found = mixture(self.ensemble_, features)
                yield found.of_target(0) if self._single_target else found

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self._single_target else values
