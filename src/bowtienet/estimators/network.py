"""`BowTieNetwork`: the paper's method behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from bowtienet.estimators._base import Answers
from bowtienet.estimators._variational import VariationalNetwork
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.door import open_rows

Floats = NDArray[np.float64]


class BowTieNetwork(Answers, RegressorMixin, VariationalNetwork):
    """Variational Bayesian bow tie network with shrinkage, for one or several numbers.

    The method of Sheinkman and Wade: stochastic gates in place of rectified linear units make every
    conditional distribution a known one (with Polya-Gamma variables), so that the posterior of all
    layers is fitted by closed-form coordinate ascent of a complete evidence lower bound.
    Global-local shrinkage priors pull weights that are not needed to zero.

    The defaults predict best inside the paper's family: networks start from ReLU networks whose
    penalty is chosen by cross-validation, and a few sweeps turn them into posteriors. `as_in_paper`
    has the paper's settings.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
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

    output_noise: Any = None
    noise: str = "gaussian"
    scale_target: bool = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **VariationalNetwork._parameter_constraints,
        "output_noise": [tuple, list, None],
        "noise": [StrOptions({"gaussian", "student_t"})],
        "scale_target": ["boolean"],
    }

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows, as if they were a minibatch of all rows seen so far.

        The first rows decide how columns are read and scaled: give a few hundred.
        """
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        rows = open_rows(self, X, y, sample_weight, reset=first)
        return self._partial(rows, *self._targets(rows, None))

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of each row, a mixture of Gaussians over the members.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        """
        moments, noise = self._moments(X)
        scaling, weights = self._fitted.target_scaling, self._fitted.member_weights
        parts = (
            scaling.center + scaling.scale * moments.mean,
            scaling.scale * np.sqrt(moments.epistemic),
            scaling.scale * np.sqrt(moments.chance + noise),
        )
        means, epistemic, rest = (part[..., 0] if self._single else part for part in parts)
        return Mixture(weights=weights, means=means, epistemic=epistemic, noise=rest)

    def _functions(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        scaling = self._fitted.target_scaling
        return scaling.center + scaling.scale * self._draw_outputs(X, n_samples, rng)
