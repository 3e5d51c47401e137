"""How many sweeps, and seconds, until the bound stands still: plain sweeps against momentum.

Takes the sets from `benchmarks._old.paper.sets`, fits one hidden
layer of 50 units to 90 % of each, from the same start each time, and writes a Markdown table to
standard output. `make bench-convergence` runs it; docs/measurements/convergence.md holds a run.

"plain" is one round of global updates per sweep and no momentum: the method of the paper.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks._old.paper.sets import load_set
from bowtienet._old import engine

SETS = ("slump", "yacht", "boston", "energy", "concrete")
WITHIN = 1e-3


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised training and test parts, split with seed 100."""
    table = load_set(name).to_numpy()
    order = np.random.default_rng(100).permutation(len(table))
    test, train = np.split(table[order], [len(table) // 10])
    scaling = engine.fit_scaling(train)
    train, test = engine.standardize(scaling, train), engine.standardize(scaling, test)
    return train[:, :-1], train[:, -1:], test[:, :-1], test[:, -1:]


class Trace:
    """Bound, seconds and sweeps of every accepted sweep."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.rows: list[tuple[int, float, float]] = []

    def __call__(self, progress: engine.Progress) -> None:
        self.rows.append((progress.sweep, time.perf_counter() - self.begin, progress.elbo))

    def reach(self, level: float) -> tuple[int, float] | None:
        """Sweeps and seconds until the bound is at least `level`."""
        for sweep, seconds, bound in self.rows:
            if bound >= level:
                return sweep, seconds
        return None

    @property
    def final(self) -> float:
        return self.rows[-1][2]


def run(
    data: tuple[np.ndarray, ...],
    init: str,
    gate_temperature: float,
    max_iter: int,
    **settings: int,
) -> tuple[Trace, float, float]:
    """Trace of one fit, with test RMSE and NLL on the standardised scale."""
    x, y, new_x, new_y = data
    architecture = engine.build_architecture(x.shape[1], (50,), 1)
    model = engine.default_model(architecture, x, y, gate_temperature=gate_temperature)
    rows = engine.build_rows(x, y)
    start = engine.initialize(model, rows, np.random.default_rng(0), init=init)
    trace = Trace()
    result = engine.fit(model, rows, start, max_iter=max_iter, tol=0.0, callback=trace, **settings)
    forecast = engine.predict(result.model, result.factors, new_x)
    variance = forecast.signal_variance + forecast.noise_variance
    error = new_y - forecast.mean
    likelihood = 0.5 * np.mean(np.log(2.0 * np.pi * variance) + error**2 / variance)
    return trace, float(np.sqrt(np.mean(error**2))), float(likelihood)


def cell(found: tuple[int, float] | None) -> str:
    return "not reached" if found is None else f"{found[0]} / {found[1]:.1f}"


def compare(sweeps: int) -> None:
    """Final bounds, and sweeps / seconds to within 0.1 % of them."""
    print(
        "| set | start, T | plain: bound | sweeps / s to 0.1 % | momentum: bound "
        "| sweeps / s to 0.1 % | sweeps / s to plain's bound | test RMSE, NLL plain "
        "| test RMSE, NLL momentum |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in SETS:
        data = load(name)
        for init, gate_temperature in (("laplace", 0.1), ("relu_network", 0.03)):
            plain, *plain_scores = run(
                data, init, gate_temperature, sweeps, accelerate=False, repeats=1
            )
            fast, *fast_scores = run(data, init, gate_temperature, sweeps)
            own = [trace.reach(trace.final - WITHIN * abs(trace.final)) for trace in (plain, fast)]
            catch_up = fast.reach(plain.final)
            print(
                f"| {name} | {init}, {gate_temperature} | {plain.final:.1f} | {cell(own[0])} "
                f"| {fast.final:.1f} | {cell(own[1])} | {cell(catch_up)} "
                f"| {plain_scores[0]:.3f}, {plain_scores[1]:.3f} "
                f"| {fast_scores[0]:.3f}, {fast_scores[1]:.3f} |",
                flush=True,
            )


def compare_repeats(sweeps: int) -> None:
    """Bound after a few sweeps by rounds of global updates, with and without momentum."""
    rounds = (1, 2, 3, 5)
    print("| set | " + " | ".join(f"{r} plain | {r} momentum" for r in rounds) + " |")
    print("|---" * (1 + 2 * len(rounds)) + "|")
    for name in SETS:
        data = load(name)
        cells = []
        for repeats in rounds:
            for accelerate in (False, True):
                trace, *_ = run(
                    data, "laplace", 0.1, sweeps, repeats=repeats, accelerate=accelerate
                )
                cells.append(f"{trace.final:.0f} ({trace.rows[-1][1]:.1f} s)")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=2000, help="sweeps of every run")
    parser.add_argument("--repeat-sweeps", type=int, default=100, help="sweeps of the second table")
    arguments = parser.parse_args()
    compare(arguments.sweeps)
    print()
    compare_repeats(arguments.repeat_sweeps)


if __name__ == "__main__":
    main()
