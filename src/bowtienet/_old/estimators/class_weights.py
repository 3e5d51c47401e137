"""Rows that are weighted by their class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, like, to_numpy
from bowtienet._old.data.dask_tables import DaskSource
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.source import Source, in_order
from bowtienet._old.data.tables import Block


class ClassWeighted(Source):
    """A source whose rows have their weights times those of their classes."""

    def __init__(self, source: Source, factors: np.ndarray) -> None:
        self.source, self.factors = source, factors
        for name in ("feature_names", "target_names", "n_features", "n_targets", "single_target"):
            setattr(self, name, getattr(source, name))
        self.n_pieces, self.reading = source.n_pieces, source.reading

    def read(self, piece: int) -> Iterator[Block]:
        """Blocks of a piece."""
        for block in self.source.read(piece):
            yield _weighted(block, self.factors)

    def check_unchanged(self) -> None:
        """Raise if a file behind the rows is no longer what it was."""
        self.source.check_unchanged()


def weighted_classes(source: Source, class_weight: Mapping[Any, float] | str | None) -> Source:
    """The source with rows weighted by their class, where that is wanted."""
    if class_weight is None:
        return source
    if isinstance(source, DaskSource):
        raise ValueError(
            "class_weight is not for Dask tables: give the weights of the rows as sample_weight."
        )
    if class_weight == "balanced":
        factors = _balancing(source)
    else:
        assert isinstance(class_weight, Mapping)
        assert source.classes is not None
        factors = _factors(class_weight, source.classes)
    if isinstance(source, InMemory):
        found = copy(source)
        found.block = _weighted(source.block, factors)
        return found
    return ClassWeighted(source, factors)


def check_weighted_classes(source: Source) -> None:
    """Raise if fewer than two classes have rows of positive weight; of tables in memory."""
    if not isinstance(source, InMemory) or source.classes is None:
        return
    counted = to_numpy(source.block.weights) > 0.0
    present = source.classes[np.unique(_codes(source.block.targets)[counted])]
    if len(present) < 2:
        raise ValueError(
            f"y has only one class of positive weight, {present.tolist()[0]!r}: a classifier needs "
            "at least two; give rows of another class a weight."
        )


def _factors(class_weight: Mapping[Any, float], classes: np.ndarray) -> np.ndarray:
    known = list(classes.tolist())
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(
            f"class_weight names the class {unknown[0]!r}, but y has {known!r:.200}: give weights "
            "of these."
        )
    factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    if not np.all((factors >= 0.0) & np.isfinite(factors)) or not factors.any():
        raise ValueError(
            f"class_weight must hold finite weights that are not negative, got {class_weight!r}."
        )
    return factors


def _balancing(source: Source) -> np.ndarray:
    """N / (C N_c), in sums of row weights."""
    assert source.classes is not None
    totals = np.zeros(len(source.classes))
    for block in in_order(source):
        np.add.at(totals, _codes(block.targets), to_numpy(block.weights).astype(float))
    counted = totals > 0.0
    return np.where(counted, totals.sum() / (counted.sum() * np.where(counted, totals, 1.0)), 0.0)


def _weighted(block: Block, factors: np.ndarray) -> Block:
    weights = block.weights * like(block.weights, factors[_codes(block.targets)])
    return replace(block, weights=weights)


def _codes(targets: Array) -> np.ndarray:
    return to_numpy(targets)[:, 0].astype(np.intp)
