"""Names of files that are not complete yet, and the removal of those whose writer was killed.

    .bowtienet-<machine>-<process>-<random>.tmp

A name says who writes: where that process has ended, nobody will ever complete the file.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
import uuid
from contextlib import suppress
from pathlib import Path

PREFIX = ".bowtienet-"
_NAME = re.compile(r"\.bowtienet-(?:([0-9a-f]{8})-([0-9]{1,10})-)?[0-9a-f]{32}\.tmp")
_DAY = 86_400.0
"""Seconds after which a file is taken for abandoned if its writer cannot be asked for.

Without harm only POSIX says whether a process runs, and only of its own machine.
"""


def temporary_name() -> str:
    """A new name that says which process of which machine writes."""
    return f"{PREFIX}{_machine()}-{os.getpid()}-{uuid.uuid4().hex}.tmp"


def remove_abandoned(folder: Path) -> None:
    """Remove the incomplete files that killed processes have left in a folder.

    What cannot be removed stays: it is no reason to fail.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
        for name in names:
            place = folder / name
            with suppress(OSError):
                if place.is_file() and _is_abandoned(place):
                    place.unlink()


def _is_abandoned(place: Path) -> bool:
    match = _NAME.fullmatch(place.name)
    if match is None:
        return False
    machine, process = match.groups()
    if machine == _machine() and os.name == "posix":
        return not _is_running(int(process))
    return time.time() - place.stat().st_mtime > _DAY


def _machine() -> str:
    """The machine and, of containers, where its processes are counted: eight digits."""
    numbers = ""
    with suppress(OSError):
        numbers = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {numbers}".encode()).hexdigest()[:8]


def _is_running(process: int) -> bool:
    """Whether there is such a process; it may be another user's."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
