"""Seconds that a fit says are to come, against those that it took.

For tables of a few shapes: every promise of the live line, when it was made, and how long the fit
went on from there. `python benchmarks/speed/promise.py` prints Markdown; run it on a quiet machine.
A promise should be within a factor of two.
"""

from __future__ import annotations

import re
import time

import numpy as np

from bowtienet._old import BowTieRegressor
from bowtienet._old.estimators.progress import reporting_to

SHAPES = ((900, 8), (1_000, 100), (5_000, 10))


class Promises:
    """A line that notes what is promised, and when."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.made: list[tuple[float, float]] = []
        """Seconds since the begin, and seconds that were said to be to come."""

    def show(self, text: str, share: float | None = None) -> None:
        """Note a promise."""
        found = re.search(r"about (\d+) s to go", text)
        if found:
            self.made.append((time.perf_counter() - self.began, float(found[1])))

    def close(self) -> None:
        """The fit is over."""
        self.total = time.perf_counter() - self.began


def table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Four columns that matter, smoothly and with a bend, among others that do not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, n_columns))
    signal = np.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3])
    return x, signal + 0.1 * rng.normal(size=n_rows)


def main() -> None:
    """Print a table of promises."""
    print("| rows | columns | effort | at, s | promised, s | took, s | ratio |")
    print("|--:|--:|--|--:|--:|--:|--:|")
    for shape in SHAPES:
        for effort in ("balanced", "fast"):
            line = Promises()
            with reporting_to(line):
                BowTieRegressor(effort=effort, random_state=0).fit(*table(*shape))
            for moment, promised in line.made:
                took = line.total - moment
                print(
                    f"| {shape[0]:,} | {shape[1]} | {effort} | {moment:.1f} | {promised:.0f} | "
                    f"{took:.1f} | {promised / took:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
