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

MOST_GROWTH = 300
"""Megabytes that the process may grow by."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=510)
    options = parser.parse_args()
    began, counts, number, start = time.monotonic(), Counter[str](), options.seed, peak()
    while time.monotonic() - began < options.seconds:
        batch(number, counts)
        number += 1
        growth = peak() - start
        print(f"{time.monotonic() - began:.0f} s, {dict(counts)}, {growth:.0f} MB", flush=True)
        assert growth < MOST_GROWTH


def batch(number: int, counts: Counter[str]) -> None:
    """20 tables and 20 files; a failure is raised with the smallest case that has it."""

    def fit(case: Case) -> None:
        name = type(case.estimator).__name__
        counts[name if check(case) else f"{name} refused"] += 1

    _run(fit, cases(), number)
    _run(check_foreign, CONTENTS, number)


def peak() -> float:
    """Megabytes of memory that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0


def _run(function: Callable[[Any], None], strategy: Any, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=20,
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
