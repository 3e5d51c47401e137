"""Networks side by side against plain loops in double precision, SciPy and exact solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from bowtienet._old.data.rows import build_rows
from bowtienet._old.inference import lbfgs, network_loss, start
from bowtienet._old.inference.start import (
    SMOOTHING,
    Networks,
    fit_networks,
    network_outputs,
    random_networks,
)
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import default_model
from bowtienet._old.posterior.initialize import ridge
from bowtienet._old.prediction.predictive import predict

DEEP = (4, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Case:
    inputs: np.ndarray
    targets: np.ndarray
    row_weights: np.ndarray
    start: Networks
    penalties: np.ndarray


def build_case(
    rng: np.random.Generator,
    hidden: tuple[int, ...] = DEEP,
    *,
    n: int = 40,
    outputs: int = 2,
    count: int = 3,
) -> Case:
    inputs = rng.normal(size=(n, 3))
    signal = np.sin(2.0 * inputs[:, :1]) + inputs[:, 1:2] * np.arange(1, outputs + 1)
    targets = signal + 0.1 * rng.normal(size=(n, outputs))
    row_weights = rng.uniform(0.2, 2.0, size=(count, n)) * (rng.random((count, n)) > 0.2)
    row_weights[:, 0] = 1.0
    start = random_networks(hidden, inputs, targets, row_weights, rng)
    penalties = rng.uniform(0.05, 0.5, size=count)
    return Case(
        inputs=inputs, targets=targets, row_weights=row_weights, start=start, penalties=penalties
    )


def fit(case: Case, *lengths: int) -> list[Networks]:
    return fit_networks(
        case.inputs, case.targets, case.row_weights, case.start, case.penalties, lengths=lengths
    )


def outputs_in_loops(layers: list[np.ndarray], inputs: np.ndarray) -> np.ndarray:
    values = inputs
    for index, layer in enumerate(layers):
        z = np.array([[b[0] + b[1:] @ x for b in layer] for x in values])
        is_last = index + 1 == len(layers)
        values = z if is_last else 0.5 * (z + np.sqrt(z**2 + SMOOTHING**2))
    return values


def loss_in_loops(case: Case, r: int, layers: list[np.ndarray]) -> float:
    outputs, w = outputs_in_loops(layers, case.inputs), case.row_weights[r]
    total = sum(0.5 * w[n] * np.sum((case.targets[n] - outputs[n]) ** 2) for n in range(len(w)))
    total += sum(0.5 * case.penalties[r] * np.sum(layer[:, 1:] ** 2) for layer in layers)
    return float(total / w.sum())


def losses(case: Case, networks: Networks) -> np.ndarray:
    count = len(case.penalties)
    return np.array(
        [loss_in_loops(case, r, [layer[r] for layer in networks.layers]) for r in range(count)]
    )


def evaluated(case: Case, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Losses and gradients that the optimiser is given at the start."""
    found = []

    def watch(evaluate: lbfgs.Evaluate, start: np.ndarray, *, lengths: object) -> list[np.ndarray]:
        found.append(evaluate(start, np.arange(len(start))))
        return []

    monkeypatch.setattr(start, "minimize", watch)
    fit(case, 1)
    return found[0]


def assert_close(first: Networks, second: Networks, tolerance: float = 2e-4) -> None:
    for a, b in zip(first.layers, second.layers, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def assert_same_bits(first: Networks, second: Networks) -> None:
    for a, b in zip(first.layers, second.layers, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hidden", [(), (5,), DEEP])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("small_blocks", [False, True])
def test_loss_and_gradient_are_those_of_plain_loops(
    hidden: tuple[int, ...],
    outputs: int,
    small_blocks: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if small_blocks:  # two networks and rows 17, 17 and 6 at a time
        monkeypatch.setattr(network_loss, "BLOCK_ROWS", 17)
        monkeypatch.setattr(network_loss, "BLOCK_NUMBERS", 2 * 17 * (1 + max((*hidden, outputs))))
    case = build_case(rng, hidden, outputs=outputs)
    values, gradients = evaluated(case, monkeypatch)
    np.testing.assert_allclose(values, losses(case, case.start), rtol=1e-5)
    for r in range(3):
        layers = [layer[r].copy() for layer in case.start.layers]
        slopes = []
        for layer in layers:
            for place in np.ndindex(layer.shape):
                at, change = layer[place], []
                for step in (1e-5, -1e-5):
                    layer[place] = at + step
                    change.append(loss_in_loops(case, r, layers))
                layer[place] = at
                slopes.append((change[0] - change[1]) / 2e-5)
        np.testing.assert_allclose(gradients[r], slopes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hidden", [(), (5,), DEEP])
def test_outputs_are_those_of_plain_loops(
    hidden: tuple[int, ...], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_loss, "BLOCK_ROWS", 17)
    case = build_case(rng, hidden)
    found = network_outputs(case.start, case.inputs)
    assert found.shape == (3, 40, 2)
    for r in range(3):
        expected = outputs_in_loops([layer[r] for layer in case.start.layers], case.inputs)
        np.testing.assert_allclose(found[r], expected, rtol=1e-5, atol=1e-5)


def test_outputs_of_no_rows(rng: np.random.Generator) -> None:
    assert network_outputs(build_case(rng).start, np.empty((0, 3))).shape == (3, 0, 2)


def test_without_hidden_layer_it_is_a_ridge_regression(rng: np.random.Generator) -> None:
    case = build_case(rng, ())
    (found,) = fit(case, 60)
    design = np.column_stack([np.ones(40), case.inputs])
    for r in range(3):
        weighted = design * case.row_weights[r][:, None]
        penalty = np.diag([0.0, *[case.penalties[r]] * 3])
        expected = np.linalg.solve(weighted.T @ design + penalty, weighted.T @ case.targets)
        np.testing.assert_allclose(found.layers[0][r], expected.T, atol=2e-3)


def test_as_low_as_scipy_after_as_many_steps(rng: np.random.Generator) -> None:
    """Paths part after some steps, so the mean of the log losses of eight networks is compared."""
    case = build_case(rng, (8, 5), n=60, count=8)
    (found,) = fit(case, 60)
    shapes = [layer.shape[1:] for layer in case.start.layers]
    ends = np.cumsum([d * k for d, k in shapes])[:-1]
    theirs = []
    for r in range(8):
        watch = _double_loss(case, r, shapes, ends)
        flat = np.concatenate([layer[r].ravel() for layer in case.start.layers])
        options = {"maxiter": 60, "maxcor": lbfgs.PAIRS}
        theirs.append(minimize(watch, flat, jac=True, method="L-BFGS-B", options=options).fun)
    assert np.mean(np.log(losses(case, found))) < np.mean(np.log(theirs)) + 0.1


def _double_loss(case: Case, r: int, shapes: list, ends: np.ndarray):
    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        parts = np.split(flat, ends)
        layers = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        below, slopes = [case.inputs], []
        for layer in layers:
            z = layer[:, 0] + below[-1] @ layer[:, 1:].T
            root = np.sqrt(z**2 + SMOOTHING**2)
            below.append(0.5 * (z + root))
            slopes.append(below[-1] / root)
        total = case.row_weights[r].sum()
        e = case.row_weights[r][:, None] * (z - case.targets) / total
        value = 0.5 * np.sum(e * (z - case.targets))
        gradient = []
        for index in reversed(range(len(layers))):
            W, shrink = layers[index][:, 1:], case.penalties[r] / total
            value += 0.5 * shrink * np.sum(W**2)
            gradient.append(np.column_stack([e.sum(axis=0), e.T @ below[index] + shrink * W]))
            if index:
                e = (e @ W) * slopes[index - 1]
        return value, np.concatenate([part.ravel() for part in reversed(gradient)])

    return loss


def test_held_out_rows_have_no_influence(rng: np.random.Generator) -> None:
    case = build_case(rng, count=1)
    seen = case.row_weights[0] > 0.0
    assert not seen.all()
    (found,) = fit(case, 5)
    (alone,) = fit_networks(
        case.inputs[seen],
        case.targets[seen],
        case.row_weights[:, seen],
        case.start,
        case.penalties,
        lengths=(5,),
    )
    assert_close(found, alone)


def test_together_as_alone(rng: np.random.Generator) -> None:
    case = build_case(rng, count=4)
    (together,) = fit(case, 5)
    for r in range(4):
        (alone,) = fit_networks(
            case.inputs,
            case.targets,
            case.row_weights[r : r + 1],
            Networks(layers=tuple(layer[r : r + 1] for layer in case.start.layers)),
            case.penalties[r : r + 1],
            lengths=(5,),
        )
        assert_close(Networks(layers=tuple(x[r : r + 1] for x in together.layers)), alone)


def test_lengths_are_points_of_one_path(rng: np.random.Generator) -> None:
    case = build_case(rng)
    none, short, long = fit(case, 0, 50, 100)
    assert_same_bits(none, case.start)
    assert_same_bits(short, fit(case, 50)[0])
    assert_same_bits(long, fit(case, 100)[0])
    before, between, after = (losses(case, networks) for networks in (none, short, long))
    assert np.all(between < before)
    assert np.all(after <= between * (1.0 + 1e-6))


def test_start_is_left_as_it_was(rng: np.random.Generator) -> None:
    case = build_case(rng)
    copies = Networks(layers=tuple(layer.copy() for layer in case.start.layers))
    fit(case, 3)
    assert_same_bits(case.start, copies)


@pytest.mark.parametrize("hidden", [(), (5,), DEEP])
@pytest.mark.parametrize(
    "trouble",
    ["constant targets", "one row", "huge penalty", "no penalty", "equal rows", "equal columns"],
)
def test_degenerate_problems(
    trouble: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    n = 1 if trouble == "one row" else 30
    inputs, targets = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    penalties = np.array(
        {"huge penalty": [1e12, 1e6], "no penalty": [0.0, 0.0]}.get(trouble, [1, 2])
    )
    if trouble == "constant targets":
        targets[:] = [0.0, 3.0]
    elif trouble == "equal rows":
        inputs[:] = inputs[0]
    elif trouble == "equal columns":
        inputs[:] = inputs[:, :1]
    weights = np.ones((2, n))
    start = random_networks(hidden, inputs, targets, weights, rng)
    case = Case(
        inputs=inputs, targets=targets, row_weights=weights, start=start, penalties=penalties
    )
    (found,) = fit(case, 150)
    assert all(np.isfinite(layer).all() for layer in found.layers)
    before, after = losses(case, start), losses(case, found)
    assert np.all(after <= before * (1.0 + 1e-6) + 1e-12)
    if trouble in ("constant targets", "one row", "huge penalty"):
        # The best is a constant: no more than the spread of the targets is left.
        floor = 0.5 * np.sum((targets - targets.mean(axis=0)) ** 2) / n
        np.testing.assert_allclose(after, floor, rtol=1e-2, atol=1e-3)


def test_a_network_that_overflows_stays_and_disturbs_no_other(rng: np.random.Generator) -> None:
    case = build_case(rng)
    layers = tuple(layer.copy() for layer in case.start.layers)
    for layer in layers:
        layer[1] *= 1e30
    broken = fit_networks(
        case.inputs,
        case.targets,
        case.row_weights,
        Networks(layers=layers),
        case.penalties,
        lengths=(5,),
    )[0]
    (whole,) = fit(case, 5)
    for found, before, other in zip(broken.layers, layers, whole.layers, strict=True):
        np.testing.assert_array_equal(found[1], before[1])
        np.testing.assert_allclose(found[[0, 2]], other[[0, 2]], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
@pytest.mark.parametrize("hidden", [(5,), (4, 3)])
def test_rows_of_every_library_give_the_same_fit(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    library = pytest.importorskip(name)
    case = build_case(rng, hidden)
    there = replace(
        case, inputs=library.asarray(case.inputs), targets=library.asarray(case.targets)
    )
    # Every step multiplies rounding.
    for length, tolerance in ((3, 1e-4), (10, 5e-3)):
        (found,), (expected,) = fit(there, length), fit(case, length)
        np.testing.assert_allclose(losses(case, found), losses(case, expected), rtol=tolerance)


def test_random_networks_see_only_their_rows(rng: np.random.Generator) -> None:
    case = build_case(rng)
    row_weights = np.ones((2, 40))
    row_weights[:, 30:] = 0.0
    first = random_networks(DEEP, case.inputs, case.targets, row_weights, np.random.default_rng(5))
    case.inputs[30:] *= 100.0
    case.targets[30:] = -7.0
    second = random_networks(DEEP, case.inputs, case.targets, row_weights, np.random.default_rng(5))
    assert_same_bits(first, second)
    assert [layer.shape for layer in first.layers] == [(2, 4, 4), (2, 2, 5), (2, 3, 3), (2, 2, 4)]
    assert not np.array_equal(first.layers[0][0], first.layers[0][1])


def test_random_networks_end_in_a_ridge_regression(rng: np.random.Generator) -> None:
    """A weighted ridge regression with a free bias has residuals of weighted mean zero."""
    case = build_case(rng)
    residuals = case.targets - network_outputs(case.start, case.inputs)
    means = np.einsum("rn,rnd->rd", case.row_weights, residuals)
    np.testing.assert_allclose(means, 0.0, atol=1e-4)


@pytest.mark.parametrize("noise", [0.003, 0.03, 0.3])
def test_a_sweep_does_not_forget_a_network_however_little_noise_there_is(noise: float) -> None:
    """Planted, 40 inputs of order 1: errors against its outputs stay below half the noise."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(1000, 40))
    layers = [rng.normal(size=(6, 41)) / 6.0, rng.normal(size=(1, 7)) / 2.0]
    outputs = network_outputs(Networks(layers=tuple(layer[None] for layer in layers)), inputs)[0]
    rows = build_rows(inputs, outputs + noise * rng.normal(size=(1000, 1)))
    model = default_model(
        build_architecture(40, (6,), 1),
        rows.inputs,
        rows.targets,
        rows.weights,
        gate_temperature=0.001,
        hidden_noise=(2.0, 0.01),
    )
    factors = start.factors_of_network(model, layers, rows, rng)
    [[swept]] = sweep_together(
        model, rows, rows.weights[None], [factors], lengths=[1], repeats=2, n_threads=1
    )
    found = predict(swept.model, swept.factors, rows.inputs, n_threads=1)
    errors = outputs - np.asarray(found.mean)
    assert np.sqrt(np.mean(errors**2)) < 0.5 * noise


@pytest.mark.parametrize(
    "heavy", [np.full(30, 1e20), np.full(30, 1e90), 10.0 ** np.linspace(-7.5, 7.5, 30)]
)
def test_a_ridge_regression_has_a_solution_whatever_rows_weigh(
    heavy: np.ndarray, rng: np.random.Generator
) -> None:
    """Also of columns that are the same, which the penalty alone tells apart."""
    features = rng.normal(size=(30, 5))
    features[:, 4], features[:, 3] = features[:, 2], 0.0
    targets = features @ rng.normal(size=(5, 2)) + 1.0
    found = ridge(features, targets, heavy)
    np.testing.assert_allclose(found[:, 3], found[:, 5], rtol=1e-3)
    np.testing.assert_allclose(found[:, 0] + features @ found[:, 1:].T, targets, rtol=0, atol=1e-3)


def test_a_ridge_regression_goes_through_a_row_of_enormous_weight(
    rng: np.random.Generator,
) -> None:
    """and follows the others as far as it can: the solution of double the digits."""
    features, targets = rng.normal(size=(30, 3)), rng.normal(size=(30, 1))
    features[:, 2] = features[:, 1]
    weights = np.ones(30)
    weights[4] = 1e20
    found = ridge(features, targets, weights)
    design = np.column_stack([np.ones(30), features])
    with mpmath.workdps(50):
        rows, column = mpmath.matrix(design.tolist()), mpmath.matrix(targets.tolist())
        scaled = rows.T * mpmath.diag(weights.tolist())
        penalty = mpmath.diag([1e-10, 1.0, 1.0, 1.0])
        exact = mpmath.lu_solve(scaled * rows + penalty, scaled * column)
    np.testing.assert_allclose(found[0], [float(value) for value in exact], rtol=1e-4, atol=1e-5)
