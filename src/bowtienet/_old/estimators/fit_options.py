"""`FitOptions`: what few people touch of a fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from bowtienet._old.inference.start import INITS
from bowtienet._old.prediction.predictive import PROPAGATIONS


class FitOptions(BaseEstimator):
    """What few people touch of a fit; the defaults are meant for everybody.

    ``BowTieRegressor(options=FitOptions(weighting="equal"))``; in a search
    ``options__gate_temperature`` if the estimator was given options.

    Parameters
    ----------
    weighting : {"stacking", "elbo", "equal"}, default="stacking"
        Where ensemble weights come from: the densities that recipes give to held-out rows, the
        evidence bound of members, or equal weights. With "stacking" every row is held out once;
        the networks of the folds go on with all rows and are the members, and levels of noise match
        held-out errors. The other two choose one recipe by held-out rows and fit each member by
        itself, to convergence or `max_iter`, with the variances of its posterior.
    elbo_tempering : float, default=0.01
        For "elbo": weights are softmax(elbo_tempering * bound). Towards 0 all count alike.
    gate_temperature : float or "auto", default="auto"
        Softness of the gates, 1e-9 to 1e6; towards 0 units become rectified linear. "auto" is
        0.001. Higher values (0.01 to 0.1) suit long fits whose structure is the question.
    init : {"relu_network", "laplace", "spike_slab"}, default="relu_network"
        Where a posterior starts: at an ordinary network, or several small ones side by side as
        held-out rows choose, or at random. The first predicts better and needs few sweeps; the
        others are the paper's, and take up to `max_iter` sweeps.
    init_penalty : float or "auto", default="auto"
        Ridge penalty of the networks, for standardised targets. Larger is smoother: for few or
        noisy rows. "auto" lets held-out rows choose among those of the `effort`.
    propagation : {"push_forward", "variational"}, default="push_forward"
        How uncertainty is propagated to predictions: by pushing the weights' distribution through
        the network, or by the paper's iteration. Takes effect with the next fit.
    tol : float, default=1e-5
        A fit that runs to convergence stops when the relative change of its bound is below this
        three times in a row; for "svi" the change between means over many steps, or if it is below
        their noise. Of no effect where held-out rows choose the length.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch for "svi"; networks have their own.
    forgetting_rate, step_delay : float, default=0.7, 1.0
        Steps of "svi" with batches of 1,000 rows or more are whole while the bound rises; then, and
        with smaller batches from the first on, they shrink as (t + step_delay) ** -forgetting_rate,
        the rate in (0.5, 1]. Higher remembers batches longer.
    max_categories : int, default=100
        Most values that a column of texts may have; more are refused, since they are seldom
        categories.
    degrees_of_freedom : float or "auto", default="auto"
        Of ``outcome="student_t"``: the fewer, the heavier the tails. "auto" finds them by EM.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "weighting": [StrOptions({"stacking", "elbo", "equal"})],
        "elbo_tempering": [Interval(Real, 0, None, closed="left")],
        "gate_temperature": [Interval(Real, 1e-9, 1e6, closed="both"), StrOptions({"auto"})],
        "init": [StrOptions(set(INITS))],
        "init_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "propagation": [StrOptions(set(PROPAGATIONS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "forgetting_rate": [Interval(Real, 0.5, 1, closed="right")],
        "step_delay": [Interval(Real, 0, None, closed="left")],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "degrees_of_freedom": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        weighting: str = "stacking",
        elbo_tempering: float = 0.01,
        gate_temperature: float | str = "auto",
        init: str = "relu_network",
        init_penalty: float | str = "auto",
        propagation: str = "push_forward",
        tol: float = 1e-5,
        batch_size: int | str = "auto",
        forgetting_rate: float = 0.7,
        step_delay: float = 1.0,
        max_categories: int = 100,
        degrees_of_freedom: float | str = "auto",
    ) -> None:
        self.weighting = weighting
        self.elbo_tempering = elbo_tempering
        self.gate_temperature = gate_temperature
        self.init = init
        self.init_penalty = init_penalty
        self.propagation = propagation
        self.tol = tol
        self.batch_size = batch_size
        self.forgetting_rate = forgetting_rate
        self.step_delay = step_delay
        self.max_categories = max_categories
        self.degrees_of_freedom = degrees_of_freedom
