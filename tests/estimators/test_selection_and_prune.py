"""What of a network matters, and the smaller network that is made of it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet import BowTieNetwork, BowTieNetworkClassifier, load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def planted(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Age bends, one city of three has a level of its own; luck and mood have no part."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "luck": rng.normal(size=n),
            "age": rng.uniform(-2.0, 2.0, size=n),
            "city": rng.choice(["Lima", "Oslo", "Rome"], size=n),
            "mood": rng.normal(size=n),
        }
    )
    signal = 2.0 * np.maximum(table["age"], 0.0) + 1.5 * (table["city"] == "Oslo")
    return table, np.asarray(signal + 0.1 * rng.normal(size=n))


X, Y = planted(120, 0)
NEW, Y_NEW = planted(300, 1)


def converged(**changes: Any) -> BowTieNetwork:
    settings = {"hidden_layer_sizes": (5,), "max_iter": 3000, "accelerate": True, "tol": 1e-2}
    return BowTieNetwork.as_in_paper(**{**settings, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def model() -> BowTieNetwork:
    return converged().fit(X, Y)


@pytest.fixture(scope="module")
def pruned(model: BowTieNetwork) -> BowTieNetwork:
    return model.prune()


@pytest.fixture(scope="module")
def constant() -> BowTieNetwork:
    """Targets that follow no column, about 20."""
    noise = np.random.default_rng(3).normal(20.0, 2.0, size=len(X))
    return converged(scale_target=True).fit(X, noise).prune(1e-4)


def test_selection_finds_the_columns(model: BowTieNetwork) -> None:
    found = model.selection()
    assert found.columns == ("age", "city")
    assert 0 < found.weights < found.n_weights == 5 * 6 + 5  # three cities are three columns
    assert 1 <= found.units[0] <= 5
    assert found.estimated_rate < 0.01
    assert 0.5 < found.keep_threshold <= 1.0
    text = repr(found)
    for words in ("columns: age, city", f"hidden units: {found.units[0]}", "false discovery rate"):
        assert words in text
    for rate in (0.0, 1.0, np.nan, "0.1"):
        for ask in (model.selection, model.prune):
            with pytest.raises(ValueError, match="false_discovery_rate"):
                ask(rate)
    everything = model.selection(0.99)
    assert everything.weights == everything.n_weights
    assert everything.columns == ("luck", "age", "city", "mood")


def test_a_pruned_network_is_smaller_and_says_the_same(
    model: BowTieNetwork, pruned: BowTieNetwork
) -> None:
    found = model.selection()
    assert type(pruned) is BowTieNetwork
    assert pruned.get_params() == {**model.get_params(), "n_members": 1}
    assert pruned.n_features_in_ == 4
    assert list(pruned.feature_names_in_) == list(X)
    assert_array_equal(pruned.kept_columns_, [1, 2])
    assert not hasattr(model, "kept_columns_")
    widths = pruned._fitted.model.architecture.widths
    assert widths[1:] == (found.units[0], 1)
    assert str(widths[0]) + "-" in pruned.summary()
    errors = [np.sqrt(np.mean((each.predict(NEW) - Y_NEW) ** 2)) for each in (model, pruned)]
    assert errors[1] < 1.1 * errors[0]
    moved = np.sqrt(np.mean((pruned.predict(NEW) - model.predict(NEW)) ** 2))
    assert moved < 0.2 * errors[0]
    assert np.all(np.diff(pruned.elbo_history_) >= -1e-9 * np.abs(pruned.elbo_history_[1:]))


def test_columns_that_went_are_asked_for_and_ignored(pruned: BowTieNetwork) -> None:
    other = NEW.assign(luck=NEW["luck"][::-1].to_numpy(), mood=0.0)
    assert_array_equal(pruned.predict(other), pruned.predict(NEW))
    assert np.any(pruned.predict(NEW.assign(age=0.0)) != pruned.predict(NEW))
    assert np.any(pruned.predict(NEW.assign(city="Oslo")) != pruned.predict(NEW))
    with pytest.raises(ValueError, match="mood"):
        pruned.predict(NEW[["age", "city", "luck"]])


def test_a_pruned_network_is_an_estimator(model: BowTieNetwork, pruned: BowTieNetwork) -> None:
    assert np.isfinite(pruned.predict(NEW, return_std=True)).all()
    assert np.isfinite(pruned.sample_y(NEW, 2, joint=True)).all()
    again = pruned.prune()
    assert set(again.kept_columns_) <= {1, 2}
    assert again.selection().n_weights <= pruned.selection().n_weights
    assert pruned.selection().columns == ("age", "city")
    grown = copy.deepcopy(model).fit(X, Y).prune()
    before = grown.score(NEW, Y_NEW)
    grown.partial_fit(NEW, Y_NEW)
    assert grown.score(NEW, Y_NEW) > before
    assert_array_equal(grown.kept_columns_, [1, 2])
    assert not hasattr(grown.fit(X, Y), "kept_columns_")


def test_of_nothing_a_constant_is_left(constant: BowTieNetwork) -> None:
    """Mean and spread of the targets; the mean of 120 has an error of 0.18."""
    mean, std = constant.predict(NEW, return_std=True)
    assert np.ptp(mean) == np.ptp(std) == 0.0
    assert abs(mean[0] - 20.0) < 0.8
    assert 1.5 < std[0] < 2.5
    assert constant.kept_columns_.size == 0
    assert "columns: none" in str(constant.selection())
    draws = constant.sample_y(NEW, 5, joint=True)
    assert_allclose(draws, np.broadcast_to(draws[0], draws.shape))
    assert "0-1" in constant.summary()
    assert_allclose(constant.prune().predict(NEW), mean, rtol=1e-3)


def test_classes_and_several_targets() -> None:
    small = {"hidden_layer_sizes": (4,), "max_iter": 10, "random_state": 0}
    labels = np.where(Y > 1.0, "high", "low")
    classifier = BowTieNetworkClassifier(**small).fit(X, labels)
    regressor = BowTieNetwork(**small).fit(X, np.column_stack([Y, -Y]))
    with pytest.warns(UserWarning, match="rate"):
        pruned = classifier.prune(0.2), regressor.prune(0.2)
    assert list(pruned[0].classes_) == ["high", "low"]
    assert pruned[0].score(X, labels) > 0.9
    assert pruned[1].predict(NEW).shape == (300, 2)
    assert pruned[1].score(NEW, np.column_stack([Y_NEW, -Y_NEW])) > 0.9


@pytest.mark.parametrize(
    "changes",
    [{"init": "relu_network"}, {"temperature": 0.05}, {"max_iter": 3, "tol": 0.0}],
    ids=str,
)
def test_where_the_rate_does_not_hold_a_warning_says_so(changes: dict[str, Any]) -> None:
    model = converged(**{"tol": 1.0, **changes}).fit(X, Y)
    assert model.converged_ == ("max_iter" not in changes)
    for ask in (model.selection, model.prune):
        with pytest.warns(UserWarning, match="rate means nothing") as caught:
            ask(0.1)
        assert [w.filename for w in caught if w.category is UserWarning] == [__file__]


def test_rows_are_gone_after_loading_and_further_rows(model: BowTieNetwork, tmp_path: Any) -> None:
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.selection() == model.selection()
    with pytest.raises(ValueError, match="prune after fit"):
        loaded.prune()
    further = converged().partial_fit(X, Y)
    with pytest.warns(UserWarning, match="rate"), pytest.raises(ValueError, match="partial_fit"):
        further.prune()
