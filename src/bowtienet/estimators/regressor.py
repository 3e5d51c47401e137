"""`BowTieRegressor`: the whole method behind the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bowtienet.estimators.members import GoOn, continued
from bowtienet.estimators.partial import PartialMixin
from bowtienet.estimators.predicting import PredictingMixin
from bowtienet.estimators.progress import CallbackSupportMixin, with_callbacks
from bowtienet.estimators.pruning import PruningMixin
from bowtienet.estimators.reporting import ReportingMixin
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.posterior.initialize import INITS
from bowtienet.prediction.predictive import PROPAGATIONS


class BowTieRegressor(
    CallbackSupportMixin,
    PartialMixin,
    PredictingMixin,
    PruningMixin,
    ReportingMixin,
    RegressorMixin,
    BaseEstimator,
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
    gate_temperature : float or "auto", default="auto"
        Softness of the gates; towards 0 units become rectified linear. Lower if the target has
        sharp bends, higher (0.1) for very smooth ones.
    n_estimators : int, default=8
        Members of the ensemble. More is better and takes longer.
    combine : {"stacking", "elbo", "equal"}, default="stacking"
        How members are weighed: by the densities they give to rows held out, by the evidence bound
        (members then differ only in their random start), or all alike. "stacking" also chooses the
        start and length of the fits (one member is the best alone), and multiplies the variances
        of predictions by what rows held out ask for; the other two fit each member once, to
        convergence.
    elbo_tempering : float, default=0.01
        For "elbo": weights are softmax(elbo_tempering * bound). Towards 0 all count alike.
    init : {"relu_network", "laplace", "spike_slab"}, default="relu_network"
        Where a fit starts: at an ordinary network fitted quickly, or several small ones side by
        side if "stacking" chooses so, or at random. The first predicts better; the others are the
        paper's.
    init_penalty : float or "auto", default="auto"
        Ridge penalty of the network of "relu_network", for standardised targets. Larger is
        smoother: for few or noisy rows. "auto" lets "stacking" choose, and is 0.1 otherwise.
    predictive : {"push_forward", "variational"}, default="push_forward"
        How predictive moments are found: by pushing the weights' distribution through the network,
        or by the paper's iteration. Takes effect with the next fit.
    solver : {"auto", "cavi", "svi"}, default="auto"
        Coordinate ascent, which looks at all rows before every update, or stochastic variational
        inference, which looks at a minibatch. "auto" takes the second above 50,000 rows (for Dask
        tables the first, on the workers); ``solver_`` says which it was.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch for "svi".
    forgetting_rate, step_delay : float, default=0.7, 1.0
        Steps of "svi" with batches of 1,000 rows or more are whole while the bound rises; then, and
        with smaller batches from the first on, they shrink as (t + delay) ** -forgetting_rate, the
        rate in (0.5, 1]. Higher remembers batches longer.
    max_iter : int, default=80
        Most sweeps over the rows for each fit. Raise it when a warning asks for it.
    tol : float, default=1e-5
        A fit stops when the relative change of its bound is below this three times in a row; for
        "svi" the change between means over many steps, or if it is below their noise.
    prune_every : int or None, default=None
        After every so many sweeps take out hidden units that do not matter. It makes wide networks
        cheap: 5 or 10 for widths above a hundred. Of no effect with "svi".
    false_sign_rate : float, default=0.01
        How sure the sign of a weight must be to matter, for `prune_every`, `prune` and
        `feature_relevance_`: the estimated share of kept weights that have the wrong sign. Lower
        prunes more.
    warm_start : bool, default=False
        Go on from the members of the last fit instead of from new starts. Their number, weights,
        scaling, prior and temperature stay; only `max_iter`, `tol` and the rows may differ.
    checkpoint : path or None, default=None
        File to keep the state of a running fit in; `resume` goes on from it.
    checkpoint_every : float, default=60
        Seconds between two states.
    n_jobs : int, default=None
        Fits at the same time, through joblib; 1 for None. Also reaches Dask and other backends by
        ``joblib.parallel_config``. The result does not depend on it. Callbacks hear of single
        members and sweeps only if fits run one by one.
    random_state : int, RandomState or None, default=None
        Seed of starts and held-out rows; an int makes a fit repeatable to the last bit.
    verbose : int, default=0
        1 shows one live line: sweeps, bound, change, rows per second, time left and seconds.

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
    solver_ : str
        "cavi" or "svi"; with "svi" the history is that of steps, and noisy.
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
    >>> model = BowTieRegressor((20,), n_estimators=2, max_iter=20, random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "prior": [StrOptions(set(FAMILIES))],
        "gate_temperature": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "combine": [StrOptions({"stacking", "elbo", "equal"})],
        "elbo_tempering": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions(set(INITS))],
        "init_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "predictive": [StrOptions(set(PROPAGATIONS))],
        "solver": [StrOptions({"auto", "cavi", "svi"})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "forgetting_rate": [Interval(Real, 0.5, 1, closed="right")],
        "step_delay": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "prune_every": [Interval(Integral, 1, None, closed="left"), None],
        "false_sign_rate": [Interval(Real, 0, 1, closed="neither")],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (50,),
        *,
        prior: str = "student_t",
        gate_temperature: float | str = "auto",
        n_estimators: int = 8,
        combine: str = "stacking",
        elbo_tempering: float = 0.01,
        init: str = "relu_network",
        init_penalty: float | str = "auto",
        predictive: str = "push_forward",
        solver: str = "auto",
        batch_size: int | str = "auto",
        forgetting_rate: float = 0.7,
        step_delay: float = 1.0,
        max_iter: int = 80,
        tol: float = 1e-5,
        prune_every: int | None = None,
        false_sign_rate: float = 0.01,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.gate_temperature = gate_temperature
        self.n_estimators = n_estimators
        self.combine = combine
        self.elbo_tempering = elbo_tempering
        self.init = init
        self.init_penalty = init_penalty
        self.predictive = predictive
        self.solver = solver
        self.batch_size = batch_size
        self.forgetting_rate = forgetting_rate
        self.step_delay = step_delay
        self.max_iter = max_iter
        self.tol = tol
        self.prune_every = prune_every
        self.false_sign_rate = false_sign_rate
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table, in memory or not.

        Parameters
        ----------
        X : table (n, columns) or source
            NumPy array, pandas, polars or pyarrow table, or torch tensor; finite numbers. Or rows
            that need not fit in memory: a Parquet or Arrow file or folder (its path, or a
            ``pyarrow.dataset.Dataset``), a ``numpy.memmap``, anything that can be iterated over
            again and again and gives ``(X, y)`` or ``(X, y, weights)``, a Dask array or data frame,
            or what `bowtienet.open_source` gives.
        y : (n,) or (n, outputs), or names
            Targets; for tables with named columns also the name of the target, or a list of them.
        sample_weight : (n,) or name, optional
            How many times each row counts. A row of weight 0 is as good as absent, one of weight 2
            as good as there twice.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, self._how_to_go_on())

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def resume(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with a fit that was cut short, from its `checkpoint`.

        With the same settings and rows it ends in the same bits as if it had never stopped; on a
        cluster, whose local factors are not written, close to them.

        Parameters
        ----------
        X, y, sample_weight :
            As for the `fit` that was cut short.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, self._how_to_go_on(), resume=True)

    def _how_to_go_on(self) -> GoOn | None:
        return continued if self.warm_start and hasattr(self, "ensemble_") else None

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
