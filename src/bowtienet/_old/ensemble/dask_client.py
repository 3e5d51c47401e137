"""Work for the partitions of a Dask table: answers that come, or an error, but no endless waiting.

    facts = survey_partitions(client, parts, gather)          small answers, one for each part
    rows = on_each(client, parts, standardize)                futures, which stay on the workers

Dask repeats what dies with a worker. That no worker is left, or no scheduler, is an error here.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from threading import Event
from typing import Any

PATIENCE = 30.0
"""Seconds to wait for a worker when none is left."""
TICK = 0.5
"""Seconds between two looks at the list of workers."""
ANSWER = 10.0
"""Seconds in which a scheduler that is alive answers a small question."""


def running_client() -> Any:
    """The Dask client of this session."""
    try:
        return _library("distributed").default_client()
    except ValueError:
        raise ValueError(
            "Dask tables need a scheduler: start one with distributed.Client() first."
        ) from None


def on_each(
    client: Any, parts: Sequence[Any], function: Callable[..., Any], *others: Sequence[Any]
) -> list[Any]:
    """Futures of `function` for each part; what it reads is not kept.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed or futures
    function : callable
        Can be pickled.
    *others : lists
        What it is told of each part besides.
    """
    task = delayed(function)
    return list(client.compute([task(*own) for own in zip(parts, *others, strict=True)]))


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a task of Dask: called, it answers with a delayed result."""
    task: Callable[..., Any] = _library("dask").delayed(function, pure=False, traverse=False)
    return task


def survey_partitions(
    client: Any, parts: Sequence[Any], function: Callable[..., Any], *others: Sequence[Any]
) -> Iterator[Any]:
    """What `function` answers for each part, in their order; see `on_each`.

    Answers wait on the workers until they are asked for.
    """
    futures = on_each(client, parts, function, *others)
    try:
        for future in futures:
            yield result(client, future)
            future.release()
    finally:
        release(futures)


def result(client: Any, future: Any, needed: Collection[str] = ()) -> Any:
    """Result of a future, or None as soon as one of the workers that it needs is gone.

    Dask itself repeats what dies with a worker, if other workers may run it.
    """
    done, enough = Event(), ANSWER
    future.add_done_callback(lambda _: done.set())
    while True:
        if done.wait(TICK):
            try:
                return future.result(timeout=enough)
            except CancelledError as error:
                live_workers(client)
                raise RuntimeError(
                    "partitions died with a worker, or were cancelled, and cannot be computed "
                    "again: give a collection that Dask can compute, such as one read from files."
                ) from error
            except OSError:
                # Either the task says so, or the worker that has the result does not answer.
                if future.status == "error":
                    raise
                enough *= 2.0
                time.sleep(TICK)
        if not live_workers(client).keys() >= set(needed):
            return None


def live_workers(client: Any) -> dict[str, int]:
    """Threads of every worker that is alive; waits with patience if there is none.

    A worker that Dask has paused for want of memory is none: it would run nothing.
    """
    deadline = time.monotonic() + PATIENCE
    while not (threads := dict(ask(client, "ncores_running"))):
        if time.monotonic() > deadline:
            raise ConnectionError(
                f"no worker is left at the Dask scheduler {client.scheduler.address}, and none "
                f"came within {PATIENCE:g} seconds: start workers, or larger ones if Dask has "
                "paused them, and fit again."
            )
        time.sleep(TICK)
    return threads


def ask(client: Any, question: str, **details: Any) -> Any:
    """Answer of the scheduler to a small question, or an error if it is gone."""
    try:
        if client.status == "running":
            method = getattr(client.scheduler, question)
            return client.sync(method, callback_timeout=ANSWER, **details)
    except (OSError, CancelledError):
        pass
    address = getattr(client.scheduler, "address", "its address")
    raise ConnectionError(f"the Dask scheduler at {address} went away: start it and fit again.")


def release(futures: Iterable[Any]) -> None:
    """Let go of results and of tasks, even if a traceback still knows them; does not wait."""
    for future in futures:
        future.release()


def _library(name: str) -> Any:
    """A module of Dask, which is imported only where a Dask table is used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Dask tables need Dask: pip install 'bowtienet[bigdata]'.") from error
