"""Parameters that both bow tie networks have, and the paper's settings of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from bowtienet.model import Prior
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.prediction.variational import PROPAGATIONS

_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
IN_PAPER: dict[str, Any] = {
    "hidden_layer_sizes": (50,),
    "prior": "student_t",
    "temperature": 0.1,
    "hidden_noise": (2.0, 1e-4),
    "bias_variance": "intercept",
    "init": "laplace",
    "solver": "cavi",
    "accelerate": False,
    "n_members": 1,
    "elbo_tempering": 0.01,
    "propagation": "variational",
    "max_iter": 200,
}
"""The paper's settings; `BowTieNetwork.as_in_paper` says where each of them stands."""


class NetworkParameters:
    """Keeps the parameters as they were given; `BowTieNetwork` explains them."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "hidden_layer_sizes": ["array-like", _COUNT],
        "prior": [StrOptions(set(FAMILIES)), Prior],
        "temperature": [_POSITIVE],
        "hidden_noise": [tuple, list],
        "bias_variance": [_POSITIVE, StrOptions({"intercept"})],
        "init": [StrOptions({"relu_network", "laplace", "spike_slab"})],
        "solver": [StrOptions({"cavi", "svi"})],
        "accelerate": ["boolean"],
        "n_members": [_COUNT],
        "elbo_tempering": [Interval(Real, 0.0, None, closed="left")],
        "propagation": [StrOptions(set(PROPAGATIONS))],
        "max_iter": [_COUNT, None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "batch_size": [_COUNT],
        "forgetting_rate": [Interval(Real, 0.5, 1.0, closed="right"), StrOptions({"adaptive"})],
        "step_delay": [Interval(Real, 0.0, None, closed="left")],
        "max_categories": [_COUNT],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    get_params: Any

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
