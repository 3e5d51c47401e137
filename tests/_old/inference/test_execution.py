"""Blocks on threads: the same bits whatever their number, and a clean stop."""

from __future__ import annotations

import threading
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, split
from bowtienet._old.inference import execution
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel
from tests._old import builders

HIDDEN = ((), (7,), (5, 4))


def problem(hidden: tuple[int, ...], n: int = 60) -> tuple[BowTieModel, Rows]:
    model = builders.fixed_model(hidden, gate_temperature=0.3)
    return model, builders.random_rows(np.random.default_rng(8), model, n)


def run(hidden: tuple[int, ...], **settings: Any) -> FitResult:
    model, rows = problem(hidden)
    start = initialize(model, rows, 2, init="laplace")
    return fit(model, rows, start, max_iter=8, tol=0.0, **settings)


def leaves(value: Any) -> list[Any]:
    if is_dataclass(value):
        return [leaf for field in fields(value) for leaf in leaves(getattr(value, field.name))]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_number_of_threads_changes_no_bit(hidden: tuple[int, ...]) -> None:
    one, many = (run(hidden, block_size=7, n_threads=n) for n in (1, 3))
    assert one.elbo_history == many.elbo_history
    for a, b in zip(leaves(one.factors), leaves(many.factors), strict=True):
        np.testing.assert_array_equal(a, b)


def test_blocks_really_run_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    meeting = threading.Barrier(2, timeout=20)
    original = execution.block_pass

    def noted(*arguments: Any, **settings: Any) -> Any:
        if len(seen) < 2:
            seen.add(threading.get_ident())
            meeting.wait()
        return original(*arguments, **settings)

    monkeypatch.setattr(execution, "block_pass", noted)
    run((7,), block_size=30, n_threads=2)
    assert len(seen) == 2


def test_neither_a_worker_nor_the_caller_warns() -> None:
    """Momentum may overflow on any thread; warnings are errors in this suite."""
    with execution.workers(2) as apply:
        results = list(apply(lambda x: np.exp(np.float64(x)), [1e3, -1e3, 1e4]))
        assert np.exp(np.float64(1e3)) == np.inf
    assert results == [np.inf, 0.0, np.inf]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_between_blocks_keeps_the_last_complete_state(
    monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    """The interrupt comes while the third sweep is under way: the second one's state is kept."""
    calls = 0
    original = execution.add
    before = set(threading.enumerate())

    def interrupted(first: Any, second: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt
        return original(first, second)

    monkeypatch.setattr(execution, "add", interrupted)
    stopped = run((7,), block_size=15, n_threads=n_threads)
    monkeypatch.undo()
    assert stopped.status is Status.INTERRUPTED
    assert stopped.n_sweeps == 2
    expected = run((7,), block_size=15)
    assert stopped.elbo_history == expected.elbo_history[:2]
    # Other libraries may come and go with threads of their own meanwhile.
    assert not any(
        thread.name.startswith("ThreadPoolExecutor")
        for thread in set(threading.enumerate()) - before
    )


@pytest.mark.parametrize(("n_inputs", "hidden"), [(1, (50,)), (300, (50,)), (20, (30, 20))])
def test_block_rows_bounds_the_largest_array(n_inputs: int, hidden: tuple[int, ...]) -> None:
    rows = execution.block_rows(build_architecture(n_inputs, hidden, 1))
    packed = (n_inputs + 1) * (n_inputs + 2) // 2
    largest = max(packed, *hidden, hidden[0] ** 2 if len(hidden) > 1 else 0)
    assert rows * largest * 8 <= execution.BLOCK_BYTES or rows == 16
    assert execution.block_rows(build_architecture(n_inputs, hidden, 1), 7) == 7


def test_only_gates_and_upper_tilts_are_remembered() -> None:
    """Per row and between sweeps: Σ D_l gates and Σ_{l>1} D_l tilts, nothing square."""
    model, rows = problem((5, 4))
    blocks = split(rows, 20)
    factors = initialize(model, rows, 1, init="laplace")
    memory = execution.initialize_memory(model, factors, blocks)
    _, memory = execution.local_pass(model, factors, blocks, memory)
    kept_leaves = [leaf for kept in memory for leaf in leaves(kept)]
    shapes = [np.shape(leaf) for leaf in kept_leaves if leaf is not None]
    assert all(kept.outcome is None for kept in memory)
    assert shapes == [(20, 5), (20, 4), (20, 4)] * 3
