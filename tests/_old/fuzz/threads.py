"""Cases of threads and forks: fits side by side are those in turn, and BLAS is left as it was."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from tests._old.fuzz.attempts import must, require
from tests._old.fuzz.fits import Note
from tests._old.fuzz.properties import assert_close, predictions, rows_of
from tests._old.fuzz.settings import draw_estimator, pick
from tests._old.fuzz.tables import Table, draw_table


def _blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def _fit(model: Any, table: Table) -> Any:
    return clone(model).fit(table.frame, table.target, **rows_of(table))


def fuzz_threads(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """Two or three fits at the same time, and perhaps a fork among them."""
    tasks = [pick(rng, "numbers", "classes") for _ in range(int(rng.integers(2, 4)))]
    tables = [draw_table(rng, task, tame=True) for task in tasks]
    models = [draw_estimator(rng, task, effort="fast") for task in tasks]
    note("\n".join(f"{t.words}\n{m!r}" for t, m in zip(tables, models, strict=True)))
    expected = must("fit", lambda: [_fit(m, t) for m, t in zip(models, tables, strict=True)])
    # Kept alive: a limit ends with the object that set it.
    limits = threadpool_limits(2, user_api="blas")
    before = _blas_threads()
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(_fit, m, t) for m, t in zip(models, tables, strict=True)]
        code = _fork_and_fit(models[0], tables[0], before) if rng.random() < 0.5 else 0
        found = must("fit in threads", lambda: [future.result() for future in running])
    require(code == 0, "a fork during a fit ends otherwise", {1: "error", 2: "threads"}.get(code))
    for table, one, other in zip(tables, expected, found, strict=True):
        assert_close("threads", predictions(other, table.frame), predictions(one, table.frame), 0.0)
    require(_blas_threads() == before, "BLAS has other threads after fits", _blas_threads())
    limits.restore_original_limits()
    return "the same"


def _fork_and_fit(model: Any, table: Table, threads: list[int]) -> int:
    """0 if a forked process fits, and its BLAS has as many threads as before."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _fit(model, table)
            code = 0 if _blas_threads() == threads else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
