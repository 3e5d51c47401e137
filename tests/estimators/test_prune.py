"""Pruned estimators: smaller, nearly the same answers, and still estimators in every way."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from bowtienet import BowTieRegressor, load, open_source
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.model.shrinkage import FAMILIES
from tests.estimators.models import small, stacked

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(5)
NAMES = ["age", "height", "weight", "mood", "luck"]
X = RNG.normal(3.0, 2.0, size=(100, 5))
Y = np.abs(X[:, 3] - 3.0) + 0.7 * X[:, 1] + 0.2 * RNG.normal(size=100)
NOISE = RNG.normal(20.0, 4.0, size=100)
FRAME = pd.DataFrame(X, columns=NAMES)


def longer(**changes: Any) -> BowTieRegressor:
    """Two members that know which of their weights matter."""
    settings = {"hidden_layer_sizes": (8,), "max_iter": 60, "tol": 1e-4, "init_penalty": 1.0}
    return small(**(settings | {"gate_temperature": "auto"} | changes))


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return longer().fit(FRAME, Y)


@pytest.fixture(scope="module")
def pruned(model: BowTieRegressor) -> BowTieRegressor:
    return model.prune(0.001)


@pytest.fixture(scope="module")
def constant() -> BowTieRegressor:
    """Targets that have nothing to do with the features."""
    noisy = longer(init="laplace").fit(X, NOISE)
    with pytest.warns(UserWarning, match=r"false_sign_rate=0\.0001"):
        return noisy.prune(1e-4)


def everything(model: BowTieRegressor, table: Any) -> list[np.ndarray]:
    """What an estimator says, by every one of its ways to say it."""
    return [
        *model.predict(table, return_std=True),
        *model.predict(table, return_cov=True),
        model.predict_interval(table, [0.5, 0.9]),
        model.predict_interval(table, method="highest_density", n_samples=200),
        model.predict_quantiles(table),
        *model.predict_components(table),
        model.predict_dist(table).pdf(np.zeros(())),
        model.sample_y(table, 3),
        model.sample_y(table, 3, joint=True),
        model.sample_y(table, 3, joint=True, noise=False),
    ]


def assert_same_answers(first: BowTieRegressor, second: BowTieRegressor, table: Any) -> None:
    for a, b in zip(everything(first, table), everything(second, table), strict=True):
        assert_array_equal(a, b)


def widths(model: BowTieRegressor) -> list[tuple[int, ...]]:
    return [member.model.architecture.widths for member in model.ensemble_.members]


# What prune gives back, and what it asks for


def test_the_old_estimator_is_unchanged(model: BowTieRegressor) -> None:
    before = pickle.dumps(model)
    found = model.prune(0.001)
    refitted = model.prune(0.001, refit=True, X=FRAME, y=Y)
    assert type(found) is type(refitted) is BowTieRegressor
    assert pickle.dumps(model) == before
    params = {name: value for name, value in model.get_params().items() if name != "options"}
    assert {name: found.get_params()[name] for name in params} == {
        **params,
        "false_sign_rate": 0.001,
    }


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, np.nan, "0.01", True])
def test_rates_that_are_none(rate: Any, model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="false_sign_rate"):
        model.prune(rate)


@pytest.mark.parametrize(
    "given",
    [{"refit": True}, {"refit": True, "y": Y}, {"X": FRAME, "y": Y}],
    ids=["no rows", "no features", "no refit"],
)
def test_rows_and_refit_belong_together(given: dict[str, Any], model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="refit"):
        model.prune(**given)


def test_the_bound_of_a_pruned_model_is_not_known(pruned: BowTieRegressor) -> None:
    assert pruned.elbo_ is None
    assert pruned.elbo_terms_ is None
    assert len(pruned.elbo_history_) == 0


# Size, and the same answers


def test_going_on_with_what_is_left(model: BowTieRegressor, pruned: BowTieRegressor) -> None:
    found = model.prune(0.001, refit=True, X=FRAME, y=Y)
    assert widths(found) == widths(pruned)
    assert np.isfinite(found.elbo_)
    assert found.log_score(FRAME, Y) > pruned.log_score(FRAME, Y) - 0.05
    opened = model.prune(0.001, refit=True, X=open_source(FRAME, Y))
    assert_same_answers(opened, found, FRAME[:5])
    weighted = model.prune(0.001, refit=True, X=FRAME, y=Y, sample_weight=np.arange(100.0))
    assert not np.array_equal(weighted.predict(FRAME), found.predict(FRAME))
    with pytest.raises(ValueError, match="mood"):
        model.prune(refit=True, X=FRAME[NAMES[:3]], y=Y)


def test_a_refit_is_as_long_as_held_out_rows_chose() -> None:
    model = stacked(n_estimators=1, max_iter=22, tol=0.0).fit(X, NOISE + 0.1 * X[:, 0])
    assert model.status_ == "stopped early (validation)"
    found = model.prune(0.9, refit=True, X=X, y=NOISE)
    assert found.n_iter_ == model.n_iter_
    assert found.status_ == "stopped early (validation)"


# Nothing survives


def test_a_constant_answers_every_question(constant: BowTieRegressor) -> None:
    assert widths(constant) == [(0, 1), (0, 1)]
    for answer in everything(constant, X[:7]):
        assert np.all(np.isfinite(answer))
    mean, std = constant.predict(X, return_std=True)
    assert np.ptp(mean) < 1e-9
    assert np.ptp(std) < 1e-9
    assert abs(mean[0] - NOISE.mean()) < 0.25 * NOISE.std()
    assert abs(std[0] - NOISE.std()) < 0.15 * NOISE.std()
    assert_array_equal(constant.sparsity_.weights_after, [0, 0])
    assert_array_equal(constant.feature_relevance_.probability, 0.0)
    posterior = constant.to_arviz(draws=20)["posterior"]
    assert posterior["weights_1"].shape == (1, 20, 8, 6)
    assert not posterior["weights_1"].values.any()
    assert np.all(posterior["weights_2"].values[..., 0] != 0.0)


@pytest.mark.filterwarnings("ignore:No weight is sure enough")
@pytest.mark.parametrize("prior", FAMILIES)
def test_a_constant_can_be_fitted_further(prior: str) -> None:
    """Without weights there is no evidence about their scales: q(tau) is the prior."""
    model = longer(prior=prior, init="laplace", max_iter=20, n_estimators=1).fit(X, NOISE)
    assert widths(model.prune(1e-200).prune(1e-200)) == [(0, 1)]
    for found in (
        model.prune(1e-200, refit=True, X=X, y=NOISE),
        model.prune(1e-200).set_params(warm_start=True).fit(X, NOISE),
    ):
        assert widths(found) == [(0, 1)]
        assert np.isfinite(found.elbo_)
        assert found.converged_
        mean, std = found.predict(X[:2], return_std=True)
        assert abs(mean[0] - NOISE.mean()) < 0.1 * NOISE.std()
        assert abs(std[0] - NOISE.std()) < 0.15 * NOISE.std()


# The noise of what is gone


def far_scales(*models: BowTieRegressor) -> np.ndarray:
    """|log ratio| of E[1/tau] of two models' first members, for each layer."""
    first, second = (
        [float(gig.mean_inverse(layer.global_shrinkage)) for layer in member.factors.layers]
        for member in (model.ensemble_.members[0] for model in models)
    )
    return np.abs(np.log(first) - np.log(second))


@pytest.mark.parametrize("prior", ["student_t", "laplace"])
def test_pruning_leaves_the_global_scales(prior: str) -> None:
    """Weights that went count as they did: a refit finds much what the whole network would."""
    settings: dict[str, Any] = {"gate_temperature": 0.1, "init_penalty": 10.0, "max_iter": 150}
    settings |= {"features": "standard", "target_transform": "none", "random_state": 2}
    model = longer(prior=prior, n_estimators=1, hidden_layer_sizes=(10,), **settings)
    model.fit(FRAME, Y)
    pruned, refitted = model.prune(0.01), model.prune(0.01, refit=True, X=FRAME, y=Y)
    assert refitted.sparsity_.nodes_after[0] < 10
    assert np.all(far_scales(pruned, model) < np.log(3.0))
    model.set_params(warm_start=True).fit(FRAME, Y)
    assert np.all(far_scales(refitted, model) < np.log(10.0))


def test_a_warm_start_goes_on_from_what_is_left(pruned: BowTieRegressor, tmp_path: Path) -> None:
    for prune_every in (None, 5):
        found = pickle.loads(pickle.dumps(pruned))
        found.set_params(warm_start=True, options__prune_every=prune_every, false_sign_rate=1e-12)
        found.fit(FRAME, Y)
        assert (widths(found) == widths(pruned)) == (prune_every is None)
        assert_array_equal(found.sparsity_.nodes_before, [8, 8])
        assert np.sqrt(np.mean((found.predict(FRAME) - Y) ** 2)) < 0.3
        found.save(tmp_path / "found")
        assert_same_answers(load(tmp_path / "found"), found, FRAME[:3])
