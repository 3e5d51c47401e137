"""Fits on a cluster of real processes, with workers that die and schedulers that go away."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bowtienet._old import engine as bt
from bowtienet._old.data.rows import Rows, take_rows
from bowtienet._old.ensemble import cluster, dask_client
from bowtienet._old.ensemble.cluster import ClusterRows
from bowtienet._old.ensemble.dask_client import on_each, survey_partitions
from bowtienet._old.inference.execution import initialize_memory, local_pass
from bowtienet._old.inference.local_step import local_memory, settle
from tests._old.ensemble.clusters import (
    in_mid_fit,
    kill_worker,
    left_over,
    local_cluster,
    pause_worker,
    remembered,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.name != "posix", reason="kills processes by signal"),
]
N = 300


def start(
    n: int = N, hidden: tuple[int, ...] = (8,), seed: int = 0
) -> tuple[bt.BowTieModel, Rows, bt.GlobalFactors]:
    """Model, rows with unequal weights (none for some), and first factors."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 3))
    targets = np.sin(2.0 * inputs[:, 0]) + 0.5 * inputs[:, 1] + rng.normal(0.0, 0.2, size=n)
    weights = rng.uniform(0.5, 2.0, size=n)
    weights[: n // 10] = 0.0
    rows = bt.build_rows(inputs, targets, weights)
    model = bt.default_model(bt.build_architecture(3, hidden, 1), inputs, targets)
    return model, rows, bt.initialize(model, rows, rng)


def pieces(rows: Rows, *cuts: int) -> list[Any]:
    """Delayed partitions that begin at the cuts."""
    index = np.split(np.arange(rows.inputs.shape[0]), cuts)
    return [dask.delayed(take_rows, pure=False)(rows, part) for part in index]


class Watched:
    """A row provider that notes in which passes another one rebuilt memory."""

    def __init__(self, rows: ClusterRows) -> None:
        self.rows, self.seen = rows, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    def local_pass(self, *arguments: Any) -> Any:
        answer = self.rows.local_pass(*arguments)
        self.seen.append(self.rows.rebuilt)
        return answer


def assert_same_fit(found: bt.FitResult, expected: bt.FitResult) -> None:
    assert found.n_sweeps == expected.n_sweeps
    assert found.model.architecture == expected.model.architecture
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-8)
    for one, other in zip(found.factors.layers, expected.factors.layers, strict=True):
        np.testing.assert_allclose(one.weights.mean, other.weights.mean, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("hidden", "cuts"),
    [
        pytest.param((8,), (30, 190, 200), id="a partition of no weight"),
        pytest.param((8,), tuple(range(10, N, 10)), id="sums in two levels"),
        pytest.param((6, 5), (120,), id="two layers"),
        pytest.param((6,), (), id="one partition"),
        pytest.param((), (0, 100, 100), id="empty partitions"),
    ],
)
def test_a_fit_is_the_one_in_memory(
    client: Any, hidden: tuple[int, ...], cuts: tuple[int, ...]
) -> None:
    model, rows, factors = start(hidden=hidden)
    settings = {"max_iter": 15, "tol": 0.0, "block_size": 64}
    expected = bt.fit(model, rows, factors, n_threads=1, **settings)
    with ClusterRows(client, pieces(rows, *cuts), block_size=64) as there:
        watched = Watched(there)
        found = bt.fit(model, watched, factors, **settings)
    assert there.n_rows == N
    assert not any(watched.seen)
    assert_same_fit(found, expected)


def test_the_last_two_versions_stay_on_the_workers_until_the_end(client: Any) -> None:
    model, rows, factors = start()
    with ClusterRows(client, pieces(rows, 100, 200)) as there:
        first = there.local_pass(model, factors, there.begin(model, factors))[1]
        one, second = there.local_pass(model, factors, first)
        again, _ = there.local_pass(model, factors, first)
        assert not there.rebuilt
        np.testing.assert_array_equal(one.output.input_moment, again.output.input_moment)
        assert sorted(chain(*client.run(remembered).values())) == [2, 2, 2]
        # An older one than the last two comes back by the steps that led to it.
        back, _ = there.local_pass(model, factors, second)
        assert not there.rebuilt
    parts = [take_rows(rows, part) for part in np.split(np.arange(N), (100, 200))]
    memory = initialize_memory(model, factors, parts)
    for _ in range(3):
        expected, memory = local_pass(model, factors, parts, memory)
    np.testing.assert_array_equal(back.output.input_moment, expected.output.input_moment)
    assert not left_over(client)
    assert not any(client.run(remembered).values())
    there.close()
    with pytest.raises(ValueError, match="closed"):
        there.local_pass(model, factors, second)


def test_members_share_rows_and_end_in_the_same_bits(client: Any) -> None:
    model, rows, factors = start()
    with ClusterRows(client, pieces(rows, *range(20, N, 20))) as there:
        fits = [bt.fit(model, there, factors, max_iter=6, tol=0.0) for _ in range(2)]
    assert fits[0].elbo_history == fits[1].elbo_history


def slow_sweep(*arguments: Any, **more: Any) -> Any:
    time.sleep(0.6)
    return SWEEP(*arguments, **more)


SWEEP = cluster._sweep


@pytest.mark.parametrize("history_bytes", [10**9, 0])
def test_a_death_in_mid_sweep_loses_no_memory(
    doomed: Any, history_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or, with networks too large to remember, the lost local factors are settled anew."""
    monkeypatch.setattr(cluster, "HISTORY_BYTES", history_bytes)
    model, rows, factors = start()
    cuts = (40, 90, 190)
    parts = [take_rows(rows, part) for part in np.split(np.arange(N), cuts)]
    _, after_one = local_pass(model, factors, parts, initialize_memory(model, factors, parts))
    with ClusterRows(doomed, pieces(rows, *cuts)) as there:
        _, memory = there.local_pass(model, factors, there.begin(model, factors))
        victim = sorted(doomed.nthreads())[0]
        lost = [number for number, home in there._homes.items() if home == victim]
        monkeypatch.setattr(cluster, "_sweep", slow_sweep)
        threading.Timer(0.3, kill_worker, [doomed]).start()
        found, _ = there.local_pass(model, factors, memory)
        assert there.rebuilt == (history_bytes == 0)
    assert 0 < len(lost) < 4
    if history_bytes == 0:
        for number in lost:
            rows = parts[number]
            local, _ = settle(model, factors, rows.inputs, rows.targets, 1e-10, 200)
            after_one[number] = local_memory(model, local)
    expected, _ = local_pass(model, factors, parts, after_one)
    for name in ("polya_gamma_moment", "gate_moment", "gate_cross", "gate_entropy"):
        one, other = getattr(found.hidden[0], name), getattr(expected.hidden[0], name)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def settled() -> tuple[bt.FitResult, Rows, bt.FitResult]:
    """A fit that is nearly at its end, from where all ways lead to one place; rows; the end."""
    model, rows, factors = start(n=150, hidden=(5,))
    before = bt.fit(model, rows, factors, max_iter=250, n_threads=1)
    return before, rows, bt.fit(before.model, rows, before.factors, max_iter=40, n_threads=1)


def assert_same_end(found: bt.FitResult, expected: bt.FitResult, rows: Rows) -> None:
    assert found.status is expected.status is bt.Status.CONVERGED
    assert found.elbo_history[-1] == pytest.approx(expected.elbo_history[-1], rel=1e-3)
    means = [bt.predict(fit.model, fit.factors, rows.inputs).mean for fit in (found, expected)]
    np.testing.assert_allclose(*means, atol=0.02)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(kill_worker, id="dies"),
        pytest.param(partial(kill_worker, how=signal.SIGSTOP), id="hangs"),
        pytest.param(pause_worker, id="is paused"),
    ],
)
def test_a_fit_is_the_same_with_a_worker_that(doomed: Any, harm: Any) -> None:
    model, rows, factors = start(n=150, hidden=(5,))
    settings = {"max_iter": 12, "tol": 0.0}
    expected = bt.fit(model, rows, factors, n_threads=1, **settings)
    with ClusterRows(doomed, pieces(rows, 20, 40, 90)) as there:
        watched = Watched(there)
        callback = in_mid_fit(partial(harm, doomed))
        found = bt.fit(model, watched, factors, callback=callback, **settings)
    assert not any(watched.seen)
    assert_same_fit(found, expected)


def not_to_restart(dask_worker: Any) -> None:
    """For a nanny: let the death of the worker be the end."""
    dask_worker.status = distributed.Status.closing_gracefully


def test_without_workers_a_fit_ends_with_an_error(
    doomed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_client, "PATIENCE", 1.0)
    before, rows, expected = settled()
    doomed.run(not_to_restart, nanny=True)
    with ClusterRows(doomed, pieces(rows, 20, 40, 90)) as there:
        callback = in_mid_fit(partial(kill_worker, doomed))
        found = bt.fit(before.model, there, before.factors, max_iter=40, callback=callback)
        assert_same_end(found, expected, rows)
        kill_worker(doomed)
        with pytest.raises(ConnectionError, match=r"no worker is left .* tcp://"):
            bt.fit(before.model, there, before.factors)
        with pytest.raises(ConnectionError, match=r"no worker is left .* tcp://"):
            list(survey_partitions(doomed, pieces(rows, 100), count_rows))


def deadly(*arguments: Any, **more: Any) -> Any:
    os._exit(1)


def test_a_sweep_that_kills_its_workers_is_given_up(
    doomed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows, factors = start()
    monkeypatch.setattr(cluster, "_sweep", deadly)
    monkeypatch.setattr(cluster, "ATTEMPTS", 2)
    with ClusterRows(doomed, pieces(rows)) as there, pytest.raises(RuntimeError, match="memory"):
        bt.fit(model, there, factors)


def test_a_worker_that_joins_takes_partitions_with_their_memory() -> None:
    model, rows, factors = start()
    settings = {"max_iter": 12, "tol": 0.0}
    expected = bt.fit(model, rows, factors, n_threads=1, **settings)
    with local_cluster(1) as client, ClusterRows(client, pieces(rows, 50, 150, 200)) as there:

        def join() -> None:
            assert len(set(there._homes.values())) == 1
            client.processes.scale(2)
            client.wait_for_workers(2, timeout=30)

        watched = Watched(there)
        found = bt.fit(model, watched, factors, callback=in_mid_fit(join), **settings)
        assert sorted(map(sum, client.run(remembered).values())) == [4, 4]
    assert not any(watched.seen)
    assert_same_fit(found, expected)


def test_data_that_were_scattered_die_with_their_worker(doomed: Any) -> None:
    model, rows, factors = start()
    first, second = sorted(doomed.nthreads())
    data = [
        doomed.scatter(take_rows(rows, part), workers=[worker], hash=False)
        for worker, part in ((second, np.arange(100)), (first, np.arange(100, N)))
    ]
    with ClusterRows(doomed, data) as there, pytest.raises(RuntimeError, match="died"):
        bt.fit(model, there, factors, callback=in_mid_fit(partial(kill_worker, doomed)))


def test_a_scheduler_that_goes_away_ends_a_fit(doomed: Any) -> None:
    model, rows, factors = start()
    with ClusterRows(doomed, pieces(rows, 100)) as there:
        callback = in_mid_fit(threading.Thread(target=doomed.processes.close).start)
        with pytest.raises(ConnectionError, match=r"scheduler at tcp://.* went away"):
            bt.fit(model, there, factors, tol=0.0, max_iter=10_000, callback=callback)


def test_ctrl_c_leaves_nothing_behind(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, factors = start()
    monkeypatch.setattr(cluster, "_sweep", slow_sweep)
    with ClusterRows(client, pieces(rows, 100)) as there:
        main = threading.main_thread().ident
        threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            bt.fit(model, there, factors)
    assert not left_over(client)


def test_a_task_that_fails_says_why(client: Any) -> None:
    model, rows, factors = start()
    with (
        ClusterRows(client, pieces(rows, 100), block_size=-1) as there,
        pytest.raises(ValueError, match="block_size"),
    ):
        bt.fit(model, there, factors)
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        list(survey_partitions(client, pieces(rows, 100), read_nothing))
    assert not left_over(client)


def count_rows(rows: Rows) -> int:
    return len(rows.inputs)


def read_nothing(rows: Rows) -> Any:
    return Path("no-such-file").read_text()


def double(rows: Rows) -> Rows:
    return take_rows(rows, np.tile(np.arange(len(rows.inputs)), 2))


def test_a_survey_asks_each_partition_in_order(client: Any) -> None:
    parts = pieces(start()[1], 50, 80)
    assert list(survey_partitions(client, parts, count_rows)) == [50, 30, 220]
    doubled = on_each(client, parts, double)
    answers = survey_partitions(client, doubled, count_rows)
    assert next(answers) == 100
    answers.close()
    del doubled
    assert not left_over(client)
