"""Clusters of real processes for tests, and how to do them harm."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def local_cluster() -> Iterator[Any]:
    """A client of two processes; the deaths that a test brings about are not logged.

    Processes are forks of one that has imported all they need, which takes seconds.
    """
    dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.nanny.environ": ENVIRONMENT,
        "distributed.comm.timeouts.connect": "5s",
    }
    with dask.config.set(settings):
        distributed.utils.get_mp_context().set_forkserver_preload(
            ["distributed", "pandas", "bowtienet.estimators.regressor"]
        )
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL + 1,
        ) as processes,
        distributed.Client(processes.scheduler_address) as client,
    ):
        client.processes = processes
        yield client


def kill_worker(client: Any, number: int = 0, how: int = signal.SIGKILL) -> int:
    """Send a signal to a worker; its process."""
    address = sorted(client.nthreads())[number]
    process = client.run(os.getpid, workers=[address])[address]
    os.kill(process, how)
    return int(process)


def wait_for_two(client: Any) -> None:
    client.wait_for_workers(2, timeout=30)


def left_over(client: Any, *names: str) -> list[str]:
    """Tasks of these names that the scheduler still keeps after a while: news travel slowly."""
    deadline = time.monotonic() + 5.0
    while True:
        keys = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
        left = [key for key in keys if key.startswith(names)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def stored() -> dict[tuple[str, int], list[Any]]:
    """Versions that the store of this process keeps of each partition."""
    from bowtienet.estimators.cluster import worker

    return {
        (fit, number): list(versions)
        for fit, kept in worker.MEMORY.items()
        for number, versions in kept.items()
    }


def once(deed: Callable[[], Any]) -> Callable[[], None]:
    """Does the deed when it is first called."""
    done: list[bool] = []

    def call() -> None:
        if not done:
            done.append(True)
            deed()

    return call
