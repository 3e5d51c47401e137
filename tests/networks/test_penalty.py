"""The penalty by cross-validation: who holds out what, and what held-out rows choose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bowtienet.networks import penalty as penalty_module
from bowtienet.networks.penalty import PENALTIES, choose_penalty
from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome
from tests.networks.cases import n_outputs_of, planted


def test_little_noise_takes_a_weak_penalty_and_much_a_strong_one(rng: np.random.Generator) -> None:
    """Of sixteen other seeds, none was on the wrong side of the bars."""
    chosen = []
    for noise in (0.01, 4.0):
        x, y = planted(rng, 60, noise)
        y /= np.std(y)
        chosen.append(choose_penalty(x, y, np.ones(60), (8,), GAUSSIAN, rng)[0])
    assert set(chosen) <= set(PENALTIES)
    assert chosen[0] <= 0.1
    assert chosen[1] >= 1.0


def test_noise_variance_of_a_planted_table(rng: np.random.Generator) -> None:
    """To four standard errors of a mean of n squares, √(2/n) each, and the error of the fit."""
    x, y = planted(rng, 300, 0.4)
    _, variance = choose_penalty(x, y, np.ones(300), (8,), GAUSSIAN, rng)
    assert variance.shape == (1,)
    assert variance[0] == pytest.approx(0.16, rel=4.0 * math.sqrt(2.0 / 300.0) + 0.05)


class Captured:
    """Stands in for the training, keeps what it was asked, and answers by the held-out rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: Any = None) -> None:
        self.answers = answers
        monkeypatch.setattr(penalty_module, "fit_networks", self._fit)
        monkeypatch.setattr(penalty_module, "outputs", self._outputs)

    def _fit(self, x: Any, y: Any, weights: Any, hidden: Any, penalties: Any, *others: Any) -> None:
        folds, held_out = others[2:]
        self.inputs, self.targets, self.weights, self.penalties = x, y, weights, penalties
        self.held_out = folds == held_out[:, None]

    def _outputs(self, networks: None, x: np.ndarray) -> np.ndarray:
        if self.answers is None:
            return np.zeros((len(self.penalties), len(x), 1))
        return self.answers(self)


@pytest.mark.parametrize(("n", "n_folds"), [(60, 10), (450, 5)])
def test_every_row_is_held_out_once_and_equal_rows_together(
    n: int, n_folds: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = Captured(monkeypatch)
    x = rng.normal(size=(n // 3, 2)).repeat(3, axis=0)
    y, weights = x[:, :1] ** 2, rng.uniform(0.5, 2.0, size=n)
    choose_penalty(x, y, weights, (3,), GAUSSIAN, rng)
    assert captured.penalties.reshape(len(PENALTIES), -1).tolist() == [
        [p] * (2 * n_folds) for p in PENALTIES
    ]
    held_out = captured.held_out.reshape(len(PENALTIES), n_folds, 2, n)
    assert np.all(held_out.sum(axis=1) == 1)
    assert np.all(held_out == held_out[:1, :, :1])
    np.testing.assert_array_equal(captured.weights, weights)
    triples = held_out[0, :, 0].reshape(n_folds, -1, 3)
    assert np.all(triples == triples[:, :, :1])
    sizes = triples[:, :, 0].sum(axis=1)
    assert sizes.max() - sizes.min() <= 1


def test_held_out_rows_alone_choose_by_their_weights(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twins that say y ± (d ± s) where the row is held out, and nonsense elsewhere."""
    errors = np.array([5.0, 4.0, 1.0, 3.0, 6.0, 2.0, 7.0])

    def answers(captured: Captured) -> np.ndarray:
        wrong = errors.repeat(len(captured.penalties) // 7)
        twin = 0.25 * np.resize([1.0, -1.0], len(wrong))
        signs = np.resize([1.0, -1.0], len(captured.inputs))
        # The penalty of error 1 is bad on a row that hardly counts.
        each = (wrong[:, None] + twin[:, None]) * signs
        each = np.where((wrong[:, None] == 1.0) & (captured.inputs[:, 0] > 90.0), 1e3, each)
        predicted = captured.targets[:, 0] + each
        return np.where(captured.held_out, predicted, 1e5)[:, :, None]

    captured = Captured(monkeypatch, answers)
    x = np.append(np.arange(39.0), 99.0)[:, None]
    weights = np.append(np.ones(39), 1e-12)
    penalty, variance = choose_penalty(x, np.sin(x), weights, (3,), GAUSSIAN, rng)
    assert penalty == captured.penalties[2 * 2 * 10] == PENALTIES[2]
    # Mean of 1.25² and 0.75², less the variance ½ · 0.5² of the twins.
    assert variance[0] == pytest.approx(1.0 + 0.0625 - 0.125, abs=1e-5)


@pytest.mark.parametrize("outcome", [Binary(), Classes(n_classes=3)], ids=str)
def test_the_penalty_of_classes(outcome: Outcome, rng: np.random.Generator) -> None:
    """Labels that a line parts take a weaker one than labels by chance."""
    x, n_classes = rng.normal(size=(60, 2)), max(n_outputs_of(outcome), 2)
    parted = np.searchsorted(np.quantile(x[:, 0], np.arange(1, n_classes) / n_classes), x[:, 0])
    chance = rng.integers(0, n_classes, size=60)
    clear, noisy = (
        choose_penalty(x, y[:, None].astype(float), np.ones(60), (5,), outcome, rng)[0]
        for y in (parted, chance)
    )
    assert clear < 1.0 < noisy


@pytest.mark.parametrize("n", [1, 6])
def test_rows_that_are_all_the_same(n: int, rng: np.random.Generator) -> None:
    """One fold has them all: its networks are trained on nothing."""
    penalty, variance = choose_penalty(
        np.ones((n, 1)), np.zeros((n, 1)), np.ones(n), (3,), GAUSSIAN, rng
    )
    assert penalty in PENALTIES
    assert np.isfinite(variance).all()
