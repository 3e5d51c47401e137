"""The fitted ensemble, and from the rows of a table to the predictive distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from bowtienet.ensemble.hinges import Hinges, deviations, variances
from bowtienet.ensemble.portfolio import LINEAR, Recipe
from bowtienet.ensemble.stacking import Stack, log_gates_of
from bowtienet.networks.networks import Networks, outputs
from bowtienet.outcomes import Outcome, Softmax
from bowtienet.prediction.discrete import ClassMixture, CountMixture
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.views import View, see
from bowtienet.tables.warp import Warp, inverse

Floats = NDArray[np.float64]
SHARED = 0.5
"""Share of the members' variance that their mean still has: they see mostly the same rows, so that
it is more than one over their number (docs/measurements/portfolio.md)."""


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Members of the kept recipes, and their weights."""

    recipes: tuple[Recipe, ...]
    members: tuple[Networks, ...]
    """Networks of each recipe, which predict together."""
    views: dict[str, View]
    """Of the recipes."""
    gates: View
    """What noise levels depend on."""
    stacks: tuple[Stack, ...]
    """Of each target."""
    warps: tuple[Warp, ...]
    spread: Floats
    """(R, D): for numbers the noise variance of each recipe, less the disagreement of its members;
    for classes its temperature, for counts its dispersion."""
    outcome: Outcome
    hinges: Hinges | None
    """What rows leave open; None for classes and counts."""
    scores: Floats
    """(m, D): conformal scores of held-out rows by the stacked forecasts; (m, 0) for classes."""


def predictive(ensemble: Ensemble, inputs: Floats, log_exposure: Floats | None = None) -> Any:
    """The predictive distribution of rows of standardised columns.

    Numbers: a mixture of recipes x levels. The members of a recipe predict as one Gaussian, with
    their mean; what is epistemic is their disagreement and what rows leave open, and levels scale
    the rest. Classes and counts: a mixture of all members, each at the temperature or with the
    dispersion of its recipe.
    """
    if ensemble.outcome.has_noise:
        means, apart, left_open = moments(ensemble, inputs)
        epistemic = np.sqrt(SHARED * apart + left_open)
        return mixture_of(ensemble, ensemble.warps, see(ensemble.gates, inputs), means, epistemic)
    values = list(member_outputs(ensemble, seen_of(ensemble, inputs)))
    sizes = [len(each) for each in values]
    weights = np.repeat(ensemble.stacks[0].weights / sizes, sizes)
    spread = np.repeat(ensemble.spread[:, 0], sizes)
    said = np.concatenate(values)
    if isinstance(ensemble.outcome, Softmax):
        chances = softmax(said / spread[:, None, None], axis=2)
        return ClassMixture(weights=weights, probabilities=chances)
    offset = 0.0 if log_exposure is None else log_exposure
    means = rates_of(said[:, :, 0] + offset)
    return CountMixture(weights=weights, means=means, dispersion=spread)


def seen_of(ensemble: Ensemble, inputs: Floats) -> dict[str, NDArray]:
    """Inputs of networks by view, and of the linear recipe, from standardised columns."""
    return {LINEAR: inputs} | {name: see(view, inputs) for name, view in ensemble.views.items()}


def rates_of(logs: Floats) -> Floats:
    """Rates of counts from their logarithms, at most e^60: forecasts far outside would overflow."""
    return np.exp(np.minimum(logs, 60.0))


def member_outputs(ensemble: Ensemble, seen: dict[str, NDArray]) -> Iterator[Floats]:
    """Outputs (F, n, D) of the members of each recipe."""
    for recipe, networks in zip(ensemble.recipes, ensemble.members, strict=True):
        yield outputs(networks, seen[recipe.view]).astype(np.float64)


def mixture_of(
    said: Any, warps: tuple[Warp, ...], gate_inputs: NDArray, means: Floats, epistemic: Floats
) -> Mixture:
    """Mixture over R recipes x K levels from moments (R, n, D), of an ensemble or its forecasts."""
    stacks, rows = said.stacks, gate_inputs.astype(np.float64)
    gates = np.stack([np.exp(log_gates_of(stack, rows)).T for stack in stacks], axis=-1)
    weights = np.stack([stack.weights for stack in stacks], axis=-1)[:, None, None] * gates
    levels = np.stack([stack.levels for stack in stacks], axis=-1)
    noise = np.sqrt(said.spread[:, None] * levels)[:, :, None]
    shape = weights.shape

    def flat(values: Floats) -> Floats:
        return np.broadcast_to(values, shape).reshape(-1, *shape[2:])

    return Mixture(
        weights=flat(weights),
        means=flat(means[:, None]),
        epistemic=flat(epistemic[:, None]),
        noise=flat(noise),
        warps=warps,
        warp_of=tuple(int(recipe.is_warped) for recipe in said.recipes for _ in range(shape[1])),
    )


def moments(ensemble: Ensemble, inputs: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, variances between members and what rows leave open (R, n, D), on recipes' scales."""
    assert ensemble.hinges is not None
    seen = seen_of(ensemble, inputs)
    open_to = variances(ensemble.hinges, seen[ensemble.hinges.view])
    values = list(member_outputs(ensemble, seen))
    apart = [each.var(axis=0, ddof=min(1, len(each) - 1)) for each in values]
    left_open = [open_to[int(recipe.is_warped)] for recipe in ensemble.recipes]
    return np.stack([each.mean(axis=0) for each in values]), np.stack(apart), np.stack(left_open)


def epistemic_functions(ensemble: Ensemble, inputs: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Mean (n, D) and deviations (P, n, D) of each recipe, on its scale.

    Squares of the deviations add up to the epistemic variance, products to the covariance.
    """
    left_open, seen = None, seen_of(ensemble, inputs)
    if ensemble.hinges is not None:
        left_open = deviations(ensemble.hinges, seen[ensemble.hinges.view])
    for recipe, values in zip(ensemble.recipes, member_outputs(ensemble, seen), strict=True):
        mean = values.mean(axis=0)
        apart = (values - mean) * math.sqrt(SHARED / max(len(values) - 1, 1))
        if left_open is not None:
            apart = np.concatenate([apart, left_open[int(recipe.is_warped)]])
        yield mean, apart


def function_draws(
    ensemble: Ensemble, inputs: Floats, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Draws (draws, n, D) of functions, without noise: of numbers in the user's unit.

    A draw takes a recipe by its weight, and from its mean a random step along its deviations, so
    that functions differ as members do, and in gaps as the rows allow.
    """
    functions = list(epistemic_functions(ensemble, inputs))
    weights = np.mean([stack.weights for stack in ensemble.stacks], axis=0)
    draws = np.empty((n_draws, *functions[0][0].shape))
    chosen = rng.choice(len(functions), p=weights / weights.sum(), size=n_draws)
    for index, recipe in enumerate(chosen):
        mean, apart = functions[recipe]
        z = mean + np.tensordot(rng.standard_normal(len(apart)), apart, axes=1)
        if ensemble.warps:
            z = inverse(ensemble.warps[int(ensemble.recipes[recipe].is_warped)], z)
        draws[index] = z
    return draws


def covariance(ensemble: Ensemble, inputs: Floats) -> Floats:
    """Covariance (n, n, D) of new targets: epistemic deviations, and on the diagonal the rest."""
    variance = predictive(ensemble, inputs).std() ** 2
    n, n_targets = variance.shape
    result = np.zeros((n, n, n_targets))
    functions = []
    each = zip(ensemble.recipes, epistemic_functions(ensemble, inputs), strict=True)
    for recipe, (center, apart) in each:
        warp = ensemble.warps[int(recipe.is_warped)]
        level = inverse(warp, center)
        functions.append((level, inverse(warp, center + apart) - level))
    rows = np.arange(n)
    for d, stack in enumerate(ensemble.stacks):
        mean = sum(w * f[:, d] for w, (f, _) in zip(stack.weights, functions, strict=True))
        for weight, (level, apart) in zip(stack.weights, functions, strict=True):
            between = level[:, d] - mean
            result[:, :, d] += weight * (apart[:, :, d].T @ apart[:, :, d])
            result[:, :, d] += weight * np.outer(between, between)
        result[rows, rows, d] = np.maximum(variance[:, d], np.diagonal(result[:, :, d]))
    return result
