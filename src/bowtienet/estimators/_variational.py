"""What both bow tie networks share: the fit, members, selection, pruning, draws."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import map_arrays
from bowtienet._format import count, duration, number
from bowtienet.estimators._answers import Saved
from bowtienet.estimators._start import start_of
from bowtienet.estimators._streams import (
    Encoding,
    Prepare,
    batches_of,
    encode_rows,
    provider_of,
    sample_of,
    weight_of,
)
from bowtienet.estimators.summary import Selection, arviz_draws, describe_network, selection_of
from bowtienet.inference.ascend import Ascent, Status, ascend, taken_model
from bowtienet.inference.stochastic import (
    StochasticState,
    ascend_stochastic,
    begin,
    step_size,
    stochastic_step,
)
from bowtienet.model.model import (
    BowTieModel,
    Rows,
)
from bowtienet.outcomes import Outcome
from bowtienet.posterior.factors import Posterior, n_networks, network
from bowtienet.posterior.prune import prune
from bowtienet.posterior.selection import select
from bowtienet.prediction.push_forward import Moments
from bowtienet.prediction.variational import output_moments, output_noise, sample_functions
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
SWEEPS, PASSES = 500, 20
"""Most sweeps of other starts, and most passes of the stochastic solver, by default."""
SAFE_TEMPERATURE = 0.1
"""From here on the rate of `selection` was near what was measured on planted tables."""
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


class VariationalNetwork(Saved):
    """Fits M bow tie networks side by side, `_fitted`."""

    # The parameters, and scikit-learn's reader of them.
    hidden_layer_sizes: Any
    prior: Any
    temperature: float
    hidden_noise: Any
    bias_variance: Any
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
    get_params: Any

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
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        drawn = sample_of(training)
        sample = prepare(drawn)
        representation, inputs = learn_representation(drawn, self.max_categories)
        encoding = Encoding(
            prepare=prepare,
            representation=representation,
            target_scaling=self._target_scaling(sample.targets, sample.weights),
        )
        rows = Rows(
            inputs=inputs,
            targets=(sample.targets - encoding.target_scaling.center)
            / encoding.target_scaling.scale,
            weights=sample.weights,
        )
        model, start = start_of(self, rows, outcome, rng)
        if drawn is not training:
            rows = encode_rows(encoding, training)
        data: Rows | Stream = rows if stream is None else stream
        weight = weight_of(data)
        if self.solver == "svi":
            state = begin(model, start)
            batches = batches_of(data, encoding, self.batch_size, int(rng.integers(2**31)))
            ascent, state = ascend_stochastic(
                state,
                batches,
                weight,
                max_iter=self.max_iter or PASSES,
                tol=self.tol,
                forgetting_rate=self.forgetting_rate,
                step_delay=self.step_delay,
                callback=self._progress(),
            )
        else:
            state = None
            ascent = ascend(
                model,
                start,
                provider_of(data, encoding, model, n_networks(start)),
                max_iter=self._sweeps(),
                tol=self.tol,
                rounds=3 if self.accelerate else 1,
                accelerate=self.accelerate,
                callback=self._progress(),
            )
        self._seen = weight
        vars(self).pop("kept_columns_", None)  # this is no pruned network any more
        self._set(
            FittedNetwork(
                representation=encoding.representation,
                target_scaling=encoding.target_scaling,
                model=ascent.model,
                posterior=ascent.posterior,
                member_weights=np.ones(n_networks(ascent.posterior)),
                stochastic=state,
            ),
            ascent,
            data if isinstance(data, Rows) else None,
        )
        return self

    def _target_scaling(self, targets: Floats, weights: Floats) -> Scaling:
        """Of the targets of a fit."""
        raise NotImplementedError

    def _sweeps(self) -> int:
        """Most sweeps: few from a ReLU network, whose function they are to keep."""
        if self.max_iter is not None:
            return int(self.max_iter)
        return SWEEPS_OF_NETWORK if self.init == "relu_network" else SWEEPS

    def _set(
        self, fitted: FittedNetwork, ascent: Ascent, rows: Rows | None, stacklevel: int = 4
    ) -> None:
        """Attributes of a fit; members that broke down are left out.

        Warnings are the user's, so many calls above.
        """
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

    def _partial(self, training: TrainingTable, outcome: Outcome, scaling: Scaling) -> Self:
        """A stochastic step on further rows; the first rows say how columns are read."""
        if not self.__sklearn_is_fitted__():
            rng = np.random.default_rng(
                check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            )
            representation, inputs = learn_representation(training, self.max_categories)
            rows = self._rows_of(training, inputs, scaling)
            model, start = start_of(self, rows, outcome, rng)
            fitted = FittedNetwork(
                representation=representation,
                target_scaling=scaling,
                model=model,
                posterior=start,
                member_weights=np.ones(self.n_members),
                stochastic=begin(model, start),
            )
            seen = 0.0
        else:
            fitted, seen = self._fitted, self._seen
            n_targets = len(fitted.target_scaling.center)
            if training.targets.shape[1] != n_targets:
                raise ValueError(
                    f"y has {count(training.targets.shape[1], 'target')}, but the first rows had "
                    f"{n_targets}."
                )
            inputs = standardize(fitted.representation, training.table)
            rows = self._rows_of(training, inputs, fitted.target_scaling)
            if fitted.inputs is not None:
                rows = replace(rows, inputs=rows.inputs[:, fitted.inputs])
        state = fitted.stochastic
        if state is None:
            if self._rows is None:
                raise ValueError(
                    "partial_fit after a fit with solver='cavi' needs the rows of that fit, which "
                    "files do not keep: begin with partial_fit or solver='svi', then save."
                )
            # The statistics that steps blend: those of the rows of the fit.
            state = begin(fitted.model, fitted.posterior)
            state, _ = stochastic_step(state, self._rows, seen, 1.0)
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
        fitted = replace(fitted, model=state.model, posterior=state.posterior, stochastic=state)
        self._set(fitted, ascent, None)
        self.elbo_history_, self.converged_, self._seen = np.array(history), False, seen
        return self

    def _rows_of(self, training: TrainingTable, inputs: Floats, scaling: Scaling) -> Rows:
        return Rows(
            inputs=inputs,
            targets=(training.targets - scaling.center) / scaling.scale,
            weights=training.weights,
        )

    def _inputs(self, X: Any) -> Floats:
        """Standardised rows that the networks see."""
        check_is_fitted(self)
        fitted = self._fitted
        inputs = standardize(fitted.representation, open_known(self, X))
        return inputs if fitted.inputs is None else inputs[:, fitted.inputs]

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
        ascent = ascend(
            model,
            start,
            rows,
            max_iter=max(self._sweeps(), self.n_iter_),
            tol=self.tol,
            rounds=3 if self.accelerate else 1,
            accelerate=self.accelerate,
        )
        before = fitted.inputs if fitted.inputs is not None else np.arange(len(chosen.inputs))
        smaller._set(
            replace(
                fitted,
                model=ascent.model,
                posterior=ascent.posterior,
                inputs=before[kept],
                stochastic=None,
            ),
            ascent,
            rows,
            stacklevel=3,
        )
        smaller._seen = self._seen
        smaller.kept_columns_ = np.unique(fitted.representation.owners[before[kept]])
        return smaller

    def _warn_of_rate(self) -> None:
        safe = self.init != "relu_network" and self.temperature >= SAFE_TEMPERATURE
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
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        return arviz_draws(self._fitted.posterior, draws, np.random.default_rng(seed))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        # The rows of the fit are for `prune` alone, and belong in no file.
        return {**state, "_rows": None} if "_rows" in state else dict(state)

    def _content(self) -> dict[str, Any]:
        kept = ("_fitted", "_best", "_single", "_seen", "n_features_in_", "elbo_history_")
        more = ("elbo_terms_", "n_iter_", "converged_", "_target_names", "kept_columns_")
        content = {name: getattr(self, name) for name in (*kept, *more) if hasattr(self, name)}
        if hasattr(self, "feature_names_in_"):
            content["feature_names_in_"] = self.feature_names_in_
        if hasattr(self, "classes_"):
            content["classes_"] = self.classes_
        return {**content, "_rows": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
