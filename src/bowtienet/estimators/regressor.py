"""`BowTieRegressor`: calibrated prediction of numbers from tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from bowtienet.ensemble.ensemble import covariance
from bowtienet.estimators._base import Answers
from bowtienet.estimators._ensemble import CONSTRAINTS, Practical
from bowtienet.prediction.mixture import Mixture

Floats = NDArray[np.float64]


class BowTieRegressor(Answers, RegressorMixin, Practical):
    """Calibrated prediction of one or several numbers from a table, without tuning.

    A stacked ensemble of penalised ReLU networks, which are bow tie networks at temperature zero,
    and a linear function. Recipes, ensemble weights and noise that depends on the features are
    chosen by cross-validation. It is penalised maximum likelihood with closed-form local scales;
    variational inference of all layers is `BowTieNetwork`.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or "auto"
        Widths of the hidden layers; "auto" is one layer of 50 units, two from 1,000 rows
        on, wider ones from 5,000 rows on and with `effort="best"`.
    prior : str
        Prior of the local scales of columns and of the linear recipe, by name as for
        `BowTieNetwork`; "gaussian" has no local scales.
    effort : {"fast", "balanced", "best"}
        Largest number of rounds of further training, each twice as long as the one before: 0, 2
        or 4. Rounds end when the validation score stops rising.
    encoding : {"auto", "standard", "piecewise", "principal"}
        Encoding of the columns for the networks; "auto" tries standardised columns and piecewise
        linear ones (principal directions with more than 128 columns).
    target_transform : {"auto", "none"}
        Whether recipes with Yeo-Johnson transformed targets are tried.
    noise : {"auto", "constant", "student_t"}
        "auto" has noise levels that depend on the features; "student_t" is robust to outliers.
    max_categories : int
        Largest number of levels of a category with a column each.
    n_jobs : int, optional
        Threads; -1 for all cores.
    random_state : int, RandomState or None
        Source of all randomness.
    verbose : int or bool
        Show progress and the time left.

    Attributes
    ----------
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet.estimators.regressor import BowTieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(150, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=150)
    >>> model = BowTieRegressor(effort="fast", random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> bool(np.all(np.abs(mean - np.sin(2.0 * X[:3, 0])) < 0.3))
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        **CONSTRAINTS,
        "target_transform": [StrOptions({"auto", "none"})],
        "noise": [StrOptions({"auto", "constant", "student_t"})],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        prior: str = "student_t",
        effort: str = "balanced",
        encoding: str = "auto",
        target_transform: str = "auto",
        noise: str = "auto",
        max_categories: int = 30,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.effort = effort
        self.encoding = encoding
        self.target_transform = target_transform
        self.noise = noise
        self.max_categories = max_categories
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of each row, a mixture over recipes and noise levels."""
        mixture: Mixture = self._predictive(*self._open(X))
        return mixture

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predictive mean, with the standard deviation or the covariance of the rows.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        return_std : bool
            Whether to return the standard deviation as well.
        return_cov : bool
            Whether to return the covariance (n, n), or (n, n, targets), of new targets as well.
        """
        if return_std and return_cov:
            raise ValueError("give return_std or return_cov, not both.")
        if not return_cov:
            return super().predict(X, return_std)
        between = covariance(self._fitted.ensemble, self._inputs(X))
        return super().predict(X), between[..., 0] if self._single else between

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "central", calibration: Any = None
    ) -> Floats:
        """Intervals (n, 2), or (n, targets, 2), that hold new targets with `coverage`.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        coverage : float in (0, 1)
            Share of new targets inside the intervals.
        method : {"central", "conformal"}
            Quantiles of the predictive distribution, or quantiles at levels that covered the stated
            share of held-out rows.
        calibration : (X, y), optional
            Rows that the fit has not seen. Conformal intervals then cover the stated share of
            exchangeable rows whatever the model; without them held-out rows of the fit are used.
        """
        return self._interval(X, coverage, method, calibration)
