"""Networks that others trained on many tables, of which weights must be downloaded: not run here.

They are in the list so that tables say that they are missing, and why.
"""

from __future__ import annotations

from typing import Any

from benchmarks._old.paper.methods.common import Fit

REASON = (
    "its pretrained weights must be downloaded, which the machine of these runs cannot do, so "
    "that no code for it could be tried"
)


def not_here(hidden: tuple[int, ...] = (), **settings: Any) -> Fit:
    """Refuses."""
    raise NotImplementedError(f"this method has no code here: {REASON}.")
