"""How much memory there is, and a refusal, with the size and the remedy, of what needs more.

The limit is what is free: of the machine, of the control group of its container, and of the limit
of the process, whichever is least. ``BOWTIENET_MEMORY_LIMIT`` sets another one, such as ``8GB``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOST_COLUMNS = 100_000
"""Columns of a table: each is learnt by itself, which takes minutes for a million."""
VARIABLE = "BOWTIENET_MEMORY_LIMIT"
_UNITS = {unit: 1000**power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""Files with the limit and the use of a control group, of both versions."""


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise a MemoryError if so many bytes are more than the limit.

    Examples
    --------
    >>> check_memory(1e3, "a small table", "nothing has to be done")
    """
    limit = memory_limit()
    if n_bytes > limit:
        raise MemoryError(
            f"{what} needs at least {size_text(n_bytes)} of memory, and {size_text(limit)} are "
            f"free: {remedy}. ({VARIABLE} sets another limit.)"
        )


def check_columns(n_columns: int) -> None:
    """Raise a ValueError if a table has more columns than can be learnt one by one."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"X has {n_columns:,} columns, and at most {MOST_COLUMNS:,} can be fitted: choose some "
            "of them, or give principal components or other summaries of them."
        )


def memory_limit() -> float:
    """Bytes that may be used, by the environment or by what is free."""
    given = os.environ.get(VARIABLE)
    if not given:
        return available_memory()
    found = re.fullmatch(r"\s*(\d+\.?\d*(?:e\d+)?)\s*([kMGTPE]?)B?\s*", given)
    if found is None:
        raise ValueError(f"{VARIABLE} must be a number of bytes such as 8GB or 8e9, got {given!r}.")
    return float(found[1]) * _UNITS[found[2]]


def available_memory() -> float:
    """Bytes that are free: the least of machine, control group and process; inf if unknown."""
    return min(_of_machine(), _of_group(), _of_process())


def size_text(n_bytes: float) -> str:
    """Bytes in the largest fitting unit.

    Examples
    --------
    >>> size_text(6.4e9)
    '6.4 GB'
    """
    unit = next((unit for unit, size in _UNITS.items() if n_bytes < 1000 * size), "E")
    return f"{n_bytes / _UNITS[unit]:.3g} {unit}B"


def _of_machine() -> float:
    """What the system calls available: free, or cached and given back when it is wanted."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except OSError:  # not Linux
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _of_group() -> float:
    for limit, used in _GROUPS:
        try:
            # "max" where there is no limit, which is no number.
            return float(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return float("inf")


def _of_process() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)
