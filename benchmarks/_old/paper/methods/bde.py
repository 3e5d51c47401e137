"""Bayesian deep ensembles by microcanonical Langevin sampling (Sommer et al., 2025).

    log p(w | y) = Σ_n log N(y_n | m_w(x_n), d_w(x_n)²) + log N(w | 0, I) + constant,

sampled by a chain from each of a few trained networks that give a mean and a deviation.
"""

from __future__ import annotations

import os
import warnings
from contextlib import redirect_stderr
from typing import Any

import numpy as np

from benchmarks._old.paper.methods.common import Components, Fit, standardized
from benchmarks._old.paper.methods.numpyro_network import single_precision

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


def bde(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """Σ_k N(y | m_k(x), d_k(x)²) / K over the draws of all chains.

    `settings` are parameters of `bde.BdeRegressor`.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a library that it depends on
            from bde import BdeRegressor
        # Members of the library have the seeds s, s + 1, ..., so those of splits must be far apart.
        start = int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
        given = {"hidden_layers": list(hidden), "seed": start} | settings
        model = BdeRegressor(**_DOCUMENTED | given)
        # Its progress bar cannot be switched off otherwise.
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), single_precision():
            model.fit(x, y)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with single_precision():
                raw = np.asarray(model.predict(new, raw=True), dtype=float)
            means, heads = raw.reshape(-1, len(new), 2).transpose(2, 0, 1)
            return means, np.logaddexp(0.0, heads) + _LEAST

        return Components(predict)

    return standardized(fit, np.float32)
