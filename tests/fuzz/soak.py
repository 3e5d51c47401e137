"""``python -m tests.fuzz.soak --seconds 3600 --seed 510``: random cases until the time is over."""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.cases import Case, cases
from tests.fuzz.properties import check
from tests.tables.foreign import CONTENTS, check_foreign

MOST_GROWTH = 300_000
"""Kilobytes that the process may grow by."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=510)
    options = parser.parse_args()
    began, counts, number = time.monotonic(), Counter[str](), options.seed
    start = peak()
    while time.monotonic() - began < options.seconds:
        batch(number, counts)
        number += 1
        growth = (peak() - start) // 1000
        print(f"{time.monotonic() - began:.0f} s, {dict(counts)}, {growth} MB", flush=True)


def batch(number: int, counts: Counter[str], size: int = 20) -> None:
    """Cases of one seed; a failure is raised with the smallest case that has it."""

    def fit(case: Case) -> None:
        name = type(case.estimator).__name__
        counts[name if check(case) else f"{name} refused"] += 1

    def read(content: bytes) -> None:
        check_foreign(content)
        counts["files"] += 1

    start = peak()
    _run(fit, cases(), number, size)
    _run(read, CONTENTS, number, size)
    assert peak() - start < MOST_GROWTH, "memory grows"


def peak() -> int:
    """Kilobytes of memory that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _run(function: Callable[[Any], None], strategy: Any, number: int, size: int) -> None:
    @seed(number)
    @settings(
        max_examples=size,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(strategy)
    def run(value: Any) -> None:
        function(value)

    run()


if __name__ == "__main__":
    main()
