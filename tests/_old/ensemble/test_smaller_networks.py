"""Networks that lose columns and weights, against sums over paths and what held-out rows say."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from bowtienet._old.data.rows import build_rows
from bowtienet._old.ensemble.fold_networks import SeenRows, held_out_folds, new_networks, stack, train
from bowtienet._old.ensemble.settings import Recipe, Settings
from bowtienet._old.ensemble.smaller_networks import (
    Stage,
    Trial,
    path_strengths,
    shrink_networks,
    whole_stage,
)
from bowtienet._old.inference.start import Networks, network_outputs

PARTS = 2


@pytest.fixture(scope="module")
def trial() -> Trial:
    """Two of four columns matter."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(120, 4))
    targets = (np.abs(inputs[:, 0]) + inputs[:, 1] + 0.1 * rng.normal(size=120))[:, None]
    rows = build_rows(inputs, targets)
    recipe = Recipe(
        gate_temperature=0.001, init_penalty=0.03, start_iterations=300, parts=PARTS, seed=3
    )
    return Trial(
        recipe=recipe,
        seen=SeenRows(rows=rows, log_slopes=np.zeros(120), groups=np.arange(4)),
        folds=held_out_folds(120),
        owners=np.arange(4),
        targets=np.asarray(targets),
        warp=None,
    )


@pytest.fixture(scope="module")
def stages(trial: Trial) -> list[Stage]:
    rows, recipe = trial.seen.rows, trial.recipe
    held_out = [*trial.folds, None]
    starts = [
        new_networks(recipe, number, rows, Settings(hidden_layer_sizes=(8,)))
        for number in range(len(held_out))
    ]
    penalties = [recipe.init_penalty] * len(starts)
    networks = train(rows, starts, held_out, penalties, recipe.start_iterations, None)
    return shrink_networks(trial, whole_stage(trial, networks), 0.02)


def test_every_stage_has_lost_something(stages: list[Stage]) -> None:
    """Training alone is no stage: it would lead away from the network for nothing."""
    assert len(stages) > 2
    for before, after in pairwise(stages):
        assert after.n_weights < before.n_weights
        assert np.all(after.columns <= before.columns)
        for old, new in zip(before.kept.layers, after.kept.layers, strict=True):
            assert np.all(new <= old)
    assert stages[-1].n_weights < 0.7 * stages[0].n_weights


def test_weights_that_went_are_zero_and_columns_that_matter_stay(stages: list[Stage]) -> None:
    for stage in stages:
        for layer, kept in zip(stage.networks.layers, stage.kept.layers, strict=True):
            np.testing.assert_array_equal(layer[kept == 0.0], 0.0)
            assert np.all(kept[:, :, 0] == 1.0)
        assert stage.columns[:2].all()


def test_a_stage_is_judged_by_rows_that_its_networks_have_not_seen(
    trial: Trial, stages: list[Stage]
) -> None:
    inputs, last = np.asarray(trial.seen.rows.inputs), stages[-1]
    for place, fold in enumerate(trial.folds):
        own = slice(place * PARTS, (place + 1) * PARTS)
        networks = Networks(layers=tuple(layer[own] for layer in last.networks.layers))
        outputs = network_outputs(networks, inputs[fold]).mean(axis=0)
        np.testing.assert_allclose(last.means[fold], outputs, rtol=1e-12)
    errors = trial.targets - last.means
    assert last.rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    assert last.rmse <= 1.02 * stages[0].rmse


def test_predictions_stay_near(stages: list[Stage]) -> None:
    """E[m²] <= tolerance E[e²] since the last column went, which here takes a layer's inputs."""
    whole = [stage for stage in stages if stage.kept.layers[1].all()][-1]
    assert whole is not stages[-1]
    moved = np.mean((stages[-1].means - whole.means) ** 2)
    assert 0.0 < moved <= 0.02 * np.mean(whole.squares)


def test_strengths_are_sums_over_paths() -> None:
    rng = np.random.default_rng(0)
    widths = (3, 4, 2, 2)
    networks = stack(
        [
            Networks(layers=tuple(rng.normal(size=(1, up, down + 1)) for down, up in pairs))
            for pairs in [list(pairwise(widths))] * 2
        ]
    )
    deviations = rng.uniform(0.5, 2.0, size=3)
    found = path_strengths(networks, deviations)
    expected = [np.zeros_like(layer[:, :, 1:]) for layer in networks.layers]
    for r, path in product(range(2), product(*map(range, widths))):
        size = deviations[path[0]]
        for layer, (down, up) in zip(networks.layers, pairwise(path), strict=True):
            size *= abs(layer[r, up, down + 1])
        for total, (down, up) in zip(expected, pairwise(path), strict=True):
            total[r, up, down] += size
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
