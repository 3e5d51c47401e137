"""Posterior draws in the form that ArviZ reads."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from bowtienet._validation import whole
from bowtienet.estimators.predicting import generator
from bowtienet.prediction.sampling import sample_parameters


def to_arviz(estimator: Any, draws: int, random_state: Any) -> Any:
    """`draws` draws from the mixture of the members' posteriors, as one chain."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ announces its own future when it is imported
            arviz = importlib.import_module("arviz")
    except ImportError as error:
        raise ImportError(
            "to_arviz needs ArviZ: install it with pip install 'bowtienet[arviz]'."
        ) from error
    draws = whole(draws, "draws")
    ensemble, rng = estimator.ensemble_, generator(random_state)
    chosen = rng.choice(len(ensemble.members), size=draws, p=ensemble.weights)
    sampled = [sample_parameters(ensemble.members[index].factors, rng) for index in chosen]
    # Networks see the columns in an order of their own; users know them by theirs.
    places = np.concatenate([[0], 1 + np.argsort(ensemble.column_order)])
    posterior: dict[str, np.ndarray] = {"member": chosen[None, :]}
    dims: dict[str, list[str]] = {}
    for layer in range(len(sampled[0].weights)):
        weights = np.stack([draw.weights[layer] for draw in sampled])
        weights = weights[:, :, places] if layer == 0 else weights
        number, unit = layer + 1, f"unit_{layer + 1}"
        posterior[f"weights_{number}"] = weights[None]
        posterior[f"noise_variance_{number}"] = np.stack(
            [draw.noise_variance[layer] for draw in sampled]
        )[None]
        dims[f"weights_{number}"] = [unit, "input" if layer == 0 else f"input_{number}"]
        dims[f"noise_variance_{number}"] = [unit]
    names = getattr(estimator, "feature_names_in_", None)
    names = [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else list(names)
    coords = {"input": ["bias", *names]}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, coords=coords, dims=dims)
    return arviz.from_dict(posterior=posterior, coords=coords, dims=dims)
