"""Fits on a cluster of real processes, with workers that die and schedulers that go away."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bowtienet as bt
from bowtienet.data.rows import Rows, take_rows
from bowtienet.estimators.cluster import (
    ClusterRows,
    DaskSource,
    cluster_rows,
    is_dask,
    link,
    ownership,
    partitions,
    running_client,
    survey_partitions,
    worker,
)
from bowtienet.estimators.cluster import rows as keeping
from bowtienet.inference.convergence import Status
from bowtienet.inference.execution import initialize_memory, local_pass
from bowtienet.inference.row_providers import HeldRows
from tests.estimators.clusters import kill_worker, left_over, once, stored, wait_for_two

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signal")


def start(
    seed: int = 0, n: int = 300, hidden: tuple[int, ...] = (8,)
) -> tuple[bt.BowTieModel, Rows, bt.GlobalFactors]:
    """Model, rows with unequal weights, and first factors of a curve that a network can learn."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 3))
    targets = np.sin(2.0 * inputs[:, 0]) + 0.5 * inputs[:, 1] + rng.normal(0.0, 0.2, size=n)
    rows = bt.build_rows(inputs, targets, rng.uniform(0.5, 2.0, size=n))
    model = bt.default_model(bt.build_architecture(3, hidden, 1), inputs, targets)
    return model, rows, bt.initialize(model, rows, rng)


def pieces(rows: Rows, *cuts: int) -> list[Any]:
    """Delayed partitions that begin at the cuts."""
    index = np.split(np.arange(rows.inputs.shape[0]), cuts)
    return [dask.delayed(take_rows, pure=False)(rows, part) for part in index]


def itself(rows: Rows) -> Rows:
    return rows


def in_mid_fit(deed: Callable[[], Any], sweep: int = 4) -> Callable[[bt.Progress], None]:
    """A callback that does the deed once."""
    do = once(deed)

    def callback(progress: bt.Progress) -> None:
        if progress.sweep >= sweep:
            do()

    return callback


class Watched:
    """A keeper that notes in which passes another one rebuilt memory."""

    def __init__(self, rows: ClusterRows) -> None:
        self.rows, self.seen = rows, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    def local_pass(self, *arguments: Any) -> Any:
        answer = self.rows.local_pass(*arguments)
        self.seen.append(self.rows.rebuilt)
        return answer


@pytest.mark.parametrize(
    ("hidden", "cuts"),
    [((8,), (40, 190, 200)), ((6, 5), (120,)), ((6,), ()), ((), (100, 100))],
    ids=["more partitions than workers", "two layers", "one partition", "empty partition"],
)
def test_a_fit_is_the_one_in_memory(
    client: Any, hidden: tuple[int, ...], cuts: tuple[int, ...]
) -> None:
    model, rows, factors = start(hidden=hidden)
    expected = bt.fit(model, rows, factors, max_iter=15, tol=0.0, n_threads=1)
    with cluster_rows(client, pieces(rows, *cuts), itself, block_size=64) as there:
        watched = Watched(there)
        found = bt.fit(model, watched, factors, max_iter=15, tol=0.0)
    assert there.n_rows == 300
    assert not any(watched.seen)
    assert found.n_sweeps == expected.n_sweeps
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-8)
    for one, other in zip(found.factors.layers, expected.factors.layers, strict=True):
        np.testing.assert_allclose(one.weights.mean, other.weights.mean, rtol=1e-5, atol=1e-7)


class HeldAnew(HeldRows):
    """Rows in memory whose local factors, too, start anew when units are taken out."""

    def shrunk(self, model: Any, factors: Any, memory: Any, selection: Any) -> Any:
        smaller = HeldAnew(self.rows, model.architecture)
        return smaller, smaller.begin(model, factors)


def test_a_fit_with_pruning_is_one_that_starts_anew_with_fewer_units(client: Any) -> None:
    model, rows, factors = start(hidden=(12,))
    settings = {"max_sweeps": 25, "prune_every": 10, "tolerance": 0.0}
    expected = bt.fit(model, HeldAnew(rows, model.architecture), factors, **settings)
    with cluster_rows(client, pieces(rows, 100), itself) as there:
        found = bt.fit(model, there, factors, **settings)
    assert found.model.architecture.hidden == expected.model.architecture.hidden != (12,)
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-8)


def test_an_older_version_stays_good_for_one_more_pass(client: Any) -> None:
    model, rows, factors = start()
    with cluster_rows(client, pieces(rows, 100, 200), itself) as there:
        first = there.begin(model, factors)
        one, second = there.local_pass(model, factors, first)
        again, _ = there.local_pass(model, factors, first)
        assert not there.rebuilt
        np.testing.assert_array_equal(one.output.input_moment, again.output.input_moment)
        there.local_pass(model, factors, second)
        assert there.rebuilt


def test_memory_of_a_resumed_fit_is_rebuilt(client: Any) -> None:
    model, rows, factors = start()
    with cluster_rows(client, pieces(rows, 100), itself) as there:
        for unknown in (None, 7, ["memory of another keeper"]):
            there.local_pass(model, factors, unknown)
            assert there.rebuilt


def test_only_statistics_travel(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    travelled = {}
    for n in (200, 4000):
        model, rows, factors = start(n=n)
        with cluster_rows(client, pieces(rows, n // 4, n // 2), itself) as there:
            sizes: list[int] = []
            result = distributed.Future.result

            def weigh(future: Any, timeout: float, result: Any = result, sizes: Any = sizes) -> Any:
                answer = result(future, timeout)
                sizes.append(len(pickle.dumps(answer)))
                return answer

            with monkeypatch.context() as patch:
                patch.setattr(distributed.Future, "result", weigh)
                bt.fit(model, there, factors, max_iter=5, tol=0.0)
            travelled[n] = sizes
            versions = [kept for part in client.run(stored).values() for kept in part.values()]
            assert [len(kept) for kept in versions] == [2, 2, 2]
            assert not left_over(client, "sweep", "merge", "begin")
    assert len(travelled[200]) == 6
    assert max(travelled[4000]) < 1.05 * max(travelled[200]) < 20_000


def test_close_empties_the_store_of_every_worker(client: Any) -> None:
    model, rows, factors = start()
    there = cluster_rows(client, pieces(rows, 100), itself)
    there.begin(model, factors)
    assert sum(map(len, client.run(stored).values())) == 2
    there.close()
    there.close()
    assert sum(map(len, client.run(stored).values())) == 0
    with pytest.raises(ValueError, match="these rows are closed: call cluster_rows again"):
        there.begin(model, factors)


def test_rows_of_another_shape_are_refused(client: Any) -> None:
    _, rows, _ = start()
    with (
        cluster_rows(client, pieces(rows, 100), itself) as there,
        pytest.raises(ValueError, match="rows have 3 inputs and 1 targets"),
    ):
        there.check(bt.build_architecture(2, (4,), 1))
    with pytest.raises(ValueError, match="the partitions have no rows"):
        cluster_rows(client, pieces(take_rows(rows, np.arange(0))), itself)


def slow_sweep(order: Any, sent: Any, rows: list[Rows]) -> Any:
    time.sleep(0.6)
    return SWEEP(order, sent, rows)


SWEEP = worker.sweep


def test_a_death_in_mid_pass_costs_the_memory_of_its_partitions(
    doomed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows, factors = start()
    cuts = (40, 90, 190)
    parts = [take_rows(rows, part) for part in np.split(np.arange(300), cuts)]
    fresh = initialize_memory(model, factors, parts)
    _, after_one = local_pass(model, factors, parts, fresh)
    with cluster_rows(doomed, pieces(rows, *cuts), itself) as there:
        _, version = there.local_pass(model, factors, there.begin(model, factors))
        victim = sorted(doomed.nthreads())[0]
        lost = [number for number, owner in there._owners.items() if owner == victim]
        monkeypatch.setattr(keeping, "sweep", slow_sweep)
        threading.Timer(0.3, kill_worker, [doomed]).start()
        found, _ = there.local_pass(model, factors, version)
        assert there.rebuilt
    assert 0 < len(lost) < 4
    memory = [fresh[n] if n in lost else after_one[n] for n in range(4)]
    expected, _ = local_pass(model, factors, parts, memory)
    for name in ("polya_gamma_moment", "gate_moment", "gate_cross", "gate_entropy"):
        one, other = getattr(found.hidden[0], name), getattr(expected.hidden[0], name)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def settled() -> tuple[bt.FitResult, Rows]:
    """A fit in memory that is nearly at its end: from there all ways lead to the same place."""
    model, rows, factors = start(n=150, hidden=(5,))
    return bt.fit(model, rows, factors, max_iter=250, n_threads=1), rows


def fit_with_a_death(
    client: Any, before: bt.FitResult, there: ClusterRows, replaced: bool
) -> tuple[bt.FitResult, Watched]:
    """A fit whose first worker dies; with `replaced`, one that sees the next one join."""
    watched = Watched(there)
    kill = in_mid_fit(partial(kill_worker, client))
    join = in_mid_fit(partial(wait_for_two, client), sweep=7)

    def callback(progress: bt.Progress) -> None:
        kill(progress)
        if replaced:
            join(progress)

    settings = {"max_sweeps": 40, "callback": callback}
    return bt.fit(before.model, watched, before.factors, **settings), watched


def not_to_restart(dask_worker: Any) -> None:
    """For a nanny: let the death of the worker be the end."""
    dask_worker.status = distributed.Status.closing_gracefully


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "not replaced"])
def test_a_fit_survives_the_death_of_a_worker(doomed: Any, replaced: bool) -> None:
    before, rows = settled()
    expected = bt.fit(before.model, rows, before.factors, max_iter=40, n_threads=1)
    if not replaced:
        doomed.run(not_to_restart, nanny=True)
    with cluster_rows(doomed, pieces(rows, 20, 40, 90), itself, patience=1.0) as there:
        found, watched = fit_with_a_death(doomed, before, there, replaced)
        owners = set(there._owners.values())
        if not replaced:
            kill_worker(doomed)
            sentence = r"no worker is left at the Dask scheduler tcp://.*, and none came within 1 s"
            with pytest.raises(ConnectionError, match=sentence):
                there.begin(before.model, before.factors)
    assert found.status is expected.status is Status.CONVERGED
    assert sum(watched.seen) == (2 if replaced else 1)
    assert len(owners) == (2 if replaced else 1)
    assert found.elbo_history[-1] == pytest.approx(expected.elbo_history[-1], rel=1e-3)
    means = [bt.predict(fit.model, fit.factors, rows.inputs).mean for fit in (found, expected)]
    np.testing.assert_allclose(*means, atol=0.02)


def test_data_that_were_scattered_die_with_their_worker(doomed: Any) -> None:
    model, rows, factors = start()
    first, second = sorted(doomed.nthreads())
    data = [
        doomed.scatter(take_rows(rows, part), workers=[worker], hash=False)
        for worker, part in ((second, np.arange(100)), (first, np.arange(100, 300)))
    ]
    with ClusterRows(doomed, data) as there, pytest.raises(RuntimeError, match="partition 1 died"):
        bt.fit(model, there, factors, callback=in_mid_fit(partial(kill_worker, doomed)))


def test_close_does_not_wait_for_a_worker_that_hangs(
    doomed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows, factors = start()
    there = cluster_rows(doomed, pieces(rows, 100), itself)
    there.begin(model, factors)
    process = kill_worker(doomed, how=signal.SIGSTOP)
    monkeypatch.setattr(link, "ANSWER", 0.5)
    begin = time.monotonic()
    there.close()
    assert 0.4 < time.monotonic() - begin < 3.0
    os.kill(process, signal.SIGKILL)


@contextmanager
def separate_processes(file: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    """A client, and the process of its scheduler."""
    commands = {
        "scheduler": ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        "worker": ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--death-timeout", "5"],
    }
    processes = {
        name: subprocess.Popen(
            [
                sys.executable,
                *("-m", f"distributed.cli.dask_{name}", "--scheduler-file", str(file)),
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, options in commands.items()
    }
    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            distributed.Client(scheduler_file=str(file), timeout=30) as client,
        ):
            client.wait_for_workers(1, timeout=30)
            yield client, processes["scheduler"]
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="hanging", marks=pytest.mark.slow),
    ],
)
def test_a_scheduler_that_gives_no_sign_of_life_ends_a_fit(
    how: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="distributed")
    model, rows, factors = start()
    with separate_processes(tmp_path / "scheduler") as (client, scheduler):

        def silence() -> None:
            monkeypatch.setattr(link, "ANSWER", 0.5)
            scheduler.send_signal(how)

        there = cluster_rows(client, pieces(rows, 100), itself)
        callback = in_mid_fit(silence)
        with pytest.raises(ConnectionError, match=r"the Dask scheduler at tcp://.* went away"):
            bt.fit(model, there, factors, tol=0.0, max_iter=10_000, callback=callback)
        there.close()
        scheduler.kill()


def test_a_scheduler_that_goes_away_ends_a_fit_at_once(doomed: Any) -> None:
    model, rows, factors = start()
    gone: list[float] = []

    def close() -> None:
        gone.append(time.monotonic())
        doomed.processes.close()

    with cluster_rows(doomed, pieces(rows, 100), itself) as there:
        callback = in_mid_fit(threading.Thread(target=close).start)
        with pytest.raises(ConnectionError, match=r"the Dask scheduler at tcp://.* went away"):
            bt.fit(model, there, factors, tol=0.0, max_iter=10_000, callback=callback)
    assert time.monotonic() - gone[0] < 10.0


def sleepy(order: Any, sent: Any, rows: list[Rows]) -> Any:
    time.sleep(1.0)
    return worker.begin(order, sent, rows)


def test_ctrl_c_cancels_what_was_asked(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, factors = start()
    monkeypatch.setattr(keeping, "begin", sleepy)
    with cluster_rows(client, pieces(rows, 100), itself) as there:
        main = threading.main_thread().ident
        threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            there.begin(model, factors)
        assert not left_over(client, "sleepy")


def test_a_task_that_fails_says_why(client: Any) -> None:
    model, rows, factors = start()
    with (
        cluster_rows(client, pieces(rows, 100), itself, block_size=-1) as there,
        pytest.raises(ValueError, match="block_size must be a whole number of at least 1"),
    ):
        there.begin(model, factors)


def test_owners_are_those_who_have_the_data_and_share_the_rows() -> None:
    sizes = {0: 50, 1: 30, 2: 30, 3: 10}
    live = {"a": 1, "b": 1}
    everywhere = {number: ["a", "b"] for number in sizes}
    at_b = {number: ["b"] for number in sizes}
    owners = ownership.share_out(sizes, everywhere, {}, live)
    assert owners == {0: "a", 1: "b", 2: "b", 3: "a"}
    assert ownership.share_out(sizes, at_b, owners, live) == owners
    lost = {number: [] for number in sizes}
    after = ownership.share_out(sizes, lost, owners, {"b": 1, "c": 1})
    assert after == {0: "c", 1: "b", 2: "b", 3: "c"}
    assert set(ownership.share_out(sizes, at_b, {}, live).values()) == {"b"}


def rows_of(worker: str, sizes: dict[int, int], owners: dict[int, str]) -> int:
    return sum(sizes[number] for number, owner in owners.items() if owner == worker)


def test_workers_that_have_nothing_take_from_the_busiest() -> None:
    sizes = {0: 50, 1: 30, 2: 30, 3: 10}
    owners = dict.fromkeys(sizes, "a")
    idle = partial(ownership.level_out, sizes, all_may_take=False)
    shared = idle(owners, {"a": 1, "b": 1})
    assert rows_of("b", sizes, shared) in (50, 60, 70)
    assert idle(shared, {"a": 1, "b": 1}) == shared
    assert rows_of("b", sizes, idle(owners, {"a": 1, "b": 3})) >= 80
    assert set(idle(owners, {"a": 1, "b": 1, "c": 1}).values()) == {"a", "b", "c"}
    assert ownership.level_out({0: 50}, {0: "a"}, {"a": 1, "b": 1}, all_may_take=True) == {0: "a"}


def test_all_workers_share_the_rows_when_that_costs_no_memory() -> None:
    sizes = dict.fromkeys(range(8), 10)
    owners = {number: "a" if number < 6 else "b" for number in sizes}
    live = {"a": 1, "b": 1}
    assert ownership.level_out(sizes, owners, live, all_may_take=False) == owners
    shared = ownership.level_out(sizes, owners, live, all_may_take=True)
    assert rows_of("a", sizes, shared) == rows_of("b", sizes, shared) == 40


def count_rows(rows: Rows) -> int:
    return len(rows.inputs)


def numbers(n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(n, 3)), rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)


def frame(n_partitions: int = 4) -> Any:
    """A Dask data frame of `numbers` with the columns a, b, c, y and w."""
    pandas = pytest.importorskip("pandas")
    X, y, weights = numbers()
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=weights)
    return pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=n_partitions)


def array(values: np.ndarray, *chunks: Any) -> Any:
    return pytest.importorskip("dask.array").from_array(values, chunks=chunks or (10,))


def tables() -> dict[str, Callable[[], DaskSource]]:
    """The same rows in every form that a Dask table has."""
    X, y, weights = numbers()
    unknown = slice(0, 3)
    return {
        "array": lambda: DaskSource(array(X, 10, 2), array(y, 7), array(weights, 40)),
        "arrays in memory": lambda: DaskSource(array(X, 15, 3), y, weights),
        "unknown lengths": lambda: DaskSource(
            frame()[["a", "b", "c"]].to_dask_array()[:, unknown],
            frame()["y"].to_dask_array(),
            frame()["w"].to_dask_array(),
        ),
        "names": lambda: DaskSource(frame(), "y", "w"),
        "chosen": lambda: DaskSource(frame(), ["y"], "w", inputs=["a", "b", "c"]),
        "series": lambda: DaskSource(frame()[["a", "b", "c"]], frame()["y"], frame()["w"]),
        "frame and arrays": lambda: DaskSource(
            frame()[["a", "b", "c"]], frame()[["y"]].to_dask_array(), array(weights, 10)
        ),
    }


@pytest.mark.parametrize("form", list(tables()))
def test_every_form_of_a_dask_table_gives_the_same_rows(form: str) -> None:
    X, y, weights = numbers()
    source = tables()[form]()
    parts = [rows for piece in range(source.n_pieces) for rows in source.read(piece)]
    np.testing.assert_array_equal(np.concatenate([rows.inputs for rows in parts]), X)
    np.testing.assert_array_equal(np.concatenate([rows.targets for rows in parts]), y[:, None])
    np.testing.assert_array_equal(np.concatenate([rows.weights for rows in parts]), weights)
    assert (source.n_inputs, source.n_targets) == (3, 1)
    assert source.single_target == (form not in ("chosen", "frame and arrays"))
    if form in ("names", "chosen", "series"):
        assert source.input_names == ("a", "b", "c")
        assert source.target_names == ("y",)
    source.check_unchanged()


def test_a_table_without_targets_is_one_for_prediction() -> None:
    source = DaskSource(frame()[["a", "b"]])
    (rows,) = source.read(2)
    assert rows.targets.shape == (10, 0)
    assert (source.n_inputs, source.n_targets, source.single_target) == (2, 0, False)
    np.testing.assert_array_equal(rows.weights, np.ones(10))


def test_a_survey_asks_each_partition_where_it_is(client: Any) -> None:
    parts = partitions(DaskSource(frame(), "y", "w"))
    assert survey_partitions(client, parts, count_rows) == [10, 10, 10, 10]
    assert survey_partitions(client, client.compute(parts), count_rows) == [10, 10, 10, 10]


def test_a_dask_table_can_be_fitted(client: Any) -> None:
    X, y, weights = numbers()
    rows = bt.build_rows(X, y, weights)
    model = bt.default_model(bt.build_architecture(3, (4,), 1), X, y)
    factors = bt.initialize(model, rows, np.random.default_rng(0))
    assert running_client() is client
    with cluster_rows(client, partitions(DaskSource(frame(), "y", "w")), itself) as there:
        found = bt.fit(model, there, factors, max_iter=5)
    expected = bt.fit(model, rows, factors, max_iter=5, n_threads=1)
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-8)


def spoil(part: Any, partition_info: Any = None) -> Any:
    """A NaN in column b of partition 3, and one row less in partition 2."""
    number = partition_info["number"]
    part = part.copy()
    if number == 3:
        part.iloc[1, 1] = np.nan
    return part.iloc[1:] if number == 2 else part


def with_texts(part: Any) -> Any:
    return part.assign(a=part["a"].astype(object).where(part["b"] > 0, "a text"))


def test_errors_in_the_data_name_partition_and_column(client: Any) -> None:
    good = frame()
    bad = good.map_partitions(spoil, meta=good._meta)
    with pytest.raises(ValueError, match=r"partition 3: NaN or infinity in column 'b' \(1 NaN\)"):
        survey_partitions(client, partitions(DaskSource(bad, "y")), count_rows)
    with pytest.raises(ValueError, match="partition 2: y has 10 rows, but X has 9"):
        survey_partitions(client, partitions(DaskSource(bad[["a"]], good["y"])), count_rows)
    objects = good.map_partitions(with_texts, meta=good._meta.astype({"a": object}))
    with pytest.raises(ValueError, match="partition 0: column 'a' must hold numbers"):
        survey_partitions(client, partitions(DaskSource(objects, "y")), count_rows)


def test_errors_that_need_no_rows() -> None:
    table = frame()
    X, y, _ = numbers()
    with pytest.raises(ValueError, match="X has no column 'fare', which y names: its columns are"):
        DaskSource(table, "fare")
    with pytest.raises(ValueError, match=r"these columns do not: 'd' \(str"):
        DaskSource(table.assign(d="text"), "y")
    with pytest.raises(ValueError, match="several columns called 'a'"):
        DaskSource(table, "a", inputs=["a", "b"])
    with pytest.raises(ValueError, match="no columns left for inputs"):
        DaskSource(table[["y"]], "y")
    with pytest.raises(ValueError, match="y is an array in memory, but the lengths"):
        DaskSource(table[["a"]], y)
    with pytest.raises(ValueError, match="y has 2 partitions, but X has 4"):
        DaskSource(table[["a"]], frame(2)["y"])
    with pytest.raises(ValueError, match="y has 39 rows, but X has 40"):
        DaskSource(array(X, 10, 3), y[:-1])
    with pytest.raises(ValueError, match="y has 39 rows, but X has 40"):
        DaskSource(array(X, 10, 3), array(y[:-1], 10))
    with pytest.raises(ValueError, match="X must be a table of shape"):
        DaskSource(array(y))
    with pytest.raises(ValueError, match="X must be an array of real numbers, got dtype complex"):
        DaskSource(array(X + 1j, 10, 3))
    with pytest.raises(ValueError, match="y must be an array or a Dask table, or name columns"):
        DaskSource(array(X, 10, 3), "y")


def test_dask_tables_are_known_by_their_type() -> None:
    X, _, _ = numbers()
    assert is_dask(frame())
    assert is_dask(frame()["y"])
    assert is_dask(array(X, 10, 3))
    assert not is_dask(X)


def test_without_a_client_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match=r"start one with distributed\.Client\(\) first"):
        running_client()


def test_without_dask_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'bowtienet\[bigdata\]'"):
        running_client()
