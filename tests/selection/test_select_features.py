"""Selected columns: those that matter, with few false ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet import select_features
from bowtienet.selection.conditional import fit_conditional, scores_of
from bowtienet.selection.regression import fit_ridge

SIGNALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda x: x[:, 0] - 0.8 * x[:, 1] + 0.6 * x[:, 2],
    "bent": lambda x: np.abs(x[:, 0]) + np.cos(2.0 * x[:, 1]) + (x[:, 2] > 0.3),
    "interactions": lambda x: x[:, 0] * x[:, 1] + np.where(x[:, 1] > 0.0, x[:, 2], -x[:, 2]),
}
"""Of the first three columns."""


def planted(
    signal: str, rng: np.random.Generator, shape: tuple[int, int] = (300, 20)
) -> tuple[np.ndarray, np.ndarray]:
    """Columns with correlations of 0.5 between neighbours in a random order, and targets."""
    noise = rng.normal(size=shape)
    x = noise.copy()
    for j in range(1, shape[1]):
        x[:, j] = 0.5 * x[:, j - 1] + np.sqrt(0.75) * noise[:, j]
    x = x[:, rng.permutation(shape[1])]
    f = SIGNALS[signal](x)
    return x, f + 0.6 * f.std() * rng.normal(size=len(x))


@pytest.mark.slow
@pytest.mark.parametrize("signal", SIGNALS)
def test_false_discoveries_and_power(signal: str, rng: np.random.Generator) -> None:
    """Over 60 tables; a share of 0.2 is passed by chance once in 3,000 times at three errors."""
    false, power = [], []
    for _ in range(60):
        chosen = select_features(*planted(signal, rng), false_discovery_rate=0.2).selected
        false.append(chosen[3:].sum() / max(chosen.sum(), 1))
        power.append(chosen[:3].mean())
    assert np.mean(false) < 0.2 + 3.0 * np.std(false) / np.sqrt(60.0)
    assert np.mean(power) > 0.9


@pytest.mark.slow
def test_nothing_of_shuffled_targets(rng: np.random.Generator) -> None:
    """p-values of no effect are uniform: 60 tables of 20 columns, four standard errors."""
    p_values, found = [], 0
    for _ in range(60):
        X, y = planted("linear", rng)
        result = select_features(X, rng.permutation(y), false_discovery_rate=0.05)
        p_values.append(result.p_values)
        found += bool(result.selected.any())
    assert found <= 9  # more by chance once in 1,000 times
    for level in (0.05, 0.2, 0.5):
        share = np.mean(np.array(p_values) <= level)
        assert abs(share - level) < 4.0 * np.sqrt(level * (1.0 - level) / 1200.0)


def test_finds_what_was_planted_and_prints_it(rng: np.random.Generator) -> None:
    X, y = planted("bent", rng, (300, 8))
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(target=y)
    result = select_features(frame, "target", false_discovery_rate=0.01)
    assert result.names == tuple("abcdefgh")
    assert result.selected[:3].all()
    assert result.p_values.max() <= 1.0
    lines = str(result).splitlines()
    assert lines[0].startswith(f"{result.selected.sum()} columns selected")
    assert {line[0] for line in lines[1:4]} == set("abc")
    assert "selected" in lines[1]
    again = select_features(frame, "target", false_discovery_rate=0.01)
    np.testing.assert_array_equal(again.p_values, result.p_values)


def test_the_order_of_columns_does_not_matter(rng: np.random.Generator) -> None:
    X, y = planted("interactions", rng, (250, 8))
    order = rng.permutation(8)
    first, second = select_features(X, y), select_features(X[:, order], y)
    np.testing.assert_allclose(second.p_values, first.p_values[order], rtol=0.1, atol=0.02)


def test_weights(rng: np.random.Generator) -> None:
    """Rows of weight zero are absent; rows of small weight hardly count."""
    X, y = planted("linear", rng, (300, 5))
    odd = np.concatenate([y[:200], 5.0 * X[200:, 4]])
    absent = select_features(X, odd, sample_weight=np.repeat([1.0, 0.0], [200, 100]))
    alone = select_features(X[:200], y[:200])
    np.testing.assert_array_equal(absent.p_values, alone.p_values)
    assert select_features(X, odd).selected[4]
    assert not select_features(X, odd, sample_weight=np.repeat([1.0, 1e-3], [200, 100])).selected[4]


def test_a_copy_takes_the_place_of_no_true_column(rng: np.random.Generator) -> None:
    """A correlated copy says nothing more; of exact copies neither does, given the other."""
    X, y = planted("linear", rng, (400, 5))
    near = X[:, :1] + 0.5 * rng.normal(size=(400, 1))
    result = select_features(np.hstack([X, near]), y, false_discovery_rate=0.01)
    assert result.selected.tolist() == [True] * 3 + [False] * 3
    exact = select_features(np.hstack([X, X[:, :1]]), y)
    assert not exact.selected[[0, 5]].any()


def mixed(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400)),
            "level": rng.choice(["a", "b", "c", "d"], 400),
            "day": np.datetime64("2024-01-01", "s") + rng.integers(0, 700, 400) * 86_400,
            "truth": rng.random(400) < 0.5,
            "same": 1.0,
            "other": rng.normal(size=400),
            "word": rng.choice(["x", "y", "z"], 400),
        }
    )
    season = np.sin(frame["day"].dt.dayofyear.to_numpy() / 58.1)
    return frame, (frame["level"] == "b") + season + 0.7 * frame["number"].fillna(0.0).to_numpy()


@pytest.mark.parametrize("outcome", ["numbers", "two classes", "classes", "counts", "several"])
def test_mixed_columns_and_every_outcome(outcome: str, rng: np.random.Generator) -> None:
    frame, signal = mixed(rng)
    settings: dict[str, Any] = {}
    noisy = signal + 0.3 * rng.normal(size=400)
    y: Any = noisy
    if outcome == "two classes":
        y = np.where(noisy > 0.3, "yes", "no")
    elif outcome == "classes":
        y, settings = np.digitize(noisy, [-0.3, 0.8]), {"outcome": "classes"}
    elif outcome == "counts":
        settings = {"exposure": rng.uniform(1.0, 9.0, 400)}
        y = rng.poisson(np.exp(signal) * settings["exposure"])
    elif outcome == "several":
        y = np.column_stack([noisy, rng.normal(size=400)])
    result = select_features(frame, y, false_discovery_rate=0.01, **settings)
    found = dict(zip(result.names, result.selected, strict=True))
    assert found == dict.fromkeys(frame, False) | dict.fromkeys(("number", "level", "day"), True)
    assert result.p_values[4] == 1.0


def test_tables_with_more_columns_than_rows_and_more_rows_than_are_looked_at(
    rng: np.random.Generator,
) -> None:
    wide = planted("linear", rng, (150, 200))
    assert select_features(*wide).selected[:2].all()
    long = planted("bent", rng, (6_000, 4))
    chosen = select_features(*long, false_discovery_rate=0.01).selected
    assert chosen.tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"false_discovery_rate": 1.0}, "false_discovery_rate"),
        ({"outcome": "ranks"}, "outcome"),
        ({"outcome": "classes", "exposure": np.ones(30)}, "exposure"),
        ({"outcome": "counts", "y": -np.ones(30)}, "counts"),
        ({"X": np.ones((9, 2)), "y": np.ones(9)}, "rows"),
    ],
)
def test_refusals(settings: dict[str, Any], match: str, rng: np.random.Generator) -> None:
    given = {"X": rng.normal(size=(30, 2)), "y": np.ones(30), **settings}
    with pytest.raises(ValueError, match=match):
        select_features(**given)


def test_constant_targets_depend_on_nothing(rng: np.random.Generator) -> None:
    assert np.all(select_features(rng.normal(size=(30, 2)), np.ones(30)).p_values == 1.0)


def test_ridge_against_fits_without_each_row(rng: np.random.Generator) -> None:
    features, targets = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    fit = fit_ridge(features, targets)
    A = features - features.mean(axis=0)
    # The penalty that the shrinkage of the largest direction says.
    penalty = np.linalg.eigvalsh(A.T @ A)[-1] * (1.0 / fit.shrinkage[-1] - 1.0)
    hat = A @ np.linalg.solve(A.T @ A + penalty * np.eye(3), A.T) + 1.0 / 12.0
    expected = (targets - hat @ targets) / (1.0 - np.diag(hat))[:, None]
    np.testing.assert_allclose(fit.fitted, hat @ targets, atol=1e-10)
    np.testing.assert_allclose(fit.errors, expected, atol=1e-9)


def test_draws_have_the_distribution_of_the_column(rng: np.random.Generator) -> None:
    """Means, deviations, and correlations, which linear probabilities make a little smaller."""
    x = rng.normal(size=(400, 1))
    level = (x[:, 0] + rng.normal(size=400) > 0.0) * 1.0
    inputs = np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=(400, 1)), level])
    scores = scores_of(inputs, np.arange(3))[0]
    for column, near in ((1, 0.03), (2, 0.07)):
        drawn = fit_conditional(scores, np.arange(3) == column)[1](500, rng)[0]
        values = scores[:, column]
        together = drawn @ scores[:, 0] / 400.0
        assert abs(together.mean() - values @ scores[:, 0] / 400.0) < near
        assert abs(drawn.mean()) < 0.01
        assert abs(drawn.std() - 1.0) < 0.02
