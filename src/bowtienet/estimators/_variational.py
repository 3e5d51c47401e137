"""What both bow tie networks share: fit, selection, pruning, draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import map_arrays
from bowtienet._format import count, duration, number, warn
from bowtienet.estimators._base import Estimator, name_targets, seed_of
from bowtienet.estimators._start import FittedNetwork, begin_fit, scaled_rows
from bowtienet.estimators._streams import Prepare, batches_of_stream, by_batches, provider_of
from bowtienet.estimators.summary import Selection, arviz_draws, selection_of
from bowtienet.inference.ascend import Ascent, RowProvider, Status, ascend, taken_model
from bowtienet.inference.stochastic import (
    StochasticState,
    ascend_stochastic,
    begin,
    minibatches,
    step_size,
    stochastic_step,
)
from bowtienet.model.model import Rows
from bowtienet.outcomes import Outcome
from bowtienet.posterior.factors import network
from bowtienet.posterior.prune import prune
from bowtienet.posterior.selection import NetworkSelection, select
from bowtienet.prediction import variational
from bowtienet.prediction.push_forward import Moments
from bowtienet.tables import sources
from bowtienet.tables.door import TrainingTable
from bowtienet.tables.representation import standardize
from bowtienet.tables.sources import Stream, facts_of

Floats = NDArray[np.float64]

SWEEPS_OF_NETWORK = 3
"""Sweeps from a ReLU network by default: they set the posterior's widths and noise and keep the
network's function; more of them predict no better (docs/measurements)."""
SECONDS_BETWEEN_LINES = 1.0
"""With `verbose`."""

# P: stated in the paper. C: in the authors' configuration files.
IN_PAPER: dict[str, Any] = {
    "hidden_layer_sizes": (50,),  # P, experiments on UCI data
    "prior": "student_t",  # P and C
    "temperature": 0.1,  # C
    "hidden_noise": (2.0, 1e-4),  # C
    "bias_variance": "intercept",  # C
    "scale_target": False,  # P
    "init": "laplace",  # P, appendix D.1
    "solver": "cavi",  # P
    "accelerate": False,  # P
    "n_members": 1,  # P, VBNN
    "elbo_tempering": 0.01,  # P, "in (0, 0.1]"
    "propagation": "variational",  # P, section 3.5
    "max_iter": 200,  # C, "100 to 200"
}


class VariationalNetwork(Estimator):
    """Fit of M bow tie networks side by side."""

    temperature: float
    init: str
    solver: str
    accelerate: bool
    n_members: int
    elbo_tempering: float
    propagation: str
    max_iter: int | None
    tol: float
    batch_size: int
    forgetting_rate: Any
    step_delay: float
    max_categories: int
    random_state: Any
    verbose: Any

    @classmethod
    def as_in_paper(cls, **changes: Any) -> Self:
        """The paper's settings, with changes.

        P: stated in the paper. C: in the authors' configuration files. `BowTieNetworkClassifier`
        has those that apply.

        ===================  ======================  ==========================================
        parameter            value                   where it stands
        ===================  ======================  ==========================================
        hidden_layer_sizes   (50,)                   P, experiments on UCI data
        prior                student_t, nu = -1.5,   P and C; delta_local = 1/√D, delta_global =
                             EM                      min(√max abs(coefficient), 10), linear fit
        temperature          0.1                     not stated in P; C
        hidden_noise         IG(2, 1e-4)             not stated in P; C
        output_noise         IG(2, min(residual      C
                             variance / 4, 30))
        bias_variance        abs(intercept)          C
        scale_target         False                   P
        init                 laplace                 P, appendix D.1
        solver, accelerate   plain CAVI sweeps       P
        n_members            1                       P (VBNN; 4 for 4VBNN)
        elbo_tempering       0.01                    P, "in (0, 0.1]"
        propagation          variational             P, section 3.5
        max_iter             200                     C, "100 to 200"
        ===================  ======================  ==========================================

        The paper stops when the relative change of the bound is below 1e-5 three times; `tol` is
        that of this library, which asks for more.
        """
        paper = {name: IN_PAPER[name] for name in cls._parameter_constraints if name in IN_PAPER}
        return cls(**{**paper, **changes})

    def _learn(self, rows: TrainingTable, stream: Stream | None) -> Self:
        outcome, prepare = self._targets(rows, stream)
        rng = np.random.default_rng(seed_of(self.random_state))
        # A fit starts from as many rows as stay in memory: of more those with the smallest keys.
        is_few = len(rows.weights) <= sources.SAMPLE
        sample = rows if is_few else facts_of(rows, sources.SAMPLE).sample
        fitted, known = begin_fit(self, sample, prepare, outcome, rng)
        representation, scaling = fitted.representation, fitted.target_scaling

        def encode(rows: TrainingTable) -> Rows:
            return scaled_rows(prepare(rows), standardize(representation, rows.table), scaling)

        known = known if is_few else encode(rows)
        weights = known.weights if stream is None else stream.facts.fold_weights
        self._seen = float(weights.sum())
        if self.solver == "svi":
            seed = int(rng.integers(2**31))
            if stream is None:
                batches = minibatches(known, self.batch_size, seed)
            else:
                batches = batches_of_stream(stream, encode, self.batch_size, seed)
            ascent, state = ascend_stochastic(
                begin(fitted.model, fitted.posterior),
                batches,
                self._seen,
                max_iter=self.max_iter or 20,
                tol=self.tol,
                forgetting_rate=self.forgetting_rate,
                step_delay=self.step_delay,
                callback=self._progress(),
            )
            fitted = replace(fitted, stochastic=state)
        else:
            data: Rows | RowProvider = known
            if stream is not None:
                data = provider_of(stream, encode, fitted.model, self.n_members)
            ascent = self._ascend(fitted, data, self._sweeps())
        self.__dict__.pop("kept_columns_", None)  # this is no pruned network any more
        self._set(fitted, ascent, known if stream is None else None)
        return self

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

    def _sweeps(self) -> int:
        """Most sweeps: few from a ReLU network, whose function they are to keep."""
        if self.max_iter is not None:
            return int(self.max_iter)
        return SWEEPS_OF_NETWORK if self.init == "relu_network" else 500

    def _set(self, fitted: FittedNetwork, ascent: Ascent, rows: Rows | None) -> None:
        """Attributes of a fit; members that broke down are left out."""
        good = [i for i, history in enumerate(ascent.elbo_history) if history]
        if not good:
            raise ValueError(
                "the fit broke down in its first sweep: look for values far out of line, use "
                "scale_target=True, or raise the temperature."
            )
        if len(good) < len(ascent.elbo_history):
            warn(
                f"{len(ascent.elbo_history) - len(good)} of {len(ascent.elbo_history)} members "
                "broke down and are left out.",
                RuntimeWarning,
            )
        bounds = np.array([ascent.elbo_history[i][-1] for i in good])
        self._fitted = replace(
            fitted,
            model=taken_model(ascent.model, good),
            posterior=map_arrays(lambda x: x[good], ascent.posterior),
            member_weights=softmax(self.elbo_tempering * bounds),
        )
        self._best = best = int(np.argmax(bounds))
        self._rows = rows
        terms = map_arrays(lambda x: x[good[best]], ascent.elbo_terms)
        self.elbo_history_ = np.array(ascent.elbo_history[good[best]])
        self.elbo_terms_ = {name: float(value) for name, value in vars(terms).items()}
        self.n_iter_ = ascent.n_sweeps[good[best]]
        status = [ascent.status[i] for i in good]
        self.converged_ = all(each is Status.CONVERGED for each in status)
        self._warn(status)

    def _warn(self, status: Sequence[Status]) -> None:
        if Status.INTERRUPTED in status:
            said = f"the fit was interrupted after {self.n_iter_} iterations and keeps what it has."
        elif Status.ITERATION_LIMIT in status and not self._has_few_sweeps:
            said = f"the bound was still rising after {self.n_iter_} iterations: raise max_iter."
            if self.solver == "cavi" and not self.accelerate:
                said = said[:-1] + ", or use accelerate=True."
        else:
            return
        warn(said, ConvergenceWarning)

    @property
    def _has_few_sweeps(self) -> bool:
        """Whether the fit made the few sweeps from ReLU networks that are the default."""
        is_default = self.max_iter is None and self.init == "relu_network"
        return is_default and self.solver == "cavi" and self.n_iter_ == SWEEPS_OF_NETWORK

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

    def _partial(self, rows: TrainingTable, outcome: Outcome, prepare: Prepare) -> Self:
        """A stochastic step on further rows; the first rows say how columns are read."""
        if self.__sklearn_is_fitted__():
            fitted, seen = self._fitted, self._seen
            scaling, training = fitted.target_scaling, prepare(rows)
            n_targets, n_first = training.targets.shape[1], len(scaling[0])
            if n_targets != n_first:
                raise ValueError(
                    f"y has {count(n_targets, 'target')}, but the first rows had {n_first}."
                )
            known = scaled_rows(training, self._inputs(training.table), scaling)
            state = fitted.stochastic or self._blended()
        else:
            rng = np.random.default_rng(seed_of(self.random_state))
            fitted, known = begin_fit(self, rows, prepare, outcome, rng)
            name_targets(self, rows)
            seen, state = 0.0, begin(fitted.model, fitted.posterior)
        weight = float(known.weights.sum())
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
            state, terms = stochastic_step(state, known, seen, amount)
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

    def _blended(self) -> StochasticState:
        """Where stochastic steps go on from coordinate ascent: at the statistics of its rows."""
        if self._rows is None:
            raise ValueError(
                "partial_fit after a fit with solver='cavi' needs the rows of that fit, which "
                "files do not keep: begin with partial_fit or solver='svi', then save."
            )
        state = begin(self._fitted.model, self._fitted.posterior)
        return stochastic_step(state, self._rows, self._seen, 1.0)[0]

    def _answer(self, X: Any, function: Callable[[Any], Any]) -> Any:
        """`function` of the predictive distribution."""
        return by_batches(X, lambda batch: function(self.predict_dist(batch)))

    def _inputs(self, X: Any) -> Floats:
        """Standardised columns that the networks see."""
        inputs = super()._inputs(X)
        return inputs if self._fitted.inputs is None else inputs[:, self._fitted.inputs]

    def _moments(self, X: Any) -> tuple[Moments, Floats]:
        """Moments of the outputs of all members, and the variance of their noise."""
        inputs, fitted = self._inputs(X), self._fitted
        moments = variational.output_moments(
            fitted.model, fitted.posterior, inputs, self.propagation
        )
        return moments, variational.output_noise(fitted.model, fitted.posterior)

    def _draw_outputs(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        """Outputs (draws, n, D_out) of networks drawn from q, a member by its weight each."""
        inputs, fitted = self._inputs(X), self._fitted
        chosen = rng.choice(len(fitted.member_weights), p=fitted.member_weights, size=n_samples)
        draws = [
            variational.sample_functions(
                fitted.model, network(fitted.posterior, int(m)), inputs, 1, rng, noise=False
            )
            for m in chosen
        ]
        return np.concatenate(draws)

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
        chosen = self._select(false_discovery_rate)
        return selection_of(chosen, self._fitted.representation, self._fitted.inputs)

    def prune(self, false_discovery_rate: float = 0.01) -> Self:
        """A smaller network of what `selection` keeps, fitted again to the same rows.

        Returns
        -------
        estimator
            A network with one member. It takes tables with all columns and uses `kept_columns_`.
        """
        chosen = self._select(false_discovery_rate)
        fitted, rows = self._fitted, self._rows
        if rows is None:
            raise ValueError(
                "prune needs the rows of the fit, which files, sources and partial_fit do not "
                "keep: prune after fit to a table, then save."
            )
        alone = network(fitted.posterior, self._best)
        model, start = prune(taken_model(fitted.model, [self._best]), alone, chosen)
        kept = np.flatnonzero(chosen.inputs)
        rows = replace(rows, inputs=np.ascontiguousarray(rows.inputs[:, kept]))
        kept = kept if fitted.inputs is None else fitted.inputs[kept]
        fitted = replace(fitted, model=model, posterior=start, inputs=kept, stochastic=None)
        ascent = self._ascend(fitted, rows, max(self._sweeps(), self.n_iter_))
        smaller: Self = copy(self).set_params(n_members=1)
        smaller._set(fitted, ascent, rows)
        smaller.kept_columns_ = np.unique(fitted.representation.owners[kept])
        return smaller

    def _select(self, false_discovery_rate: float) -> NetworkSelection:
        """What to keep of the best member, with a warning where the rate does not hold."""
        check_is_fitted(self)
        # From this temperature on the rate was near what was measured on planted tables.
        is_safe = self.init != "relu_network" and self.temperature >= 0.1
        if not (is_safe and self.converged_):
            warn(
                "the false discovery rate means nothing for this fit: only converged fits from "
                "random starts came near it on planted tables, "
                f"{type(self).__name__}.as_in_paper(accelerate=True, max_iter=3000)."
            )
        alone = network(self._fitted.posterior, self._best)
        return select(self._fitted.model, alone, false_discovery_rate)

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
