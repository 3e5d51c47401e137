"""Rows that arrive over time: each call takes some in and leaves a model of all rows so far.

The first call is a fit: it sets the scaling, the members and how long they run. Every later one
first asks the members how well they predict rows that they have not seen, which weighs them, and
then takes those rows in by stochastic steps, with blended sums that stand for all rows seen so far.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context

from bowtienet._arrays import map_arrays, to_numpy
from bowtienet.data.rows import Rows, split, take_rows
from bowtienet.data.sources import RowSample
from bowtienet.estimators.fitting import FittingMixin, hidden_sizes
from bowtienet.estimators.given import Given, read_given
from bowtienet.estimators.members import allocate
from bowtienet.estimators.progress import with_callbacks
from bowtienet.estimators.running import AUTO_BATCH, fitted_attributes
from bowtienet.estimators.streaming import Standardize
from bowtienet.estimators.tables import known_columns
from bowtienet.estimators.tasks import MOMENTUM, Floats, local_iterations
from bowtienet.inference.convergence import Status
from bowtienet.inference.execution import usable_cores, workers
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.stochastic import StochasticState, stochastic_step
from bowtienet.prediction.ensemble import member_inputs
from bowtienet.prediction.predictive import log_density, predict
from bowtienet.prediction.weighting import NEVER, stacking_weights

RECENT = 2_000
"""Rows whose densities, noted before they were taken in, weigh the members."""
REMEMBERED = 5_000
"""Rows that are kept, a uniform sample of those that came."""
REPLAYS = 30
"""Steps on them, if new rows are a tenth of them or more; fewer new rows, fewer steps."""
PRIOR_ROWS = 100
"""Rows that speak for the weights of the fit, until newer ones take their place."""
REMEDY = "partial_fit goes on from the calls before: use a new estimator to start anew."


class PartialMixin(FittingMixin):
    """Taking in rows as they come."""

    batch_size: int | str
    n_features_in_: int
    _single_target: bool
    _recent_densities: Floats | None
    _remembered: Remembered

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in more rows.

        The first call is a fit, so let it have a few hundred rows; later ones may have any number.
        It also goes on from a model that was fitted by `fit`. A sample of up to 5,000 of the rows
        is kept in the estimator (and pickled with it, but not written by `save`), because sums over
        rows grow old when the weights move: with it, many calls come closer to one fit. After `fit`
        or `load` there is none, and new rows move the model more slowly.

        Parameters
        ----------
        X, y, sample_weight :
            New rows, as for `fit`: a table, or a source.

        Returns
        -------
        self
        """
        if not hasattr(self, "ensemble_"):
            return self._fit(X, y, sample_weight)._remember(X, y, sample_weight)
        if any(member.statistics is None for member in self.ensemble_.members):
            raise ValueError(
                "the sums over the rows so far are not known: partial_fit cannot go on from a "
                "pruned model; prune after the last rows have come."
            )
        names = getattr(self, "feature_names_in_", None)
        given = read_given(X, y, sample_weight, names, min_rows=1)
        self._check_same_shape(given, hidden_sizes(self.hidden_layer_sizes), REMEDY)
        members, weights = list(self.ensemble_.members), self.ensemble_.weights
        remembered = copy.deepcopy(getattr(self, "_remembered", None)) or Remembered()
        recent = getattr(self, "_recent_densities", None)
        if recent is None and self.combine == "stacking":
            recent = _in_favour_of(weights)
        with workers(usable_cores()) as apply, np.errstate(all="ignore"):
            advance = partial(_take_in, apply=apply)
            for batch in self._arriving(given):
                if recent is not None:
                    recent = _recent(recent, members, batch, self.predictive)
                before, members = members, [advance(member, batch) for member in members]
                if all(now is not then for now, then in zip(members, before, strict=True)):
                    remembered.add(batch)
                    members = [_replay(m, remembered, batch, apply) for m in members]
        if recent is not None:
            weights = stacking_weights(recent, np.ones(len(recent)), prior_rows=1.0)
        table = known_columns(self)
        attributes = fitted_attributes(self.ensemble_, members, weights, table, "svi")
        self._keep({**attributes, "_recent_densities": recent})
        self._remembered = remembered
        return self

    def _remember(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Keep a sample of the rows of the first call."""
        remembered = Remembered()
        given = read_given(X, y, sample_weight, getattr(self, "feature_names_in_", None))
        for batch in self._arriving(given):
            remembered.add(batch)
        self._remembered = remembered
        return self

    def _arriving(self, given: Given) -> Iterator[Rows]:
        """New rows as the networks see them, in batches; those of weight 0 are absent."""
        size = AUTO_BATCH if isinstance(self.batch_size, str) else int(self.batch_size)
        standardize = Standardize.like(self.ensemble_)
        for given_block in given.blocks():
            block = map_arrays(to_numpy, given_block)
            present = np.flatnonzero(block.weights > 0.0)
            if present.size:
                yield from split(standardize(take_rows(block, present)), size)


def _take_in(member: FitResult, batch: Rows, *, apply: Any) -> FitResult:
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
    state, terms = stochastic_step(state, batch, before + new, amount=amount, apply=apply)
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


def _replay(member: FitResult, remembered: Remembered, batch: Rows, apply: Any) -> FitResult:
    """A member after steps on remembered rows, which count as much as they are of all rows.

    While nearly all rows are remembered these are whole steps, with momentum. After `fit` or `load`
    they would speak for new rows only, so there are none.
    """
    assert member.statistics is not None
    total = float(member.statistics.count)
    if remembered.weight < 0.99 * total:
        return member
    sample = remembered.sample.rows
    rows = replace(sample, inputs=member_inputs(member, sample.inputs))
    amount = min(1.0, float(np.sum(rows.weights)) / total)
    momentum = MOMENTUM if amount > 0.99 else 0.0
    state = StochasticState(
        model=member.model, factors=member.factors, statistics=member.statistics, step=0
    )
    n_steps = math.ceil(REPLAYS * 10 * batch.inputs.shape[0] / rows.inputs.shape[0])
    for _ in range(min(n_steps, REPLAYS)):
        found, terms = stochastic_step(
            state,
            rows,
            total,
            amount=amount,
            momentum=momentum,
            max_iterations=local_iterations(member.model),
            apply=apply,
        )
        if not np.isfinite(float(terms.total)):
            break
        state = found
    return replace(member, model=state.model, factors=state.factors, statistics=state.statistics)


class Remembered:
    """A uniform sample of the rows that came, and how many there were."""

    def __init__(self) -> None:
        self.sample = RowSample(REMEMBERED, np.random.default_rng(0))
        self.weight = 0.0

    def add(self, batch: Rows) -> None:
        """Let the rows of a batch take part."""
        self.sample.add(batch, 0)
        self.weight += float(np.sum(batch.weights))


def _in_favour_of(weights: Floats) -> Floats:
    """Log densities (rows, members) of which stacking would make these weights."""
    likely = np.repeat(np.arange(len(weights)), allocate(weights, PRIOR_ROWS))
    return np.where(likely[:, None] == np.arange(len(weights)), 0.0, NEVER)


def _recent(before: Floats, members: list[FitResult], batch: Rows, propagation: str) -> Floats:
    """Log densities (rows, members) of the latest rows, each noted before it was taken in."""
    columns = []
    for member in members:
        inputs = member_inputs(member, batch.inputs)
        found = predict(member.model, member.factors, inputs, propagation=propagation)
        columns.append(log_density(found, batch.targets, member.variance_ratio))
    new = np.nan_to_num(np.stack(columns, axis=1), nan=NEVER, neginf=NEVER)
    return np.concatenate([before, new])[-RECENT:]
