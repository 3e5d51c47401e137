"""From a source of rows to a fitted ensemble: what is read, which solver runs, who goes on.

    reader   -> columns -> representation      what the networks see
    settings -> tasks -> jobs                  members, here or in other processes
    members  -> ensemble                       with their weights

How a table is fitted follows from its number of rows, the settings and the seed, never from what
holds the rows. Small tables are read into memory, wherever they come from; of larger ones a sample
starts the members, and all rows are read where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, like, to_numpy
from bowtienet._old.data.canonical import canonical_rows, column_order, take_columns
from bowtienet._old.data.dask_tables import DaskSource
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.limits import check_columns
from bowtienet._old.data.rows import Rows, take_rows
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.checkpoint import Checkpoint, digest
from bowtienet._old.ensemble.cluster_reader import ClusterReader
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.finiteness import check_targets, check_total_weight
from bowtienet._old.ensemble.fold_networks import FEWEST_ROWS, FOLDS, on_host
from bowtienet._old.ensemble.jobs import Jobs, Watch
from bowtienet._old.ensemble.member import Task
from bowtienet._old.ensemble.memory import check_fit, check_rows
from bowtienet._old.ensemble.recipes import possible_views
from bowtienet._old.ensemble.settings import Settings, batch_rows
from bowtienet._old.ensemble.slopes import fit_outside
from bowtienet._old.ensemble.streams import OTHER_ROWS, SourceReader
from bowtienet._old.ensemble.training import fit_further, fit_members, is_cross_fitted
from bowtienet._old.model.outcomes import Counts, Gaussian, Outcome, StudentT
from bowtienet._old.model.outcomes.counts import start_counts
from bowtienet._old.posterior.initialize import START_ROWS
from bowtienet._old.prediction.calibration import is_discrete
from bowtienet._old.representation.background import keep_rows
from bowtienet._old.representation.columns import Column, owners
from bowtienet._old.representation.representation import Representation, View, standardized_rows
from bowtienet._old.representation.scaling import (
    Scaling,
    fit_robust_scaling,
    fit_scaling,
    standardize,
    standardize_features,
)
from bowtienet._old.representation.survey import HELD_OUT_ROWS, Survey

Reader = SourceReader | ClusterReader
"""Knows where the rows are and what can be learnt of them; makes the stream that a fit reads."""
NO_MODEL = "the fit was interrupted before there was a model: fit again (effort='fast' is fast)."
LARGE = 50_000
"""Above this rows are not read into memory, and "auto" takes the stochastic solver."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a fit starts from."""

    task: Task
    """What the fits of all members share."""
    representation: Representation
    """With the views that members may have."""
    identity: Callable[[], dict[str, Any]]
    """What tells these rows from others."""


@dataclass(frozen=True, kw_only=True)
class EnsembleFit:
    """A fitted ensemble and how its fit went."""

    ensemble: Ensemble
    solver: str
    interrupted: bool


def fit_ensemble(
    source: Source,
    settings: Settings,
    checkpoint: Checkpoint,
    watch: Watch,
    *,
    before: Ensemble | None = None,
) -> EnsembleFit:
    """Fit new members, or go on with those of the ensemble `before`.

    Parameters
    ----------
    source : Source
        Rows with targets and weights.
    settings : Settings
        What all members share.
    checkpoint : Checkpoint
        Keeps what is finished, and gives the seed.
    watch : Watch
        Is told how far the fit is.
    before : Ensemble, optional
        Its members go on, with their weights and representation.
    """
    prepared = prepare(source, settings, before, checkpoint.seed, watch)
    check_total_weight(prepared.task.rows.weights)
    settings = _started(settings, prepared.task.rows)
    task, solver = prepared.task, "svi" if prepared.task.stochastic else "cavi"
    empty = Ensemble(
        members=(),
        weights=np.empty(0),
        representation=prepared.representation,
        views=(),
        groups=(),
        propagation=settings.propagation,
    )
    check_fit(
        task.rows.inputs.shape[0],
        prepared.representation,
        settings,
        side_by_side=before is None and is_cross_fitted(task, settings),
    )
    watch.begin(empty, solver)
    with nullcontext() if task.stream is None else closing(task.stream):
        checkpoint.begin(settings, before, prepared.identity)
        jobs = Jobs(settings, checkpoint, watch)
        rng = np.random.default_rng(checkpoint.seed)
        order = rng.permutation(task.rows.inputs.shape[0])
        task = replace(task, rows=take_rows(task.rows, order))
        if before is None:
            views = prepared.representation.views
            with _no_model_if_interrupted():
                fitted = fit_members(task, views, settings, jobs, rng, watch.say)
            representation, places = _used(prepared.representation, views, fitted.views)
        else:
            fitted = fit_further(task, before, jobs)
            representation, places = before.representation, before.views
    if not fitted.members:
        raise KeyboardInterrupt(NO_MODEL)
    ensemble = replace(
        empty,
        members=tuple(fitted.members),
        weights=np.asarray(fitted.weights) / np.sum(fitted.weights),
        representation=representation,
        views=places,
        groups=tuple(fitted.groups),
        levels=fitted.noise.levels,
        held_out=fitted.noise.held_out,
        calibration=fitted.noise.calibration,
        cross_fitted=fitted.noise.cross_fitted,
        background=keep_rows(representation, task.rows),
    )
    settled = ensemble.levels is not None or ensemble.calibration is not None
    if before is None and settled:
        ensemble = replace(ensemble, outside=fit_outside(ensemble, task.rows))
    elif before is not None:
        ensemble = replace(ensemble, outside=before.outside)
    return EnsembleFit(ensemble=ensemble, solver=solver, interrupted=jobs.interrupted)


def _started(settings: Settings, rows: Rows) -> Settings:
    """Settings with the parameters that an outcome starts from."""
    if not isinstance(settings.outcome, Counts):
        return settings
    host = on_host(rows)
    return replace(settings, outcome=start_counts(host.targets, host.weights))


@contextmanager
def _no_model_if_interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(NO_MODEL) from None


def _used(
    representation: Representation, views: Sequence[View], places: Sequence[int]
) -> tuple[Representation, tuple[int, ...]]:
    """The representation with the views that members have, and the places of these in it."""
    used = sorted(set(places))
    representation = replace(representation, views=tuple(views[place] for place in used))
    return representation, tuple(used.index(place) for place in places)


def prepare(
    source: Source, settings: Settings, before: Ensemble | None, seed: int, watch: Watch
) -> Prepared:
    """Rows, representation and solver of a fit."""
    check_columns(source.n_features)
    known = None if before is None else before.representation
    reader: Reader = SourceReader(source)
    if isinstance(source, DaskSource) and settings.solver != "svi":
        reader = ClusterReader(source)
    watch.say("reading")
    if known is None:
        columns, n_rows = reader.columns(settings.max_categories)
    else:
        columns, n_rows = known.columns, reader.count_rows()
    if n_rows < 2:
        reader.close()
        raise ValueError(f"the source has {n_rows} rows: at least 2 are needed.")
    foreign = _is_foreign(source)
    solver = settings.solver
    if solver == "auto":
        solver = "cavi" if n_rows <= LARGE or foreign else "svi"
    if solver == "cavi" and (n_rows <= LARGE or foreign):
        check_rows(n_rows, len(owners(columns)))
        rows = reader.rows(columns)
        if rows.inputs.shape[0] != n_rows:
            raise ValueError(OTHER_ROWS)
        return _prepare_rows(rows, columns, settings, known, source.target_names)
    if solver == "svi" and isinstance(reader, ClusterReader):
        # Minibatches are read here.
        reader.close()
        reader = SourceReader(source)
    watch.say(f"{n_rows:,} rows: solver={solver!r}")
    settings = replace(settings, solver=solver)
    settled = _settled_on_sample(settings, known)
    survey = reader.survey(columns, seed, LARGE if settled else START_ROWS + HELD_OUT_ROWS)
    return _prepare_stream(reader, survey, settings, columns, known, source.target_names)


def _is_foreign(source: Source) -> bool:
    """Whether rows are arrays of another library: these stay where they are, perhaps on a GPU."""
    if not isinstance(source, InMemory):
        return False
    matrix = source.block.table.matrix
    return matrix is not None and not isinstance(matrix, np.ndarray)


def _settled_on_sample(settings: Settings, known: Representation | None) -> bool:
    """Whether members are settled on as many rows as a small table may have, then see all rows.

    Others only start from a sample, and those that go on have their weights.
    """
    return settings.solver == "cavi" and settings.weighting == "stacking" and known is None


def count_held_out(survey: Survey) -> int:
    """How many rows of the sample are held out: a fifth at most, and none of very few."""
    n_rows = int(survey.sample.positions.size)
    return 0 if n_rows < FEWEST_ROWS else min(HELD_OUT_ROWS, survey.n_counted // FOLDS)


def _prepare_rows(
    rows: Rows,
    columns: tuple[Column, ...],
    settings: Settings,
    known: Representation | None,
    names: Sequence[str] | None,
) -> Prepared:
    if not np.any(to_numpy(rows.weights) > 0.0):
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")
    standardized, representation = _represented(rows, columns, settings, known, names)
    return Prepared(
        task=Task(rows=standardized),
        representation=representation,
        identity=lambda: {"rows": digest(vars(standardized).values())},
    )


def _prepare_stream(
    reader: Reader,
    survey: Survey,
    settings: Settings,
    columns: tuple[Column, ...],
    known: Representation | None,
    names: Sequence[str] | None,
) -> Prepared:
    """A sample to start from, and what reads the rest."""
    sample = survey.sample.rows
    size = int(sample.inputs.shape[0])
    stochastic = settings.solver == "svi"
    # Those of coordinate ascent are settled on folds of the sample; those that go on have weights.
    compared = stochastic and settings.weighting == "stacking" and known is None
    n_held_out = count_held_out(survey) if compared else 0
    representation = known or Representation(
        columns=columns,
        feature_scaling=survey.feature_scaling,
        target_scaling=_surveyed_scaling(survey, settings.outcome),
        column_order=np.arange(sample.inputs.shape[1]),
    )
    if not _settled_on_sample(settings, known):
        size = min(size, n_held_out + START_ROWS)
    start = standardized_rows(representation, take_rows(sample, np.arange(n_held_out, size)))
    if not stochastic:
        start = canonical_rows(start)
    if known is None:
        check_targets(start, representation.target_scaling, settings.outcome, names)
        representation = replace(representation, views=possible_views(start, settings))
    held_out = None
    if n_held_out:
        held_out = standardized_rows(representation, take_rows(sample, np.arange(n_held_out)))
    scalings = (survey.feature_scaling, survey.target_scaling)
    task = Task(
        rows=start,
        stream=reader.stream(survey, n_held_out, representation),
        stochastic=stochastic,
        batch_size=batch_rows(settings.batch_size, survey.n_counted),
        held_out=held_out,
    )
    return Prepared(
        task=task,
        representation=representation,
        identity=lambda: {
            "n_rows": survey.n_rows,
            "scaling": digest([x for scaling in scalings for x in vars(scaling).values()]),
        },
    )


def _represented(
    rows: Rows,
    columns: tuple[Column, ...],
    settings: Settings,
    known: Representation | None,
    names: Sequence[str] | None,
) -> tuple[Rows, Representation]:
    """Encoded rows, standardised, and the representation that says how."""
    # Twice canonical: sums over repeated rows would round otherwise than sums over weights.
    rows = canonical_rows(rows)
    if known is not None:
        return canonical_rows(standardized_rows(known, rows)), known
    weights = _double(rows.weights)
    feature_scaling = fit_scaling(_double(rows.inputs), weights)
    target_scaling = _target_scaling(_double(rows.targets), weights, settings.outcome)
    rows = Rows(
        inputs=standardize_features(feature_scaling, rows.inputs),
        targets=like(rows.inputs, standardize(target_scaling, rows.targets)),
        weights=like(rows.inputs, rows.weights),
    )
    check_targets(rows, target_scaling, settings.outcome, names)
    representation = Representation(
        columns=columns,
        feature_scaling=feature_scaling,
        target_scaling=target_scaling,
        column_order=column_order(rows),
    )
    rows = canonical_rows(take_columns(rows, representation.column_order))
    return rows, replace(representation, views=possible_views(rows, settings))


def _target_scaling(targets: np.ndarray, weights: np.ndarray, outcome: Outcome) -> Scaling:
    """Mean and deviation; median and quartiles where outliers are to be expected.

    Classes and counts stay as they are.
    """
    if is_discrete(outcome):
        return Scaling(center=np.zeros(targets.shape[1]), scale=np.ones(targets.shape[1]))
    if isinstance(outcome, StudentT):
        return fit_robust_scaling(targets, weights)
    return fit_scaling(targets, weights)


def _surveyed_scaling(survey: Survey, outcome: Outcome) -> Scaling:
    if isinstance(outcome, Gaussian):
        return survey.target_scaling
    sample = survey.sample.rows
    return _target_scaling(_double(sample.targets), _double(sample.weights), outcome)


def _double(values: Array) -> np.ndarray:
    """Values on the host in double precision: a scaling must not depend on where rows live."""
    return to_numpy(values).astype(np.float64)
