"""Posterior draws in the form that ArviZ reads."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.pruning import restore_shape
from bowtienet._old.prediction.sampling import sample_parameters
from bowtienet._old.representation.representation import input_names, network_inputs


def to_arviz(ensemble: Ensemble, draws: int, rng: np.random.Generator) -> Any:
    """`draws` draws from the mixture of the members' posteriors, as one chain."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ announces its own future when it is imported
            arviz = importlib.import_module("arviz")
    except ImportError as error:
        raise ImportError(
            "to_arviz needs ArviZ: install it with pip install 'bowtienet[arviz]'."
        ) from error
    # Members without hidden layers have other arrays: those of the others are drawn, if there are.
    depth = np.array([len(member.factors.layers) for member in ensemble.members])
    shares = np.where(depth == depth.max(), ensemble.weights, 0.0)
    chosen = rng.choice(len(ensemble.members), size=draws, p=shares / shares.sum())
    sampled = [_draw(ensemble.members[index], rng) for index in chosen]
    names, places = _inputs(ensemble)
    posterior: dict[str, np.ndarray] = {"member": chosen[None, :]}
    dims: dict[str, list[str]] = {}
    for layer in range(len(sampled[0][0])):
        found = [draw[layer] for draw, _ in sampled]
        if layer == 0:
            found = [
                _spread(weights, places[index], len(names))
                for weights, index in zip(found, chosen, strict=True)
            ]
        weights = np.stack(found)
        number, unit = layer + 1, f"unit_{layer + 1}"
        posterior[f"weights_{number}"] = weights[None]
        noise = np.stack([draw[layer] for _, draw in sampled])
        posterior[f"noise_variance_{number}"] = noise[None]
        dims[f"weights_{number}"] = [unit, "input" if layer == 0 else f"input_{number}"]
        dims[f"noise_variance_{number}"] = [unit]
    coords = {"input": ["bias", *names]}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, coords=coords, dims=dims)
    return arviz.from_dict(posterior=posterior, coords=coords, dims=dims)


def _inputs(ensemble: Ensemble) -> tuple[list[str], list[np.ndarray]]:
    """Names of all inputs of all members by the user's columns, and the places of each one's."""
    representation = ensemble.representation
    owner: dict[str, int] = {}
    of_views = []
    for view in representation.views:
        of_views.append(input_names(representation, view))
        places = network_inputs(representation, view).tolist()
        owner |= dict(zip(of_views[-1], places, strict=True))
    names = sorted(owner, key=owner.__getitem__)
    place = {name: index for index, name in enumerate(names)}
    by_view = [np.array([place[name] for name in found]) for found in of_views]
    return names, [by_view[view] for view in ensemble.views]


def _spread(weights: np.ndarray, places: np.ndarray, n_inputs: int) -> np.ndarray:
    """Weights (units, 1 + n_inputs) with those of a network at its inputs, and zero elsewhere."""
    found = np.zeros((len(weights), 1 + n_inputs))
    found[:, 0], found[:, 1 + places] = weights[:, 0], weights[:, 1:]
    return found


def _draw(member: FitResult, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights and noise variances (D,) of all units; those of a unit that was pruned are zero."""
    drawn = sample_parameters(member.factors, rng)
    noise = list(drawn.noise_variance)
    if member.pruning is not None:
        hidden = member.pruning.architecture.hidden
        full = [np.zeros(width) for width in hidden]
        for values, places, found in zip(full, member.pruning.units, noise[:-1], strict=False):
            values[places] = found
        noise = [*full, noise[-1]]
    return restore_shape(drawn.weights, member.pruning), noise
