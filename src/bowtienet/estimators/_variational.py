"""What both bow tie networks share: the fit, members, selection, pruning, draws."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import map_arrays
from bowtienet._format import count, duration, number
from bowtienet.estimators._answers import Saved, seed_of
from bowtienet.estimators._parameters import NetworkParameters
from bowtienet.estimators._start import start_of
from bowtienet.estimators._streams import (
    Prepare,
    batches_of,
    encode_rows,
    provider_of,
    rows_of,
    sample_of,
)
from bowtienet.estimators.summary import Selection, arviz_draws, describe_network, selection_of
from bowtienet.inference.ascend import Ascent, RowProvider, Status, ascend, taken_model
from bowtienet.inference.stochastic import (
    StochasticState,
    ascend_stochastic,
    begin,
    step_size,
    stochastic_step,
)
from bowtienet.model.model import BowTieModel, Rows
from bowtienet.outcomes import Outcome
from bowtienet.posterior.factors import Posterior, n_networks, network
from bowtienet.posterior.prune import prune
from bowtienet.posterior.selection import select
from bowtienet.prediction.push_forward import Moments
from bowtienet.prediction.variational import (
    output_moments,
    output_noise,
    sample_functions,
)
from bowtienet.tables.door import TrainingTable, open_known
from bowtienet.tables.representation import (
    Representation,
    Scaling,
    learn_representation,
    standardize,
)
from bowtienet.tables.sources import Stream

Floats = NDArray[np.float64]

SWEEPS_OF_NETWORK = 3
"""Sweeps from a ReLU network by default: they set the posterior's widths and noise and keep the
network's function; more of them predict no better (docs/measurements)."""
SECONDS_BETWEEN_LINES = 1.0
"""With `verbose`."""


@dataclass(frozen=True, kw_only=True)
class FittedNetwork:
    """M fitted networks and what leads from a table to them and back."""

    representation: Representation
    target_scaling: Scaling
    model: BowTieModel
    posterior: Posterior
    member_weights: Floats
    """(M,), with sum one."""
    inputs: NDArray[np.intp] | None = None
    """Standardised columns that a pruned network sees; None for all."""
    stochastic: StochasticState | None = None
    """Where `partial_fit` goes on."""


class VariationalNetwork(NetworkParameters, Saved):
    """Fits M bow tie networks side by side, `_fitted`."""

    elbo_history_: Floats
    elbo_terms_: dict[str, float]
    converged_: bool
    n_iter_: int
    kept_columns_: NDArray[np.intp]
    _fitted: FittedNetwork
    _best: int
    _rows: Rows | None
    _seen: float

    def _fit(
        self, training: TrainingTable, stream: Stream | None, prepare: Prepare, outcome: Outcome
    ) -> Self:
        """Fit to rows of the door, or to a stream and a sample of it."""
        rng = np.random.default_rng(seed_of(self.random_state))
        drawn = sample_of(training)
        fitted, rows = self._start(drawn, prepare(drawn), outcome, rng)
        encode = partial(encode_rows, prepare, fitted.representation, fitted.target_scaling)
        if drawn is not training:
            rows = encode(training)
        data: Rows | Stream = rows if stream is None else stream
        weights = rows.weights if stream is None else stream.facts.fold_weights
        self._seen = float(weights.sum())
        if self.solver == "svi":
            ascent, state = ascend_stochastic(
                begin(fitted.model, fitted.posterior),
                batches_of(data, encode, self.batch_size, int(rng.integers(2**31))),
                self._seen,
                max_iter=self.max_iter or 20,
                tol=self.tol,
                forgetting_rate=self.forgetting_rate,
                step_delay=self.step_delay,
                callback=self._progress(),
            )
            fitted = replace(fitted, stochastic=state)
        else:
            provider = provider_of(data, encode, fitted.model, n_networks(fitted.posterior))
            ascent = self._ascend(fitted, provider, self._sweeps())
        vars(self).pop("kept_columns_", None)  # this is no pruned network any more
        self._set(fitted, ascent, rows if stream is None else None)
        return self

    def _start(
        self,
        training: TrainingTable,
        prepared: TrainingTable,
        outcome: Outcome,
        rng: np.random.Generator,
    ) -> tuple[FittedNetwork, Rows]:
        """How the columns are read, the networks before their fit, and standardised rows."""
        representation, inputs = learn_representation(training, self.max_categories)
        scaling = self._target_scaling(prepared.targets, prepared.weights)
        rows = rows_of(prepared, inputs, scaling)
        model, start = start_of(self, rows, outcome, rng)
        fitted = FittedNetwork(
            representation=representation,
            target_scaling=scaling,
            model=model,
            posterior=start,
            member_weights=np.ones(self.n_members),
        )
        return fitted, rows

    def _ascend(self, fitted: FittedNetwork, rows: Rows | RowProvider, max_iter: int) -> Ascent:
        """Coordinate ascent from where the networks are."""
        return ascend(
            fitted.model,
            fitted.posterior,
            rows,
            max_iter=max_iter,
            tol=self.tol,
            accelerate=self.accelerate,
            callback=self._progress(),
        )

    def _target_scaling(self, targets: Floats, weights: Floats) -> Scaling:
        """Of the targets of a fit."""
        raise NotImplementedError

    def _sweeps(self) -> int:
        """Most sweeps: few from a ReLU network, whose function they are to keep."""
        if self.max_iter is not None:
            return int(self.max_iter)
        return SWEEPS_OF_NETWORK if self.init == "relu_network" else 500

    def _set(
        self, fitted: FittedNetwork, ascent: Ascent, rows: Rows | None, stacklevel: int = 4
    ) -> None:
        """Attributes of a fit; members that broke down are left out.

        Warnings are the user's, so many calls above.
        """
        fitted = replace(fitted, model=ascent.model, posterior=ascent.posterior)
        good = [i for i, history in enumerate(ascent.elbo_history) if history]
        if not good:
            raise ValueError(
                "the fit broke down in its first sweep: look for values far out of line, use "
                "scale_target=True, or raise the temperature."
            )
        bounds = np.array([ascent.elbo_history[i][-1] for i in good])
        if len(good) < len(ascent.elbo_history):
            warnings.warn(
                f"{len(ascent.elbo_history) - len(good)} of {len(ascent.elbo_history)} members "
                "broke down and are left out.",
                RuntimeWarning,
                stacklevel=stacklevel,
            )
            fitted = replace(
                fitted,
                model=taken_model(fitted.model, good),
                posterior=map_arrays(lambda x: x[good], fitted.posterior),
            )
        best = int(np.argmax(bounds))
        self._fitted = replace(fitted, member_weights=softmax(self.elbo_tempering * bounds))
        self._best = best
        self._rows = rows
        terms = map_arrays(lambda x: x[good[best]], ascent.elbo_terms)
        self.elbo_history_ = np.array(ascent.elbo_history[good[best]])
        self.elbo_terms_ = {name: float(value) for name, value in vars(terms).items()}
        self.n_iter_ = ascent.n_sweeps[good[best]]
        status = [ascent.status[i] for i in good]
        self.converged_ = all(each is Status.CONVERGED for each in status)
        self._warn(status, stacklevel + 1)

    def _warn(self, status: Sequence[Status], stacklevel: int) -> None:
        if Status.INTERRUPTED in status:
            warnings.warn(
                f"the fit was interrupted after {self.n_iter_} iterations and keeps what it has.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
        intended = self.max_iter is None and self.init == "relu_network"
        if Status.ITERATION_LIMIT in status and not (intended and self.solver == "cavi"):
            warnings.warn(
                f"the bound was still rising after {self.n_iter_} iterations: a larger max_iter "
                "goes on, accelerate=True climbs faster.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def _progress(self) -> Any:
        """A callback that prints the bound every second or so; None without `verbose`."""
        if not self.verbose:
            return None
        began = last = time.monotonic()

        def show(number_of_sweep: int, bounds: Floats) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= SECONDS_BETWEEN_LINES:
                last = now
                best = number(float(np.max(bounds)), 6)
                print(f"iteration {number_of_sweep}, bound {best}, {duration(now - began)}")

        return show

    def _partial(self, training: TrainingTable, outcome: Outcome) -> Self:
        """A stochastic step on further rows; the first rows say how columns are read."""
        if self.__sklearn_is_fitted__():
            fitted, seen = self._fitted, self._seen
            rows = self._further(training)
            state = fitted.stochastic or self._blended()
        else:
            rng = np.random.default_rng(seed_of(self.random_state))
            fitted, rows = self._start(training, training, outcome, rng)
            seen, state = 0.0, begin(fitted.model, fitted.posterior)
        weight = float(rows.weights.sum())
        if state.statistics is not None:
            # They are sums over all rows seen, of which there are more now.
            grown = (seen + weight) / seen
            statistics = map_arrays(lambda x: grown * x, state.statistics)
            state = replace(state, statistics=statistics)
        seen += weight
        if isinstance(self.forgetting_rate, str):
            amount = weight / seen
        else:
            amount = step_size(state.step, self.forgetting_rate, self.step_delay)
        with np.errstate(all="ignore"):
            state, terms = stochastic_step(state, rows, seen, amount)
        bounds = np.asarray(terms.total)
        if not np.isfinite(bounds).all():
            raise ValueError(
                "these rows broke the fit down, and it stays as it was: look for values far out of "
                "line."
            )
        history = [*getattr(self, "elbo_history_", ()), float(bounds.max())]
        ascent = Ascent(
            model=state.model,
            posterior=state.posterior,
            elbo_terms=terms,
            elbo_history=tuple((bound,) for bound in bounds),
            n_sweeps=(state.step,) * len(bounds),
            status=(Status.CONVERGED,) * len(bounds),
        )
        self._set(replace(fitted, stochastic=state), ascent, None)
        self.elbo_history_, self.converged_, self._seen = np.array(history), False, seen
        return self

    def _further(self, training: TrainingTable) -> Rows:
        """Standardised rows that follow those of a fit."""
        fitted = self._fitted
        n_targets = len(fitted.target_scaling[0])
        if training.targets.shape[1] != n_targets:
            raise ValueError(
                f"y has {count(training.targets.shape[1], 'target')}, but the first rows had "
                f"{n_targets}."
            )
        inputs = seen_by(fitted, standardize(fitted.representation, training.table))
        return rows_of(training, inputs, fitted.target_scaling)

    def _blended(self) -> StochasticState:
        """Where stochastic steps go on from coordinate ascent: at the statistics of its rows."""
        if self._rows is None:
            raise ValueError(
                "partial_fit after a fit with solver='cavi' needs the rows of that fit, which "
                "files do not keep: begin with partial_fit or solver='svi', then save."
            )
        state = begin(self._fitted.model, self._fitted.posterior)
        return stochastic_step(state, self._rows, self._seen, 1.0)[0]

    def _inputs(self, X: Any) -> Floats:
        """Standardised rows that the networks see."""
        check_is_fitted(self)
        return seen_by(self._fitted, standardize(self._fitted.representation, open_known(self, X)))

    def _moments(self, X: Any) -> tuple[Moments, Floats]:
        """Moments of the outputs of all members, and the variance of their noise."""
        inputs, fitted = self._inputs(X), self._fitted
        moments = output_moments(fitted.model, fitted.posterior, inputs, self.propagation)
        return moments, output_noise(fitted.model, fitted.posterior)

    def _draw_outputs(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        """Outputs (draws, n, D_out) of networks drawn from q, a member by its weight each."""
        inputs, fitted = self._inputs(X), self._fitted
        chosen = rng.choice(len(fitted.member_weights), p=fitted.member_weights, size=n_samples)
        draws = [
            sample_functions(
                fitted.model, network(fitted.posterior, int(m)), inputs, 1, rng, noise=False
            )[0]
            for m in chosen
        ]
        return np.stack(draws)

    def selection(self, false_discovery_rate: float = 0.01) -> Selection:
        """Columns, units and weights that matter, at a false discovery rate.

        A weight is kept if q is sure enough of its sign (section 3.4 of the paper) and it lies on a
        path from a column to an output. The member with the highest bound is used.

        Parameters
        ----------
        false_discovery_rate : float in (0, 1)
            Estimated share of kept weights with the wrong sign. q is too sure, so the rate is
            optimistic: docs/measurements/selection.md has measured shares. It means nothing for
            fits from ReLU networks, without convergence, or at a temperature below 0.1: a warning
            says so.
        """
        check_is_fitted(self)
        self._warn_of_rate()
        fitted = self._fitted
        chosen = select(fitted.model, network(fitted.posterior, self._best), false_discovery_rate)
        return selection_of(chosen, fitted.representation, fitted.inputs)

    def prune(self, false_discovery_rate: float = 0.01) -> Self:
        """A smaller network of what `selection` keeps, fitted again to the same rows.

        Returns
        -------
        estimator
            A network with one member. It takes tables with all columns and uses `kept_columns_`.
        """
        check_is_fitted(self)
        self._warn_of_rate()
        fitted, rows = self._fitted, self._rows
        if rows is None:
            raise ValueError(
                "prune needs the rows of the fit, which files, sources and partial_fit do not "
                "keep: prune after fit to a table, then save."
            )
        alone = network(fitted.posterior, self._best)
        chosen = select(fitted.model, alone, false_discovery_rate)
        model, start = prune(taken_model(fitted.model, [self._best]), alone, chosen)
        kept = np.flatnonzero(chosen.inputs)
        rows = replace(rows, inputs=np.ascontiguousarray(rows.inputs[:, kept]))
        smaller = type(self)(**{**self.get_params(deep=False), "n_members": 1})
        for name in ("n_features_in_", "feature_names_in_", "classes_", "_single", "_target_names"):
            if hasattr(self, name):
                setattr(smaller, name, getattr(self, name))
        before = fitted.inputs if fitted.inputs is not None else np.arange(len(chosen.inputs))
        fitted = replace(fitted, model=model, posterior=start, inputs=before[kept], stochastic=None)
        ascent = self._ascend(fitted, rows, max(self._sweeps(), self.n_iter_))
        smaller._set(fitted, ascent, rows, stacklevel=3)
        smaller._seen = self._seen
        smaller.kept_columns_ = np.unique(fitted.representation.owners[before[kept]])
        return smaller

    def _warn_of_rate(self) -> None:
        # From this temperature on the rate was near what was measured on planted tables.
        safe = self.init != "relu_network" and self.temperature >= 0.1
        if not (safe and self.converged_):
            warnings.warn(
                "the false discovery rate means nothing for this fit: only converged fits from "
                "random starts came near it on planted tables, "
                f"{type(self).__name__}.as_in_paper(accelerate=True, max_iter=3000).",
                UserWarning,
                stacklevel=3,
            )

    def summary(self) -> str:
        """Facts of the fit as text."""
        check_is_fitted(self)
        return describe_network(self)

    def to_arviz(self, draws: int = 1000, random_state: Any = 0) -> Any:
        """Draws of weights and noise variances from q for ArviZ (``pip install arviz``).

        A group for each member is a chain: `weights_1`, ... (chain, draw, unit, input; standardised
        units, the constant first) and `noise_variance_1`, ....
        """
        check_is_fitted(self)
        rng = np.random.default_rng(seed_of(random_state))
        return arviz_draws(self._fitted.posterior, draws, rng)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        # The rows of the fit are for `prune` alone, and belong in no file.
        return {**state, "_rows": None} if "_rows" in state else dict(state)


def seen_by(fitted: FittedNetwork, inputs: Floats) -> Floats:
    """The standardised columns that the networks see."""
    return inputs if fitted.inputs is None else inputs[:, fitted.inputs]
