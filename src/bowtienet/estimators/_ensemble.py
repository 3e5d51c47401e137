"""The one fit of the practical estimators, and what their answers share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import one_blas_thread, slices, threads_of
from bowtienet._format import warn
from bowtienet._params import share
from bowtienet.ensemble.ensemble import Ensemble, function_draws, predictive
from bowtienet.ensemble.fit import fit_ensemble
from bowtienet.ensemble.portfolio import EFFORTS
from bowtienet.ensemble.problem import pose
from bowtienet.estimators._base import Estimator, like_mean, seed_of, sizes_of
from bowtienet.estimators._streams import by_batches, column_of, joined, streamed_rows
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.prediction.intervals import conformal_interval, conformal_level, conformal_scores
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import TrainingTable, exposure_of
from bowtienet.tables.frames import separate
from bowtienet.tables.representation import Representation, learn_representation
from bowtienet.tables.sources import Stream
from bowtienet.tables.views import VIEWS

Floats = NDArray[np.float64]

CHUNK = 5_000
"""Rows that are predicted at a time, by one thread."""


@dataclass(frozen=True, kw_only=True)
class FittedEnsemble:
    """A fitted ensemble and what leads from a table to it."""

    representation: Representation
    ensemble: Ensemble
    precision: str
    """Type of the numbers of the table, "float32" or "float64"."""


CONSTRAINTS: dict[str, list[Any]] = {
    "hidden_layer_sizes": [
        "array-like",
        Interval(Integral, 1, None, closed="left"),
        StrOptions({"auto"}),
    ],
    "prior": [StrOptions(set(FAMILIES))],
    "effort": [StrOptions(set(EFFORTS))],
    "encoding": [StrOptions({"auto", *VIEWS})],
    "max_categories": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""Constraints of the parameters that the three classes have."""


class Practical(Estimator):
    """Fit and predictions of an ensemble."""

    hidden_layer_sizes: Any
    prior: str
    effort: str
    encoding: str
    max_categories: int
    n_jobs: int | None
    random_state: Any
    verbose: Any

    def _learn(self, rows: TrainingTable, stream: Stream | None) -> Self:
        """Representation and ensemble."""
        outcome, prepare = self._targets(rows, stream)
        training = prepare(rows)
        if training.table.n_rows < 2:
            raise ValueError(
                f"{type(self).__name__} holds rows out and needs two at least, got one sample "
                "with positive weight."
            )
        weighted = replace(rows, weights=training.weights)
        representation, inputs = learn_representation(weighted, self.max_categories)
        streamed = None
        if stream is not None:
            growth = float(training.weights.sum() / rows.weights.sum())
            streamed = streamed_rows(stream, representation, prepare, growth)
        with one_blas_thread():
            problem = pose(
                self,
                inputs,
                training.targets,
                training.weights,
                representation.owners,
                outcome,
                hidden=sizes_of(self.hidden_layer_sizes),
                seed=seed_of(self.random_state),
                stream=streamed,
            )
            ensemble = fit_ensemble(problem, EFFORTS[self.effort])
        problem.progress.close()
        self._fitted = FittedEnsemble(
            representation=representation, ensemble=ensemble, precision=training.table.precision
        )
        return self

    def _open(self, X: Any, exposure: Any = None) -> tuple[Floats, Floats]:
        """Standardised columns of new rows, and the logarithms of their exposures."""
        if isinstance(exposure, str):
            X, exposure, _ = separate(X, exposure)
        if exposure is None:
            exposure = 1.0
            if getattr(self, "_has_exposure", False):
                warn("the fit had exposures, and these answers are for 1: predict* take exposure.")
        inputs = self._inputs(X)
        return inputs, np.log(exposure_of(exposure, len(inputs)))

    def _predictive(self, inputs: Floats, log_exposure: Floats) -> Any:
        """The predictive distribution of standardised rows."""
        mixture = predictive(self._fitted.ensemble, inputs, log_exposure)
        return squeezed(mixture) if isinstance(mixture, Mixture) and self._single else mixture

    def _answer(self, X: Any, function: Callable[[Any], Any], exposure: Any = None) -> Any:
        """`function` of the predictive distribution, in slices of rows, by threads."""

        def answer(batch: Any) -> Any:
            inputs, logs = self._open(batch, exposure)

            def run(rows: slice) -> Any:
                return function(self._predictive(inputs[rows], logs[rows]))

            each = slices(len(inputs), CHUNK)
            jobs = min(threads_of(self.n_jobs), len(each))
            with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
                return joined(list(pool.map(run, each)))

        return by_batches(X, answer)

    def _interval(
        self, X: Any, coverage: float, method: str, calibration: Any, exposure: Any = None
    ) -> Floats:
        """Central intervals, or conformal ones by held-out rows of the fit or by other rows."""
        if method not in ("central", "conformal"):
            raise ValueError(f"method must be 'central' or 'conformal', got {method!r}.")
        coverage = share(coverage, "coverage")
        check_is_fitted(self)
        ends: Callable[[Any], Any] = methodcaller("interval", coverage)
        if method == "conformal":
            radius = conformal_level(self._scores(calibration), coverage)
            ends = partial(conformal_interval, radius=radius)
        return np.asarray(self._answer(X, lambda dist: np.stack(ends(dist), axis=-1), exposure))

    def _scores(self, calibration: Any) -> Floats:
        """Conformal scores of the rows (X, y) for calibration; None for those of the fit."""
        if calibration is None:
            scores = self._fitted.ensemble.scores
            return scores[:, 0] if self._single else scores
        rows, targets = column_of(*calibration)
        # Rows for calibration have the exposure 1.
        distribution = self._predictive(*self._open(rows, 1.0))
        return conformal_scores(distribution, like_mean(targets, distribution.mean()))

    def _functions(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        return function_draws(self._fitted.ensemble, self._inputs(X), n_samples, rng)

    def to_onnx(self, path: Any, quantiles: Any = (), dtype: Any = None) -> None:
        """Write an ONNX graph that predicts as `predict` does, in any ONNX runtime.

        Outputs are "mean", "std" and, on request, "quantiles"; for classes "probabilities" and
        "label". A table of numbers is one input "X" (rows, columns). In other tables each column is
        an input (rows, 1) of its name: numbers with NaN where missing, truth values as 0 and 1,
        durations as days; categories as strings with "" where missing; dates as
        ``column.astype("datetime64[us]").astype("int64")``. Counts fitted with an exposure have an
        input "exposure" (rows, 1).

        Parameters
        ----------
        path : str or path
            The file.
        quantiles : sequence of float in (0, 1)
            Levels of quantiles; `BowTieRegressor` only.
        dtype : {"float32", "float64"}, optional
            Type of the numbers in inputs and outputs; the fitted table's by default.
        """
        check_is_fitted(self)
        try:
            from bowtienet.onnx import export
        except ModuleNotFoundError as error:
            raise ImportError("to_onnx needs onnx: pip install 'bowtienet[onnx]'.") from error
        export(
            path,
            self._fitted.representation,
            self._fitted.ensemble,
            dtype=self._fitted.precision if dtype is None else np.dtype(dtype).name,
            quantiles=quantiles,
            is_single=self._single,
            classes=getattr(self, "classes_", None),
            has_exposure=getattr(self, "_has_exposure", False),
        )


def squeezed(mixture: Mixture) -> Mixture:
    """The mixture of a single target, with rows (n,) instead of (n, 1)."""
    parts = ("weights", "means", "epistemic", "noise")
    return replace(mixture, **{name: getattr(mixture, name)[..., 0] for name in parts})
