"""Coordinate ascent of several networks at once, by plain sweeps of given numbers.

The networks have one architecture, prior and temperature and see the same inputs and targets, each
row with a weight of their own. They stand on a leading axis of all that a sweep works on, so that
small networks share the cost of every call, and the packed second moments of the inputs are worked
out once for all networks and sweeps.

Networks are worked on in groups, so large that a group's factors and the local factors of a block
of its rows have about a megabyte; a network with several hidden layers is a group by itself. The
bound, which takes entropies of all local factors, is worked out only after the sweeps that were
asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, map_arrays, namespace, slices, take
from bowtienet._old._validation import whole
from bowtienet._old.data.rows import Rows, build_weights
from bowtienet._old.inference.convergence import BreakdownError, Status
from bowtienet._old.inference.coordinate_ascent import DEFAULT_REPEATS
from bowtienet._old.inference.elbo import ElboTerms, elbo
from bowtienet._old.inference.empirical_bayes import renew_outcome, update_hyperparameters
from bowtienet._old.inference.execution import (
    LOCAL_BYTES,
    Block,
    Mapper,
    block_pass_for,
    block_rows,
    build_blocks,
    double,
    factors_beside,
    has_row_covariances,
    workers,
)
from bowtienet._old.inference.global_step import global_step, update_shared_covariance
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.local_step import initialize_local
from bowtienet._old.inference.statistics import Statistics, add
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import GAUSSIAN, Outcome
from bowtienet._old.model.priors import BowTieModel, check_rows
from bowtienet._old.posterior.factors import GlobalFactors, LocalMemory, check_factors

GROUP_BYTES = 1_000_000
"""Largest array among the factors of a group."""
FEWEST_ROWS = 128
"""Of a block of a group: sums over fewer rows are slow products."""


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Networks on a leading axis, between two sweeps."""

    members: tuple[int, ...]
    """Their places among all networks."""
    blocks: tuple[Block, ...]
    """The rows, with weights (members, n)."""
    model: BowTieModel
    """Parameters that EM moves, of the global shrinkage and the outcome, are (members,) after the
    first sweep."""
    factors: GlobalFactors
    memory: tuple[LocalMemory, ...]
    statistics: Statistics | None = None
    elbo_terms: ElboTerms | None = None
    """None where nobody asked."""
    before: _Group | None = None
    """The same networks a sweep earlier."""


def sweep_together(
    model: BowTieModel,
    rows: Rows,
    row_weights: Array,
    factors: Sequence[GlobalFactors],
    *,
    lengths: Sequence[int],
    repeats: int = DEFAULT_REPEATS,
    empirical_bayes: bool = True,
    bounded: bool = True,
    n_threads: int | None = None,
    callback: Callable[[int], bool | None] | None = None,
) -> list[list[FitResult]]:
    """Networks after each of `lengths` plain sweeps.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature of all networks.
    rows : Rows
        Inputs and targets that all networks see; the weights of these rows are not read.
    row_weights : array of shape (M, n)
        Weights of the rows for each network; 0 holds a row out.
    factors : sequence of M GlobalFactors
        Where the networks start.
    lengths : sequence of int
        Increasing numbers of sweeps.
    repeats : int
        Rounds of global updates within a sweep.
    empirical_bayes : bool
        Set the hyperparameter of each network's global shrinkage, and the parameters of its
        outcome, by EM after every sweep.
    bounded : bool
        Work out the bound at each of the lengths; results have none otherwise.
    n_threads : int, optional
        Blocks and groups worked on at the same time; all usable cores by default. It changes no
        result.
    callback : callable, optional
        Called with the number of each sweep when it is complete; a true answer ends the fit.

    Returns
    -------
    list of list of FitResult
        For each length a result for each network, `Status.EARLY_STOPPED`. A network whose numbers
        are no longer finite stays as it was before, `Status.NON_FINITE`. Where a callback or Ctrl-C
        ended the fit, lengths not reached have its last state, `Status.INTERRUPTED`; Ctrl-C before
        the end of the first sweep is raised.
    """
    lengths = _check_lengths(lengths)
    repeats = whole(repeats, "repeats")
    weights = _check_weights(model, rows, row_weights, factors)
    with workers(n_threads) as apply:
        step = partial(_sweep, repeats=repeats, empirical_bayes=empirical_bayes, apply=apply)
        run = _Run(len(factors), step, bounded)
        blocks = build_blocks(
            rows,
            model.architecture,
            group_rows(model.architecture, len(factors), model.outcome),
        )
        groups = list(apply(partial(_begin, model, blocks), *_grouped(model, weights, factors)))
        reached = 0
        try:
            for number in range(1, lengths[-1] + 1):
                groups = run.advance(groups, number, look=number in lengths)
                reached = number
                if callback is not None and callback(number):
                    break
        except KeyboardInterrupt:
            if reached == 0:
                raise
        return run.results(groups, lengths, reached)


class _Run:
    """What has been found so far: bounds, results of lengths, and networks that overflowed."""

    def __init__(self, count: int, sweep: Callable[..., list[_Group]], bounded: bool) -> None:
        self.sweep, self.bounded = sweep, bounded
        self.bounds: list[dict[int, float]] = [{} for _ in range(count)]
        self.failed: dict[int, FitResult] = {}
        self.found: dict[int, list[FitResult]] = {}

    def advance(self, groups: list[_Group], number: int, *, look: bool) -> list[_Group]:
        """The groups after one more sweep, without networks whose numbers are not finite."""
        with_bound = look and self.bounded
        try:
            swept = self.sweep(groups, with_bound=with_bound)
        except BreakdownError:
            swept = self._one_by_one(groups, number, with_bound=with_bound)
        going = []
        for group in swept:
            finite = _is_finite(group)
            if not np.all(finite):
                assert group.before is not None
                self._keep_failed(_taken(group.before, np.flatnonzero(~finite)), number - 1)
                group = _taken(group, np.flatnonzero(finite))
            if group.members:
                going.append(group)
        if look:
            self.found[number] = self._look(going, number, Status.EARLY_STOPPED)
        return going

    def _one_by_one(self, groups: list[_Group], number: int, *, with_bound: bool) -> list[_Group]:
        """Networks after a sweep each by itself, without those that it breaks down for."""
        found = []
        for group in groups:
            for place in range(len(group.members)):
                one = _taken(group, np.array([place]))
                try:
                    found += self.sweep([one], with_bound=with_bound)
                except BreakdownError:
                    self._keep_failed(one, number - 1)
        return found

    def results(
        self, groups: list[_Group], lengths: Sequence[int], reached: int
    ) -> list[list[FitResult]]:
        """Results for all lengths: where the fit was stopped before, those of its last state."""
        if reached < lengths[-1]:
            last = self._look(self._with_bound(groups), reached, Status.INTERRUPTED)
        return [self.found[n] if n <= reached else last for n in lengths]

    def _look(self, groups: list[_Group], number: int, status: Status) -> list[FitResult]:
        """Results of all networks, those that failed before included."""
        results = dict(self.failed)
        for group in groups:
            results.update(self._results_of(group, number, status))
        return [results[member] for member in sorted(results)]

    def _keep_failed(self, group: _Group, number: int) -> None:
        """Remember networks as they were after their last good sweep."""
        try:
            (looked,) = self._with_bound([group])
        except BreakdownError:
            looked = group
        self.failed.update(self._results_of(looked, number, Status.NON_FINITE))

    def _with_bound(self, groups: list[_Group]) -> list[_Group]:
        """The groups with their bounds: the last sweep is done again where nobody had asked."""
        result = []
        for group in groups:
            again = group.elbo_terms is None and group.before is not None
            result += self.sweep([group.before], with_bound=True) if again else [group]
        return result

    def _results_of(
        self, group: _Group, number: int, status: Status
    ) -> Iterator[tuple[int, FitResult]]:
        """Ordinary results, without the leading axis."""
        for place, member in enumerate(group.members):
            one = partial(_entry, place)
            terms = None if group.elbo_terms is None else map_arrays(one, group.elbo_terms)
            if terms is not None:
                self.bounds[member][number] = float(terms.total)
            result = FitResult(
                model=_with_own_numbers(group.model, partial(_number, place)),
                factors=map_arrays(one, group.factors),
                elbo_terms=terms,
                elbo_history=tuple(self.bounds[member].values()),
                n_sweeps=number,
                status=status,
                statistics=map_arrays(one, group.statistics),
            )
            yield member, result


def _check_lengths(lengths: Sequence[int]) -> list[int]:
    found = [whole(length, f"lengths[{i}]") for i, length in enumerate(lengths)]
    if not found or found != sorted(set(found)):
        raise ValueError(f"lengths must be increasing numbers of sweeps, got {list(lengths)!r}.")
    return found


def _check_weights(
    model: BowTieModel, rows: Rows, row_weights: Array, factors: Sequence[GlobalFactors]
) -> Array:
    """Weights (M, n) in the array library of the rows."""
    check_rows(model.architecture, rows, model.outcome)
    for each in factors:
        check_factors(model.architecture, each)
    expected = (len(factors), rows.inputs.shape[0])
    if not factors or tuple(row_weights.shape) != expected:
        raise ValueError(
            f"row_weights must have shape {expected}, a row of weights for each of the factors, "
            f"got {tuple(row_weights.shape)}."
        )
    checked = [
        build_weights(row_weights[i, ...], rows.inputs, f"row_weights[{i}]")
        for i in range(len(factors))
    ]
    return namespace(rows.inputs).stack(checked, axis=0)


def _grouped(
    model: BowTieModel, row_weights: Array, factors: Sequence[GlobalFactors]
) -> tuple[list[tuple[int, ...]], list[Array], list[Sequence[GlobalFactors]]]:
    """Members, weights and factors of every group."""
    parts = slices(len(factors), group_size(model.architecture, model.outcome))
    members = [tuple(range(part.start, part.stop)) for part in parts]
    return members, [row_weights[part, ...] for part in parts], [factors[part] for part in parts]


def group_size(architecture: Architecture, outcome: Outcome = GAUSSIAN) -> int:
    """Most networks of a group."""
    if has_row_covariances(architecture, outcome):
        return 1
    largest = max(width * (below + 1) ** 2 for below, width in pairwise(architecture.widths))
    local = FEWEST_ROWS * max(architecture.widths[1:])
    return max(1, min(GROUP_BYTES // (8 * largest), LOCAL_BYTES // (8 * local)))


def group_rows(architecture: Architecture, count: int, outcome: Outcome = GAUSSIAN) -> int:
    """Rows of a block, the same for all groups of `count` networks."""
    most = block_rows(architecture, None, outcome)
    if has_row_covariances(architecture, outcome):
        return most
    local = min(count, group_size(architecture, outcome)) * max(architecture.widths[1:])
    return min(most, max(FEWEST_ROWS, LOCAL_BYTES // (8 * local)))


def _begin(
    model: BowTieModel,
    blocks: Sequence[Block],
    members: tuple[int, ...],
    row_weights: Array,
    factors: Sequence[GlobalFactors],
) -> _Group:
    """Networks beside each other, with gates from a forward pass."""
    together = update_shared_covariance(_stacked(factors), by_row=model.outcome.by_row)
    beside = factors_beside(together, blocks[0].inputs)
    own, start = [], 0
    for block in blocks:
        end = start + block.inputs.shape[0]
        own.append(replace(block, weights=row_weights[:, start:end]))
        start = end
    return _Group(
        members=members,
        blocks=tuple(own),
        model=model,
        factors=together,
        memory=tuple(
            initialize_local(model, beside, block.inputs, block.targets) for block in blocks
        ),
    )


def _sweep(
    groups: Sequence[_Group],
    *,
    with_bound: bool,
    repeats: int,
    empirical_bayes: bool,
    apply: Mapper,
) -> list[_Group]:
    """One sweep of all groups; sums are taken in the order of the blocks."""
    if not groups:
        return []
    before = groups
    if empirical_bayes:
        groups = [_renewed(group) for group in groups]
    reference = groups[0].blocks[0].inputs
    steps = [block_pass_for(group.model, reference, with_entropy=with_bound) for group in groups]
    beside = [factors_beside(group.factors, reference) for group in groups]
    # All groups work on a block before the next one: its second moments are near by then.
    tasks = list(product(range(len(groups[0].blocks)), range(len(groups))))
    found = apply(
        operator.call,
        [steps[g] for _, g in tasks],
        [beside[g] for _, g in tasks],
        [groups[g].blocks[b] for b, g in tasks],
        [groups[g].memory[b] for b, g in tasks],
    )
    totals: list[Statistics | None] = [None] * len(groups)
    memories: list[list[LocalMemory]] = [[] for _ in groups]
    for (_, g), (statistics, memory) in zip(tasks, found, strict=True):
        part, total = map_arrays(double, statistics), totals[g]
        totals[g] = part if total is None else add(total, part)
        memories[g].append(memory)
    passed = [
        replace(group, memory=tuple(memory), statistics=total, before=earlier)
        for group, memory, total, earlier in zip(groups, memories, totals, before, strict=True)
    ]
    update = partial(_update, with_bound=with_bound, repeats=repeats, empirical=empirical_bayes)
    return list(apply(update, passed))


def _renewed(group: _Group) -> _Group:
    """EM of the outcome's own parameters, by the sums of the last sweep."""
    model = renew_outcome(group.model, group.factors, group.statistics, before=True)
    return replace(group, model=model)


def _update(group: _Group, *, with_bound: bool, repeats: int, empirical: bool) -> _Group:
    """Global step, EM, and the bound if somebody asks for it."""
    assert group.statistics is not None
    assert group.before is not None
    factors = global_step(group.model, group.factors, group.statistics, repeats)
    model = update_hyperparameters(group.model, factors) if empirical else group.model
    terms = elbo(model, factors, group.statistics) if with_bound else None
    return replace(
        group,
        model=renew_outcome(model, factors, group.statistics, before=False) if empirical else model,
        factors=factors,
        elbo_terms=terms,
        before=replace(group.before, before=None),
    )


def _is_finite(group: _Group) -> np.ndarray:
    """Whether the factors (and bounds) of each network are finite, (members,)."""
    finite = np.ones(len(group.members), dtype=bool)
    for layer in group.factors.layers:
        finite &= np.isfinite(np.sum(layer.weights.mean, axis=(-2, -1)))
        finite &= np.isfinite(np.sum(layer.weights.covariance, axis=(-3, -2, -1)))
        finite &= np.isfinite(np.sum(layer.noise_variance.scale, axis=-1))
    if group.elbo_terms is not None:
        finite &= np.isfinite(group.elbo_terms.total)
    return finite


def _stacked(containers: Sequence[Any]) -> Any:
    """Equal containers as one with a leading axis; numbers that are all the same stay."""
    first = containers[0]
    if is_dataclass(first):
        build: Callable[..., Any] = type(first)
        names = [field.name for field in fields(first)]
        return build(**{name: _stacked([getattr(c, name) for c in containers]) for name in names})
    if isinstance(first, tuple):
        return tuple(_stacked(parts) for parts in zip(*containers, strict=True))
    if first is None or (isinstance(first, (int, float)) and len(set(containers)) == 1):
        return first
    return np.stack([double(value) for value in containers])


def _entry(place: int, x: np.ndarray) -> Any:
    """A network's own copy of its part of an array with a leading axis."""
    return x[place].copy()


def _number(place: int, x: np.ndarray) -> float:
    """A network's own hyperparameter."""
    return float(x[place])


def _taken(group: _Group, places: np.ndarray) -> _Group:
    """Some networks of a group."""
    some = partial(take, index=places)
    return _Group(
        members=tuple(group.members[i] for i in places),
        blocks=tuple(replace(block, weights=some(block.weights)) for block in group.blocks),
        model=_with_own_numbers(group.model, some),
        factors=map_arrays(some, group.factors),
        memory=map_arrays(some, group.memory),
        statistics=map_arrays(some, group.statistics),
        elbo_terms=map_arrays(some, group.elbo_terms),
        before=None if group.before is None else _taken(group.before, places),
    )


def _with_own_numbers(model: BowTieModel, function: Callable[[np.ndarray], Any]) -> BowTieModel:
    """The model with `function` of the parameters that networks have of their own."""
    shrinkage = map_arrays(function, model.prior.global_shrinkage)
    prior = replace(model.prior, global_shrinkage=shrinkage)
    return replace(model, prior=prior, outcome=map_arrays(function, model.outcome))
