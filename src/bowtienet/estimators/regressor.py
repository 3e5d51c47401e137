"""`BowTieRegressor`: the whole method behind the scikit-learn contract."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bowtienet._arrays import Array, like, to_numpy
from bowtienet._validation import whole
from bowtienet.data.canonical import canonical_rows, column_order, take_columns
from bowtienet.data.rows import Rows, build_weights, take_rows
from bowtienet.data.scaling import fit_scaling, standardize
from bowtienet.estimators.members import GoOn, Recipe, continued, fit_alike, fit_stacked
from bowtienet.estimators.predicting import PredictingMixin
from bowtienet.estimators.progress import (
    WARNING_LEVEL,
    CallbackSupportMixin,
    Reporter,
    with_callbacks,
)
from bowtienet.estimators.pruning import PruningMixin
from bowtienet.estimators.running import Runner, fitted_attributes
from bowtienet.estimators.tables import read_inputs, read_targets, with_names
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import FitResult
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.posterior.initialize import SCHEMES
from bowtienet.prediction.ensemble import Ensemble, original
from bowtienet.prediction.predictive import ROUTES

RECIPES = tuple((0.01, penalty) for penalty in (0.001, 0.01, 0.1, 1.0, 10.0))
"""Temperatures and penalties that "auto" lets stacking choose from; docs/accuracy.md says why."""
ALIKE_TEMPERATURE, ALIKE_PENALTY = 0.01, 0.1
"""For members that are to be compared by their ELBO."""
WARM_START = "warm_start=True goes on from the last fit: set warm_start=False to start anew."


class BowTieRegressor(
    CallbackSupportMixin, PredictingMixin, PruningMixin, RegressorMixin, BaseEstimator
):
    """Bayesian bow tie network with shrinkage priors, fitted by closed-form updates.

    Inputs and targets are standardised inside, and everything is reported in the user's units.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(50,)
        Widths of the hidden layers. Shrinkage takes out what is not needed, so rather too wide
        than too narrow; a second layer seldom pays below ten thousand rows. ``()`` is linear
        regression.
    prior : str, default="student_t"
        Shrinkage prior of the weights: "student_t", "laplace", "normal_gamma",
        "normal_inverse_gaussian", "gig", or "gaussian" for none. Keep the default unless you know
        how your weights are distributed.
    temperature : float or "auto", default="auto"
        Softness of the gates; towards 0 units become rectified linear. Lower if the target has
        sharp bends, higher (0.1) for very smooth ones.
    n_estimators : int, default=8
        Members of the ensemble. More is better and takes longer.
    combine : {"stacking", "elbo", "equal"}, default="stacking"
        How members are weighed: by the densities they give to rows held out, by the evidence bound
        (members then differ only in their random start), or all alike. "stacking" also chooses the
        strength and length of the fits; the other two fit each member once, to convergence.
    elbo_tempering : float, default=0.01
        For "elbo": weights are softmax(elbo_tempering * bound). Towards 0 all count alike.
    init : {"relu_network", "laplace", "spike_slab"}, default="relu_network"
        Where a fit starts: at an ordinary network fitted quickly, or at random. The first predicts
        better; the others are the paper's.
    init_penalty : float or "auto", default="auto"
        Ridge penalty of the network of "relu_network", for standardised targets. Larger is
        smoother: for few or noisy rows.
    predictive : {"push_forward", "variational"}, default="push_forward"
        How predictive moments are found: by pushing the weights' distribution through the network,
        or by the paper's iteration. Takes effect with the next fit.
    max_iter : int, default=80
        Most sweeps over the rows for each fit. Raise it when a warning asks for it.
    tol : float, default=1e-5
        A fit stops when the relative change of its bound is below this three times in a row.
    prune_every : int or None, default=None
        After every so many sweeps take out hidden units that do not matter. It makes wide networks
        cheap: 5 or 10 for widths above a hundred.
    false_discovery_rate : float, default=0.01
        How sure the sign of a weight must be to matter, for `prune_every`, `prune` and
        `feature_relevance_`: the estimated share of kept weights that have the wrong sign. Lower
        prunes more.
    warm_start : bool, default=False
        Go on from the members of the last fit instead of from new starts. Their number, weights,
        scaling, prior and temperature stay; only `max_iter`, `tol` and the rows may differ.
    n_jobs : int, default=None
        Fits at the same time, through joblib; 1 for None. Also reaches Dask and other backends by
        ``joblib.parallel_config``. The result does not depend on it. Callbacks hear of single
        members and sweeps only if fits run one by one.
    random_state : int, RandomState or None, default=None
        Seed of starts and held-out rows; an int makes a fit repeatable to the last bit.
    verbose : int, default=0
        1 shows one live line with sweeps, bound, change and seconds.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted members with their weights and scaling.
    member_weights_ : ndarray (K,)
        Weights of the members, summing to 1.
    n_effective_members_ : float
        1 / sum of squared weights.
    elbo_, elbo_terms_, elbo_history_ : float, ElboTerms, ndarray
        Evidence bound of the heaviest member, by block, and after every accepted sweep.
    status_ : str
        Why the heaviest member stopped.
    converged_ : bool
        Whether members with most of the weight stopped by themselves.
    n_iter_ : int
        Sweeps of the longest member.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray
        Their names, if X had names.
    n_outputs_ : int
        Targets.
    sparsity_ : Sparsity
        Inputs, nodes and weights of every member before and after pruning.
    feature_relevance_ : FeatureRelevance
        Which inputs matter, by name: the probability of a path to the target, and its strength.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
    >>> model = BowTieRegressor(hidden_layer_sizes=(20,), n_estimators=2, random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "prior": [StrOptions(set(FAMILIES))],
        "temperature": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "combine": [StrOptions({"stacking", "elbo", "equal"})],
        "elbo_tempering": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions(set(SCHEMES))],
        "init_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "predictive": [StrOptions(set(ROUTES))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "prune_every": [Interval(Integral, 1, None, closed="left"), None],
        "false_discovery_rate": [Interval(Real, 0, 1, closed="neither")],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (50,),
        *,
        prior: str = "student_t",
        temperature: float | str = "auto",
        n_estimators: int = 8,
        combine: str = "stacking",
        elbo_tempering: float = 0.01,
        init: str = "relu_network",
        init_penalty: float | str = "auto",
        predictive: str = "push_forward",
        max_iter: int = 80,
        tol: float = 1e-5,
        prune_every: int | None = None,
        false_discovery_rate: float = 0.01,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.temperature = temperature
        self.n_estimators = n_estimators
        self.combine = combine
        self.elbo_tempering = elbo_tempering
        self.init = init
        self.init_penalty = init_penalty
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol
        self.prune_every = prune_every
        self.false_discovery_rate = false_discovery_rate
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : table (n, columns)
            NumPy array, pandas, polars or pyarrow table, or torch tensor; finite numbers.
        y : (n,) or (n, outputs)
            Targets.
        sample_weight : (n,), optional
            How many times each row counts. A row of weight 0 is as good as absent, one of weight 2
            as good as there twice.

        Returns
        -------
        self
        """
        going_on = self.warm_start and hasattr(self, "ensemble_")
        return self._fit(X, y, sample_weight, continued if going_on else None)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, go_on: GoOn | None, remedy: str = WARM_START
    ) -> Self:
        """A new fit, or one in which each member of the last goes on by a task of its own."""
        sizes = hidden_sizes(self.hidden_layer_sizes)
        inputs = read_inputs(X, min_rows=2)
        targets = read_targets(y, inputs.shape[0])
        weights = build_weights(sample_weight, inputs, name="sample_weight")
        if go_on is not None:
            self._check_same_shape(X, targets, sizes, remedy)
        table = {**_columns(X), "_single_target": targets.ndim == 1}
        rows, ensemble = self._standardized(inputs, targets, weights, go_on is not None)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        reporter = Reporter(self, {"X": X, "y": y, "metadata": metadata})
        runner = Runner(self, sizes, ensemble, table, reporter)
        try:
            members, shares = self._fit_members(rows, ensemble, go_on, runner)
        finally:
            reporter.close()
        if not members:
            raise KeyboardInterrupt
        self._keep(fitted_attributes(ensemble, members, shares, table))
        self._warn(runner.interrupted)
        return self

    def _check_same_shape(
        self, X: Any, targets: Array, sizes: tuple[int, ...], remedy: str
    ) -> None:
        """A fit that goes on needs the columns, targets and layers of the one before."""
        try:
            validate_data(self, with_names(X), reset=False, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{error} {remedy}") from error
        before = original(self.ensemble_.members[0]).hidden
        if before != sizes:
            raise ValueError(
                f"hidden_layer_sizes is {sizes}, but it was {before} in the last fit. {remedy}"
            )
        found = 1 if targets.ndim == 1 else targets.shape[1]
        if found != self.n_outputs_:
            raise ValueError(
                f"y has {found} targets, but it had {self.n_outputs_} in the last fit. {remedy}"
            )

    def _standardized(
        self, inputs: Array, targets: Array, weights: Array, going_on: bool
    ) -> tuple[Rows, Ensemble]:
        """Rows as the networks see them, and an ensemble without members that knows the way."""
        targets = targets if targets.ndim == 2 else targets[:, None]
        # Twice canonical: sums over repeated rows would round otherwise than sums over weights.
        rows = canonical_rows(Rows(inputs=inputs, targets=targets, weights=weights))
        if going_on:
            ensemble = replace(self.ensemble_, route=self.predictive)
        else:
            weights = _double(rows.weights)
            ensemble = Ensemble(
                members=(),
                weights=np.empty(0),
                input_scaling=fit_scaling(_double(rows.inputs), weights),
                target_scaling=fit_scaling(_double(rows.targets), weights),
                column_order=np.arange(inputs.shape[1]),
                route=self.predictive,
            )
        rows = Rows(
            inputs=standardize(ensemble.input_scaling, rows.inputs),
            targets=like(inputs, standardize(ensemble.target_scaling, rows.targets)),
            weights=rows.weights,
        )
        if not going_on:
            ensemble = replace(ensemble, column_order=column_order(rows))
        return canonical_rows(take_columns(rows, ensemble.column_order)), ensemble

    def _fit_members(
        self, rows: Rows, ensemble: Ensemble, go_on: GoOn | None, runner: Runner
    ) -> tuple[Sequence[FitResult], np.ndarray]:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        rows = take_rows(rows, rng.permutation(rows.inputs.shape[0]))
        if go_on is not None:
            tasks = [go_on(member, rows) for member in ensemble.members]
            outcomes = [outcome.results[-1] for outcome in runner(tasks)]
            return [*outcomes, *ensemble.members[len(outcomes) :]], ensemble.weights
        recipes = self._recipes(rng, runner.settings.hidden)
        if self.combine == "stacking":
            return fit_stacked(rows, recipes, self.n_estimators, runner, self.max_iter, rng)
        return fit_alike(rows, recipes, runner, self.combine, self.elbo_tempering)

    def _recipes(self, rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Recipe]:
        """For stacking what it may choose from; otherwise members that differ in their seed."""
        alike = self.combine != "stacking"
        auto = ((ALIKE_TEMPERATURE, ALIKE_PENALTY),) * self.n_estimators if alike else RECIPES
        pairs = [
            (
                temperature if self.temperature == "auto" else float(self.temperature),
                penalty if self.init_penalty == "auto" else float(self.init_penalty),
            )
            for temperature, penalty in auto
        ]
        if not alike:
            # Penalties make no difference where no network is fitted to start from.
            same = self.init != "relu_network" or not sizes
            pairs = list({t if same else (t, p): (t, p) for t, p in pairs}.values())
        seeds = rng.integers(2**32, size=len(pairs))
        return [
            Recipe(temperature=temperature, penalty=penalty, seed=int(seed))
            for (temperature, penalty), seed in zip(pairs, seeds, strict=True)
        ]

    def _keep(self, attributes: dict[str, Any]) -> None:
        """Set all fitted attributes at once: until here a failed fit has changed nothing."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for name, value in attributes.items():
            setattr(self, name, value)

    def _warn(self, interrupted: bool) -> None:
        members = self.ensemble_.members
        statuses = {member.status for member in members}
        if interrupted:
            message = (
                "The fit was interrupted. The estimator is fitted and usable, with "
                f"{len(members)} member{'s' if len(members) > 1 else ''} as of then; fit again for "
                "a complete one."
            )
        elif self.converged_:
            return
        elif Status.SWEEP_LIMIT in statuses:
            message = (
                f"Most members were still getting better after max_iter={self.max_iter} sweeps: "
                f"raise max_iter (to {4 * self.max_iter}, say), or tol (now {self.tol:g}) if the "
                "predictions are good enough."
            )
        elif statuses & {Status.NON_FINITE, Status.DECREASED}:
            message = (
                f"Most members stopped before they converged ({', '.join(sorted(statuses))}): look "
                "for values far out of line in X and y, or set a higher temperature."
            )
        else:  # stopped by a callback, which knows why
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=WARNING_LEVEL)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file that loads without running code.

        A `random_state` that is not a number is not kept.
        """
        from bowtienet.estimators.keeping import save_estimator

        check_is_fitted(self)
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted estimator that `save` wrote."""
        from bowtienet.estimators.keeping import load_estimator

        return load_estimator(cls, path)

    def to_arviz(self, draws: int = 1000, random_state: Any = 0) -> Any:
        """Draws of the posterior for ArviZ (``pip install 'bowtienet[arviz]'``).

        Parameters
        ----------
        draws : int
            Draws from the mixture of the members' posteriors.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        arviz.InferenceData (a DataTree from ArviZ 1 on) whose group `posterior` holds for every
        layer `weights_1`, `weights_2`, ... (draw, unit, input; standardised units, the constant
        first), `noise_variance_1`, ..., and `member`, the member that each draw is of. What was
        pruned is zero.
        """
        from bowtienet.estimators.arviz_export import to_arviz

        check_is_fitted(self)
        return to_arviz(self, draws, random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ensemble_")


def hidden_sizes(sizes: Any) -> tuple[int, ...]:
    """Widths of the hidden layers as they were meant: one number is one layer."""
    if isinstance(sizes, Integral):
        sizes = (sizes,)
    return tuple(whole(size, f"hidden_layer_sizes[{i}]") for i, size in enumerate(sizes))


def _columns(X: Any) -> dict[str, Any]:
    """Number and names of the columns, as scikit-learn reads them."""
    probe = BaseEstimator()
    validate_data(probe, with_names(X), reset=True, skip_check_array=True)
    return vars(probe)


def _double(values: Array) -> np.ndarray:
    """Values on the host in double precision: a scaling must not depend on where rows live."""
    return to_numpy(values).astype(np.float64)
