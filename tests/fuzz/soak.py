"""``python -m tests.fuzz.soak --seconds 3600 --seed 510``: random cases until the time is over."""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.cases import Case, cases
from tests.fuzz.properties import check

BATCH = 20
MOST_GROWTH = 1_000_000
"""Kilobytes that the process may grow by."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=510)
    given_options = parser.parse_args()
    began, counts, number = time.monotonic(), Counter[str](), given_options.seed
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while time.monotonic() - began < given_options.seconds:
        batch(number, counts)
        number += 1
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
        print(f"{time.monotonic() - began:.0f} s, {dict(counts)}, {growth // 1000} MB", flush=True)
        assert growth < MOST_GROWTH, "memory grows"


def batch(number: int, counts: Counter[str]) -> None:
    """Cases of one seed; a failure is raised with the smallest case that has it."""

    @seed(number)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(cases())
    def run(case: Case) -> None:
        name = type(case.estimator).__name__
        counts[name if check(case) else f"{name} refused"] += 1

    run()


if __name__ == "__main__":
    main()
