"""How an estimator gets from whatever it was given to fitted members."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bowtienet._arrays import Array, like, to_numpy
from bowtienet._validation import whole
from bowtienet.data.canonical import canonical_rows, column_order, take_columns
from bowtienet.data.rows import Rows, take_rows
from bowtienet.data.scaling import Scaling, fit_scaling, standardize
from bowtienet.data.sources import ArraySource
from bowtienet.estimators.checkpoint import digest
from bowtienet.estimators.cluster import DaskSource
from bowtienet.estimators.cluster.reading import ClusterReader
from bowtienet.estimators.given import Given, check_columns, read_given
from bowtienet.estimators.journal import Journal
from bowtienet.estimators.members import GoOn, fit_alike, fit_stacked, repeat
from bowtienet.estimators.progress import WARNING_LEVEL, Reporter
from bowtienet.estimators.running import Prepared, Runner, fitted_attributes
from bowtienet.estimators.streaming import (
    SourceReader,
    Standardize,
    Survey,
    combine_surveys,
    fit_streamed,
    gathered,
    hold_out,
)
from bowtienet.estimators.tables import is_foreign_array
from bowtienet.estimators.tasks import Recipe, Stream, Task
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult
from bowtienet.posterior.initialize import START_ROWS, possible_parts
from bowtienet.prediction.ensemble import Ensemble, original

TEMPERATURE = 0.01
"""Of "auto"."""
RECIPES = ((0.01, 1), (0.1, 1), (0.01, 5), (0.1, 10), (10.0, 1))
"""Penalties of "auto", and numbers of small networks to start from, for stacking to choose from.

docs/measurements/accuracy.md says why.
"""
RECIPES_ALONE = ((0.01, 5), (0.1, 10), (0.01, 16), (10.0, 1))
"""For a single member: small networks are an ensemble by themselves."""
ALIKE = (0.1, 1)
"""For members that are to be compared by their ELBO."""
LARGE = 50_000
"""Rows from which "auto" takes the stochastic solver."""
WARM_START = "warm_start=True goes on from the last fit: set warm_start=False to start anew."


class FittingMixin:
    """The fitting half of the estimator."""

    solver: str
    combine: str
    n_estimators: int
    elbo_tempering: float
    gate_temperature: float | str
    init: str
    init_penalty: float | str
    max_iter: int
    tol: float
    predictive: str
    hidden_layer_sizes: Any
    checkpoint: Any
    ensemble_: Any
    n_outputs_: int
    converged_: bool

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        go_on: GoOn | None = None,
        remedy: str = WARM_START,
        resume: bool = False,
    ) -> Self:
        """A new fit, one that was cut short, or one in which each member of the last goes on."""
        sizes = hidden_sizes(self.hidden_layer_sizes)
        journal = Journal(self, resume)
        if resume and not journal.went_on:
            go_on = None
        names = getattr(self, "feature_names_in_", None) if go_on is not None else None
        given = read_given(X, y, sample_weight, names)
        if go_on is not None:
            self._check_same_shape(given, sizes, remedy)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        reporter = Reporter(self, {"X": X, "y": y, "metadata": metadata})
        try:
            prepared = self._prepare(given, go_on is not None, journal.seed, reporter)
            with nullcontext() if prepared.stream is None else closing(prepared.stream):
                journal.begin(prepared.identity, None if go_on is None else self.ensemble_.members)
                runner = Runner(self, sizes, prepared, given.table, reporter, journal)
                members, shares = self._fit_members(prepared, go_on, runner, journal.seed)
            if not runner.interrupted:
                journal.close()
        finally:
            reporter.close()
        if not members:
            raise KeyboardInterrupt
        self._keep(
            fitted_attributes(prepared.ensemble, members, shares, given.table, prepared.solver)
        )
        self._warn(runner.interrupted)
        return self

    def _check_same_shape(self, given: Given, sizes: tuple[int, ...], remedy: str) -> None:
        """A fit that goes on needs the columns, targets and layers of the one before."""
        try:
            check_columns(self, given)
        except ValueError as error:
            raise ValueError(f"{error} {remedy}") from error
        before = original(self.ensemble_.members[0]).hidden
        if before != sizes:
            raise ValueError(
                f"hidden_layer_sizes is {sizes}, but it was {before} in the last fit. {remedy}"
            )
        if given.n_targets != self.n_outputs_:
            raise ValueError(
                f"y has {given.n_targets} targets, but it had {self.n_outputs_} in the last fit. "
                f"{remedy}"
            )

    def _prepare(self, given: Given, going_on: bool, seed: int, reporter: Reporter) -> Prepared:
        """Rows and solver of a fit. Small tables are read into memory, whatever they come from."""
        source, rows = given.source, given.rows
        if rows is not None:
            n_rows = int(rows.inputs.shape[0])
            # Arrays of another library stay where they are, perhaps on a GPU.
            large = n_rows > LARGE and not is_foreign_array(rows.inputs)
            if self.solver == "cavi" or (self.solver == "auto" and not large):
                return self._prepare_rows(rows, going_on)
            source = ArraySource(
                to_numpy(rows.inputs), to_numpy(rows.targets), to_numpy(rows.weights)
            )
        assert source is not None
        reader: SourceReader | ClusterReader = SourceReader(source)
        if isinstance(source, DaskSource) and self.solver != "svi":
            reader = ClusterReader(source)
        survey = combine_surveys(reporter.reading(reader.survey(seed)))
        if survey.n_rows < 2:
            raise ValueError("the source has 1 row: at least 2 are needed.")
        if self.solver == "auto" and survey.n_rows <= LARGE:
            return self._prepare_rows(gathered(source), going_on)
        # A cluster is there to be used: its workers can hold all rows and their local factors.
        clustered = isinstance(reader, ClusterReader)
        solver = "cavi" if clustered or self.solver == "cavi" else "svi"
        reporter.say(f"{survey.n_rows:,} rows: solver={solver!r}")
        return self._prepare_stream(reader, survey, solver, going_on)

    def _prepare_rows(self, rows: Rows, going_on: bool) -> Prepared:
        standardized, ensemble = self._standardized(rows, going_on)
        return Prepared(
            rows=standardized,
            ensemble=ensemble,
            n_rows=int(standardized.inputs.shape[0]),
            identity=lambda: {"rows": digest(vars(standardized).values())},
        )

    def _prepare_stream(
        self, reader: SourceReader | ClusterReader, survey: Survey, solver: str, going_on: bool
    ) -> Prepared:
        """A sample to start from, and what reads the rest."""
        sample = survey.sample.rows
        size = int(sample.inputs.shape[0])
        weighed = solver == "svi" and self.combine == "stacking" and not going_on
        n_held_out = hold_out(survey) if weighed else 0
        if solver == "cavi" and survey.n_rows <= survey.sample.size:
            # All rows are at hand: the same scaling and start as for a table in memory.
            start, ensemble = self._standardized(sample, going_on)
        else:
            ensemble = self._ensemble(survey.input_scaling, survey.target_scaling, going_on)
            stop = min(size, n_held_out + START_ROWS)
            start = Standardize.like(ensemble)(take_rows(sample, np.arange(n_held_out, stop)))
        held_out = None
        if n_held_out:
            held_out = Standardize.like(ensemble)(take_rows(sample, np.arange(n_held_out)))
        scalings = (survey.input_scaling, survey.target_scaling)
        return Prepared(
            rows=start,
            ensemble=ensemble,
            stream=reader.stream(survey, n_held_out, ensemble),
            held_out=held_out,
            solver=solver,
            n_rows=survey.n_counted,
            identity=lambda: {
                "n_rows": survey.n_rows,
                "scaling": digest([x for scaling in scalings for x in vars(scaling).values()]),
            },
        )

    def _standardized(self, rows: Rows, going_on: bool) -> tuple[Rows, Ensemble]:
        """Rows as the networks see them, and an ensemble that knows the way."""
        # Twice canonical: sums over repeated rows would round otherwise than sums over weights.
        rows = canonical_rows(rows)
        weights = _double(rows.weights)
        ensemble = self._ensemble(
            fit_scaling(_double(rows.inputs), weights),
            fit_scaling(_double(rows.targets), weights),
            going_on,
        )
        rows = Rows(
            inputs=standardize(ensemble.input_scaling, rows.inputs),
            targets=like(rows.inputs, standardize(ensemble.target_scaling, rows.targets)),
            weights=rows.weights,
        )
        if not going_on:
            ensemble = replace(ensemble, column_order=column_order(rows))
        return canonical_rows(take_columns(rows, ensemble.column_order)), ensemble

    def _ensemble(
        self, input_scaling: Scaling, target_scaling: Scaling, going_on: bool
    ) -> Ensemble:
        """The one to go on from, or one without members in a new scaling."""
        if going_on:
            return replace(self.ensemble_, propagation=self.predictive)
        return Ensemble(
            members=(),
            weights=np.empty(0),
            input_scaling=input_scaling,
            target_scaling=target_scaling,
            column_order=np.arange(input_scaling.center.shape[0]),
            propagation=self.predictive,
        )

    def _fit_members(
        self, prepared: Prepared, go_on: GoOn | None, runner: Runner, seed: int
    ) -> tuple[Sequence[FitResult], np.ndarray]:
        rng = np.random.default_rng(seed)
        rows = take_rows(prepared.rows, rng.permutation(prepared.rows.inputs.shape[0]))
        ensemble, stream = prepared.ensemble, prepared.stream
        if go_on is not None:
            tasks = [
                replace(go_on(member, rows), stream=_for_member(stream, member))
                for member in ensemble.members
            ]
            outcomes = [outcome.results[-1] for outcome in runner(tasks)]
            return [*outcomes, *ensemble.members[len(outcomes) :]], ensemble.weights
        recipes = self._recipes(rng, runner.settings.hidden)
        if self.combine != "stacking":
            return fit_alike(rows, recipes, runner, self.combine, self.elbo_tempering, stream)
        if prepared.solver == "cavi":
            return fit_stacked(rows, recipes, self.n_estimators, runner, self.max_iter, rng, stream)
        tasks = [
            Task(recipe=recipe, rows=rows, stream=stream, held_out=prepared.held_out)
            for recipe in repeat(recipes, self.n_estimators, rng)
        ]
        return fit_streamed(tasks, runner)

    def _recipes(self, rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Recipe]:
        """For stacking what it may choose from; otherwise members that differ in their seed."""
        alike = self.combine != "stacking"
        menu = RECIPES_ALONE if self.n_estimators == 1 else RECIPES
        gate_temperature = (
            TEMPERATURE if self.gate_temperature == "auto" else float(self.gate_temperature)
        )
        starts = [
            (penalty if self.init_penalty == "auto" else float(self.init_penalty), parts)
            for penalty, parts in ((ALIKE,) * self.n_estimators if alike else menu)
        ]
        if not alike:
            # Starts make no difference where no network is fitted to start from.
            same = self.init != "relu_network" or not sizes
            possible = [(p, 1 if same else possible_parts(sizes, parts)) for p, parts in starts]
            starts = possible[:1] if same else list(dict.fromkeys(possible))
        seeds = rng.integers(2**32, size=len(starts))
        return [
            Recipe(gate_temperature=gate_temperature, penalty=penalty, parts=parts, seed=int(seed))
            for (penalty, parts), seed in zip(starts, seeds, strict=True)
        ]

    def _keep(self, attributes: dict[str, Any]) -> None:
        """Set all fitted attributes at once: until here a failed fit has changed nothing."""
        for name in ("feature_names_in_", "_remembered"):
            if hasattr(self, name):
                delattr(self, name)
        for name, value in attributes.items():
            setattr(self, name, value)

    def _warn(self, interrupted: bool) -> None:
        members = self.ensemble_.members
        statuses = {member.status for member in members}
        if interrupted:
            message = (
                "The fit was interrupted. The estimator is fitted and usable, with "
                f"{len(members)} member{'s' if len(members) > 1 else ''} as of then; "
                + ("fit again" if self.checkpoint is None else "call resume")
                + " for a complete one."
            )
        elif self.converged_:
            return
        elif Status.ITERATION_LIMIT in statuses:
            message = (
                f"Most members were still getting better after max_iter={self.max_iter} sweeps: "
                f"raise max_iter (to {4 * self.max_iter}, say), or tol (now {self.tol:g}) if the "
                "predictions are good enough."
            )
        elif statuses & {Status.NON_FINITE, Status.DECREASED}:
            message = (
                f"Most members stopped before they converged ({', '.join(sorted(statuses))}): look "
                "for values far out of line in X and y, or set a higher temperature."
            )
        else:  # stopped by a callback, which knows why
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=WARNING_LEVEL)


def hidden_sizes(sizes: Any) -> tuple[int, ...]:
    """Widths of the hidden layers as they were meant: one number is one layer."""
    if isinstance(sizes, Integral):
        sizes = (sizes,)
    return tuple(whole(size, f"hidden_layer_sizes[{i}]") for i, size in enumerate(sizes))


def _for_member(stream: Stream | None, member: FitResult) -> Stream | None:
    if stream is None or member.pruning is None:
        return stream
    return stream.taking(member.pruning.inputs)


def _double(values: Array) -> np.ndarray:
    """Values on the host in double precision: a scaling must not depend on where rows live."""
    return to_numpy(values).astype(np.float64)
