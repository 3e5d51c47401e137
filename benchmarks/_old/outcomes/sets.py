"""Sets of the study of outcomes: classes, counts, and numbers with outliers.

A set is a function of a seed that gives `X_train, y_train, X_test, y_test`. Sets that ship with
scikit-learn are split by the seed, with the shares of the classes kept; the others are drawn by it,
the problem with the rows, so that repeats are of a kind of problem and not of a single one.
`mixed` is a data frame with categories and missing values; all other features are arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn import datasets
from sklearn.model_selection import train_test_split

FIRST_SEED = 500
"""Seeds below are left for others; see docs/measurements/outcomes.md."""

Split = tuple[Any, np.ndarray, Any, np.ndarray]
"""X_train, y_train, X_test, y_test."""
ClassSet = Callable[[int], Split]


def classification_sets() -> dict[str, ClassSet]:
    """All sets with classes, by name: four that ship with scikit-learn and eleven drawn ones."""
    return {
        "iris": _shipped(datasets.load_iris, 75),
        "wine": _shipped(datasets.load_wine, 89),
        "breast cancer": _shipped(datasets.load_breast_cancer, 285),
        "digits": _shipped(datasets.load_digits, 797),
        "moons": _drawn(500, 2000, datasets.make_moons, noise=0.3),
        "circles": _drawn(500, 2000, datasets.make_circles, noise=0.15, factor=0.5),
        "logit": _logit,
        "imbalanced": _drawn(
            *(2000, 4000, datasets.make_classification),
            n_features=20,
            n_informative=5,
            n_redundant=5,
            weights=[0.95],
        ),
        "many classes": _drawn(
            *(3000, 3000, datasets.make_classification),
            n_features=20,
            n_informative=10,
            n_redundant=0,
            n_classes=20,
            n_clusters_per_class=1,
        ),
        "noisy labels": _drawn(
            *(1000, 2000, datasets.make_classification),
            n_features=20,
            n_informative=8,
            n_redundant=4,
            flip_y=0.2,
        ),
        "quantiles": _drawn(
            2000, 2000, datasets.make_gaussian_quantiles, n_features=10, n_classes=3
        ),
        "hastie": _drawn(2000, 2000, datasets.make_hastie_10_2),
        "mixed": _mixed,
        "wide": _drawn(
            *(1000, 2000, datasets.make_classification),
            n_features=100,
            n_informative=10,
            n_redundant=0,
        ),
        "small": _drawn(
            *(100, 2000, datasets.make_classification),
            n_features=10,
            n_informative=5,
            n_redundant=0,
        ),
    }


def mixed_table(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with categories, a flag, numbers and missing values, and their binary labels.

        ⅔ logit p = a_region + b_plan (usage - 1) + sin(2 age) + 2 [flag and income > 0]
                    - 0.2 usage² + 1.2 [south and basic] + 0.8 [income is missing] - 0.2.

    Incomes are missing more often where the plan is "basic"; ages and regions by chance.
    """
    regions = np.array(["east", "hills", "north", "port", "south", "west"], dtype=object)
    plans = np.array(["basic", "family", "pro"], dtype=object)
    region, plan = rng.choice(6, n, p=[0.25, 0.05, 0.2, 0.1, 0.2, 0.2]), rng.choice(3, n)
    age, usage = rng.uniform(-1.5, 1.5, n), rng.gamma(2.0, 0.5, n)
    income, flag = rng.standard_normal(n), rng.random(n) < 0.4
    no_income = rng.random(n) < np.where(plan == 0, 0.25, 0.05)
    logit = (
        np.array([0.5, -1.5, 0.0, 1.5, -0.5, -1.0])[region]
        + np.array([-1.0, 0.5, 2.0])[plan] * (usage - 1.0)
        + np.sin(2.0 * age)
        + 2.0 * flag * (income > 0.0)
        - 0.2 * usage**2
        + 1.2 * ((region == 4) & (plan == 0))
        + 0.8 * no_income
        - 0.2
    )
    labels = np.where(rng.random(n) < expit(1.5 * logit), "leaves", "stays")
    table = pd.DataFrame(
        {
            "region": np.where(rng.random(n) < 0.05, None, regions[region]),
            "plan": plans[plan],
            "age": np.where(rng.random(n) < 0.1, np.nan, 45.0 + 20.0 * age),
            "income": np.where(no_income, np.nan, np.exp(10.0 + 0.5 * income)),
            "usage": usage,
            "flag": flag,
            "chance": rng.standard_normal(n),
        }
    )
    return table, labels


def _mixed(seed: int) -> Split:
    train, y_train = mixed_table(1500, np.random.default_rng([seed, 0]))
    test, y_test = mixed_table(2000, np.random.default_rng([seed, 1]))
    return train, y_train, test, y_test


def _logit(seed: int) -> Split:
    """Ten columns and a linear logit: the model of logistic regression."""
    rng = np.random.default_rng(seed)
    coefficients = rng.standard_normal(10) * 0.6
    X = rng.standard_normal((2500, 10))
    y = (rng.random(2500) < expit(X @ coefficients - 0.3)).astype(int)
    return X[:500], y[:500], X[500:], y[500:]


def _shipped(load: Callable[..., Any], n_train: int) -> ClassSet:
    def split(seed: int) -> Split:
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=n_train, stratify=y, random_state=seed
        )
        return X_train, y_train, X_test, y_test

    return split


def _drawn(n_train: int, n_test: int, make: Callable[..., Any], **settings: Any) -> ClassSet:
    def split(seed: int) -> Split:
        X, y = make(n_samples=n_train + n_test, random_state=seed, **settings)
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        return X[train], y[train].astype(int), X[test], y[test].astype(int)

    return split
