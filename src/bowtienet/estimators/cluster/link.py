"""The connection to a Dask scheduler: who is alive, and answers that come or fail in time."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

PATIENCE = 30.0
"""Seconds to wait for a worker when none is left."""
TICK = 0.5
"""Seconds between two looks at who is alive."""
ANSWER = 5.0
"""Seconds in which a scheduler that is alive answers a small question, unless it is very busy."""
_ATTEMPTS = 3
"""So often is it asked."""


def running_client() -> Any:
    """The client of this session."""
    try:
        return library("distributed").default_client()
    except ValueError:
        raise ValueError(
            "Dask tables need a scheduler: start one with distributed.Client() first."
        ) from None


@dataclass(frozen=True)
class Link:
    """Questions to a scheduler that end, with an answer or an error, also when it is gone."""

    client: Any
    patience: float

    def ask(self, question: str, **details: Any) -> Any:
        """Answer of the scheduler to a small question."""
        for _ in range(_ATTEMPTS):
            if self.client.status != "running":
                break
            # Among these errors are a timeout and a connection that was closed.
            with suppress(OSError, CancelledError):
                method = getattr(self.client.scheduler, question)
                return self.client.sync(method, callback_timeout=ANSWER, **details)
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say that the scheduler is gone."""
        address = getattr(self.client.scheduler, "address", "its address")
        raise ConnectionError(
            f"the Dask scheduler at {address} went away during the fit: start it again; a fit with "
            "checkpoint=... can be resumed."
        )

    def tell(self, function: Callable[[], None], addresses: Iterable[str]) -> None:
        """Call a function on workers; those that are gone need not hear it."""
        named = list(addresses)
        if named:  # to Dask an empty list means all
            # Also a worker that hangs: what it keeps is not worth waiting for.
            with suppress(OSError):
                self.client.run(function, workers=named, on_error="ignore", callback_timeout=ANSWER)

    def cancel(self, futures: Sequence[Any]) -> None:
        """Drop tasks of which nobody wants to know any more, if the scheduler still listens."""
        with suppress(Exception):
            self.client.cancel(list(futures))

    def workers(self) -> dict[str, int]:
        """Threads of every worker that is alive; waits with patience if there is none."""
        deadline = time.monotonic() + self.patience
        while not (live := dict(self.ask("ncores"))):
            if time.monotonic() > deadline:
                raise ConnectionError(
                    f"no worker is left at the Dask scheduler {self.client.scheduler.address}, and "
                    f"none came within {self.patience:g} seconds: start workers; a fit with "
                    "checkpoint=... can be resumed."
                )
            time.sleep(TICK)
        return live

    def wait(self, futures: Sequence[Any]) -> bool:
        """Whether all are done, or one has failed, after at most a tick.

        It looks again and again: a timeout of Dask's own `wait` leaves an exception in a cycle of
        references, and with it the futures of all frames, until Python collects garbage.
        """
        deadline, pause = time.monotonic() + TICK, 0.001
        while True:
            states = {future.status for future in futures}
            if states <= {"finished", "error"} or "cancelled" in states:
                return True
            if time.monotonic() > deadline:
                return "error" in states
            time.sleep(pause)
            pause = min(1.2 * pause, 0.05)

    def collect(self, futures: Sequence[Any]) -> list[Any]:
        """Answers of tasks that may run anywhere: Dask repeats what dies with a worker."""
        try:
            while not self.wait(futures):
                self.workers()
            for future in futures:
                if future.status == "error":
                    future.result()
            return self.client.gather(list(futures))
        except CancelledError as error:
            self.workers()
            raise RuntimeError(
                "partitions died with a worker and cannot be computed again: give a collection "
                "that Dask can compute, such as one read from files."
            ) from error
        except BaseException:
            self.cancel(futures)
            raise


def losses() -> tuple[type[Exception], ...]:
    """Errors of tasks whose worker is gone."""
    scheduler = importlib.import_module("distributed.scheduler")
    names = ("KilledWorker", "NoValidWorkerError", "NoWorkerError")
    found = tuple(getattr(scheduler, name) for name in names if hasattr(scheduler, name))
    return (*found, importlib.import_module("distributed").comm.CommClosedError)


def library(name: str) -> Any:
    """A module of Dask, which is imported only where a Dask table is used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Dask tables need Dask: pip install 'bowtienet[bigdata]'.") from error
