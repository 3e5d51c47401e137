"""Pruned estimators: smaller, nearly the same answers, and still estimators in every way."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet import BowTieRegressor, persistence
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.model.shrinkage import FAMILIES

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(5)
NAMES = ["age", "height", "weight", "mood", "luck"]
X = RNG.normal(3.0, 2.0, size=(100, 5))
Y = np.abs(X[:, 3] - 3.0) + 0.7 * X[:, 1] + 0.2 * RNG.normal(size=100)
BOTH = np.column_stack([Y, 5.0 - X[:, 0] + 0.2 * RNG.normal(size=100)])
NOISE = RNG.normal(20.0, 4.0, size=100)
FRAME = pd.DataFrame(X, columns=NAMES)
RELEVANT = [1, 3]


def small(**changes: Any) -> BowTieRegressor:
    settings: dict[str, Any] = {"n_estimators": 2, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (8,), "max_iter": 60, "tol": 1e-4, "init_penalty": 1.0}
    return BowTieRegressor(**(settings | changes))


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return small().fit(FRAME, Y)


@pytest.fixture(scope="module")
def pruned(model: BowTieRegressor) -> BowTieRegressor:
    return model.prune(0.001)


@pytest.fixture(scope="module")
def constant() -> BowTieRegressor:
    """Targets that have nothing to do with the inputs."""
    noisy = small(init="laplace").fit(X, NOISE)
    with pytest.warns(UserWarning, match=r"false_sign_rate=0.0001: the pruned model predicts"):
        return noisy.prune(1e-4)


def answers(model: BowTieRegressor, table: Any) -> list[np.ndarray]:
    """What an estimator says, by every one of its ways to say it."""
    return [
        *model.predict(table, return_std=True),
        *model.predict(table, return_cov=True),
        model.predict_interval(table, [0.5, 0.9]),
        model.predict_interval(table, kind="highest_density", n_samples=200),
        model.predict_quantiles(table),
        *model.predict_components(table),
        model.predict_dist(table).pdf(np.zeros(())),
        model.sample_y(table, 3),
        model.sample_y(table, 3, joint=True),
        model.sample_y(table, 3, joint=True, noise=False),
    ]


def assert_same_answers(first: BowTieRegressor, second: BowTieRegressor, table: Any) -> None:
    for a, b in zip(answers(first, table), answers(second, table), strict=True):
        np.testing.assert_array_equal(a, b)


def with_ratio(model: BowTieRegressor, ratio: float | None) -> BowTieRegressor:
    """A copy whose members' variances rows held out have asked to be multiplied by this."""
    wide = copy.copy(model)
    ratios = None if ratio is None else np.array([ratio])
    members = tuple(replace(member, variance_ratio=ratios) for member in model.ensemble_.members)
    wide.ensemble_ = replace(model.ensemble_, members=members)
    return wide


def widths(model: BowTieRegressor) -> list[tuple[int, ...]]:
    return [member.model.architecture.widths for member in model.ensemble_.members]


# ------------------------------------------------------------------------------------------------
# What prune gives back, and what it asks for
# ------------------------------------------------------------------------------------------------


def test_the_old_estimator_is_unchanged(model: BowTieRegressor) -> None:
    before, said = pickle.dumps(model), answers(model, FRAME[:10])
    found = model.prune(0.001)
    refitted = model.prune(0.001, refit=True, X=FRAME, y=Y)
    assert type(found) is type(refitted) is BowTieRegressor
    assert found is not model
    assert pickle.dumps(model) == before
    for a, b in zip(answers(model, FRAME[:10]), said, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.get_params() == {**model.get_params(), "false_sign_rate": 0.001}


def test_an_unfitted_estimator() -> None:
    with pytest.raises(NotFittedError):
        small().prune()
    for name in ("sparsity_", "feature_relevance_"):
        assert not hasattr(small(), name)


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, np.nan, "0.01", True])
def test_rates_that_are_none(rate: Any, model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match=r"^false_sign_rate must .* got"):
        model.prune(rate)
    with pytest.raises(ValueError, match="'false_sign_rate' parameter"):
        small(false_sign_rate=rate if rate is not True else 1).fit(X, Y)


def test_rows_and_refit_belong_together(model: BowTieRegressor) -> None:
    for given in ({}, {"X": FRAME}, {"y": Y}):
        with pytest.raises(ValueError, match="refit=True needs the rows"):
            model.prune(refit=True, **given)
    for given in ({"X": FRAME}, {"y": Y}, {"sample_weight": np.ones(100)}):
        with pytest.raises(ValueError, match="used only with refit=True"):
            model.prune(**given)


def test_the_estimators_own_rate_is_the_default(model: BowTieRegressor) -> None:
    assert widths(model.prune()) == widths(model.prune(0.01))
    stricter = clone(model).set_params(false_sign_rate=1e-6).fit(FRAME, Y)
    assert (
        stricter.prune().sparsity_.weights_after.sum() < model.prune().sparsity_.weights_after.sum()
    )


# ------------------------------------------------------------------------------------------------
# Size, and the same answers
# ------------------------------------------------------------------------------------------------


def test_sparsity_before_and_after(model: BowTieRegressor, pruned: BowTieRegressor) -> None:
    whole, found = model.sparsity_, pruned.sparsity_
    for name, count in (("inputs", 5), ("nodes", 8), ("weights", 48)):
        for size in (whole, found):
            np.testing.assert_array_equal(getattr(size, f"{name}_before"), [count, count])
        np.testing.assert_array_equal(getattr(whole, f"{name}_after"), [count, count])
        assert np.all(getattr(found, f"{name}_after") < count)
    for index, member in enumerate(pruned.ensemble_.members):
        connections = member.model.connections
        assert found.weights_after[index] == sum(mask.sum() for mask in connections)
        assert found.nodes_after[index] == connections[0].shape[0]
        assert found.inputs_after[index] == connections[0].shape[1]
    assert np.isnan(whole.keep_threshold).all()
    assert np.all((found.keep_threshold > 0.9) & (found.false_sign_rate < 0.002))
    text = str(found)
    assert text.startswith("2 members, before -> after\ninputs        10 -> ")
    assert f"weights       96 -> {found.weights_after.sum()}" in text
    assert "estimated false discovery rate 0.000" in text
    assert "rate" not in str(whole)
    assert str(small(n_estimators=1).fit(X, Y).sparsity_).startswith("1 member, ")


@pytest.mark.parametrize("hidden", [(8,), (6, 5), (5, 4, 3)], ids=str)
def test_answers_stay_within_their_own_uncertainty(hidden: tuple[int, ...]) -> None:
    model = small(hidden_layer_sizes=hidden, n_estimators=1, max_iter=100).fit(X, Y)
    found = model.prune()
    (mean, std), after = model.predict(X, return_std=True), found.predict(X)
    assert sum(found.sparsity_.weights_after) < 0.7 * sum(found.sparsity_.weights_before)
    assert np.all(np.abs(after - mean) < std)
    assert np.sqrt(np.mean((after - mean) ** 2)) < 0.4 * np.mean(std)
    np.testing.assert_allclose(np.mean(found.predict(X, return_std=True)[1]), std.mean(), rtol=0.2)
    assert found.log_score(X, Y) > model.log_score(X, Y) - 0.3


def test_going_on_with_what_is_left(model: BowTieRegressor, pruned: BowTieRegressor) -> None:
    found = model.prune(0.001, refit=True, X=FRAME, y=Y)
    assert widths(found) == widths(pruned)
    assert np.isfinite(found.elbo_)
    assert found.log_score(FRAME, Y) > pruned.log_score(FRAME, Y) - 0.05
    weighted = model.prune(0.001, refit=True, X=FRAME, y=Y, sample_weight=np.full(100, 2.0))
    assert not np.array_equal(weighted.predict(FRAME), found.predict(FRAME))
    with pytest.raises(ValueError, match="feature"):
        model.prune(refit=True, X=FRAME[NAMES[:3]], y=Y)


def test_twice_as_at_once(model: BowTieRegressor) -> None:
    found = model.prune(0.2).prune(0.0001)
    size = found.sparsity_
    np.testing.assert_array_equal(size.weights_before, [48, 48])
    assert np.all(size.weights_after < model.prune(0.2).sparsity_.weights_after)
    assert_same_answers(found, found.prune(0.9), FRAME[:5])
    assert np.sqrt(np.mean((found.predict(FRAME) - Y) ** 2)) < 0.5


def test_several_targets() -> None:
    model = small().fit(FRAME, BOTH)
    found = model.prune(0.001)
    assert found.predict(FRAME).shape == (100, 2)
    assert found.predict(FRAME[:4], return_cov=True)[1].shape == (4, 4, 2)
    assert found.sample_y(FRAME[:4], 3, joint=True).shape == (4, 2, 3)
    mean, std = model.predict(FRAME, return_std=True)
    assert np.all(np.abs(found.predict(FRAME) - mean) < 1.5 * std)
    for part in (found.feature_relevance_.probability, found.feature_relevance_.strength):
        assert part.shape == (5, 2)
        assert part[3, 0] > 0.0 < part[0, 1]
    assert small().fit(X, Y[:, None]).prune(0.001).feature_relevance_.strength.shape == (5, 1)


# ------------------------------------------------------------------------------------------------
# Nothing survives
# ------------------------------------------------------------------------------------------------


def test_a_constant_answers_every_question(constant: BowTieRegressor) -> None:
    assert widths(constant) == [(0, 1), (0, 1)]
    for answer in answers(constant, X[:7]):
        assert np.all(np.isfinite(answer))
    mean, std = constant.predict(X, return_std=True)
    assert np.ptp(mean) < 1e-9
    assert np.ptp(std) < 1e-9
    assert abs(mean[0] - NOISE.mean()) < 0.25 * NOISE.std()
    assert abs(std[0] - NOISE.std()) < 0.15 * NOISE.std()
    draws = constant.sample_y(X[:7], 500, joint=True)
    assert abs(draws.std() - std[0]) < 0.15 * std[0]
    assert constant.log_score(X, NOISE) == pytest.approx(
        np.mean(constant.predict_dist(X).logpdf(NOISE)), rel=1e-12
    )
    np.testing.assert_array_equal(constant.sparsity_.weights_after, [0, 0])
    assert "weights       96 -> 0" in str(constant.sparsity_)
    np.testing.assert_array_equal(constant.feature_relevance_.probability, 0.0)
    posterior = constant.to_arviz(draws=20)["posterior"]
    assert posterior["weights_1"].shape == (1, 20, 8, 6)
    assert not posterior["weights_1"].values.any()
    assert not posterior["weights_2"].values[..., 1:].any()
    assert np.all(posterior["weights_2"].values[..., 0] != 0.0)


@pytest.mark.filterwarnings("ignore:No weight is sure enough")
@pytest.mark.parametrize("prior", FAMILIES)
def test_a_constant_can_be_fitted_further(prior: str) -> None:
    """Without weights there is no evidence about their scales: q(tau) is the prior."""
    model = small(prior=prior, init="laplace", max_iter=20).fit(X, NOISE)
    twice = model.prune(1e-200).prune(1e-200)
    assert widths(twice) == [(0, 1), (0, 1)]
    for found in (
        model.prune(1e-200, refit=True, X=X, y=NOISE),
        model.prune(1e-200).set_params(warm_start=True).fit(X, NOISE),
    ):
        assert widths(found) == [(0, 1), (0, 1)]
        assert np.isfinite(found.elbo_)
        assert found.converged_
        mean, std = found.predict(X[:2], return_std=True)
        assert abs(mean[0] - NOISE.mean()) < 0.1 * NOISE.std()
        assert abs(std[0] - NOISE.std()) < 0.15 * NOISE.std()


# ------------------------------------------------------------------------------------------------
# Keeping, copying and going on
# ------------------------------------------------------------------------------------------------


def test_a_constant_has_the_spread_of_targets_that_were_explained() -> None:
    """What the network knew is not known any more: the interval holds the targets."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(80, 3))
    targets = 2.0 * np.maximum(inputs[:, 0], 0.0) - inputs[:, 1] + 0.3 * rng.normal(size=80)
    model = BowTieRegressor(
        (8,), n_estimators=1, combine="equal", max_iter=200, tol=1e-4, random_state=0
    ).fit(inputs, targets)
    # Whatever rows held out have asked of the variances of the network that it was.
    for ratio in (None, 0.1, 6.0):
        with pytest.warns(UserWarning, match="predicts a constant"):
            constant = with_ratio(model, ratio).prune(1e-290)
        mean, std = constant.predict(inputs, return_std=True)
        assert abs(mean[0] - targets.mean()) < 0.3 * targets.std()
        assert 0.8 * targets.std() < std[0] < 1.5 * targets.std()
        low, high = constant.predict_interval(inputs, coverage=0.9).T
        assert 0.8 < np.mean((low <= targets) & (targets <= high)) <= 1.0


@pytest.mark.parametrize("rate", [0.9, 0.01, 0.001])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_noise_that_came_by_pruning_is_not_stretched(
    ratio: float, rate: float, model: BowTieRegressor
) -> None:
    """r (noise before) + what it has grown by, in the unit of the targets."""
    assert [m.variance_ratio for m in model.prune(rate).ensemble_.members] == [None, None]
    wide = with_ratio(model, ratio)
    found = wide.prune(rate)
    for before, after in zip(wide.ensemble_.members, found.ensemble_.members, strict=True):
        assert before.variance_ratio == ratio
        noise = [m.factors.layers[-1].noise_variance for m in (before, after)]
        old, new = (float(q.scale[0] / (q.concentration[0] - 1.0)) for q in noise)
        assert new >= old
        np.testing.assert_allclose(
            after.variance_ratio * new, [ratio * old + (new - old)], rtol=1e-12
        )
        if rate == 0.9:
            np.testing.assert_allclose(after.variance_ratio, [ratio], rtol=1e-12)


def test_each_target_has_noise_of_its_own() -> None:
    model = small(max_iter=10, n_estimators=1).fit(X, BOTH)
    [member] = model.ensemble_.members
    member = replace(member, variance_ratio=np.array([3.0, 0.5]))
    model.ensemble_ = replace(model.ensemble_, members=(member,))
    [after] = model.prune(0.001).ensemble_.members
    old, new = (
        m.factors.layers[-1].noise_variance.scale
        / (m.factors.layers[-1].noise_variance.concentration - 1.0)
        for m in (member, after)
    )
    assert np.all(new > old)
    np.testing.assert_allclose(
        after.variance_ratio, (np.array([3.0, 0.5]) * old + new - old) / new, rtol=1e-12
    )


def test_a_fit_that_goes_on_keeps_the_ratio(model: BowTieRegressor) -> None:
    """A warm start that of the last fit, and a refit too: its noise is fitted again."""
    wide = with_ratio(model, 4.0).set_params(max_iter=2)
    refitted = wide.prune(0.001, refit=True, X=FRAME, y=Y)
    for one, other in zip(
        refitted.ensemble_.members, wide.prune(0.001).ensemble_.members, strict=True
    ):
        assert 1.0 < other.variance_ratio < 4.0
        np.testing.assert_array_equal(one.variance_ratio, [4.0])
    wide.set_params(warm_start=True).fit(FRAME, Y)
    assert [m.variance_ratio.tolist() for m in wide.ensemble_.members] == [[4.0], [4.0]]
    wide.set_params(warm_start=False).fit(FRAME, Y)
    assert [m.variance_ratio for m in wide.ensemble_.members] == [None, None]


@pytest.mark.parametrize("prior", ["student_t", "laplace"])
@pytest.mark.parametrize("gate_temperature", [0.01, 0.1, 0.5])
def test_pruning_leaves_the_global_scales(prior: str, gate_temperature: float) -> None:
    """Weights that went count as they did: a refit finds much what the whole network would."""
    model = BowTieRegressor(
        (10,),
        prior=prior,
        gate_temperature=gate_temperature,
        n_estimators=1,
        combine="equal",
        max_iter=150,
        tol=1e-4,
        random_state=0,
    ).fit(FRAME, Y)
    refitted = model.prune(0.01, refit=True, X=FRAME, y=Y)
    assert refitted.sparsity_.nodes_after[0] < 10
    model.set_params(warm_start=True).fit(FRAME, Y)
    for index in range(2):
        scales = [
            float(gig.mean_inverse(m.ensemble_.members[0].factors.layers[index].global_shrinkage))
            for m in (model, refitted)
        ]
        assert abs(np.log(scales[1] / scales[0])) < np.log(10.0), (index, scales)


@pytest.mark.parametrize("which", ["pruned", "constant"])
def test_saved_and_pickled_to_the_bit(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found = request.getfixturevalue(which)
    table = FRAME[:6] if which == "pruned" else X[:6]
    found.save(tmp_path / "pruned.bowtie")
    loaded = BowTieRegressor.load(tmp_path / "pruned.bowtie")
    assert_same_answers(loaded, found, table)
    assert_same_answers(pickle.loads(pickle.dumps(found)), found, table)
    assert str(loaded.sparsity_) == str(found.sparsity_)
    for a, b in zip(loaded.feature_relevance_, found.feature_relevance_, strict=True):
        np.testing.assert_array_equal(a, b)
    whole = small().fit(X, Y)
    whole.save(tmp_path / "whole.bowtie")
    sizes = [(tmp_path / f"{name}.bowtie").stat().st_size for name in ("pruned", "whole")]
    assert sizes[0] < sizes[1]


def with_pruning(change: Callable[[Any], dict[str, Any]]) -> Callable[[Any], Any]:
    """The member with some of its pruning changed."""
    return lambda member: replace(member, pruning=replace(member.pruning, **change(member.pruning)))


def with_other_connections(member: Any) -> Any:
    connections = tuple(mask[:, :-1] for mask in member.model.connections)
    return replace(member, model=replace(member.model, connections=connections))


@pytest.mark.parametrize(
    "change",
    [
        with_pruning(lambda p: {"inputs": p.inputs + 3}),
        with_pruning(lambda p: {"inputs": p.inputs - 3}),
        with_pruning(lambda p: {"inputs": 0 * p.inputs}),
        with_pruning(lambda p: {"inputs": p.inputs[:-1]}),
        with_pruning(lambda p: {"inputs": 1.0 * p.inputs}),
        with_pruning(lambda p: {"units": (p.units[0] + 8,)}),
        with_pruning(lambda p: {"units": ()}),
        with_pruning(lambda p: {"architecture": None}),
        lambda member: replace(member, pruning=None),
        with_other_connections,
    ],
    ids=[
        "beyond",
        "negative",
        "repeated",
        "too few",
        "no whole numbers",
        "units beyond",
        "no layers",
        "no network before",
        "no pruning",
        "other connections",
    ],
)
def test_a_damaged_pruning_is_refused(
    change: Callable[[Any], Any], pruned: BowTieRegressor, tmp_path: Path
) -> None:
    path = tmp_path / "pruned.bowtie"
    pruned.save(path)
    content = persistence.load(path, "BowTieRegressor")
    fitted = content["fitted"]
    first, *others = fitted["ensemble_"].members
    fitted["ensemble_"] = replace(fitted["ensemble_"], members=(change(first), *others))
    persistence.save(path, "BowTieRegressor", content)
    with pytest.raises(ValueError, match="does not hold a complete BowTieRegressor"):
        BowTieRegressor.load(path)


def test_a_clone_is_fitted_as_any_other(model: BowTieRegressor, pruned: BowTieRegressor) -> None:
    again = clone(pruned)
    assert not hasattr(again, "ensemble_")
    assert_same_answers(again.fit(FRAME, Y), model, FRAME[:5])


def test_a_warm_start_goes_on_from_what_is_left(pruned: BowTieRegressor, tmp_path: Path) -> None:
    for prune_every in (None, 5):
        found = pickle.loads(pickle.dumps(pruned))
        found.set_params(warm_start=True, prune_every=prune_every, false_sign_rate=1e-5)
        found.fit(FRAME, Y)
        assert (widths(found) == widths(pruned)) == (prune_every is None)
        np.testing.assert_array_equal(found.sparsity_.nodes_before, [8, 8])
        assert not np.array_equal(found.predict(FRAME), pruned.predict(FRAME))
        assert np.sqrt(np.mean((found.predict(FRAME) - Y) ** 2)) < 0.3
        found.save(tmp_path / "found.bowtie")
        assert_same_answers(BowTieRegressor.load(tmp_path / "found.bowtie"), found, FRAME[:3])
    with pytest.raises(ValueError, match="warm_start=True goes on"):
        found.set_params(hidden_layer_sizes=(3,)).fit(FRAME, Y)


def test_a_callback_sees_a_pruned_estimator_that_goes_on(model: BowTieRegressor) -> None:
    """The estimator that scikit-learn hands to it after every sweep can be used."""
    callback = pytest.importorskip("sklearn.callback")
    for prune_every in (None, 5):
        found = model.prune(0.001).set_params(warm_start=True, prune_every=prune_every)
        monitor = callback.ScoringMonitor(scoring="r2")
        found.set_callbacks(monitor).fit(FRAME, Y)
        scores = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "sweep"]
        assert min(scores) > 0.9


def test_in_a_pipeline(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), small(prune_every=10)).fit(X, Y)
    pipeline.steps[-1] = ("bowtieregressor", pipeline[-1].prune(0.001))
    assert pipeline.score(X, Y) > 0.9
    assert pipeline[-1].sparsity_.nodes_after.max() < 8


# ------------------------------------------------------------------------------------------------
# Which inputs matter
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_relevance_by_name(when: str, model: BowTieRegressor, pruned: BowTieRegressor) -> None:
    found = (model if when == "before" else pruned).feature_relevance_
    assert found.name.tolist() == NAMES
    assert found.probability.shape == found.strength.shape == (5,)
    assert sorted(np.argsort(found.strength)[-2:]) == RELEVANT
    assert np.all(found.probability[RELEVANT] > 0.9)
    assert np.all((found.probability >= 0.0) & (found.probability <= 1.0))
    np.testing.assert_array_equal(found.probability > 0.0, found.strength > 0.0)
    assert pd.DataFrame(found._asdict()).shape == (5, 3)
    assert small().fit(X, Y).feature_relevance_.name.tolist() == ["x0", "x1", "x2", "x3", "x4"]


def test_relevance_is_that_of_pruning_at_the_same_rate(model: BowTieRegressor) -> None:
    """Inputs that a member loses are those without a path; both follow the estimator's rate."""
    found = model.prune()
    kept = np.zeros(5, dtype=bool)
    for member in found.ensemble_.members:
        kept[found.ensemble_.column_order[member.pruning.inputs]] = True
    for estimator in (model, found):
        np.testing.assert_array_equal(estimator.feature_relevance_.probability > 0.0, kept)


def test_other_orders_of_the_columns_permute_the_relevance() -> None:
    order = np.array([3, 0, 4, 2, 1])
    here = small(n_estimators=1).fit(X, Y)
    there = small(n_estimators=1).fit(X[:, order], Y)
    for first, second in ((here, there), (here.prune(0.001), there.prune(0.001))):
        a, b = first.feature_relevance_, second.feature_relevance_
        np.testing.assert_allclose(b.probability, a.probability[order], rtol=1e-9)
        np.testing.assert_allclose(b.strength, a.strength[order], rtol=1e-9)
        np.testing.assert_allclose(second.predict(X[:, order]), first.predict(X), rtol=1e-9)


# ------------------------------------------------------------------------------------------------
# While it is fitted
# ------------------------------------------------------------------------------------------------


def test_units_go_during_the_fit(tmp_path: Path) -> None:
    model = small(prune_every=5, hidden_layer_sizes=(20,)).fit(FRAME, Y)
    size = model.sparsity_
    np.testing.assert_array_equal(size.nodes_before, [20, 20])
    assert np.all(size.nodes_after < 20)
    np.testing.assert_array_equal(size.inputs_after, [5, 5])
    np.testing.assert_array_equal(size.weights_after, 6 * size.nodes_after)
    assert model.score(FRAME, Y) > 0.95
    posterior = model.to_arviz(draws=50)["posterior"]["weights_2"].values[0, :, 0, 1:]
    assert np.all((posterior != 0.0).sum(axis=1) <= size.nodes_after.max())
    found = model.prune(0.001)
    np.testing.assert_array_equal(found.sparsity_.nodes_before, [20, 20])
    found.save(tmp_path / "model.bowtie")
    assert_same_answers(BowTieRegressor.load(tmp_path / "model.bowtie"), found, FRAME[:5])


def test_units_go_wherever_the_fits_run() -> None:
    """Stacking with one recipe, of 60 rows: five fits with rows held out, then one of all."""
    settings = {
        "combine": "stacking",
        "init_penalty": 0.1,
        "gate_temperature": 0.05,
        "max_iter": 15,
    }
    one, two = (
        small(prune_every=5, n_jobs=jobs, n_estimators=1, **settings).fit(X[:60], Y[:60])
        for jobs in (None, 2)
    )
    assert_same_answers(one, two, X[:5])
    assert np.all(two.sparsity_.nodes_after < 8)
    assert two.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="'prune_every' parameter"):
        small(prune_every=0).fit(X, Y)
