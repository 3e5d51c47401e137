"""What a benchmark ran on: no host name, no user, no path."""

from __future__ import annotations

from benchmarks._old.paper.provenance import describe_machine, find_versions


def machine() -> dict[str, str]:
    """Cores, processor, memory and linear algebra library of this machine."""
    found = describe_machine()
    return {
        "usable cores": str(found["cores"]),
        "processor": found["processor"] or "unknown",
        "memory": f"{found['memory_gb'] or '?'} GB",
        "linear algebra": _linear_algebra(),
        "system": found["platform"],
    }


def versions() -> dict[str, str]:
    """Those of Python and of the libraries that matter here."""
    return find_versions()


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
