"""With what and where a run is made: versions, sources and machine, but nothing of its user."""

from __future__ import annotations

import os
import platform
import secrets
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import bowtienet
from bowtienet.experiments.records import Run
from bowtienet.inference.execution import usable_cores
from bowtienet.persistence import version

LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "jax",
    "numpyro",
    "torch",
    "ngboost",
    "laplace-torch",
    "stochtree",
    "sklearn-contrib-bde",
)
"""Whose versions may change a result."""


def describe_run(command: str) -> Run:
    """A new run that begins now.

    Parameters
    ----------
    command : str
        What a reader types to do the same; without places on this machine.
    """
    now = datetime.now(UTC)
    return Run(
        id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        started=now.isoformat(timespec="seconds"),
        command=command,
        commit=find_commit(Path(bowtienet.__file__).parent),
        versions=find_versions(),
        machine=describe_machine(),
    )


def find_versions() -> dict[str, str]:
    """Versions of this library, of Python, and of those of `LIBRARIES` that are installed."""
    found = {"bowtienet": version(), "python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def describe_machine() -> dict[str, Any]:
    """Cores, processor, memory in GB and system: what the time of a fit depends on."""
    return {
        "cores": usable_cores(),
        "processor": _processor(),
        "memory_gb": _memory(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def find_commit(folder: Path) -> str | None:
    """The commit of the sources in a folder, with a + if they have changed; None if unknown."""
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(folder, "rev-parse", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--", ".").strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + "+" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=20, stdin=subprocess.DEVNULL
    ).stdout


def _processor() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or None


def _memory() -> float | None:
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(found / 1e9, 1)
