"""Adam on batches: exact solutions, L-BFGS, independence of networks, every array library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from bowtienet._old._arrays import slices
from bowtienet._old.inference.start import Networks, RowBatch, fit_networks_by_batches
from tests._old.inference.test_start import (
    Case,
    assert_close,
    assert_same_bits,
    build_case,
    fit,
    losses,
)


def in_batches(case: Case, size: int = 16) -> Callable[[int], Iterator[RowBatch]]:
    """Batches of a pass, in an order of its own."""

    def batches(n_passes: int) -> Iterator[RowBatch]:
        order = np.random.default_rng(n_passes).permutation(len(case.inputs))
        for some in slices(len(order), size):
            rows = order[some]
            yield case.inputs[rows], case.targets[rows], case.row_weights[:, rows]

    return batches


def fit_by_batches(case: Case, *lengths: int, size: int = 16) -> list[Networks]:
    totals = np.asarray(case.row_weights).sum(axis=1)
    return fit_networks_by_batches(
        in_batches(case, size), case.start, case.penalties, totals, lengths=lengths
    )


def test_batches_reach_the_ridge_regression(rng: np.random.Generator) -> None:
    """Without hidden layer, from zero; the noise of the batches fades with the learning rate."""
    case = build_case(rng, ())
    case = replace(case, start=Networks(layers=(np.zeros((3, 2, 4)),)))
    (found,) = fit_by_batches(case, 300)
    design = np.column_stack([np.ones(40), case.inputs])
    for r in range(3):
        weighted = design * case.row_weights[r][:, None]
        penalty = np.diag([0.0, *[case.penalties[r]] * 3])
        expected = np.linalg.solve(weighted.T @ design + penalty, weighted.T @ case.targets)
        np.testing.assert_allclose(found.layers[0][r], expected.T, atol=0.02)


@pytest.mark.parametrize("hidden", [(16,), (10, 6)])
def test_batches_end_about_as_low_as_all_rows(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Minima are local: on ten tables the mean log ratio is 0.08 with deviation 0.13, or lower."""
    case = build_case(rng, hidden, n=300, count=8)
    (found,), (exact,) = fit_by_batches(case, 60, size=32), fit(case, 100)
    assert np.mean(np.log(losses(case, found) / losses(case, exact))) < 0.5
    assert np.all(losses(case, found) < losses(case, case.start))


def test_held_out_rows_of_batches_have_no_influence(rng: np.random.Generator) -> None:
    case = build_case(rng)
    case.row_weights[:, :5] = 0.0
    (found,) = fit_by_batches(case, 4)
    case.targets[:5], case.inputs[:5] = 1e3, -1e3
    assert_same_bits(found, fit_by_batches(case, 4)[0])


def test_batches_together_as_alone(rng: np.random.Generator) -> None:
    case = build_case(rng, (5,), count=4)
    (together,) = fit_by_batches(case, 4)
    one = replace(
        case,
        row_weights=case.row_weights[2:3],
        start=Networks(layers=tuple(layer[2:3] for layer in case.start.layers)),
        penalties=case.penalties[2:3],
    )
    (alone,) = fit_by_batches(one, 4)
    assert_close(Networks(layers=tuple(x[2:3] for x in together.layers)), alone, 1e-3)


def test_a_batch_without_rows_of_a_network_is_no_trouble(rng: np.random.Generator) -> None:
    case = build_case(rng)
    case.row_weights[1, 5:] = 0.0
    (found,) = fit_by_batches(case, 5, size=2)
    assert all(np.isfinite(layer).all() for layer in found.layers)


def test_passes_are_points_of_one_path(rng: np.random.Generator) -> None:
    case = build_case(rng)
    before, between, after = fit_by_batches(case, 0, 30, 60)
    for layer, start_layer in zip(before.layers, case.start.layers, strict=True):
        np.testing.assert_allclose(layer, start_layer, rtol=1e-6)
    assert_same_bits(after, fit_by_batches(case, 60)[0])
    assert np.all(losses(case, between) < losses(case, before))
    assert np.mean(losses(case, after)) < np.mean(losses(case, between))


@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_batches_of_every_library(name: str, rng: np.random.Generator) -> None:
    library = pytest.importorskip(name)
    case = build_case(rng, (5,))
    there = [
        (library.asarray(inputs), library.asarray(targets), row_weights)
        for inputs, targets, row_weights in in_batches(case, 20)(0)
    ]
    here = list(in_batches(case, 20)(0))
    found, expected = (
        fit_networks_by_batches(
            lambda _, known=known: known,
            case.start,
            case.penalties,
            case.row_weights.sum(axis=1),
            lengths=[3],
        )[0]
        for known in (there, here)
    )
    np.testing.assert_allclose(losses(case, found), losses(case, expected), rtol=1e-3)
