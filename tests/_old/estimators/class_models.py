"""Small classifiers, rows with labels of planted probabilities, and labels of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from bowtienet._old import BowTieClassifier, FitOptions

OPTIONS = set(FitOptions().get_params())
WORDS = np.array(["ash", "elm", "oak"])


def small(**changes: Any) -> BowTieClassifier:
    """Two members of four units, fitted in 100 ms; changes of parameters and of options."""
    settings: dict[str, Any] = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 2}
    settings |= {"random_state": 0, "weighting": "equal", "init_penalty": 1.0, "effort": "fast"}
    settings |= changes
    options = FitOptions(**{name: settings.pop(name) for name in OPTIONS & settings.keys()})
    return BowTieClassifier(**settings, options=options)


def stacked(**changes: Any) -> BowTieClassifier:
    """Members that held-out rows weigh and calibrate, of one penalty."""
    return small(**({"weighting": "stacking"} | changes))


def features(n: int, seed: int = 500, n_columns: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n, n_columns))


def planted(X: np.ndarray) -> np.ndarray:
    """Probabilities (n, 3): the first column has a bend, the second a slope, others nothing."""
    return softmax(np.stack([2.0 * np.abs(X[:, 0]), 2.0 * X[:, 1], 1.0 + 0.0 * X[:, 0]], 1), axis=1)


def draw_codes(probabilities: np.ndarray, seed: int = 501) -> np.ndarray:
    """Numbers of classes (n,) with these probabilities (n, C)."""
    uniform = np.random.default_rng(seed).random((len(probabilities), 1))
    return np.minimum((uniform > np.cumsum(probabilities, axis=1)).sum(axis=1), 2)


def rows(n: int = 90, seed: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Three columns and labels in words."""
    X = features(n, seed)
    return X, WORDS[draw_codes(planted(X), seed + 1)]
