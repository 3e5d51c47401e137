"""`BowTieRegressor`: the whole method behind the scikit-learn contract."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import non_negative
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.source import Source
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.estimators.fit_options import FitOptions
from bowtienet._old.estimators.known_columns import open_known, warning_level
from bowtienet._old.estimators.predictor import EnsemblePredictor
from bowtienet._old.estimators.progress import with_callbacks
from bowtienet._old.estimators.prune_fit import PruneSummary, pruned_of, summarize
from bowtienet._old.estimators.saving import file_size
from bowtienet._old.model.outcomes import Counts, Gaussian, Outcome, StudentT

FEWEST_CLASS_ROWS = 10
"""Of fewer rows, targets that are 0 or 1 are no sign of classes."""


class BowTieRegressor(EnsemblePredictor):
    """Ensemble of Bayesian bow tie networks with shrinkage priors, fitted by closed-form updates.

    Tables are taken as they are: numbers, categories, text, dates and missing values. Features and
    targets are standardised inside, and everything is reported in the user's units.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(50,)
        Widths of the hidden layers. Shrinkage takes out what is not needed, so rather too wide
        than too narrow; ``()`` is linear regression.
    prior : str, default="student_t"
        Shrinkage prior of the weights: "student_t", "laplace", "normal_gamma",
        "normal_inverse_gaussian", "gig", "horseshoe", "regularized_horseshoe", or "gaussian" for
        none.
    n_estimators : int or None, default=None
        Members of the ensemble; None for as many as `effort` brings along: one for each fold and
        recipe that got weight, mostly ten.
    effort : {"fast", "balanced", "best"}, default="balanced"
        How many recipes and lengths are compared, and how many members are fitted: for a look, for
        daily use, or for a paper.
    features : {"auto", "standard", "piecewise", "principal"} or int, default="auto"
        What networks see of a column of numbers: the standardised column, or up to 16 piecewise
        linear components of it with bends at quantiles (an int says how many), which lets one
        network follow steps and bends; or principal components of all columns. All go on linearly
        outside the data. "auto" takes what gives held-out rows the higher density, and principal
        components of more than about a hundred columns.
    target_transform : {"auto", "none", "yeo-johnson"}, default="auto"
        Whether networks are fitted to the targets or to a Yeo-Johnson transform of them, whose
        exponent in [0, 2] is that of highest likelihood, for targets with a long tail. Predictions
        are exact in the user's unit either way. "auto" takes what gives held-out rows the higher
        density.
    noise : {"auto", "constant"}, default="auto"
        "auto" gives the noise three levels, and gates that say by the features which of them a row
        has, where held-out rows ask for it: noise that differs between rows, and heavy tails.
    outcome : {"gaussian", "student_t", "counts"}, default="gaussian"
        What targets are like: numbers; numbers with outliers, which the fit then hardly follows; or
        counts, with negative binomial noise around a rate, and intervals of whole numbers. Classes
        have an estimator of their own, `BowTieClassifier`.
    solver : {"auto", "cavi", "svi"}, default="auto"
        What makes posteriors: coordinate ascent, which looks at all rows before every update, or
        stochastic variational inference, which looks at a minibatch. "auto" takes the second above
        50,000 rows, wherever they live; the first uses the workers of a Dask table.
    max_iter : int, default=80
        Most sweeps over the rows for each fit. A default fit makes one; more are for
        random starts, and for weights that are not from stacking. Raise it when a warning asks
        for it.
    warm_start : bool, default=False
        Go on from the members of the last fit instead of from new starts. Their number, weights,
        representation, prior and temperature stay; `max_iter`, `tol` and the rows may differ.
    checkpoint : path or None, default=None
        File that keeps finished members (of streams also every pass) of a running fit; `resume`
        goes on from it. Tables in memory that are cross-fitted are fitted in one go.
    n_jobs : int, default=None
        Groups of networks, or fits, at the same time, through joblib; 1 for None. The result does
        not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of starts and held-out rows; an int makes a fit repeatable to the last bit.
    verbose : int, default=0
        1 shows one live line: sweeps, bound, change, rows per second, time left and seconds.
    options : FitOptions or None, default=None
        What few people touch.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted members with their weights and representation.
    columns_ : tuple of Column
        What was learnt of every column of X.
    member_weights_, n_effective_members_ : ndarray (K,), float
        Ensemble weights, and 1 / sum of their squares.
    elbo_, elbo_terms_, elbo_history_ : float, ElboTerms, ndarray
        Evidence bound of the heaviest member, by block, and after every accepted sweep; None and
        empty where it is not known.
    solver_, status_, n_iter_ : str, str, int
        The solver, why the heaviest member stopped, and sweeps of the longest member.
    converged_ : bool
        Whether the bound converged for members with at least half of the weight.
    pruning_ : PruneSummary
        Sizes and scores before and after, of an estimator that `prune` returned.
    n_features_in_, feature_names_in_, n_outputs_, target_names_ :
        Columns of X and y, with their names.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
    >>> model = BowTieRegressor((20,), n_estimators=2, random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        **EnsemblePredictor._parameter_constraints,
        "target_transform": [StrOptions({"auto", "none", "yeo-johnson"})],
        "noise": [StrOptions({"auto", "constant"})],
        "outcome": [StrOptions({"gaussian", "student_t", "counts"})],
    }

    pruning_: PruneSummary

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (50,),
        *,
        prior: str = "student_t",
        n_estimators: int | None = None,
        effort: str = "balanced",
        features: str | int = "auto",
        target_transform: str = "auto",
        noise: str = "auto",
        outcome: str = "gaussian",
        solver: str = "auto",
        max_iter: int = 80,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        options: FitOptions | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.n_estimators = n_estimators
        self.effort = effort
        self.features = features
        self.target_transform = target_transform
        self.noise = noise
        self.outcome = outcome
        self.solver = solver
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.options = options

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit to a table, in memory or not.

        Parameters
        ----------
        X : table (n, columns) or source
            NumPy array, pandas, polars or pyarrow table, or torch tensor. Or rows that need not fit
            in memory: a Parquet or Arrow file or folder (its path, or a
            ``pyarrow.dataset.Dataset``), a ``numpy.memmap``, anything that can be iterated over
            again and again and gives ``(X, y)`` or ``(X, y, weights)``, a Dask array or data frame,
            or what `bowtienet.open_source` gives.
        y : (n,) or (n, outputs), or names
            Targets; for tables with named columns also the name of the target, or a list of them.
        sample_weight : (n,) or name, optional
            How many times each row counts. A row of weight 0 is as good as absent, one of weight 2
            as good as there twice.
        exposure : (n,) or name, optional
            Of counts: by how much each row had the chance to count (hours, people, area); the rate
            is that of exposure 1.
        """
        return self._fit(X, y, sample_weight, exposure=exposure)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def resume(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
    ) -> Self:
        """Go on with a fit that was cut short, from its `checkpoint`.

        X, y and sample_weight are those of the fit that was cut short, and so are the settings.
        Members that were finished are not fitted again, nor passes over a stream. What is fitted
        side by side is: rows in memory that are cross-fitted, and networks that members start from.
        On one machine the end has the same bits.
        """
        return self._fit(X, y, sample_weight, resume=True, exposure=exposure)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
    ) -> Self:
        """Take in more rows, as for `fit`.

        The first call is a fit, so let it have a few hundred rows; later ones may have any number.
        A sample of up to 5,000 of the rows is kept in the estimator (and pickled with it, but not
        written by `save`): with it, many calls come closer to one fit. After `fit` or `load` there
        is none, and new rows move the model more slowly.
        """
        return self._take_in(X, y, sample_weight, exposure=exposure)

    def prune(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        tolerance: float = 0.02,
    ) -> Self:
        """A new estimator of one small network, estimated anew; this one is unchanged.

        A single network, for the same rows and seed that of ``n_estimators=1``, loses columns,
        units and weights for as long as rows that it was not fitted to are predicted as well, and
        is fitted again with what is left. Its noise and intervals are those that held-out rows ask
        for. An ensemble mostly predicts better than any single network: compare them.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`, mostly those of the fit; of more than 10,000 a random sample is used.
        tolerance : float
            By what share the root mean squared error of held-out rows may be larger than that of
            the single network before anything is taken out; while columns and weights go, the
            inverse density of held-out rows, too.

        Returns
        -------
        BowTieRegressor
            Its `pruning_` is a `PruneSummary`: columns by name, sizes, scores and seconds.
        """
        check_is_fitted(self)
        self._validate_params()
        if self.outcome != "gaussian":
            raise ValueError(
                f"prune compares squared errors, and so is not for outcome={self.outcome!r}: "
                "structure and importance tell which columns matter."
            )
        share = non_negative(tolerance, "tolerance")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        source = open_known(self, X, y, sample_weight)
        found = pruned_of(self, source, self._settings(), share, seed)
        pruned = copy.copy(self)
        pruned.random_state = copy.deepcopy(self.random_state)
        pruned._set(ensemble_attributes(found.ensemble, "cavi"))
        pruned.__dict__.pop("_arrivals", None)
        pruned.pruning_ = summarize(self.ensemble_, found, (file_size(self), file_size(pruned)))
        return pruned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _outcome(self, source: Source | None, options: FitOptions) -> Outcome:
        if self.outcome == "counts":
            return Counts()
        if self.outcome == "student_t":
            freedom = options.degrees_of_freedom
            return StudentT() if freedom == "auto" else StudentT(freedom=float(freedom), free=False)
        return Gaussian()

    def _target_settings(self) -> dict[str, Any]:
        return {"target": "count" if self.outcome == "counts" else "number"}

    def _open_new(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        source = super()._open_new(X, y, sample_weight, **rows, **self._target_settings())
        if self.outcome == "gaussian" and isinstance(source, InMemory) and _is_zero_or_one(source):
            warnings.warn(
                "y holds nothing but 0 and 1: if these are classes, BowTieClassifier gives their "
                "probabilities.",
                UserWarning,
                stacklevel=warning_level(),
            )
        return source


def _is_zero_or_one(source: InMemory) -> bool:
    """Whether a single target is 0 and 1, both of them, in ten rows or more."""
    targets, weights = to_numpy(source.block.targets), to_numpy(source.block.weights)
    values = targets[weights > 0.0]
    if values.shape[0] < FEWEST_CLASS_ROWS or values.shape[1] != 1:
        return False
    ones = values == 1.0
    return bool(ones.any() and not ones.all() and np.all(ones | (values == 0.0)))
