"""Clusters of real processes for tests, and how to do them harm."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def local_cluster(n_workers: int = 2) -> Iterator[Any]:
    """A client of worker processes; the deaths that a test brings about are not logged.

    Processes are forks of one that has imported all they need, which takes seconds.
    """
    dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.nanny.environ": ENVIRONMENT,
        "distributed.comm.timeouts.connect": "5s",
        "distributed.scheduler.worker-ttl": "1s",  # Dask makes at least five seconds of it
        "distributed.worker.memory.pause": False,  # a paused worker does not go on by itself
    }
    with dask.config.set(settings):
        distributed.utils.get_mp_context().set_forkserver_preload(
            ["distributed", "pandas", "dask.dataframe", "bowtienet._old.ensemble.fit_ensemble"]
        )
        with (
            distributed.LocalCluster(
                n_workers=n_workers,
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


def pause_worker(client: Any) -> None:
    """Let the first worker take no more tasks, as Dask does when its memory is nearly full."""
    paused = importlib.import_module("distributed").Status.paused
    client.run(partial(_set_status, paused), workers=sorted(client.nthreads())[:1])


def _set_status(status: Any, dask_worker: Any) -> None:
    dask_worker.status = status


def left_over(client: Any) -> list[str]:
    """Tasks that the scheduler still keeps after a while: news travel slowly."""
    deadline = time.monotonic() + 5.0
    while True:
        keys = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
        if not keys or time.monotonic() > deadline:
            return keys
        time.sleep(0.05)


def remembered(dask_worker: Any) -> list[int]:
    """For `client.run`: versions of local factors in each partition of a worker."""
    held = [value for value in dask_worker.data.values() if type(value).__name__ == "_Partition"]
    return [len(partition.memory) for partition in held]


def in_mid_fit(deed: Callable[[], Any], sweep: int = 4) -> Callable[[Any], None]:
    """A callback of `fit` that does the deed once, after a number of sweeps."""
    done: list[bool] = []

    def callback(progress: Any) -> None:
        if progress.sweep >= sweep and not done:
            done.append(True)
            deed()

    return callback
