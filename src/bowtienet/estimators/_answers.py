"""What estimators share: predictions from distributions or probabilities, and saving."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from bowtienet._params import number, whole
from bowtienet.estimators._streams import by_batches
from bowtienet.prediction.mixture import Mixture

Floats = NDArray[np.float64]


class Components(NamedTuple):
    """Mean and the two parts of the standard deviation, each (n,) or (n, targets)."""

    mean: Floats
    epistemic: Floats
    """Uncertainty of the weights and disagreement of members: more rows reduce it."""
    noise: Floats
    """Noise of the targets: it remains with any number of rows."""


class Answers:
    """Predictions of numbers from `predict_dist`."""

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of each row, with `mean`, `std`, `pdf`, `cdf`, `ppf`, `rvs`."""
        raise NotImplementedError

    def _answer(self, X: Any, function: Callable[[Any], Any]) -> Any:
        """`function` of the predictive distribution; rows come first in what it returns."""
        return by_batches(X, lambda batch: function(self.predict_dist(batch)))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean, and with `return_std` the standard deviation.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        return_std : bool
            Whether to return the standard deviation as well.

        Returns
        -------
        mean : array (n,) or (n, targets)
        std : array of the same shape, with `return_std`
        """
        if return_std:
            return self._answer(X, lambda dist: (dist.mean(), dist.std()))
        return self._answer(X, lambda dist: dist.mean())

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Central intervals (n, 2), or (n, targets, 2), that hold new targets with `coverage`."""
        share = check_share(coverage)
        return np.asarray(self._answer(X, lambda dist: np.stack(dist.interval(share), axis=-1)))

    def predict_quantiles(self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles (n, m), or (n, targets, m), at m levels between 0 and 1."""
        wanted = np.atleast_1d(levels)
        return np.asarray(self._answer(X, lambda dist: np.moveaxis(dist.ppf(wanted), 0, -1)))

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic and noise standard deviation."""
        return Components(*self._answer(X, lambda dist: (dist.mean(), *dist.parts())))

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, joint: bool = False
    ) -> Floats:
        """Draws (n, n_samples), or (n, targets, n_samples).

        Parameters
        ----------
        X : table (n, columns)
            Rows.
        n_samples : int
            Draws of each row.
        random_state : int, RandomState or None
            Seed of the draws.
        joint : bool
            Draw whole functions, without the noise of the targets; by default targets are drawn,
            each row independently.
        """
        n_samples = whole(n_samples, "n_samples")
        rng = np.random.default_rng(seed_of(random_state))
        if joint:
            return np.moveaxis(self._functions(X, n_samples, rng), 0, -1)
        return np.moveaxis(self.predict_dist(X).rvs(n_samples, rng), 0, -1)

    def log_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log density of targets, minus the NLL: higher is better."""
        distribution = self.predict_dist(X)
        targets = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        logs = distribution.logpdf(targets.reshape(distribution.mean().shape))
        logs = logs.reshape(len(logs), -1).sum(axis=1)
        return float(np.average(logs, weights=sample_weight))

    def _functions(self, X: Any, n_samples: int, rng: np.random.Generator) -> Floats:
        raise NotImplementedError


def check_share(coverage: Any) -> float:
    """A coverage as a number in (0, 1)."""
    share = number(coverage, "coverage")
    if not 0.0 < share < 1.0:
        raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage!r}.")
    return share


def seed_of(random_state: Any) -> int:
    """A seed that scikit-learn's random state gives."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


class ClassAnswers:
    """Predictions of classes from `predict_proba`."""

    classes_: NDArray[Any]
    predict_proba: Callable[[Any], Floats]

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])


class Saved:
    """Saving and plotting, and what scikit-learn should know of every estimator."""

    def plot(self, X: Any, y: Any) -> Any:
        """The plots that apply, for rows that the fit did not see; needs matplotlib.

        Predicted and actual values, calibration, predictions along the columns that move them most,
        and the network of a bow tie network: `bowtienet.plotting` has each alone.

        Parameters
        ----------
        X : table (n, columns)
            Rows.
        y : array (n,) or name
            Their targets.
        """
        from bowtienet.plotting.overview import OverviewDisplay

        check_is_fitted(self)
        return OverviewDisplay.from_estimator(self, X, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file; `bowtienet.load` reads it and runs no code.

        Parameters
        ----------
        path : str or path
            The file; one that exists is replaced when the new one is complete.
        """
        from bowtienet.estimators.saving import save_estimator

        check_is_fitted(self)
        save_estimator(self, path)

    def _content(self) -> dict[str, Any]:
        """What a file holds apart from the parameters."""
        state: Any = self.__getstate__()
        # Requests of scikit-learn's metadata routing are settings, of which files know nothing.
        settings = {*self.get_params(deep=False), "_metadata_request"}  # type: ignore[attr-defined]
        return {name: value for name, value in state.items() if name not in settings}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
