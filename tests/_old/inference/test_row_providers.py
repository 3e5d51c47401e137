"""Row providers: rows in memory and rows read anew climb the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows, split, take_rows
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.execution import Mapper
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.row_providers import HeldRows, StreamedRows
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.statistics import FAN_IN, Statistics, add, tree_sum
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, default_model
from bowtienet._old.posterior.factors import GlobalFactors

BLOCK = 16
SETTINGS: dict[str, Any] = {"max_iter": 12, "tol": 0.0, "block_size": BLOCK}
Problem = tuple[BowTieModel, Rows, GlobalFactors]


def problem(hidden: tuple[int, ...] = (5,), n: int = 70) -> Problem:
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(n, 3))
    targets = np.stack([np.abs(inputs[:, 0]), inputs[:, 1]], axis=1)
    rows = build_rows(inputs, targets + 0.1 * rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n))
    architecture = build_architecture(3, hidden, 2)
    model = default_model(architecture, rows.inputs, rows.targets, gate_temperature=0.1)
    return model, rows, initialize(model, rows, 1)


def streamed(rows: Rows, parts: int = 3) -> StreamedRows:
    """Parts that are whole numbers of blocks, read anew each time."""
    size = -(-rows.inputs.shape[0] // parts // BLOCK) * BLOCK
    return StreamedRows(lambda: iter(split(rows, size)), rows.inputs.shape[0], BLOCK)


def assert_same(first: FitResult, second: FitResult) -> None:
    """To the bit."""
    map_arrays(np.testing.assert_array_equal, first.factors, second.factors)
    map_arrays(np.testing.assert_array_equal, first.statistics, second.statistics)
    assert first.elbo_history == second.elbo_history
    assert (first.status, first.n_sweeps) == (second.status, second.n_sweeps)
    assert (first.pruning is None) == (second.pruning is None)


@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)], ids=str)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_read_anew_give_the_bits_of_rows_held(hidden: tuple[int, ...], n_threads: int) -> None:
    model, rows, factors = problem(hidden)
    held = fit(model, rows, factors, n_threads=1, **SETTINGS)
    assert_same(held, fit(model, streamed(rows), factors, n_threads=n_threads, **SETTINGS))


def test_other_parts_differ_by_rounding_only() -> None:
    model, rows, factors = problem()
    held = fit(model, rows, factors, **SETTINGS)
    odd = StreamedRows(lambda: iter(split(rows, 23)), 70, BLOCK)
    found = fit(model, odd, factors, **SETTINGS)
    np.testing.assert_allclose(found.elbo_history, held.elbo_history, rtol=1e-9)


def test_rows_are_read_once_for_every_pass() -> None:
    model, rows, factors = problem()
    readings = []

    def read() -> Iterator[Rows]:
        readings.append(0)
        for part in split(rows, BLOCK):
            readings[-1] += part.inputs.shape[0]
            yield part

    result = fit(model, StreamedRows(read, 70, BLOCK, BLOCK), factors, **SETTINGS)
    # The first, which is broken off, looks at the columns; the second makes the local factors.
    assert readings[1:] == [70] * (1 + result.n_sweeps)
    assert readings[0] == BLOCK


def test_rows_that_do_not_fit_are_refused() -> None:
    model, rows, factors = problem()
    wide = replace(rows, inputs=np.ones((70, 4)))
    for given in (wide, streamed(wide)):
        with pytest.raises(ValueError, match="4"):
            fit(model, given, factors, **SETTINGS)


class Losing(HeldRows):
    """Loses its local factors in one of its passes."""

    def __init__(self, rows: Rows, model: BowTieModel, at: int) -> None:
        super().__init__(rows, model.architecture, BLOCK)
        self.at, self.passes, self.rebuilt = at, 0, False

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: Any, apply: Mapper = map
    ) -> tuple[Statistics, Any]:
        self.passes += 1
        self.rebuilt = self.passes == self.at
        if self.rebuilt:
            memory = self.begin(model, factors, apply)
        return super().local_pass(model, factors, memory, apply)


@pytest.mark.parametrize("at", [1, 5])
def test_local_factors_that_are_lost_make_the_loop_begin_anew(at: int) -> None:
    """The bound may fall there; it is no failed sweep, and from there on it rises."""
    model, rows, factors = problem()
    settings = {**SETTINGS, "max_iter": 40}
    undisturbed = fit(model, rows, factors, **settings)
    found = fit(model, Losing(rows, model, at), factors, **settings)
    assert found.status is Status.ITERATION_LIMIT
    assert found.n_sweeps == 40
    falls = np.flatnonzero(np.diff(found.elbo_history) < -1e-9 * abs(found.elbo_history[-1]))
    assert len(falls) <= 1
    assert np.all(falls + 1 < at)
    np.testing.assert_allclose(found.elbo_history[-1], undisturbed.elbo_history[-1], rtol=0.05)


def test_a_loss_does_not_count_towards_convergence() -> None:
    """Changes are those since it: three small ones before it do not end the fit."""
    model, rows, factors = problem()
    losing = Losing(rows, model, at=3)
    found = fit(model, losing, factors, tol=1e3, block_size=BLOCK, max_iter=40)
    assert found.status is Status.CONVERGED
    assert found.n_sweeps == 3 + 3


def test_weights_of_zero_are_absent_rows_of_a_stream() -> None:
    model, rows, factors = problem()
    some = np.arange(70) % 3 > 0
    silent = streamed(replace(rows, weights=np.where(some, rows.weights, 0.0)))
    found = fit(model, silent, factors, **SETTINGS)
    expected = fit(model, take_rows(rows, np.flatnonzero(some)), factors, **SETTINGS)
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-8)


@pytest.mark.parametrize("n_parts", [1, 7, 8, 9, 64, 65, 100])
def test_a_tree_of_sums_is_that_of_a_cluster(n_parts: int) -> None:
    """Level by level, each of groups of neighbours; to the bit."""
    rng = np.random.default_rng(n_parts)
    model, rows, factors = problem()
    one, _ = HeldRows(rows, model.architecture).local_pass(
        model, factors, HeldRows(rows, model.architecture).begin(model, factors)
    )
    parts = [map_arrays(lambda x, k=k: x * k, one) for k in rng.normal(size=n_parts)]
    level = parts
    while len(level) > 1:
        level = [reduce(add, level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    map_arrays(np.testing.assert_array_equal, tree_sum(iter(parts)), level[0])


def test_parts_of_a_stream_change_no_bit() -> None:
    """Chunks and blocks are cut by position."""
    model, rows, factors = problem()
    fits = [
        fit(model, StreamedRows(lambda n=n: iter(split(rows, n)), 70, 5, 17), factors, **SETTINGS)
        for n in (70, 23, 4)
    ]
    for other in fits[1:]:
        assert other.elbo_history == fits[0].elbo_history
        map_arrays(np.testing.assert_array_equal, other.factors, fits[0].factors)
