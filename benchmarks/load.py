"""Eight processes that fit with all cores at once, and rows that are predicted one by one.

python -m benchmarks load
"""

from __future__ import annotations

import argparse
import time
from multiprocessing import get_context

import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor

PROCESSES = 8
MOST_RATIO, MOST_SECONDS = 1.3, 0.005


def fit(seed: int) -> float:
    """Seconds of a fit with all cores."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(2_000, 5))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=2_000)
    began = time.perf_counter()
    BowTieRegressor(effort="fast", n_jobs=-1, random_state=seed).fit(X, y)
    return time.perf_counter() - began


def seconds_of_a_row() -> float:
    """Median over 500 predictions of a row of numbers and a category."""
    rng = np.random.default_rng(500)
    table = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    table["city"] = rng.choice(["Lima", "Oslo", "Rome"], 400)
    model = BowTieRegressor(effort="fast", random_state=0).fit(table, table["a"] ** 2)
    seconds = []
    for _ in range(500):
        began = time.perf_counter()
        model.predict(table[:1])
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def main() -> None:
    """Print both with their aims."""
    argparse.ArgumentParser(prog="python -m benchmarks load", description=__doc__).parse_args()
    seeds = range(500, 500 + PROCESSES)
    with get_context("spawn").Pool(PROCESSES) as pool:
        pool.map(fit, seeds, chunksize=1)  # imports, and pages of memory
        alone = sum(pool.apply(fit, (seed,)) for seed in seeds)
        began = time.perf_counter()
        pool.map(fit, seeds, chunksize=1)
        together = time.perf_counter() - began
    ratio, row = together / alone, seconds_of_a_row()
    print(f"{PROCESSES} fits: {alone:.1f} s one after the other, {together:.1f} s at once")
    print(f"ratio {ratio:.2f}, at most {MOST_RATIO}: {'yes' if ratio <= MOST_RATIO else 'no'}")
    print(f"a row in {1e3 * row:.2f} ms, at most {1e3 * MOST_SECONDS:g}: ", end="")
    print("yes" if row <= MOST_SECONDS else "no")


if __name__ == "__main__":
    main()
