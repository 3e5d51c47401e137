"""L-BFGS side by side: against the textbook's recursion, SciPy, and exact minima."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der

from bowtienet._old.inference import lbfgs

Evaluate = lbfgs.Evaluate


def quadratics(rng: np.random.Generator, count: int, size: int) -> tuple[Evaluate, np.ndarray]:
    """½ (x - c)'A(x - c) + 1 with condition numbers of about 100, and their minima c."""
    roots = rng.normal(size=(count, size, size))
    matrices = roots @ roots.transpose(0, 2, 1) / size + 0.05 * np.eye(size)
    centres = rng.normal(size=(count, size))

    def evaluate(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        off = points - centres[which]
        gradients = np.einsum("rij,rj->ri", matrices[which], off)
        return 0.5 * np.einsum("ri,ri->r", off, gradients) + 1.0, gradients

    return evaluate, centres


def rosenbrocks(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array([rosen(x) for x in points]), np.array([rosen_der(x) for x in points])


def two_loops(pairs: list[tuple[np.ndarray, np.ndarray]], gradient: np.ndarray) -> np.ndarray:
    """-H g as Nocedal and Wright, algorithm 7.4, print it."""
    q, alphas = gradient.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    q *= s @ y / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - y @ q / (s @ y)) * s
    return -q


def test_directions_are_those_of_two_loops(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(lbfgs, "PAIRS", 3)
    evaluate, centres = quadratics(rng, 2, 8)
    path = lbfgs._begin(evaluate, np.zeros_like(centres))
    pairs: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
    for step in range(8):
        before = path
        path, _ = lbfgs._step(evaluate, path, step)
        for r in range(2):
            s, y = path.points[r] - before.points[r], path.gradients[r] - before.gradients[r]
            pairs[r] = [*pairs[r], (s, y)][-3:]
            expected = two_loops(pairs[r], path.gradients[r])
            np.testing.assert_allclose(path.directions[r], expected, rtol=1e-3, atol=1e-6)


def test_minima_of_quadratics(rng: np.random.Generator) -> None:
    evaluate, centres = quadratics(rng, 5, 12)
    (found,) = lbfgs.minimize(evaluate, np.zeros_like(centres), lengths=(60,))
    np.testing.assert_allclose(found, centres, atol=5e-3)


def test_as_many_steps_as_scipy_on_rosenbrock(rng: np.random.Generator) -> None:
    start = rng.normal(0.0, 1.0, size=(6, 5))
    (found,) = lbfgs.minimize(rosenbrocks, start, lengths=(60,))
    for x0, x in zip(start, found, strict=True):
        theirs = scipy_minimize(
            rosen, x0, jac=rosen_der, method="L-BFGS-B", options={"maxiter": 60, "maxcor": 40}
        )
        assert rosen(x) <= 1.05 * theirs.fun + 1e-6


def test_functions_that_have_ended_are_not_evaluated(rng: np.random.Generator) -> None:
    evaluate, centres = quadratics(rng, 2, 6)
    seen: list[int] = []

    def watched(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.extend(which)
        return evaluate(points, which)

    start = centres.copy()
    start[1] += 1.0
    (found,) = lbfgs.minimize(watched, start, lengths=(20,))
    assert seen.count(0) == 1
    assert seen.count(1) > 5
    np.testing.assert_array_equal(found[0], centres[0])


@pytest.mark.parametrize("wall", [np.nan, np.inf, -np.inf])
def test_a_step_beyond_the_wall_is_shortened(wall: float) -> None:
    """-log(x) + 50 x, which is not defined for x <= 0; the first step goes there."""

    def evaluate(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = points[:, 0] > 0.0
        x = np.where(inside, points[:, 0], 1.0)
        gradients = np.where(inside, -1.0 / x + 50.0, np.nan)
        return np.where(inside, -np.log(x) + 50.0 * x, wall), gradients[:, None]

    (found,) = lbfgs.minimize(evaluate, np.array([[0.5], [-1.0]]), lengths=(50,))
    np.testing.assert_allclose(found[0], 0.02, rtol=1e-2)
    assert found[1] == -1.0


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_negative_curvature_is_no_obstacle(
    function: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> None:
    def evaluate(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = np.cos(points) if function is np.sin else -np.sin(points)
        return function(points).sum(axis=1), slope

    (found,) = lbfgs.minimize(evaluate, rng.uniform(-9.0, 9.0, size=(20, 4)), lengths=(40,))
    np.testing.assert_allclose(function(found), -1.0, atol=1e-3)
