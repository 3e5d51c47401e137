"""`BowTieNetwork`: the paper's method behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from bowtienet.estimators._answers import Answers
from bowtienet.estimators._parameters import IN_PAPER
from bowtienet.estimators._streams import as_numbers, open_training
from bowtienet.estimators._variational import VariationalNetwork
from bowtienet.model import Prior
from bowtienet.outcomes import GAUSSIAN, Outcome, StudentT
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import open_rows
from bowtienet.tables.representation import Scaling, fit_scaling

Floats = NDArray[np.float64]


class BowTieNetwork(Answers, VariationalNetwork, RegressorMixin, BaseEstimator):
    """Variational Bayesian bow tie network with shrinkage, for one or several numbers.

    The method of Sheinkman and Wade: stochastic gates in place of rectified linear units make every
    conditional distribution a known one (with Polya-Gamma variables), so that the posterior of all
    layers is fitted by closed-form coordinate ascent of a complete evidence lower bound.
    Global-local shrinkage priors shrink irrelevant weights towards zero.

    The defaults predict best inside the paper's family: networks start from ReLU networks whose
    penalty is chosen by cross-validation, and a few sweeps turn them into posteriors. `as_in_paper`
    has the paper's settings.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int
        Widths of the hidden layers; () is Bayesian linear regression.
    prior : str or Prior
        Shrinkage prior of the weights: "student_t", "laplace", "normal_gamma",
        "normal_inverse_gaussian", "gig", "gaussian" (no shrinkage), "horseshoe",
        "regularized_horseshoe", or a `bowtienet.model.Prior` with parameters.
    temperature : float
        T of the gates: ReLU in the limit 0.
    hidden_noise : (float, float)
        Inverse gamma prior of the hidden noise variances: concentration and scale.
    output_noise : (float, float or sequence), optional
        Prior of the output noise variances, on the scale that networks see. By default it follows
        from held-out errors of the ReLU networks; with other starts it is the authors' IG(2,
        residual variance of a linear fit / 4).
    bias_variance : float or "intercept"
        Variance of the prior of the biases; "intercept" is the absolute intercept of a linear fit.
    noise : {"gaussian", "student_t"}
        Noise of the targets; "student_t" is robust to outliers.
    scale_target : bool
        Standardise the targets for the fit. Predictions are in the unit of the targets.
    init : {"relu_network", "laplace", "spike_slab"}
        Initialisation: around ReLU networks, or one of the paper's two random schemes.
    solver : {"cavi", "svi"}
        Coordinate ascent with all rows, or stochastic variational inference on minibatches.
    accelerate : bool
        Use momentum, undone where it would lower the bound, and three rounds of global updates in
        each sweep; plain sweeps otherwise.
    n_members : int
        Networks from different starts, fitted side by side.
    elbo_tempering : float
        zeta of the members' weights, softmax(zeta ELBO); 0 means equal weights.
    propagation : {"push_forward", "variational"}
        How predictions are computed: by pushing the generative process forward under q, or by the
        paper's iteration.
    max_iter : int, optional
        Largest number of sweeps, or of passes over the rows for "svi". By default 3 sweeps from
        ReLU networks, whose function is kept, 500 from other starts, and 20 passes.
    tol : float
        A network has converged when its bound may still gain less than this share of its size.
    batch_size : int
        Rows of a minibatch of "svi".
    forgetting_rate : float in (0.5, 1] or "adaptive"
        k of the steps (t + delay)^-k of "svi"; "adaptive" takes whole steps until the bound stops
        rising.
    step_delay : float
        delay of these steps.
    max_categories : int
        Largest number of levels of a category with a column each.
    random_state : int, RandomState or None
        Source of all randomness.
    verbose : int or bool
        Print the bound while fitting.

    Attributes
    ----------
    elbo_history_ : array
        Bound after every sweep of the member with the highest bound; for "svi" the noisy bound of
        every step.
    elbo_terms_ : dict
        Bound of that member by block.
    converged_ : bool
        Whether the bounds of all members have stopped rising, up to `tol`.
    n_iter_ : int
        Sweeps or steps.
    kept_columns_ : array of int
        Columns that a pruned network uses.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieNetwork
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(150, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=150)
    >>> model = BowTieNetwork((20,), random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> bool(np.all(np.abs(mean - np.sin(2.0 * X[:3, 0])) < 0.3))
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        **VariationalNetwork._parameter_constraints,
        "output_noise": [tuple, list, None],
        "noise": [StrOptions({"gaussian", "student_t"})],
        "scale_target": ["boolean"],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = (50,),
        *,
        prior: str | Prior = "student_t",
        temperature: float = 0.01,
        hidden_noise: Any = (2.0, 1e-4),
        output_noise: Any = None,
        bias_variance: Any = 1.0,
        noise: str = "gaussian",
        scale_target: bool = True,
        init: str = "relu_network",
        solver: str = "cavi",
        accelerate: bool = True,
        n_members: int = 4,
        elbo_tempering: float = 0.0,
        propagation: str = "push_forward",
        max_iter: int | None = None,
        tol: float = 1e-4,
        batch_size: int = 256,
        forgetting_rate: Any = "adaptive",
        step_delay: float = 1.0,
        max_categories: int = 30,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            prior=prior,
            temperature=temperature,
            hidden_noise=hidden_noise,
            bias_variance=bias_variance,
            init=init,
            solver=solver,
            accelerate=accelerate,
            n_members=n_members,
            elbo_tempering=elbo_tempering,
            propagation=propagation,
            max_iter=max_iter,
            tol=tol,
            batch_size=batch_size,
            forgetting_rate=forgetting_rate,
            step_delay=step_delay,
            max_categories=max_categories,
            random_state=random_state,
            verbose=verbose,
        )
        self.output_noise = output_noise
        self.noise = noise
        self.scale_target = scale_target

    @classmethod
    def as_in_paper(cls, **changes: Any) -> Self:
        """The paper's settings, with changes.

        P: stated in the paper. C: in the authors' configuration files.

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

        Examples
        --------
        >>> from bowtienet import BowTieNetwork
        >>> BowTieNetwork.as_in_paper(n_members=4).temperature
        0.1
        """
        return cls(**{**IN_PAPER, "scale_target": False, **changes})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : array or frame (n, columns), or source
            Numbers, categories, dates, truth values; values may be missing. A source is a path, a
            pyarrow dataset, a Dask collection, or an iterable of batches (X, y). It is read in
            every pass of "svi", whose memory does not grow with the rows, and in every sweep of
            "cavi", which keeps 8 bytes of each row, hidden unit and member; with a Dask client
            its workers make these sweeps and keep them.
        y : array (n,) or (n, targets), or name(s)
            Targets, or the names of their columns in the frame X.
        sample_weight : array (n,) or name, optional
            How many times each row counts; weight 0 is absence.
        """
        self._validate_params()
        training, stream = open_training(self, X, y, sample_weight)
        self._single, self._target_names = training.is_single, training.target_names
        return self._fit(training, stream, as_numbers, self._outcome())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows, as if they were a minibatch of all rows seen so far.

        The first rows decide how columns are read and scaled: give a few hundred.
        """
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        training = open_rows(self, X, y, sample_weight, reset=first)
        if first:
            self._single, self._target_names = training.is_single, training.target_names
        return self._partial(training, self._outcome())

    def _outcome(self) -> Outcome:
        return StudentT() if self.noise == "student_t" else GAUSSIAN

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of each row, a mixture of Gaussians over the members.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        """
        moments, noise = self._moments(X)
        (center, scale), weights = self._fitted.target_scaling, self._fitted.member_weights
        parts = (
            center + scale * moments.mean,
            scale * np.sqrt(moments.epistemic),
            scale * np.sqrt(moments.chance + noise),
        )
        means, epistemic, rest = (part[..., 0] if self._single else part for part in parts)
        return Mixture(weights=weights, means=means, epistemic=epistemic, noise=rest)

    def _functions(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        center, scale = self._fitted.target_scaling
        draws = center + scale * self._draw_outputs(X, n_samples, rng)
        return draws[..., 0] if self._single else draws

    def _target_scaling(self, targets: Floats, weights: Floats) -> Scaling:
        if self.scale_target:
            return fit_scaling(targets, weights)
        ones = np.ones(targets.shape[1])
        return 0.0 * ones, ones

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
