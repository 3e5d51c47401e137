"""One pass over the rows, block by block: local step, statistics, and their sum.

Nothing of size rows x width x width is ever held: squares of widths exist for one block at a time,
and between sweeps a block keeps only its gate probabilities (and tilts from the second hidden
layer on).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bowtienet.data.rows import Rows
from bowtienet.inference.local_step import initialize_local, local_step
from bowtienet.inference.statistics import Statistics, add, block_statistics
from bowtienet.model.architecture import Architecture
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors, LocalMemory

BLOCK_BYTES = 4_000_000
"""Largest array of a block: big enough for fast products, small enough to stay near the cache."""


def default_block_size(architecture: Architecture) -> int:
    """Rows of a block whose largest array has about `BLOCK_BYTES`."""
    widths = architecture.widths
    largest = (widths[0] + 1) * (widths[0] + 2) // 2
    for below, width in pairwise(widths[1:-1]):
        largest = max(largest, below * width, below * below)
    largest = max(largest, *widths)
    return max(16, BLOCK_BYTES // (8 * largest))


def initialize_memory(
    model: BowTieModel, factors: GlobalFactors, blocks: Sequence[Rows]
) -> list[LocalMemory]:
    """Gates and tilts of every block from a forward pass."""
    return [initialize_local(model, factors, block.inputs) for block in blocks]


def local_pass(
    model: BowTieModel,
    factors: GlobalFactors,
    blocks: Sequence[Rows],
    memory: Sequence[LocalMemory],
) -> tuple[Statistics, list[LocalMemory]]:
    """Update the local factors of all blocks; the sum is taken in the order of the blocks."""
    total: Statistics | None = None
    updated = []
    for block, kept in zip(blocks, memory, strict=True):
        statistics, renewed = block_pass(model, factors, block, kept)
        total = statistics if total is None else add(total, statistics)
        updated.append(renewed)
    assert total is not None
    return total, updated


def block_pass(
    model: BowTieModel, factors: GlobalFactors, block: Rows, memory: LocalMemory
) -> tuple[Statistics, LocalMemory]:
    """Local step and statistics of one block."""
    local, moments = local_step(model, factors, block.inputs, block.targets, memory)
    statistics = block_statistics(local, moments, block.targets, block.weights)
    return statistics, LocalMemory(gate_probability=local.gate_probability, tilt=local.tilt[1:])
