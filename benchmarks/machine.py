"""What a benchmark ran on: no host name, no user, no path."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("bowtienet", "numpy", "scipy", "scikit-learn", "joblib", "safetensors", "pyarrow")


def machine() -> dict[str, str]:
    """Cores, processor, memory and linear algebra library of this machine."""
    from bowtienet.inference.execution import usable_cores

    return {
        "usable cores": str(usable_cores()),
        "processor": _processor(),
        "memory": _memory(),
        "linear algebra": _linear_algebra(),
        "system": f"{platform.system()} on {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Those of Python and of the libraries that matter here."""
    found = {"Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (AttributeError, OSError, ValueError):
        return "unknown"


def _linear_algebra() -> str:
    import numpy  # noqa: F401  these two bring the libraries that are looked for
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    found = {
        " ".join(str(library.get(key) or "") for key in ("internal_api", "version", "architecture"))
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return ", ".join(sorted(" ".join(name.split()) for name in found)) or "unknown"
