"""Bayesian deep ensembles by microcanonical Langevin sampling (Sommer et al., 2025).

    log p(w | y) = Σ_n log N(y_n | m_w(x_n), d_w(x_n)²) + log N(w | 0, I) + constant,

sampled by a chain from each of a few trained networks that give a mean and a deviation.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.numpyro_network import single_precision
from bowtienet.experiments.methods.standardized import Fitted, standardized

_DOCUMENTED = {
    "n_members": 8,
    "epochs": 1000,
    "patience": 20,
    "validation_split": 0.15,
    "lr": 1e-3,
    "warmup_steps": 5000,
    "n_samples": 1000,
    "n_thinning": 20,
}
"""The regression example of the project; it keeps every draw, and scores of a mixture of so many
would take longer than the fit."""
_LEAST = 1e-6
"""What the library adds to deviations."""


def bde(hidden: tuple[int, ...], **settings: Any) -> Method:
    """Σ_k N(y | m_k(x), d_k(x)²) / K over the draws of all chains.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    **settings
        Parameters of `bde.BdeRegressor`.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        given = {"hidden_layers": list(hidden), "seed": _far_apart(seed)} | settings
        model = _regressor_class()(**_DOCUMENTED | given)
        with single_precision(), _quiet():
            model.fit(np.float32(x), np.float32(y))

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with single_precision():
                raw = np.asarray(model.predict(np.float32(new), raw=True), dtype=float)
            means, heads = raw.reshape(-1, len(new), 2).transpose(2, 0, 1)
            return means, np.logaddexp(0.0, heads) + _LEAST

        return Fitted(components)

    return standardized("bde", fit)


def _regressor_class() -> Any:
    """`BdeRegressor`, imported when it is needed: it loads JAX."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a library that it depends on
        from bde import BdeRegressor
    return BdeRegressor


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No output on the standard error: the bar of progress cannot be switched off otherwise."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


def _far_apart(seed: int) -> int:
    """A seed whose neighbours are not: members of the library have the seeds s, s + 1, ..."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
