"""Features of some rows, and rows with targets and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bowtienet._arrays import Array


@dataclass(frozen=True, kw_only=True)
class Table:
    """Features of some rows as they came, in the user's units."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None
    matrix: Array | None
    columns: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows with targets and weights, checked."""

    table: Table
    targets: Array
    weights: Array
