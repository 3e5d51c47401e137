"""A quantity held fixed, so that a fixed scale can stand where a distribution of one does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PointMass:
    """All probability at one `value`."""

    value: float
