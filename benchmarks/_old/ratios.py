"""The ratios that `make bench` measures and guards: two things timed in turn, in one process.

Smaller is better in every one. What stands below the line is a yardstick of this machine (a matrix
product, scikit-learn) or another part of the library; in the latter case a ratio also rises when
that part has become faster, which the seconds beside it show.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._old.guard import Figure, summarize
from benchmarks._old.speed import predict, sweep

SHORTEST = 0.05
"""Seconds: a shorter call is repeated within one measurement."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What is timed; ratio = scale x seconds of `above` / seconds of `below`."""

    above: Callable[[], object]
    below: Callable[[], object]
    scale: float = 1.0
    long: bool = False
    """Calls take seconds: none is spent on trying them."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio by its name."""

    above: str
    below: str
    prepare: Callable[[bool], AbstractContextManager[Pair]]
    """Makes the pair ready; told whether the sizes are to be small."""
    cores: int = 1
    repeats: int = 7


def measure(ratio: Ratio, quick: bool) -> Figure:
    """One ratio in this process."""
    with ratio.prepare(quick) as pair:
        return alternate(pair, 3 if quick else ratio.repeats)


def alternate(pair: Pair, repeats: int, clock: Callable[[], float] = time.perf_counter) -> Figure:
    """Time both parts in turn; who goes first changes, so that a drift of the machine cancels."""
    parts = (pair.above, pair.below)
    calls = [1 if pair.long else _calls(part, clock) for part in parts]
    seconds: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats):
        for which in (0, 1) if repeat % 2 == 0 else (1, 0):
            begin = clock()
            for _ in range(calls[which]):
                parts[which]()
            seconds[which].append((clock() - begin) / calls[which])
    return summarize(*seconds, scale=pair.scale)


def _calls(part: Callable[[], object], clock: Callable[[], float]) -> int:
    """Calls of one measurement, from a second call: the first one loads what is loaded late."""
    part()
    begin = clock()
    part()
    taken = clock() - begin
    return 1 if taken >= SHORTEST else min(1000, int(np.ceil(SHORTEST / max(taken, 1e-9))))


def _rows(rows: int, quick: bool) -> int:
    return min(rows, 500) if quick else rows


@contextmanager
def _sweep_over_product(
    rows: int, inputs: int, hidden: tuple[int, ...], quick: bool
) -> Iterator[Pair]:
    """The ratio of benchmarks/speed/sweep.py: a sweep over products of as many operations."""
    shape = (_rows(rows, quick), inputs, hidden)
    matrix = np.random.default_rng(0).normal(size=(1000, 1000))
    with sweep.sweeper(*sweep.problem(*shape), 1) as advance:
        yield Pair(above=advance, below=lambda: matrix @ matrix, scale=2e9 / sweep.work(*shape))


@contextmanager
def _two_threads(quick: bool) -> Iterator[Pair]:
    problem = sweep.problem(5_000 if quick else 50_000, 20, (100,))
    with sweep.sweeper(*problem, 2) as two, sweep.sweeper(*problem, 1) as one:
        yield Pair(above=two, below=one)


@contextmanager
def _single_precision(quick: bool) -> Iterator[Pair]:
    shape = (_rows(50_000, quick), 20, (100,))
    with ExitStack() as stack:
        single, double = (
            stack.enter_context(sweep.sweeper(*sweep.problem(*shape, precision=precision), 1))
            for precision in ("float32", "float64")
        )
        yield Pair(above=single, below=double)


@contextmanager
def _stochastic(quick: bool) -> Iterator[Pair]:
    """With the steps that the estimator takes for one hidden layer; rows are the same for both."""
    from bowtienet._old import engine

    state, kept = sweep.problem(_rows(50_000, quick), 20, (50,))
    rows = kept.rows
    n_rows = len(rows.targets)
    batches = engine.minibatches(rows, min(4_096, n_rows // 5), seed=0)
    one_pass = partial(
        engine.fit_stochastic,
        state.model,
        batches,
        state.factors,
        n_rows=n_rows,
        max_iter=1,
        tol=0.0,
        adaptive=True,
        momentum=0.9,
        local_iterations=1,
        n_threads=1,
    )
    with sweep.sweeper(state, kept, 1) as advance:
        yield Pair(above=one_pass, below=advance)


@contextmanager
def _start(quick: bool) -> Iterator[Pair]:
    from bowtienet._old import engine

    state, kept = sweep.problem(_rows(1_000, quick), 8, (50,))
    with sweep.sweeper(state, kept, 1) as advance:
        yield Pair(above=lambda: engine.initialize(state.model, kept.rows, 0), below=advance)


@contextmanager
def _prediction(quick: bool) -> Iterator[Pair]:
    rows = _rows(100_000, quick)
    x = np.random.default_rng(1).normal(size=(rows, predict.INPUTS))
    estimator = predict.fitted(_rows(predict.TRAINING_ROWS, quick))
    with sweep.sweeper(*sweep.problem(rows, predict.INPUTS, (50,)), 1) as advance:
        yield Pair(above=lambda: estimator.predict(x, return_std=True), below=advance)


@contextmanager
def _propagations(quick: bool) -> Iterator[Pair]:
    x = np.random.default_rng(1).normal(size=(_rows(20_000, quick), predict.INPUTS))
    estimator = predict.fitted(_rows(predict.TRAINING_ROWS, quick))
    push_forward, variational = (
        predict.propagated(copy(estimator), propagation)
        for propagation in ("push_forward", "variational")
    )
    yield Pair(
        above=lambda: push_forward.predict(x, return_std=True),
        below=lambda: variational.predict(x, return_std=True),
    )


@contextmanager
def _pruned(quick: bool) -> Iterator[Pair]:
    x = np.random.default_rng(1).normal(size=(_rows(100_000, quick), predict.INPUTS))
    full = predict.fitted(_rows(predict.TRAINING_ROWS, quick))
    pruned = full.prune(*predict.training_rows(_rows(predict.TRAINING_ROWS, quick)))
    yield Pair(
        above=lambda: pruned.predict(x, return_std=True),
        below=lambda: full.predict(x, return_std=True),
    )


@contextmanager
def _default_fit(quick: bool) -> Iterator[Pair]:
    from benchmarks._old.paper.methods import ours, scikit

    rng = np.random.default_rng(0)
    x = rng.normal(size=(40 if quick else 300, 8))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=len(x))
    settings = {"n_estimators": 1, "weighting": "equal", "max_iter": 5} if quick else {}
    fit, fit_process = ours.ensemble((50,), **settings), scikit.gpr()
    yield Pair(above=lambda: fit(x, y, 0), below=lambda: fit_process(x, y, 0), long=True)


@contextmanager
def _save_and_load(quick: bool) -> Iterator[Pair]:
    rows = _rows(1_000, quick)
    estimator = predict.fitted(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"

        def there_and_back() -> None:
            estimator.save(path)
            type(estimator).load(path)

        yield Pair(above=there_and_back, below=lambda: predict.fitted(rows))


@contextmanager
def _import(quick: bool) -> Iterator[Pair]:
    def importing(name: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    yield Pair(
        above=lambda: importing("bowtienet"),
        below=lambda: importing("sklearn.gaussian_process"),
    )


def _shape(name: str, rows: int, inputs: int, hidden: tuple[int, ...]) -> dict[str, Ratio]:
    shape = sweep.name((rows, inputs, hidden))
    return {
        name: Ratio(
            above=f"a sweep ({shape})",
            below="matrix products of as many operations",
            prepare=partial(_sweep_over_product, rows, inputs, hidden),
        )
    }


WIDE = sweep.name((50_000, 20, (100,)))

RATIOS = {
    **_shape("sweep, small", *sweep.SHAPES[0]),
    **_shape("sweep, wide", *sweep.SHAPES[1]),
    **_shape("sweep, deep", *sweep.SHAPES[2]),
    "two threads": Ratio(
        above=f"a sweep on two threads ({WIDE})",
        below="on one",
        prepare=_two_threads,
        cores=2,
    ),
    "float32": Ratio(
        above=f"a sweep of float32 rows ({WIDE})",
        below="of float64 rows",
        prepare=_single_precision,
    ),
    "stochastic": Ratio(
        above="a stochastic pass, batches of 4,096 (50,000, 20, 50)",
        below="a sweep of the same rows",
        prepare=_stochastic,
    ),
    "start": Ratio(
        above="the start `relu_network` (1,000, 8, 50)",
        below="a sweep of the same rows",
        prepare=_start,
    ),
    "prediction": Ratio(
        above="mean and deviation of 100,000 rows with 8 inputs, 50 units",
        below="a sweep of as many rows",
        prepare=_prediction,
    ),
    "push forward": Ratio(
        above="prediction of 20,000 rows by the push-forward",
        below="by the variational route",
        prepare=_propagations,
    ),
    "pruned": Ratio(
        above="prediction of 100,000 rows by a pruned estimator",
        below="by the full one",
        prepare=_pruned,
    ),
    "default fit": Ratio(
        above="a fit of the default estimator (300 rows, 8 inputs)",
        below="of a Gaussian process in scikit-learn, two restarts",
        prepare=_default_fit,
        repeats=3,
    ),
    "save and load": Ratio(
        above="saving and loading an estimator of one member",
        below="fitting it (1,000 rows, 20 sweeps)",
        prepare=_save_and_load,
    ),
    "import": Ratio(
        above="a new Python that imports bowtienet",
        below="one that imports scikit-learn's Gaussian process",
        prepare=_import,
        repeats=5,
    ),
}
