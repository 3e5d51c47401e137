"""When to stop, and why a fit stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

CONSECUTIVE = 3
"""So many small changes in a row count as convergence."""
ROUNDING = 1e-9
"""A fall of the bound by this relative amount is rounding, not a decrease."""


class Status(StrEnum):
    """Why a fit stopped."""

    CONVERGED = "converged"
    """Three changes in a row were small."""
    SWEEP_LIMIT = "sweep limit"
    """The bound was still rising at the last sweep allowed."""
    HELD_OUT = "held out"
    """The length at which rows that were held out are predicted best."""
    NON_FINITE = "non-finite"
    """A plain sweep overflowed: scale the data, or look for values far out of line."""
    DECREASED = "decreased"
    """A plain sweep lowered the bound by more than rounding: noise or temperature is so small that
    differences of sums lose their digits."""
    ARRIVING = "rows arriving"
    """Rows are taken in as they come: such a fit has no end of its own."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or a callback that answered true."""


def relative_change(before: float, after: float) -> float:
    """(after - before) / |before|, with 1 in place of a |before| below 1."""
    return (after - before) / max(abs(before), 1.0)


def check(history: Sequence[float], tolerance: float) -> Status | None:
    """Status of a fit with this history of the bound, or None to go on."""
    if not math.isfinite(history[-1]):
        return Status.NON_FINITE
    if len(history) < 2:
        return None
    recent = history[-CONSECUTIVE - 1 :]
    changes = [relative_change(before, after) for before, after in pairwise(recent)]
    if changes[-1] < -ROUNDING:
        return Status.DECREASED
    if len(changes) == CONSECUTIVE and all(abs(change) < tolerance for change in changes):
        return Status.CONVERGED
    return None
