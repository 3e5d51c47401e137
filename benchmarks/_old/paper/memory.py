"""Peak memory of this process since a moment, on Linux; elsewhere it is not known."""

from __future__ import annotations

import math
import re
from pathlib import Path

_PROCESS = Path("/proc/self")
_PEAK = re.compile(r"VmHWM:\s*(\d+) kB")


def forget_peak_memory() -> None:
    """Begin anew: the peak is what the process holds now."""
    switch = _PROCESS / "clear_refs"
    if switch.exists():
        switch.write_text("5")


def peak_memory() -> float:
    """Megabytes that the process held at most since `forget_peak_memory`, libraries included."""
    status = _PROCESS / "status"
    found = _PEAK.search(status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 / 1e6 if found else math.nan
