"""One smaller network in place of an ensemble, estimated anew, and how much it loses.

The recipe is chosen as in a fit. With the same rows and seed it is that of the fit, and the single
network that loses weights is the member of an ensemble of one:

    rows      -> recipe, networks of its folds and of all rows
    networks  -> fewer columns, units and weights (`smaller_networks`)
    these     -> posteriors on the weights that are left, out-of-fold means and variances
    forecasts -> ratio of variances, levels of noise, so that intervals are honest
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from bowtienet._old._arrays import like, to_numpy
from bowtienet._old.data.canonical import take_columns
from bowtienet._old.data.rows import Rows, take_rows
from bowtienet._old.distributions.yeo_johnson import moments
from bowtienet._old.ensemble.cross_fit import REPEATS, runner
from bowtienet._old.ensemble.cross_fitted_scores import cross_fitted_scores
from bowtienet._old.ensemble.ensemble import Ensemble, Floats
from bowtienet._old.ensemble.fold_networks import (
    Candidate,
    SeenRows,
    further_networks,
    held_out_folds,
    on_host,
    part,
    see,
    stack,
    without,
)
from bowtienet._old.ensemble.held_out_forecasts import Noise, Swept, forecast, judged, stack_forecasts
from bowtienet._old.ensemble.member import recipe_model
from bowtienet._old.ensemble.recipes import choose_recipes, possible_recipes, possible_views
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.ensemble.slopes import fit_outside
from bowtienet._old.ensemble.smaller_networks import Stage, Trial, shrink_networks, whole_stage
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.pruning import Pruning
from bowtienet._old.inference.start import Networks, factors_of_network
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.initialize import join_networks
from bowtienet._old.prediction.conformal import HeldOut
from bowtienet._old.prediction.cross_fitted import CrossFitted
from bowtienet._old.prediction.levels import Levels, gate_inputs, log_gates
from bowtienet._old.representation.background import keep_rows
from bowtienet._old.representation.representation import PLAIN, View, input_owners

N_SWEEPS = 1
"""Of coordinate ascent, which make a posterior of a network."""
MOST_ROWS = 10_000
"""Rows that a network is pruned by."""


@dataclass(frozen=True, kw_only=True)
class HeldOutScores:
    """Of rows that no network was fitted to, in the user's unit, averaged over targets."""

    rmse: float
    nll: float


@dataclass(frozen=True, kw_only=True)
class PrunedEnsemble:
    """One smaller network, and how the single network that it comes from compares."""

    ensemble: Ensemble
    columns: np.ndarray
    """The user's columns that are left, by booleans."""
    before: HeldOutScores
    """Of the single network of the same recipe, before anything went."""
    after: HeldOutScores
    seconds: float


@dataclass(frozen=True, kw_only=True)
class _Posterior:
    """A stage with its posteriors, and what held-out rows say of them."""

    member: FitResult
    ratio: Floats
    levels: Levels | None
    held_out: HeldOut
    scores: HeldOutScores
    cross_fitted: CrossFitted | None
    columns: np.ndarray
    """The user's columns that the member has weights of, by booleans."""


@dataclass(frozen=True, kw_only=True)
class _EncodedColumns:
    """Standardised columns of the rows, which gates of the noise may see."""

    inputs: Floats
    owners: np.ndarray
    """The user's column that each belongs to."""
    count: int
    """The user's columns, those that nothing becomes of included."""
    apart: bool
    """Whether networks see them one by one, and not by components of all."""


def prune_ensemble(
    ensemble: Ensemble, rows: Rows, settings: Settings, tolerance: float, seed: int
) -> PrunedEnsemble:
    """One smaller network, for standardised rows.

    It is the smallest of those whose held-out rows lose no more than the tolerance against the
    single network that it comes from.
    """
    begin = time.perf_counter()
    rng = np.random.default_rng(seed)
    # Before the rows are put into random order, as in a fit: long training makes of a sum that
    # rounds otherwise another network, and perhaps another recipe.
    views, folds = possible_views(rows, settings), held_out_folds(rows.inputs.shape[0])
    rows = on_host(take_rows(rows, rng.permutation(rows.inputs.shape[0])))
    with one_blas_thread():
        candidate, seen, networks = _fold_networks(rows, views, folds, settings, rng)
        view = views[candidate.recipe.view]
        representation = replace(ensemble.representation, views=(view,))
        owners = input_owners(representation, view)
        trial = Trial(
            recipe=candidate.recipe,
            seen=seen,
            folds=folds,
            owners=np.arange(seen.rows.inputs.shape[1]) if view.principal is not None else owners,
            targets=np.asarray(rows.targets),
            warp=view.warp,
        )
        stages = shrink_networks(trial, whole_stage(trial, networks), tolerance)
        unit = np.asarray(to_numpy(representation.target_scaling.scale), dtype=np.float64)
        columns = _EncodedColumns(
            inputs=np.asarray(rows.inputs),
            owners=input_owners(representation, PLAIN),
            count=len(representation.columns),
            apart=view.principal is None,
        )
        before = _posterior(trial, stages[0], columns, unit, settings)
        after = before
        for stage in reversed(stages[1:]):
            after = _posterior(trial, stage, columns, unit, settings)
            if _is_as_exact(before.scores, after.scores, tolerance):
                break
        else:
            after = before
    smaller = replace(
        ensemble,
        members=(replace(after.member, variance_ratio=after.ratio),),
        weights=np.ones(1),
        representation=representation,
        views=(0,),
        groups=(0,),
        levels=after.levels,
        held_out=after.held_out,
        cross_fitted=after.cross_fitted,
        outside=None,
        background=keep_rows(representation, rows),
    )
    if after.levels is not None:
        smaller = replace(smaller, outside=fit_outside(smaller, rows))
    return PrunedEnsemble(
        ensemble=smaller,
        columns=after.columns,
        before=before.scores,
        after=after.scores,
        seconds=time.perf_counter() - begin,
    )


def _is_as_exact(before: HeldOutScores, after: HeldOutScores, tolerance: float) -> bool:
    return after.rmse <= (1.0 + tolerance) * before.rmse


def _fold_networks(
    rows: Rows,
    views: Sequence[View],
    folds: Sequence[slice],
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Candidate, SeenRows, Networks]:
    """The best recipe, the rows as it sees them, and its networks of all folds and of all rows."""
    run: Callable[..., Iterable[Networks]] = runner(settings.n_jobs)
    seen = see(rows, views, folds)
    recipes = possible_recipes(seen, settings, rng)
    best = choose_recipes(seen, folds, recipes, settings, run, lambda *_: None)[0]
    own = seen[best.recipe.view]
    return best, own, stack([*best.networks, *further_networks(best, own, 1, settings, run)])


def _posterior(
    trial: Trial, stage: Stage, columns: _EncodedColumns, unit: Floats, settings: Settings
) -> _Posterior:
    """Posteriors on the weights that are left, and levels of noise from their forecasts.

    Gates see the columns that the network of all rows has left: the others are gone for good.
    """
    rows, parts = trial.seen.rows, trial.recipe.parts
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)
    found = []
    for place, fold in enumerate((*trial.folds, None)):
        own = part(stage.networks, slice(place * parts, (place + 1) * parts))
        number = 0 if fold is None else place
        found.append(_member(trial, own, without(weights, fold), number, settings))
    pairs = [
        forecast(member, take_columns(rows, _inputs(member)), fold, settings)
        for member, fold in zip(found, trial.folds, strict=False)
    ]
    means, variances = (np.concatenate(column) for column in zip(*pairs, strict=True))
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    swept = judged(
        Candidate(recipe=trial.recipe),
        N_SWEEPS,
        targets,
        (means, variances),
        weights,
        settings.outcome,
    )
    left = np.ones(columns.count, dtype=bool)
    if columns.apart:
        left = np.bincount(trial.owners[_inputs(found[-1])], minlength=columns.count) > 0
    places = np.flatnonzero(left[columns.owners])
    shares, levels, held_out = stack_forecasts(
        [swept], trial.seen.log_slopes[None], weights, columns.inputs[:, places], settings
    )
    assert levels is not None
    levels = replace(levels, columns=places[levels.columns])
    given = Rows(inputs=columns.inputs, targets=trial.targets, weights=weights)
    view = replace(PLAIN, warp=trial.warp)
    noise = Noise(levels=levels, held_out=held_out)
    return _Posterior(
        member=found[-1],
        ratio=swept.ratio,
        levels=levels,
        held_out=held_out,
        scores=_scores(trial, swept, levels, columns.inputs, unit),
        cross_fitted=cross_fitted_scores([swept], shares, noise, [view], given, settings.outcome),
        columns=left,
    )


def _inputs(member: FitResult) -> np.ndarray:
    assert member.pruning is not None
    return member.pruning.inputs


def _member(
    trial: Trial, networks: Networks, row_weights: Floats, number: int, settings: Settings
) -> FitResult:
    """The posterior of one network on the weights that it has, from the draws of a fit's."""
    joined = join_networks(list(zip(*networks.layers, strict=True)))
    layers, places = _taken(joined)
    rows = take_columns(trial.seen.rows, places[0])
    small = replace(rows, weights=like(rows.weights, row_weights))
    hidden = tuple(len(place) for place in places[1:])
    model = recipe_model(trial.recipe, small, replace(settings, hidden_layer_sizes=hidden))
    connections = tuple(layer[:, 1:] != 0.0 for layer in layers)
    model = replace(model, connections=connections)
    rng = np.random.default_rng((trial.recipe.seed, number))
    factors = _without_variance(factors_of_network(model, layers, small, rng), connections)
    [[result]] = sweep_together(
        model,
        small,
        row_weights[None],
        [factors],
        lengths=[N_SWEEPS],
        n_threads=1,
        repeats=REPEATS,
    )
    widths = [layer.shape[1] - 1 for layer in joined]
    whole = Architecture(n_inputs=widths[0], hidden=tuple(widths[1:]), n_outputs=len(joined[-1]))
    pruning = Pruning(architecture=whole, inputs=places[0], units=tuple(places[1:]))
    return replace(result, pruning=pruning)


def _taken(layers: Sequence[Floats]) -> tuple[list[Floats], list[np.ndarray]]:
    """Layers of the inputs and units that have weights, and the places of these."""
    places = [np.flatnonzero(np.any(layer[:, 1:] != 0.0, axis=0)) for layer in layers]
    ends = [*places[1:], np.arange(len(layers[-1]))]
    taken = [
        np.ascontiguousarray(layer[np.ix_(above, np.concatenate([[0], 1 + below]))])
        for layer, below, above in zip(layers, places, ends, strict=True)
    ]
    return taken, places


def _without_variance(factors: GlobalFactors, connections: Sequence[np.ndarray]) -> GlobalFactors:
    """Weights that do not exist are zero, and sure to be."""
    layers = []
    for layer, mask in zip(factors.layers, connections, strict=True):
        there = np.column_stack([np.ones(len(mask), dtype=bool), mask])
        both = there[:, :, None] & there[:, None, :]
        covariance = np.where(both, to_numpy(layer.weights.covariance), 0.0)
        layers.append(replace(layer, weights=replace(layer.weights, covariance=covariance)))
    return replace(factors, layers=tuple(layers))


def _scores(
    trial: Trial, swept: Swept, levels: Levels, inputs: Floats, unit: Floats
) -> HeldOutScores:
    """RMSE and negative log density of held-out rows, in the user's unit."""
    weights = np.asarray(to_numpy(trial.seen.rows.weights), dtype=np.float64)
    variances = swept.ratio * swept.variances
    log_shares = log_gates(levels.gates, gate_inputs(levels.columns, inputs))
    scales = levels.scale[:, None, :] * variances
    densities = -0.5 * (np.log(2.0 * np.pi * scales) + swept.errors**2 / scales)
    logs = logsumexp(densities + log_shares, axis=0).sum(axis=1) + trial.seen.log_slopes
    means = swept.means
    if trial.warp is not None:
        spread = np.einsum("knd,knd->nd", np.exp(log_shares), scales)
        means, _ = moments(trial.warp, means, spread)
    squares = ((trial.targets - means) * unit) ** 2
    total = weights.sum()
    return HeldOutScores(
        rmse=float(np.mean(np.sqrt(weights @ squares / total))),
        nll=float(-(weights @ logs / total - np.sum(np.log(unit))) / len(unit)),
    )
