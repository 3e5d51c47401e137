"""The one fit of the practical estimators, and what their answers share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from operator import methodcaller
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from bowtienet._arrays import one_blas_thread, slices
from bowtienet._params import whole
from bowtienet.ensemble.ensemble import Ensemble, predictive
from bowtienet.ensemble.fit import fit_ensemble
from bowtienet.ensemble.portfolio import EFFORTS
from bowtienet.ensemble.problem import pose
from bowtienet.estimators._answers import Saved, check_share, seed_of
from bowtienet.estimators._streams import Prepare, by_batches, joined, streamed_rows
from bowtienet.estimators.summary import describe_ensemble
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.outcomes import Outcome
from bowtienet.prediction.intervals import (
    conformal_interval,
    conformal_level,
    conformal_scores,
)
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import TrainingTable, exposure_of, open_known
from bowtienet.tables.representation import Representation, learn_representation, standardize
from bowtienet.tables.sources import Stream
from bowtienet.tables.views import VIEWS

Floats = NDArray[np.float64]

CHUNK = 5_000
"""Rows that are predicted at a time, by one thread."""
COUNT = Interval(Integral, 1, None, closed="left")
CONSTRAINTS: dict[str, list[Any]] = {
    "hidden_layer_sizes": ["array-like", COUNT, StrOptions({"auto"})],
    "prior": [StrOptions(set(FAMILIES))],
    "effort": [StrOptions(set(EFFORTS))],
    "encoding": [StrOptions({"auto", *VIEWS})],
    "max_categories": [COUNT],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""Constraints of the parameters of the three practical estimators."""


@dataclass(frozen=True, kw_only=True)
class FittedEnsemble:
    """A fitted ensemble and what leads from a table to it."""

    representation: Representation
    ensemble: Ensemble
    precision: str
    """Of the numbers of the table, "float32" or "float64"."""


def fit_practical(
    estimator: Any,
    rows: TrainingTable,
    stream: Stream | None,
    prepare: Prepare,
    outcome: Outcome,
) -> FittedEnsemble:
    """Representation and ensemble of the rows of the door, or of a stream and a sample of it."""
    training = prepare(rows)
    if training.table.n_rows < 2:
        raise ValueError(
            f"{type(estimator).__name__} holds rows out and needs two at least, got one sample "
            "with positive weight."
        )
    seed = seed_of(estimator.random_state)
    weights = training.weights
    weighted = replace(rows, weights=weights)
    representation, inputs = learn_representation(weighted, estimator.max_categories)
    streamed = None
    if stream is not None:
        growth = float(weights.sum() / rows.weights.sum())
        streamed = streamed_rows(stream, representation, prepare, growth)
    with one_blas_thread():
        problem = pose(
            inputs,
            training.targets,
            weights,
            representation.owners,
            outcome,
            hidden=_hidden(estimator.hidden_layer_sizes),
            effort=estimator.effort,
            prior=estimator.prior,
            encoding=estimator.encoding,
            target_transform=getattr(estimator, "target_transform", "none"),
            is_constant=getattr(estimator, "noise", "constant") == "constant",
            seed=seed,
            jobs=effective_n_jobs(estimator.n_jobs),
            verbose=bool(estimator.verbose),
            stream=streamed,
        )
        ensemble = fit_ensemble(problem, EFFORTS[estimator.effort])
    problem.progress.close()
    return FittedEnsemble(
        representation=representation, ensemble=ensemble, precision=training.table.precision
    )


def _hidden(sizes: Any) -> tuple[int, ...] | None:
    if isinstance(sizes, str):
        return None
    each = [sizes] if np.ndim(sizes) == 0 else sizes
    return tuple(whole(size, "each of hidden_layer_sizes") for size in each)


class Practical(Saved):
    """Predictions of a fitted ensemble, and its file."""

    n_jobs: int | None
    predict_dist: Callable[[Any], Any]
    _fitted: FittedEnsemble
    _single: bool

    def _inputs(self, X: Any) -> Floats:
        """Standardised columns of new rows."""
        check_is_fitted(self)
        return standardize(self._fitted.representation, open_known(self, X))

    def _open(self, X: Any, exposure: Any) -> tuple[Floats, Floats | None]:
        """Standardised columns of new rows, and the logarithms of their exposures."""
        inputs = self._inputs(X)
        return inputs, None if exposure is None else np.log(exposure_of(exposure, len(inputs)))

    def _distribution(self, inputs: Floats, log_exposure: Floats | None) -> Any:
        mixture = predictive(self._fitted.ensemble, inputs, log_exposure)
        return squeezed(mixture) if isinstance(mixture, Mixture) and self._single else mixture

    def _predictive(self, X: Any, exposure: Any = None) -> Any:
        """The predictive distribution of all rows."""
        return self._distribution(*self._open(X, exposure))

    def _answer(self, X: Any, function: Callable[[Any], Any], exposure: Any = None) -> Any:
        """`function` of the predictive distribution, in slices of rows, by threads."""

        def answer(batch: Any) -> Any:
            inputs, logs = self._open(batch, exposure)

            def run(rows: slice) -> Any:
                return function(
                    self._distribution(inputs[rows], None if logs is None else logs[rows])
                )

            each = list(slices(len(inputs), CHUNK))
            jobs = min(effective_n_jobs(self.n_jobs), len(each))
            with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
                return joined(list(pool.map(run, each)))

        check_is_fitted(self)
        return by_batches(X, answer)

    def _interval(
        self, X: Any, coverage: float, method: str, calibration: Any, exposure: Any = None
    ) -> Floats:
        """Central intervals, or conformal ones by held-out rows of the fit or by other rows."""
        if method not in ("central", "conformal"):
            raise ValueError(f"method must be 'central' or 'conformal', got {method!r}.")
        share = check_share(coverage)
        check_is_fitted(self)
        ends: Callable[[Any], Any] = methodcaller("interval", share)
        if method == "conformal":
            radius = conformal_level(self._scores(calibration), share)
            ends = partial(conformal_interval, radius=radius)
        return np.asarray(self._answer(X, lambda dist: np.stack(ends(dist), axis=-1), exposure))

    def _scores(self, calibration: Any) -> Floats:
        """Conformal scores of the rows (X, y) for calibration; None for those of the fit."""
        if calibration is None:
            scores = self._fitted.ensemble.scores
            return scores[:, 0] if self._single else scores
        rows, targets = calibration
        distribution = self.predict_dist(rows)
        known = check_array(targets, dtype=np.float64, ensure_2d=False, input_name="y")
        return conformal_scores(distribution, known.reshape(distribution.mean().shape))

    def summary(self) -> str:
        """Facts of the fit as text: recipes, their weights and held-out errors."""
        check_is_fitted(self)
        return describe_ensemble(self)

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
            is_single=getattr(self, "_single", True),
            classes=getattr(self, "classes_", None),
            has_exposure=getattr(self, "_has_exposure", False),
        )


def squeezed(mixture: Mixture) -> Mixture:
    """The mixture of a single target, with rows (n,) instead of (n, 1)."""
    parts = ("weights", "means", "epistemic", "noise")
    return replace(mixture, **{name: getattr(mixture, name)[..., 0] for name in parts})
