"""Held-out forecasts, and what they are worth: noise and weights of the recipes.

One number makes forecasts of classes and counts as sure as held-out rows allow. Classes have
softmax(z / t) with the temperature t of least log loss, which is convex in 1/t; counts the negative
binomial (NB2), variance mu + alpha mu², with the alpha of highest likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaln, gammaln, log_softmax, softmax

from bowtienet.ensemble.ensemble import mixture_of, rates_of
from bowtienet.ensemble.portfolio import Recipe
from bowtienet.ensemble.problem import Problem
from bowtienet.ensemble.stacking import Stack, stack, stack_likelihoods
from bowtienet.networks.networks import Networks
from bowtienet.outcomes import Counts, Softmax
from bowtienet.outcomes.counts import SMALLEST_DISPERSION
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.intervals import conformal_scores
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.views import see
from bowtienet.tables.warp import forward, log_slope

Floats: TypeAlias = NDArray[np.float64]
Judged: TypeAlias = tuple[tuple[Stack, ...], Floats]
"""Stacks of the targets, and the spread of the recipes."""

LOSS_OF_WARP = 1.03
"""RMSE of a warped recipe, over that of the best plain one, above which it does not join."""


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Forecast of each recipe for each held-out row, by a network that has not seen it."""

    recipes: tuple[Recipe, ...]
    networks: tuple[Networks, ...]
    """Of each recipe, those of all folds side by side."""
    outputs: Floats
    """(R, m, D) for the m held-out rows, on the scale of the recipe."""
    stacks: tuple[Stack, ...]
    """Of each target."""
    spread: Floats
    """(R, D): noise variances, or temperatures, or dispersions of the recipes."""

    @property
    def log_density(self) -> float:
        """Mean over targets."""
        return float(np.mean([stack.log_density for stack in self.stacks]))

    @property
    def weights(self) -> Floats:
        """(R,): mean over targets."""
        return np.asarray(np.mean([stack.weights for stack in self.stacks], axis=0))


def judge(
    problem: Problem, recipes: Sequence[Recipe], networks: Sequence[Networks], outputs: Floats
) -> Forecasts:
    """Calibrate and stack what the recipes say of the held-out rows."""
    weights, targets = problem.weights[problem.held], problem.targets[problem.held]
    if isinstance(problem.outcome, Softmax):
        stacks, spread = _judge_classes(outputs, targets[:, 0].astype(int), weights)
    elif isinstance(problem.outcome, Counts):
        stacks, spread = _judge_counts(_rates(problem, outputs), targets[:, 0], weights)
    else:
        stacks, spread = _judge_numbers(problem, recipes, outputs, weights)
    recipes, networks = tuple(recipes), tuple(networks)
    return Forecasts(
        recipes=recipes, networks=networks, outputs=outputs, stacks=stacks, spread=spread
    )


def chosen(problem: Problem, forecasts: Forecasts, index: NDArray[np.intp]) -> Forecasts:
    """Those of some of the recipes."""
    if len(index) == len(forecasts.recipes):
        return forecasts
    recipes = [forecasts.recipes[i] for i in index]
    networks = [forecasts.networks[i] for i in index]
    return judge(problem, recipes, networks, forecasts.outputs[index])


def joining(problem: Problem, forecasts: Forecasts) -> NDArray[np.intp]:
    """Recipes whose means, in the user's unit, do not suffer from their warp."""
    is_warped = np.array([recipe.is_warped for recipe in forecasts.recipes])
    if not is_warped.any():
        return np.arange(len(is_warped))
    rows, scale, losses = problem.held, problem.warps[0].scale, []
    each = zip(forecasts.recipes, forecasts.outputs, forecasts.spread, strict=True)
    for recipe, said, variance in each:
        mixture = Mixture(
            weights=np.ones(1),
            means=said[None],
            epistemic=np.zeros((1, *said.shape)),
            noise=np.broadcast_to(np.sqrt(variance), (1, *said.shape)),
            warps=problem.warps,
            warp_of=(int(recipe.is_warped),),
        )
        away = np.mean(((mixture.mean() - problem.targets[rows]) / scale) ** 2, axis=1)
        losses.append(np.sqrt(np.average(away, weights=problem.weights[rows])))
    best = np.min(np.array(losses)[~is_warped])
    return np.flatnonzero(~is_warped | (np.array(losses) <= LOSS_OF_WARP * best))


def conformal_scores_of(problem: Problem, forecasts: Forecasts) -> Floats:
    """Conformal scores (m, D) of the held-out rows; (m, 0) for classes."""
    targets = problem.targets[problem.held]
    if isinstance(problem.outcome, Softmax):
        return np.zeros((len(targets), 0))
    if isinstance(problem.outcome, Counts):
        counts = CountMixture(
            weights=forecasts.weights,
            means=_rates(problem, forecasts.outputs),
            dispersion=forecasts.spread[:, 0],
        )
        return conformal_scores(counts, targets[:, 0])[:, None]
    gate_inputs, nothing = _gate_inputs(problem), np.zeros((1, 1, 1))
    distribution = mixture_of(forecasts, problem.warps, gate_inputs, forecasts.outputs, nothing)
    return conformal_scores(distribution, targets)


def _gate_inputs(problem: Problem) -> Floats:
    return see(problem.gates, problem.inputs[problem.held]).astype(np.float64)


def _rates(problem: Problem, outputs: Floats) -> Floats:
    """Expected counts (R, m)."""
    return rates_of(outputs[:, :, 0] + problem.targets[problem.held, 1:].sum(axis=1))


def _judge_numbers(
    problem: Problem, recipes: Sequence[Recipe], outputs: Floats, weights: Floats
) -> Judged:
    targets, warp_of = problem.targets[problem.held], [int(r.is_warped) for r in recipes]
    aims = [forward(warp, targets) for warp in problem.warps]
    log_slopes = [log_slope(warp, targets) for warp in problem.warps]
    errors = np.stack([aims[warp] for warp in warp_of]) - outputs
    variances = np.array([[_variance(e, weights) for e in each.T] for each in errors])
    gate_inputs, stacks = _gate_inputs(problem), []
    for d in range(errors.shape[2]):
        variance = variances[:, d, None]
        constants = np.stack([log_slopes[warp][:, d] for warp in warp_of])
        constants = constants - 0.5 * np.log(2.0 * np.pi * variance)
        squares = errors[:, :, d] ** 2 / variance
        stacks.append(stack(squares, constants, weights, gate_inputs, problem.levels))
    return tuple(stacks), variances


def _variance(errors: Floats, weights: Floats) -> float:
    """Mean square without the largest hundredth: levels have the tails."""
    squares = errors**2
    kept = squares <= np.quantile(squares, 0.99)
    # Errors of standardised targets that are smaller are rounding.
    return max(float(np.average(squares[kept], weights=weights[kept])), 1e-20)


def _judge_classes(outputs: Floats, labels: NDArray[np.integer], weights: Floats) -> Judged:
    heat = np.array([[temperature(said, labels, weights)] for said in outputs])
    chances = log_softmax(outputs / heat[:, :, None], axis=2)
    # Of smaller chances single precision says nothing.
    logs = np.maximum(chances[:, np.arange(len(labels)), labels], -50.0)
    return (stack_likelihoods(logs, weights),), heat


def _judge_counts(means: Floats, counts: Floats, weights: Floats) -> Judged:
    spread = np.array([[dispersion(each, counts, weights)] for each in means])
    logs = [
        CountMixture(weights=np.ones(1), means=mean[None], dispersion=each).logpdf(counts)
        for mean, each in zip(means, spread, strict=True)
    ]
    return (stack_likelihoods(np.stack(logs), weights),), spread


def temperature(outputs: Floats, labels: NDArray[np.integer], weights: Floats) -> float:
    """t from 0.05 to 20 that minimises Σ w (log Σ_c e^{z_c / t} - z_y / t).

    The slope by b = 1/t, Σ w (Σ_c P_c z_c - z_y), rises with b; if it is zero throughout, t is 1.

    `outputs` (n, C) are forecasts z of held-out rows, `labels` (n,) numbers of their classes. Where
    all rows are right, or wrong, the best t is at an end.
    """
    right = np.take_along_axis(outputs, labels[:, None].astype(np.intp), axis=1)
    beyond = outputs - right

    def slope(inverse: float) -> float:
        return float(weights @ np.sum(softmax(inverse * outputs, axis=1) * beyond, axis=1))

    first, last = slope(0.05), slope(20.0)
    if first == last == 0.0:
        return 1.0
    if last <= 0.0:
        return 0.05
    if first >= 0.0:
        return 20.0
    return 1.0 / float(brentq(slope, 0.05, 20.0, rtol=1e-8))


def dispersion(rates: Floats, counts: Floats, weights: Floats) -> float:
    """Alpha of highest likelihood for means mu = `rates` (n,), from 0 (Poisson) to 100.

    Counts that are all zero have no finite best one. With r = 1 / alpha it is the maximum of

        Σ w (log Γ(y + r) - log Γ(r) + y log alpha - (y + r) log(1 + alpha mu)).
    """
    positive = counts > 0.0
    y, share = counts[positive], weights[positive]
    log_gamma = gammaln(y)

    def loss(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        # By the beta function, which loses no digits where r is large.
        gain = log_gamma - betaln(1.0 / alpha, y) + y * log_alpha
        cost = (counts + 1.0 / alpha) * np.log1p(alpha * rates)
        return float(weights @ cost - share @ gain)

    low, high = math.log(SMALLEST_DISPERSION), math.log(100.0)
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    if best.fun >= weights @ rates:  # That of Poisson noise.
        return 0.0
    return 100.0 if loss(high) <= best.fun else math.exp(best.x)
