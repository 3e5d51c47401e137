"""One pass over the rows, block by block: local step, statistics, and their sum.

Nothing of size rows x width x width is ever held: squares of widths exist for one block at a time,
and between sweeps a block keeps only its gate probabilities (and tilts from the second hidden
layer on).
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial, reduce
from itertools import islice, pairwise
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_jax_array

from bowtienet._old._arrays import (
    Array,
    like,
    map_arrays,
    namespace,
    pack_outer,
    packed_size,
    to_numpy,
    with_ones,
)
from bowtienet._old._validation import whole
from bowtienet._old.data.rows import Rows, split
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.local_step import (
    FactorsForRows,
    for_rows,
    initialize_local,
    local_memory,
    local_step,
    settle,
)
from bowtienet._old.inference.output_by_row import OutputForRows
from bowtienet._old.inference.statistics import (
    HiddenStatistics,
    OutputStatistics,
    Statistics,
    add,
    block_statistics,
    tree_sum,
)
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import (
    GAUSSIAN,
    Binary,
    Classes,
    Counts,
    Gaussian,
    Outcome,
    StudentT,
)
from bowtienet._old.model.priors import BowTieModel, build_model
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors, LocalMemory

BLOCK_BYTES = 4_000_000
"""Largest array of a block: big enough for fast products, small enough to stay near the cache."""


LOCAL_BYTES = 1_000_000
"""Largest array of rows x units of a block: many passes go over such arrays."""
KEPT_BYTES = 256_000_000
"""Second moments of the inputs are kept between sweeps if all of them take no more than this."""


@dataclass(frozen=True, kw_only=True)
class Block(Rows):
    """Rows that are worked on together."""

    input_second: Array | None = None
    """Packed second moments of (1, x), (n, (D_0+1)(D_0+2)/2), if they are kept between sweeps."""


def build_blocks(rows: Rows, architecture: Architecture, size: int) -> list[Block]:
    """Consecutive blocks of at most `size` rows."""
    inputs = rows.inputs
    numbers = inputs.shape[0] * packed_size(architecture.n_inputs + 1)
    keep = architecture.n_hidden > 0 and 8 * numbers <= KEPT_BYTES
    return [
        Block(
            inputs=part.inputs,
            targets=part.targets,
            weights=part.weights,
            input_second=pack_outer(with_ones(part.inputs)) if keep else None,
        )
        for part in split(rows, size)
    ]


def block_rows(
    architecture: Architecture, wanted: int | None = None, outcome: Outcome = GAUSSIAN
) -> int:
    """Rows of a block: as many as wanted, or as many as `BLOCK_BYTES` and `LOCAL_BYTES` allow."""
    if wanted is not None:
        return whole(wanted, "block_size")
    widths = architecture.widths
    largest = packed_size(widths[0] + 1)
    for below, width in pairwise(widths[1:-1]):
        largest = max(largest, below * width, below * below, width * width)
    if outcome.by_row:
        largest = max(largest, widths[-1] * (widths[-2] + 1))
    if has_row_covariances(architecture, outcome):
        largest = max(largest, widths[-2] ** 2)
    return max(16, min(BLOCK_BYTES // (8 * largest), LOCAL_BYTES // (8 * max(widths))))


def has_row_covariances(architecture: Architecture, outcome: Outcome) -> bool:
    """Whether every row has covariances (D, D) of activations of its own."""
    several = outcome.by_row and architecture.n_outputs > 1 and architecture.n_hidden > 0
    return architecture.n_hidden > 1 or several


Mapper: TypeAlias = Callable[..., Iterable[Any]]
"""Like the built-in `map`: applies a function to items, answers in their order."""


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(n_threads: int | None) -> Iterator[Mapper]:
    """A `Mapper` that works on `n_threads` blocks at a time; None for all usable cores.

    The linear algebra library is held to one thread for each worker, so that two levels of threads
    do not fight for the same cores, and so that a result does not depend on their number: sums are
    taken in the order of the blocks whoever computed them. Floating-point warnings are off: what
    overflows has a bound that is not finite, which the caller looks at.
    """
    n_threads = usable_cores() if n_threads is None else whole(n_threads, "n_threads")
    _keep_freed_memory()
    with one_blas_thread(), np.errstate(all="ignore"):
        if n_threads == 1:
            yield map
            return
        pool = ThreadPoolExecutor(n_threads, initializer=_begin_worker)
        try:
            yield partial(_map_ahead, pool, 2 * n_threads)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _map_ahead(
    pool: ThreadPoolExecutor, ahead: int, function: Callable[..., Any], *items: Iterable[Any]
) -> Iterator[Any]:
    """`map` on a pool that asks for no more items than the next answers need.

    Blocks of a stream are read when their turn comes (the pool's own `map` reads all at once).
    """
    waiting: deque[Future[Any]] = deque()
    try:
        for arguments in zip(*items, strict=False):
            waiting.append(pool.submit(function, *arguments))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _keep_freed_memory() -> None:
    """Let the allocator keep what blocks free instead of handing it back page by page.

    The C library of Linux returns memory to the system above a threshold that follows the largest
    chunk freed so far, up to 32 MB. Freeing one chunk of nearly that size, which is never touched
    and so never costs a page, spares a fault for every page of every block that follows: a third
    of the time of a sweep with two hidden layers. Elsewhere it does nothing.
    """
    _free_thresholds()
    np.empty(31 * 2**20, dtype=np.uint8)


@lru_cache(maxsize=1)
def _free_thresholds() -> None:
    """Thresholds that the environment has fixed do not follow: set them as they would be.

    Dask starts its workers with a fixed one, so low that a sweep takes three times as long.
    """
    if not any(name.startswith("MALLOC_") for name in os.environ):
        return
    with suppress(AttributeError, OSError, TypeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, 2**25)
        set_option(_TRIM_THRESHOLD, 2**26)


def _begin_worker() -> None:
    """Settings of the calling thread do not reach other threads by themselves."""
    one_blas_thread.begin_thread()
    np.seterr(all="ignore")


def initialize_memory(
    model: BowTieModel,
    factors: GlobalFactors,
    blocks: Iterable[Rows],
    apply: Mapper = map,
    reference: Array | None = None,
) -> list[LocalMemory]:
    """Gates and tilts of every block from a forward pass."""
    factors = factors_beside(factors, _reference(blocks, reference))
    begin = partial(initialize_local, model, factors)
    return list(apply(lambda block: begin(block.inputs, block.targets), blocks))


def local_pass(
    model: BowTieModel,
    factors: GlobalFactors,
    blocks: Iterable[Rows],
    memory: Iterable[LocalMemory],
    apply: Mapper = map,
    reference: Array | None = None,
    blocks_of_chunk: int | None = None,
) -> tuple[Statistics, list[LocalMemory]]:
    """Update the local factors of all blocks; the sum is taken in the order of the blocks.

    If rows come in chunks of some blocks each, those of a chunk are summed first, then the chunks.

    Blocks are worked on in the array library, precision and device of their rows; those of a stream
    cannot be asked for it, so `reference` says. The statistics are small: they come back as NumPy
    arrays in double precision, and all that follows from them is done there.
    """
    reference = _reference(blocks, reference)
    step = partial(block_pass_for(model, reference), factors_beside(factors, reference))
    updated: list[LocalMemory] = []

    def parts() -> Iterator[Statistics]:
        for statistics, renewed in apply(step, blocks, memory):
            updated.append(renewed)
            yield map_arrays(double, statistics)

    if blocks_of_chunk is None:
        return reduce(add, parts()), updated
    return tree_sum(_sums_of(parts(), blocks_of_chunk)), updated


def _sums_of(parts: Iterator[Statistics], count: int) -> Iterator[Statistics]:
    """Sums of `count` consecutive parts; of fewer at the end."""
    for first in parts:
        yield reduce(add, islice(parts, count - 1), first)


def block_pass(
    model: BowTieModel,
    factors: GlobalFactors,
    block: Rows,
    memory: LocalMemory,
    *,
    with_entropy: bool = True,
) -> tuple[Statistics, LocalMemory]:
    """Local step and statistics of one block; entropies only if somebody asks for the bound."""
    local, moments = local_step(
        model,
        factors,
        block.inputs,
        block.targets,
        memory,
        input_second=block.input_second if isinstance(block, Block) else None,
        with_entropy=with_entropy,
    )
    summands = (local, moments, block.targets, block.weights)
    if block.targets.dtype != namespace(block.targets).float64:
        # Residuals are small differences of these sums: they need double precision in any case.
        summands = map_arrays(_widen, summands)
    statistics = block_statistics(*summands, has_noise=model.outcome.has_noise)
    return statistics, local_memory(model, local)


def settled_pass(
    model: BowTieModel,
    factors: GlobalFactors,
    blocks: Sequence[Rows],
    tolerance: float,
    max_iterations: int,
    apply: Mapper = map,
) -> Statistics:
    """Statistics of blocks whose local factors start with a forward pass and are then settled."""
    beside = factors_beside(factors, blocks[0].inputs)

    def step(block: Rows) -> Statistics:
        found = settle(model, beside, block.inputs, block.targets, tolerance, max_iterations)
        summands = map_arrays(_widen, (*found, block.targets, block.weights))
        return block_statistics(*summands, has_noise=model.outcome.has_noise)

    parts = [map_arrays(double, part) for part in apply(step, blocks)]
    return reduce(add, parts)


def factors_beside(factors: GlobalFactors, reference: Array) -> FactorsForRows:
    """What a local step reads of the factors, in the array library and precision of `reference`."""
    layers = tuple(
        replace(layer, global_shrinkage=_UNREAD, local_shrinkage=_UNREAD, slab_variance=None)
        for layer in factors.layers
    )
    read = GlobalFactors(layers=layers, shared_covariance=factors.shared_covariance)
    return map_arrays(partial(like, reference), for_rows(read))


def _reference(blocks: Iterable[Rows], given: Array | None) -> Array:
    if given is not None:
        return given
    assert isinstance(blocks, Sequence)
    return blocks[0].inputs


def double(x: Array) -> np.ndarray:
    """`x` as a NumPy array in double precision."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def _widen(x: Array) -> Array:
    """`x` in double precision, where it lives."""
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def block_pass_for(
    model: BowTieModel, reference: Array, *, with_entropy: bool = True
) -> Callable[..., Any]:
    """`block_pass` for the rows of `reference`: compiled if they are JAX arrays."""
    if is_jax_array(reference):
        step = _compiled_block_pass(model.architecture, model.gate_temperature, with_entropy)
        return partial(step, model.outcome)
    return partial(block_pass, model, with_entropy=with_entropy)


@lru_cache(maxsize=8)
def _compiled_block_pass(
    architecture: Architecture, gate_temperature: float, with_entropy: bool
) -> Callable[..., Any]:
    """`block_pass` compiled by JAX, once for each shape of a block; the prior has no part in it.

    The outcome comes first: its parameters are data, since EM moves them.
    """
    jax = importlib.import_module("jax")
    if not jax.config.jax_enable_x64:
        raise ValueError(
            "a fit sums in double precision, which JAX has switched off: call "
            'jax.config.update("jax_enable_x64", True) first.'
        )
    _register_containers()
    prior = build_model(architecture).prior
    model = BowTieModel(architecture=architecture, prior=prior, gate_temperature=gate_temperature)

    def step(outcome: Outcome, *arguments: Any) -> tuple[Statistics, LocalMemory]:
        return block_pass(replace(model, outcome=outcome), *arguments, with_entropy=with_entropy)

    return jax.jit(step)


@lru_cache(maxsize=1)
def _register_containers() -> None:
    """Tell JAX how to take apart the containers that go into and come out of a block."""
    register = importlib.import_module("jax").tree_util.register_dataclass
    for container in _CONTAINERS:
        register(container, data_fields=[field.name for field in fields(container)], meta_fields=[])
    register(PointMass, data_fields=[], meta_fields=["value"])
    for outcome, moved in _OUTCOMES.items():
        names = [field.name for field in fields(outcome)]
        fixed = [name for name in names if name not in moved]
        register(outcome, data_fields=list(moved), meta_fields=fixed)


_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # numbers of malloc.h
_UNREAD = PointMass(value=1.0)
_OUTCOMES: dict[type, tuple[str, ...]] = {
    Gaussian: (),
    StudentT: ("freedom",),
    Binary: (),
    Classes: (),
    Counts: ("dispersion", "offset"),
}
"""Outcomes with their parameters that are data; others have a part in what is compiled."""
_CONTAINERS = (
    Rows,
    Block,
    LocalMemory,
    GlobalFactors,
    FactorsForRows,
    OutputForRows,
    LayerFactors,
    GaussianRows,
    InverseGamma,
    Statistics,
    HiddenStatistics,
    OutputStatistics,
)
