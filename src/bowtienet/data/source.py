"""The interface of every source of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from bowtienet.data.tables import Block


class Source(ABC):
    """Rows that are read block by block, as often as wanted."""

    feature_names: tuple[str, ...] | None
    n_features: int
    target_names: tuple[str, ...] | None
    n_targets: int
    single_target: bool
    n_pieces: int
    in_memory: bool = False

    @abstractmethod
    def read(self, piece: int) -> Iterator[Block]:
        """Blocks of a piece."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise if the rows changed."""
