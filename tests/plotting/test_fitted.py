"""Pictures of fitted estimators show the weights that the estimators have, at their places."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from sklearn.exceptions import NotFittedError

from bowtienet import BowTieRegressor
from bowtienet.plotting import plot_network, plot_relevance, plot_weights
from bowtienet.plotting.fitted import member_weights

NAMES = ["idle", "wide", "narrow"]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    """Two inputs of different spread matter and one does not."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)) * [1.0, 100.0, 0.01], columns=NAMES)
    y = np.maximum(X["wide"] / 100.0, 0.0) - 60.0 * X["narrow"] + rng.normal(0.0, 0.1, size=150)
    return BowTieRegressor(
        (6,), n_estimators=2, combine="equal", max_iter=200, tol=1e-4, random_state=0
    ).fit(X, y)


@pytest.fixture(scope="module")
def pruned(model: BowTieRegressor) -> BowTieRegressor:
    return model.prune(0.01)


def labels(ax: plt.Axes) -> list[str]:
    return [text.get_text() for text in (*ax.texts, *ax.get_yticklabels())]


def test_drawn_edges_are_the_weights_that_are_left(pruned: BowTieRegressor) -> None:
    for member in range(2):
        ax = plot_network(pruned, member=member, title="pruned")
        edges = sum(len(c.get_segments()) for c in ax.collections if isinstance(c, LineCollection))
        assert edges == pruned.sparsity_.weights_after[member]
        assert {"idle", "wide", "narrow"} <= set(labels(ax))


def test_weights_stand_at_their_users_columns(
    model: BowTieRegressor, pruned: BowTieRegressor
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
    dense = member_weights(model, 0)[0]
    kept = member_weights(pruned, 0, in_place=True)[0]
    # What pruning left has moved little from where it was; the idle input's weights are gone.
    moved = np.abs(kept - dense)[:, 1:][kept[:, 1:] != 0.0]
    assert np.max(moved) < 0.2 * np.max(np.abs(dense))


def test_the_dense_network_predicts_with_the_drawn_weights(model: BowTieRegressor) -> None:
    """The user's standardised table through the drawn weights is the networks' own forward pass."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 3))
    ensemble = model.ensemble_
    own = ensemble.members[0].factors.layers[0].weights.mean
    np.testing.assert_allclose(
        member_weights(model, 0)[0][:, 1:] @ x.T, own[:, 1:] @ x[:, ensemble.column_order].T
    )


def test_heat_maps_have_a_row_for_each_model(
    model: BowTieRegressor, pruned: BowTieRegressor
) -> None:
    one, two = plot_weights(model), plot_weights(model, pruned)
    assert sum(bool(ax.images or ax.collections) for ax in two.axes) > sum(
        bool(ax.images or ax.collections) for ax in one.axes
    )


def test_relevance_is_drawn_from_the_strongest_down(pruned: BowTieRegressor) -> None:
    ax = plot_relevance(pruned)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)
    assert sorted(widths) == sorted(pruned.feature_relevance_.strength)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert any(name.startswith("idle (0.") for name in names)


def test_a_constant_can_be_drawn() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = BowTieRegressor(
        (3,), n_estimators=1, combine="equal", init_penalty=1000.0, tol=1e-3, random_state=0
    ).fit(X, y)
    with pytest.warns(UserWarning, match="predicts a constant"):
        constant = model.prune(1e-6)
    ax = plot_network(constant)
    assert any("constant" in text for text in labels(ax))
    plot_weights(model, constant)
    plot_relevance(constant)


@pytest.mark.parametrize("member", [2, -1, 0.5, "first"])
def test_members_that_are_not_there(model: BowTieRegressor, member: object) -> None:
    with pytest.raises(ValueError, match="member must be a whole number from 0 to 1"):
        plot_network(model, member=member)


def test_models_that_do_not_belong_together(model: BowTieRegressor) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    other = BowTieRegressor((2,), n_estimators=1, combine="equal", max_iter=9, tol=1.0).fit(X, y)
    with pytest.raises(ValueError, match="pruned was not made from model"):
        plot_weights(model, other)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        plot_network(BowTieRegressor())
