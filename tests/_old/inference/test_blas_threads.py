"""The threads of the linear algebra library come back, whoever leaves last, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import bowtienet
from bowtienet._old.inference.blas_threads import _BlasGuard, one_blas_thread

SOURCE = str(Path(bowtienet.__file__).parents[1])


def threads() -> list[int]:
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.fixture
def before() -> Iterator[list[int]]:
    with threadpool_limits(limits=2, user_api="blas"):
        yield threads()


def test_whoever_leaves_first(before: list[int]) -> None:
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    assert set(threads()) == {1}
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_the_last_one_out_is_another_thread_than_the_first_one_in(before: list[int]) -> None:
    """And the first one lives on, as threads of a pool do."""
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            inside.set()
            assert leave.wait(30.0)

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        one = first.submit(stay)
        assert inside.wait(30.0)
        inside.clear()
        release, leave = leave, threading.Event()
        two = second.submit(stay)
        assert inside.wait(30.0)
        assert set(threads()) == {1}
        release.set()
        one.result()
        assert set(threads()) == {1}
        leave.set()
        two.result()
        assert threads() == before


def test_what_somebody_else_sets_meanwhile_stays(before: list[int]) -> None:
    """A limit of another library that ends while a fit runs is not brought back by it."""
    other = threadpool_limits(limits=1, user_api="blas")
    with one_blas_thread():
        other.restore_original_limits()
    assert threads() == before


class OpenMP:
    """A library whose setting belongs to each thread."""

    threading_layer = "openmp"

    def __init__(self) -> None:
        self.own = threading.local()

    @property
    def num_threads(self) -> int:
        return getattr(self.own, "value", 4)

    def set_num_threads(self, n_threads: int) -> None:
        self.own.value = n_threads


def test_settings_of_each_thread() -> None:
    guard, library = _BlasGuard(), OpenMP()
    guard.by_thread, guard.looked_up = [library], True
    seen: list[Any] = []

    def work() -> None:
        with guard(), guard():
            seen.append(library.num_threads)
        seen.append(library.num_threads)

    def serve() -> None:
        guard.begin_thread()
        seen.append(library.num_threads)

    with guard():
        for function in (work, serve):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()
        assert library.num_threads == 1
    assert seen == [1, 4, 1]
    assert library.num_threads == 4


PROGRAM = """
import os, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from threadpoolctl import threadpool_info
from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.inference.blas_threads import one_blas_thread

warnings.simplefilter("ignore")
rng = np.random.default_rng(500)
X = rng.normal(size=(60, 2))
y = X[:, 0] + rng.normal(size=60)
inside, release = threading.Event(), threading.Event()

def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

def fit(seed, **settings):
    options = FitOptions(weighting="equal")
    model = BowTieRegressor((4,), n_estimators=1, random_state=seed, options=options, **settings)
    return model.fit(X, y)

def long_fit():
    with one_blas_thread():
        inside.set()
        fit(1, max_iter=30)
        release.wait()

fit(0, max_iter=2)
assert threads() == {2}, threads()
with ThreadPoolExecutor(3) as pool:
    list(pool.map(lambda seed: fit(seed, max_iter=5), range(6)))
    assert threads() == {2}, threads()  # the threads of the pool still live
    running = pool.submit(long_fit)
    inside.wait()
    one_blas_thread.lock.acquire()  # as if the other thread were just entering or leaving
    child = os.fork()
    if child == 0:
        try:
            assert threads() == {2}, threads()
            fit(2, max_iter=2)
            assert threads() == {2}, threads()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    one_blas_thread.lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert threads() == {1}, threads()
    release.set()
    running.result()
    assert threads() == {2}, threads()
with one_blas_thread():
    child = os.fork()
    if child == 0:
        os._exit(0 if threads() == {1} else 1)  # the fit of the thread that forked goes on
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("done")
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_fits_in_threads_and_a_fork_in_their_midst() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": SOURCE}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stdout + found.stderr
