"""Displays of networks show the weights that the estimators have, at their places."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import NetworkDisplay, RelevanceDisplay, WeightsDisplay
from bowtienet._old.plotting.fitted import member_weights
from tests._old.plotting.fits import quick
from tests._old.sign_pruning import prune_by_signs

NAMES = ["idle", "wide", "narrow"]


@pytest.fixture(scope="module")
def fitted() -> BowTieRegressor:
    """Two inputs of different spread matter and one does not."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)) * [1.0, 100.0, 0.01], columns=NAMES)
    y = np.maximum(X["wide"] / 33.0, 0.0) - 180.0 * X["narrow"] + rng.normal(0.0, 0.3, size=150)
    plain = {"features": "standard", "target_transform": "none"}
    return quick(hidden_layer_sizes=(6,), init_penalty=100.0, max_iter=100, **plain).fit(X, y)


@pytest.fixture(scope="module")
def pruned(fitted: BowTieRegressor) -> BowTieRegressor:
    return prune_by_signs(fitted, 1e-4)


def labels(ax: pyplot.Axes) -> list[str]:
    return [text.get_text() for text in (*ax.texts, *ax.get_yticklabels())]


def n_edges(ax: pyplot.Axes) -> int:
    return sum(len(c.get_segments()) for c in ax.collections if isinstance(c, LineCollection))


def test_drawn_edges_are_the_weights_that_are_left(pruned: BowTieRegressor) -> None:
    for member in range(2):
        display = NetworkDisplay.from_estimator(pruned, member=member, title="pruned")
        assert n_edges(display.ax_) == pruned.sparsity_.weights_after[member]
        assert set(labels(display.ax_)) >= {"idle", "wide", "narrow"}
        assert display.ax_.get_title() == "pruned"


def test_pruned_weights_stand_at_their_users_columns(
    fitted: BowTieRegressor, pruned: BowTieRegressor
) -> None:
    for in_place in (False, True):
        first, last = member_weights(pruned, 0, in_place=in_place)
        assert first.shape[1] == 4
        assert (
            len(first) == last.shape[1] - 1 == (6 if in_place else pruned.sparsity_.nodes_after[0])
        )
        assert np.all(first[:, 1] == 0.0)  # the idle input
        assert np.any(first[:, 2] != 0.0)
        assert np.any(first[:, 3] != 0.0)
    dense = member_weights(fitted, 0)[0]
    kept = member_weights(pruned, 0, in_place=True)[0]
    # What pruning left has moved little from where it was; the idle input's weights are gone.
    moved = np.abs(kept - dense)[:, 1:][kept[:, 1:] != 0.0]
    assert np.max(moved) < 0.2 * np.max(np.abs(dense))


def test_heat_maps_have_a_row_for_each_model(
    fitted: BowTieRegressor, pruned: BowTieRegressor
) -> None:
    one, two = WeightsDisplay.from_estimator(fitted), WeightsDisplay.from_estimator(fitted, pruned)
    images = [[ax.images[0] for ax in display.axes_ if ax.images] for display in (one, two)]
    assert [len(found) for found in images] == [2, 4]
    first = member_weights(fitted, 0, in_place=True)[0]
    np.testing.assert_array_equal(images[0][0].get_array(), first[:, 1:].T)


def test_relevance_is_drawn_from_the_strongest_down(pruned: BowTieRegressor) -> None:
    display = RelevanceDisplay.from_estimator(pruned)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == sorted(pruned.feature_relevance_.strength, reverse=True)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert sorted(names) == sorted(NAMES)  # nobody has asked for p-values


def test_with_several_targets_the_one_an_input_matters_for_most_counts(
    deep: BowTieRegressor,
) -> None:
    display = RelevanceDisplay.from_estimator(deep)
    np.testing.assert_array_equal(display.strength, np.maximum(*deep.feature_relevance_.strength.T))
    assert np.isnan(display.p_value).all()


def test_features_that_a_test_does_not_find_have_their_p_value() -> None:
    display = RelevanceDisplay(names=NAMES, strength=[3.0, 2.0, 1.0], p_value=[0.4, 0.001, 0.05])
    names = [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    assert sorted(names) == ["idle (p = 0.40)", "narrow (p = 0.05)", "wide"]


def test_a_constant_can_be_drawn() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    dense = quick(
        hidden_layer_sizes=(3,), n_estimators=1, init_penalty=1000.0, tol=1e-3, max_iter=80
    ).fit(X, y)
    constant = prune_by_signs(dense, 1e-6)
    assert any("constant" in text for text in labels(NetworkDisplay.from_estimator(constant).ax_))
    WeightsDisplay.from_estimator(dense, constant)
    assert not np.any(RelevanceDisplay.from_estimator(constant).strength)


def test_models_that_do_not_belong_together(fitted: BowTieRegressor, deep: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="pruned has not the inputs"):
        WeightsDisplay.from_estimator(fitted, deep)
