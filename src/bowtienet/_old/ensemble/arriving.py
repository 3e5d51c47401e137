"""Rows that arrive over time: members take them in and speak for all rows so far.

New rows first tell how well the members predict rows that they have not seen, which sets the
ensemble weights. Then each member takes them in by a step of the stochastic solver, with blended
sums that stand for all rows seen so far; a sample of these is looked at again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old.data.random_rows import RowSample
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.cross_fit import allocate
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    member_inputs,
    member_views,
    ratio_of,
)
from bowtienet._old.ensemble.member import MOMENTUM, local_iterations
from bowtienet._old.ensemble.stacking import NEVER, heavy_log_densities, stacking_weights
from bowtienet._old.inference.convergence import BreakdownError, Status
from bowtienet._old.inference.execution import usable_cores, workers
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.stochastic import StochasticState, stochastic_step
from bowtienet._old.model.outcomes import Counts, StudentT
from bowtienet._old.prediction.calibration import (
    Calibration,
    is_discrete,
    log_probabilities,
    rate_outcome,
)
from bowtienet._old.prediction.predictive import (
    Predictive,
    log_density,
    outputs_and_variances,
    predict,
)
from bowtienet._old.representation.representation import View, log_slopes, network_rows

RECENT = 2_000
"""Rows whose densities, noted before they were taken in, set the ensemble weights."""
REMEMBERED = 5_000
"""Rows that are kept, a uniform sample of those that came."""
REPLAYS = 30
"""Steps on them, if new rows are a tenth of them or more; fewer new rows, fewer steps."""
PRIOR_ROWS = 100
"""Rows that speak for the weights of the fit, until newer ones take their place."""


class Arrivals:
    """What is remembered between two arrivals of rows: a uniform sample, and how many came."""

    def __init__(self) -> None:
        self.sample = RowSample(REMEMBERED, np.random.default_rng(0))
        self.weight = 0.0
        self.recent: Floats | None = None
        """Log densities (rows, members) of the latest rows; None where weights stay as they are."""

    def add(self, batch: Rows) -> None:
        """Let the rows of a batch take part."""
        self.sample.add(batch, 0)
        self.weight += float(np.sum(batch.weights))


def remember(batches: Iterable[Rows]) -> Arrivals:
    """What is remembered of the rows of a fit."""
    arrivals = Arrivals()
    for batch in batches:
        arrivals.add(batch)
    return arrivals


def take_in(
    ensemble: Ensemble, batches: Iterable[Rows], before: Arrivals | None, *, reweigh: bool
) -> tuple[Ensemble, Arrivals]:
    """The ensemble after new rows, and what to remember of them.

    Parameters
    ----------
    ensemble : Ensemble
        Fitted, with the sums that its members follow from.
    batches : iterable of Rows
        New rows, standardised.
    before : Arrivals, optional
        What was remembered of earlier ones.
    reweigh : bool
        Whether the latest rows set the ensemble weights.
    """
    members = list(ensemble.members)
    views = member_views(ensemble)
    arrivals = Arrivals() if before is None else copy.deepcopy(before)
    if arrivals.recent is None and reweigh:
        arrivals.recent = _in_favour_of(ensemble.weights)
    with workers(usable_cores()) as apply, np.errstate(all="ignore"):
        for batch in batches:
            seen = [network_rows(view, batch) for view in views]
            if arrivals.recent is not None:
                new = _log_densities(ensemble, members, seen, batch)
                arrivals.recent = np.concatenate([arrivals.recent, new])[-RECENT:]
            taken = [_take_in(*pair, apply) for pair in zip(members, seen, strict=True)]
            if all(now is not then for now, then in zip(taken, members, strict=True)):
                arrivals.add(batch)
                size = batch.inputs.shape[0]
                taken = [
                    _replay(member, view, arrivals, size, apply)
                    for member, view in zip(taken, views, strict=True)
                ]
            members = taken
    weights = ensemble.weights
    if arrivals.recent is not None:
        counts = np.ones(len(arrivals.recent))
        weights = stacking_weights(arrivals.recent, counts, prior_rows=1.0)
    return replace(ensemble, members=tuple(members), weights=weights), arrivals


def _take_in(member: FitResult, batch: Rows, apply: Any) -> FitResult:
    """A member after a stochastic step whose batch adds to the number of rows."""
    statistics = member.statistics
    assert statistics is not None
    batch = replace(batch, inputs=member_inputs(member, batch.inputs))
    new = float(np.sum(batch.weights))
    before = float(statistics.count)
    grown = map_arrays(lambda x: x * ((before + new) / before), statistics)
    state = StochasticState(
        model=member.model, factors=member.factors, statistics=grown, step=member.n_sweeps
    )
    # Each row counts the same, whenever it came.
    amount = new / (before + new)
    try:
        state, terms = stochastic_step(state, batch, before + new, amount=amount, apply=apply)
    except BreakdownError:
        return member
    bound = float(terms.total)
    if not np.isfinite(bound):
        return member
    return replace(
        member,
        model=state.model,
        factors=state.factors,
        statistics=state.statistics,
        elbo_terms=terms,
        elbo_history=(*member.elbo_history, bound),
        n_sweeps=state.step,
        status=Status.ARRIVING,
    )


def _replay(member: FitResult, view: View, arrivals: Arrivals, n_new: int, apply: Any) -> FitResult:
    """A member after steps on remembered rows, which count as much as they are of all rows.

    While nearly all rows are remembered these are whole steps, with momentum. After `fit` or `load`
    they would speak for new rows only, so there are none.
    """
    assert member.statistics is not None
    total = float(member.statistics.count)
    if arrivals.weight < 0.99 * total:
        return member
    sample = network_rows(view, arrivals.sample.rows)
    rows = replace(sample, inputs=member_inputs(member, sample.inputs))
    amount = min(1.0, float(np.sum(rows.weights)) / total)
    momentum = MOMENTUM if amount > 0.99 else 0.0
    state = StochasticState(
        model=member.model, factors=member.factors, statistics=member.statistics, step=0
    )
    n_steps = math.ceil(REPLAYS * 10 * n_new / rows.inputs.shape[0])
    for _ in range(min(n_steps, REPLAYS)):
        try:
            found, terms = stochastic_step(
                state,
                rows,
                total,
                amount=amount,
                momentum=momentum,
                max_iterations=local_iterations(member.model),
                apply=apply,
            )
        except BreakdownError:
            break
        if not np.isfinite(float(terms.total)):
            break
        state = found
    return replace(member, model=state.model, factors=state.factors, statistics=state.statistics)


def _in_favour_of(weights: Floats) -> Floats:
    """Log densities (rows, members) of which stacking would make these weights."""
    likely = np.repeat(np.arange(len(weights)), allocate(weights, PRIOR_ROWS))
    return np.where(likely[:, None] == np.arange(len(weights)), 0.0, NEVER)


def _log_densities(
    ensemble: Ensemble, members: Sequence[FitResult], seen: Sequence[Rows], batch: Rows
) -> Floats:
    """Log densities (rows, members) of new rows, noted before they are taken in."""
    columns = []
    views = member_views(ensemble)
    for member, group, view, rows in zip(members, ensemble.groups, views, seen, strict=True):
        inputs = member_inputs(member, rows.inputs)
        found = predict(member.model, member.factors, inputs, propagation=ensemble.propagation)
        density = _log_density(member, found, rows, ensemble.calibration, group)
        columns.append(density + log_slopes(view, batch))
    return np.nan_to_num(np.stack(columns, axis=1), nan=NEVER, neginf=NEVER)


def _log_density(
    member: FitResult, found: Predictive, rows: Rows, calibration: Calibration | None, group: int
) -> Floats:
    """Log density (n,) of the targets, or log probability of classes and counts."""
    outcome = member.model.outcome
    if not (is_discrete(outcome) or isinstance(outcome, StudentT)):
        return log_density(found, rows.targets, member.variance_ratio)
    means, variances = outputs_and_variances(outcome, found)
    targets = to_numpy(rows.targets).astype(float)
    if isinstance(outcome, StudentT):
        return heavy_log_densities(targets - means, ratio_of(member) * variances)
    if isinstance(outcome, Counts):
        dispersion = outcome.dispersion if calibration is None else calibration.dispersion[group]
        return log_probabilities(rate_outcome(float(dispersion)), targets, means, variances)
    slope = 1.0 if calibration is None else float(calibration.slope[group])
    return log_probabilities(outcome, targets, slope * means, slope**2 * variances)
