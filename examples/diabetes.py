"""Fit the diabetes data that ship with scikit-learn and compare with Bayesian linear regression.

Three random splits into 90 % for training and 10 % for testing, everything at its default. For
each: root mean squared error, negative log density and the share of test targets inside the
central 90 % interval, all in the unit of the data.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

from bowtienet import BowTieRegressor

SEEDS = range(100, 103)


def network_scores(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], seed: int
) -> tuple[float, ...]:
    """RMSE, negative log density and coverage of the bow tie network."""
    model = BowTieRegressor(random_state=seed, n_jobs=-1).fit(*train)
    low, high = model.predict_interval(test[0], coverage=0.9).T
    error = test[1] - model.predict(test[0])
    inside = (low <= test[1]) & (test[1] <= high)
    return float(np.sqrt(np.mean(error**2))), -model.log_score(*test), float(np.mean(inside))


def linear_scores(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]
) -> tuple[float, ...]:
    """The same of Bayesian linear regression, whose predictions are Gaussian."""
    mean, deviation = BayesianRidge().fit(*train).predict(test[0], return_std=True)
    found = norm(mean, deviation)
    low, high = found.interval(0.9)
    error = test[1] - mean
    inside = (low <= test[1]) & (test[1] <= high)
    return (
        float(np.sqrt(np.mean(error**2))),
        float(-found.logpdf(test[1]).mean()),
        float(np.mean(inside)),
    )


def main() -> None:
    """Print the table."""
    inputs, targets = load_diabetes(return_X_y=True)
    results: dict[str, list[tuple[float, ...]]] = {"BowTieRegressor": [], "BayesianRidge": []}
    begin = time.perf_counter()
    for seed in SEEDS:
        train_x, test_x, train_y, test_y = train_test_split(
            inputs, targets, test_size=0.1, random_state=seed
        )
        train, test = (train_x, train_y), (test_x, test_y)
        results["BowTieRegressor"].append(network_scores(train, test, seed))
        results["BayesianRidge"].append(linear_scores(train, test))
    print(f"{'diabetes, 3 splits':<20}{'RMSE':>8}{'NLL':>8}{'90 % coverage':>16}")
    for name, rows in results.items():
        error, density, inside = np.mean(rows, axis=0)
        print(f"{name:<20}{error:8.1f}{density:8.2f}{inside:16.2f}")
    print(f"seconds: {time.perf_counter() - begin:.1f}")


if __name__ == "__main__":
    main()
