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

import joblib

LIBRARIES = (
    *("bowtienet", "numpy", "scipy", "scikit-learn", "jax", "numpyro", "torch", "ngboost"),
    *("laplace-torch", "stochtree", "sklearn-contrib-bde", "catboost"),
)
"""Whose versions may change a result."""


def describe_run(command: str) -> dict[str, Any]:
    """A new run that begins now; `command` is what a reader types to do the same."""
    now = datetime.now(UTC)
    return {
        "kind": "run",
        "id": f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        "started": now.isoformat(timespec="seconds"),
        "command": command,
        "commit": find_commit(),
        "versions": find_versions(),
        "machine": describe_machine(),
    }


def find_versions() -> dict[str, str]:
    """Versions of Python, and of those of `LIBRARIES` that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def describe_machine() -> dict[str, Any]:
    """Cores, processor, memory in GB and system: what the time of a fit depends on."""
    memory = None
    with suppress(AttributeError, ValueError, OSError):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    return {
        "cores": joblib.cpu_count(),
        "processor": _processor(),
        "memory_gb": memory,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def find_commit() -> str | None:
    """The commit of the sources, with a + if they have changed; None if it is not known."""
    try:
        commit = _git("rev-parse", "HEAD").strip()
        return commit + "+" if _git("status", "--porcelain", "--", "src", "benchmarks") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parents[3]), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def _processor() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or None
