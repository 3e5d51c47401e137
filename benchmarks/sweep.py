"""Seconds of a sweep of coordinate ascent, over those of its matrix products alone.

The products of one hidden layer are those of the second moments of the inputs with the gates and
the Polya-Gamma means of all units, of the activations with each other, and E[z²] from packed
second moments: what a sweep cannot do without.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from bowtienet._arrays import packed_size
from bowtienet.inference.ascend import ascend
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import Rows, build_model
from bowtienet.posterior.initialize import initialize

SHAPES = ((1_000, 10, 50, 4), (1_000, 8, 50, 1), (10_000, 10, 50, 1))
"""Rows, columns, units, networks."""


def seconds_of_sweeps(n: int, columns: int, units: int, networks: int, sweeps: int) -> float:
    """Seconds of a sweep."""
    rng = np.random.default_rng(500)
    inputs = rng.normal(size=(n, columns))
    targets = np.sin(inputs[:, :1]) + 0.1 * rng.normal(size=(n, 1))
    rows = Rows(inputs=inputs, targets=targets, weights=np.ones(n))
    model = build_model(build_architecture(columns, (units,), 1))
    start = initialize(model, rows, rng, networks, "laplace")
    ascend(model, start, rows, max_iter=3, tol=0.0)
    began = time.perf_counter()
    ascend(model, start, rows, max_iter=sweeps, tol=0.0)
    return (time.perf_counter() - began) / sweeps


def seconds_of_products(n: int, columns: int, units: int, networks: int, repeats: int) -> float:
    """Seconds of the matrix products of a sweep, in double precision."""
    rng = np.random.default_rng(500)
    packed = packed_size(columns + 1)
    second = rng.normal(size=(n, packed))
    squares = rng.normal(size=(packed, units))
    gates, inputs = rng.normal(size=(n, units)), rng.normal(size=(n, columns + 1))
    weights, covariance = rng.normal(size=(columns + 1, units)), rng.normal(size=(units, units))
    began = time.perf_counter()
    for _ in range(repeats * networks):
        second @ squares  # E[z²]
        gates.T @ second  # Σ rho P~
        gates.T @ second  # Σ E[omega] P~
        gates.T @ inputs  # Σ rho E[a a~]
        inputs @ weights  # E[z]
        gates @ covariance  # E[a]
        gates.T @ gates  # Σ E[a a']
    return (time.perf_counter() - began) / repeats


def main() -> None:
    """Print the ratio for each shape."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sweep", description=__doc__)
    parser.add_argument("--sweeps", type=int, default=50)
    arguments = parser.parse_args()
    print("rows columns units networks   ms a sweep   ms of products   ratio")
    with threadpool_limits(1):
        for shape in SHAPES:
            ours = min(seconds_of_sweeps(*shape, arguments.sweeps) for _ in range(3))
            products = min(seconds_of_products(*shape, arguments.sweeps) for _ in range(3))
            line = "{:6d} {:5d} {:5d} {:5d}".format(*shape)
            print(f"{line} {1e3 * ours:15.2f} {1e3 * products:15.2f} {ours / products:11.2f}")


if __name__ == "__main__":
    main()
