"""Noise and weights of the recipes, from held-out forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from bowtienet.ensemble.calibration import dispersion, temperature
from bowtienet.ensemble.ensemble import mixture_of
from bowtienet.ensemble.forecasts import Forecasts
from bowtienet.ensemble.problem import Problem, goals
from bowtienet.ensemble.stacking import Stack, stack, stack_likelihoods
from bowtienet.outcomes import Counts, Softmax
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.intervals import conformal_scores
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.views import see
from bowtienet.tables.warp import log_slope

Floats = NDArray[np.float64]

LOSS_OF_WARP = 1.03
"""RMSE of a warped recipe, over that of the best plain one, above which it does not join."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What forecasts are worth."""

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


def judge(problem: Problem, forecasts: Forecasts) -> Judgement:
    """Calibrate and stack."""
    if isinstance(problem.outcome, Softmax):
        return _judge_classes(problem, forecasts)
    if isinstance(problem.outcome, Counts):
        return _judge_counts(problem, forecasts)
    rows = problem.held
    weights = problem.weights[rows]
    errors = _errors(problem, forecasts)
    variances = np.array([[_variance(e, weights) for e in each.T] for each in errors])
    gate_inputs, stacks = _gate_inputs(problem), []
    for d in range(errors.shape[2]):
        variance = variances[:, d, None]
        constants = _log_slopes(problem, forecasts, d) - 0.5 * np.log(2.0 * np.pi * variance)
        squares = errors[:, :, d] ** 2 / variance
        stacks.append(stack(squares, constants, weights, gate_inputs, problem.n_levels))
    return Judgement(stacks=tuple(stacks), spread=variances)


def joining(problem: Problem, forecasts: Forecasts) -> NDArray[np.intp]:
    """Recipes whose means, in the user's unit, do not suffer from their warp."""
    is_warped = np.array([recipe.is_warped for recipe in forecasts.recipes])
    if not is_warped.any():
        return np.arange(len(is_warped))
    rows = problem.held
    weights = problem.weights[rows]
    variances = [[_variance(e, weights) for e in each.T] for each in _errors(problem, forecasts)]
    scale = problem.warps[0].scale
    losses = []
    for recipe, said, variance in zip(forecasts.recipes, forecasts.outputs, variances, strict=True):
        mixture = Mixture(
            weights=np.ones(1),
            means=said[None],
            epistemic=np.zeros((1, *said.shape)),
            noise=np.broadcast_to(np.sqrt(variance), (1, *said.shape)),
            warps=problem.warps,
            warp_of=(int(recipe.is_warped),),
        )
        away = (mixture.mean() - problem.targets[rows]) / scale
        losses.append(np.sqrt(np.average(np.mean(away**2, axis=1), weights=weights)))
    best = np.min(np.array(losses)[~is_warped])
    return np.flatnonzero(~is_warped | (np.array(losses) <= LOSS_OF_WARP * best))


def conformal_scores_of(problem: Problem, forecasts: Forecasts, judgement: Judgement) -> Floats:
    """Conformal scores (m, D) of the held-out rows; (m, 0) for classes."""
    rows = problem.held
    if isinstance(problem.outcome, Softmax):
        return np.zeros((len(rows), 0))
    if isinstance(problem.outcome, Counts):
        counts = CountMixture(
            weights=judgement.stacks[0].weights,
            means=_rates(problem, forecasts),
            dispersion=judgement.spread[:, 0],
        )
        return conformal_scores(counts, problem.targets[rows, 0])[:, None]
    distribution = mixture_of(
        forecasts.outputs,
        np.zeros((1, 1, 1)),
        judgement.spread,
        judgement.stacks,
        _gate_inputs(problem),
        problem.warps,
        [recipe.is_warped for recipe in forecasts.recipes],
    )
    return conformal_scores(distribution, problem.targets[rows])


def _gate_inputs(problem: Problem) -> Floats:
    return see(problem.gates, problem.inputs[problem.held]).astype(np.float64)


def _errors(problem: Problem, forecasts: Forecasts) -> Floats:
    """Errors (R, m, D), each on the scale of its recipe."""
    known = [goals(problem, bool(w))[problem.held] for w in range(len(problem.warps))]
    aims = np.stack([known[int(recipe.is_warped)] for recipe in forecasts.recipes])
    return aims - forecasts.outputs


def _log_slopes(problem: Problem, forecasts: Forecasts, d: int) -> Floats:
    """log g' (R, m)."""
    targets = problem.targets[problem.held]
    each = [log_slope(warp, targets)[:, d] for warp in problem.warps]
    return np.stack([each[int(recipe.is_warped)] for recipe in forecasts.recipes])


def _variance(errors: Floats, weights: Floats) -> float:
    """Mean square without the largest hundredth: levels have the tails."""
    squares = errors**2
    kept = squares <= np.quantile(squares, 0.99)
    # Errors of standardised targets that are smaller are rounding.
    return max(float(np.average(squares[kept], weights=weights[kept])), 1e-20)


def _judge_classes(problem: Problem, forecasts: Forecasts) -> Judgement:
    rows = problem.held
    labels, weights = problem.targets[rows, 0].astype(int), problem.weights[rows]
    heat = np.array([[temperature(said, labels, weights)] for said in forecasts.outputs])
    chances = log_softmax(forecasts.outputs / heat[:, :, None], axis=2)
    # Of smaller chances single precision says nothing.
    logs = np.maximum(chances[:, np.arange(len(rows)), labels], -50.0)
    return Judgement(stacks=(stack_likelihoods(logs, weights),), spread=heat)


def _judge_counts(problem: Problem, forecasts: Forecasts) -> Judgement:
    rows = problem.held
    counts, weights = problem.targets[rows, 0], problem.weights[rows]
    means = _rates(problem, forecasts)
    spread = np.array([[dispersion(each, counts, weights)] for each in means])
    logs = np.stack(
        [
            CountMixture(weights=np.ones(1), means=mean[None], dispersion=each).logpdf(counts)
            for mean, each in zip(means, spread, strict=True)
        ]
    )
    return Judgement(stacks=(stack_likelihoods(logs, weights),), spread=spread)


def _rates(problem: Problem, forecasts: Forecasts) -> Floats:
    """Expected counts (R, m)."""
    offset = problem.targets[problem.held, 1:].sum(axis=1)
    return np.exp(forecasts.outputs[:, :, 0] + offset)
