"""``python -m benchmarks NAME``: a benchmark by the name of its module."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

NAMES = sorted(
    module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    if not module.name.startswith("_")
)  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m benchmarks NAME, with one of {', '.join(NAMES)}.")
    name = sys.argv.pop(1)
    importlib.import_module(f"benchmarks.{name}").main()
