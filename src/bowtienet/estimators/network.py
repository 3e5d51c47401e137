"""`BowTieNetwork` and `BowTieNetworkClassifier`: the paper's method by scikit-learn's interface."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, ndtr
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from bowtienet.distributions.gated import PROBITS
from bowtienet.estimators._base import (
    Answers,
    ClassAnswers,
    Components,
    check_classes,
    classes_of,
    numbered,
)
from bowtienet.estimators._streams import Prepare, by_batches
from bowtienet.estimators._variational import VariationalNetwork
from bowtienet.model import Prior
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.outcomes import Binary, Classes, Outcome
from bowtienet.prediction.mixture import Mixture
from bowtienet.prediction.variational import PROPAGATIONS
from bowtienet.tables.door import TrainingTable, open_rows
from bowtienet.tables.sources import Stream

Floats = NDArray[np.float64]


_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
_COUNT = Interval(Integral, 1, None, closed="left")
CONSTRAINTS: dict[str, list[Any]] = {
    "hidden_layer_sizes": ["array-like", _COUNT],
    "prior": [StrOptions(set(FAMILIES)), Prior],
    "temperature": [_POSITIVE],
    "hidden_noise": [tuple, list],
    "bias_variance": [_POSITIVE, StrOptions({"intercept"})],
    "init": [StrOptions({"relu_network", "laplace", "spike_slab"})],
    "solver": [StrOptions({"cavi", "svi"})],
    "accelerate": ["boolean"],
    "n_members": [_COUNT],
    "elbo_tempering": [_NOT_NEGATIVE],
    "propagation": [StrOptions(set(PROPAGATIONS))],
    "max_iter": [_COUNT, None],
    "tol": [_NOT_NEGATIVE],
    "batch_size": [_COUNT],
    "forgetting_rate": [Interval(Real, 0.5, 1.0, closed="right"), StrOptions({"adaptive"})],
    "step_delay": [_NOT_NEGATIVE],
    "max_categories": [_COUNT],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""Constraints of the parameters that both classes have."""


class BowTieNetwork(Answers, RegressorMixin, VariationalNetwork):
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
        Coordinate ascent with all rows, or stochastic variational inference on minibatches. A
        source is read in every pass of "svi", whose memory does not grow with the rows, and in
        every sweep of "cavi", which keeps 8 bytes of each row, hidden unit and member; with a Dask
        client its workers make these sweeps and keep them.
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
        **CONSTRAINTS,
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.temperature = temperature
        self.hidden_noise = hidden_noise
        self.output_noise = output_noise
        self.bias_variance = bias_variance
        self.noise = noise
        self.scale_target = scale_target
        self.init = init
        self.solver = solver
        self.accelerate = accelerate
        self.n_members = n_members
        self.elbo_tempering = elbo_tempering
        self.propagation = propagation
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.forgetting_rate = forgetting_rate
        self.step_delay = step_delay
        self.max_categories = max_categories
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows, as if they were a minibatch of all rows seen so far.

        The first rows decide how columns are read and scaled: give a few hundred.
        """
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        rows = open_rows(self, X, y, sample_weight, reset=first)
        return self._partial(rows, *self._targets(rows, None))

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of each row, a mixture of Gaussians over the members."""
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
        return center + scale * self._draw_outputs(X, n_samples, rng)


class BowTieNetworkClassifier(ClassAnswers, ClassifierMixin, VariationalNetwork):
    """Variational Bayesian bow tie network with shrinkage, for two or more classes.

    Not in the paper: Polya-Gamma variables make the logistic likelihood of two classes, and the
    logistic softmax of several, conjugate as they do for the gates.

    Parameters
    ----------
    hidden_layer_sizes, prior, temperature, hidden_noise, bias_variance, init, solver, \
    accelerate, n_members, elbo_tempering, propagation, max_iter, tol, batch_size, \
    forgetting_rate, step_delay, max_categories, random_state, verbose :
        As for `BowTieNetwork`.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    elbo_history_, elbo_terms_, converged_, n_iter_, kept_columns_ :
        As for `BowTieNetwork`.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieNetworkClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(150, 2))
    >>> model = BowTieNetworkClassifier((10,), random_state=0).fit(X, X[:, 0] * X[:, 1] > 0.0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints = CONSTRAINTS

    def __init__(
        self,
        hidden_layer_sizes: Any = (50,),
        *,
        prior: str | Prior = "student_t",
        temperature: float = 0.01,
        hidden_noise: Any = (2.0, 1e-4),
        bias_variance: Any = 1.0,
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.temperature = temperature
        self.hidden_noise = hidden_noise
        self.bias_variance = bias_variance
        self.init = init
        self.solver = solver
        self.accelerate = accelerate
        self.n_members = n_members
        self.elbo_tempering = elbo_tempering
        self.propagation = propagation
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.forgetting_rate = forgetting_rate
        self.step_delay = step_delay
        self.max_categories = max_categories
        self.random_state = random_state
        self.verbose = verbose

    def _targets(self, rows: TrainingTable, stream: Stream | None) -> tuple[Outcome, Prepare]:
        return self._of_classes(rows, classes_of(rows, stream)[0])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows; the first call needs all classes or has them all."""
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        rows = open_rows(self, X, y, sample_weight, labels=True, reset=first)
        if not first:
            classes = self.classes_
        elif classes is None:
            classes = rows.targets
        return self._partial(rows, *self._of_classes(rows, np.unique(classes)))

    def _of_classes(self, rows: TrainingTable, classes: NDArray[Any]) -> tuple[Outcome, Prepare]:
        check_classes(rows, classes)
        self.classes_, size = classes, len(classes)
        outcome = Binary() if size == 2 else Classes(n_classes=size)
        return outcome, partial(numbered, classes, np.ones(size))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, classes) for a table: means over q and the members."""
        return np.asarray(by_batches(X, self._probabilities))

    def predict_components(self, X: Any) -> Components:
        """Probabilities, and their entropy in nats: epistemic (weights, members) and noise.

        The noise is the mean entropy over 50 draws of what the weights leave open.
        """
        return Components(*by_batches(X, self._components))

    def _components(self, X: Any) -> tuple[Floats, Floats, Floats]:
        moments, _ = self._moments(X)
        deviation, mean = np.sqrt(moments.epistemic), self._probabilities(X)
        half = np.random.default_rng(0).standard_normal((25, deviation.shape[-1]))
        noise = np.zeros(len(mean))
        for draw in (*half, *-half):
            each = self._by_member(moments.mean + draw * deviation, moments.chance)
            noise += self._fitted.member_weights @ entr(each).sum(axis=-1) / (2.0 * len(half))
        total = entr(mean).sum(axis=1)
        noise = np.minimum(noise, total)
        return mean, total - noise, noise

    def _probabilities(self, X: Any) -> Floats:
        moments, _ = self._moments(X)
        each = self._by_member(moments.mean, moments.epistemic + moments.chance)
        return np.asarray(np.tensordot(self._fitted.member_weights, each, axes=1))

    def _by_member(self, mean: Floats, variance: Floats) -> Floats:
        """Probabilities (M, n, classes) by moments of the outputs."""
        if len(self.classes_) > 2:
            return _mean_logistic_softmax(mean, variance)
        second = _mean_sigmoid(mean[..., 0], variance[..., 0])
        return np.stack([1.0 - second, second], axis=-1)


def _mean_sigmoid(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z)] for z ~ N(mean, variance), by the mixture of probits of `gated`."""
    scaled = (
        weight * ndtr(slope * mean / np.sqrt(1.0 + slope**2 * variance))
        for weight, slope in PROBITS
    )
    return np.asarray(sum(scaled))


def _mean_logistic_softmax(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z_c) / Σ sigmoid(z_j)] over independent outputs, to first order in the sum.

    With s_j = sigmoid(z_j) it is near E[s_c] / Σ E[s_j]; means of s are by quadrature.
    """
    deviation = np.sqrt(variance)
    roots, weights = np.polynomial.hermite_e.hermegauss(20)
    expected = sum(
        weight / weights.sum() * expit(mean + root * deviation)
        for root, weight in zip(roots, weights, strict=True)
    )
    return np.asarray(expected / np.sum(expected, axis=-1, keepdims=True))
