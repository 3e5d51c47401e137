"""All questions to a fitted estimator: shapes, agreement with one another, chunks, files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from bowtienet._old import BowTieRegressor
from bowtienet._old.ensemble import ensemble as ensemble_module
from tests._old.estimators.models import rows, small, stacked

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows()
BOTH = np.column_stack([Y, X[:, 2] ** 2])
NEW = rows(10, seed=9)[0]
KINDS = ["one", "column", "two", "variational"]


@pytest.fixture(scope="module")
def models() -> dict[str, BowTieRegressor]:
    return {
        "one": stacked().fit(X, Y),
        "column": small().fit(X, Y[:, None]),
        "two": stacked(hidden_layer_sizes=(4, 3)).fit(X, BOTH),
        "variational": small(propagation="variational").fit(X, Y),
    }


@pytest.fixture
def model(models: dict[str, BowTieRegressor]) -> BowTieRegressor:
    return models["one"]


@pytest.mark.parametrize("kind", KINDS)
def test_shapes(kind: str, models: dict[str, BowTieRegressor]) -> None:
    found, targets = models[kind], {"column": Y[:, None], "two": BOTH}.get(kind, Y)
    end = targets.shape[1:]
    mean, deviation = found.predict(NEW, return_std=True)
    assert mean.shape == deviation.shape == found.predict(NEW).shape == (10, *end)
    assert found.predict(NEW, return_cov=True)[1].shape == (10, 10, *end)
    assert found.predict_interval(NEW).shape == (10, *end, 2)
    assert found.predict_interval(NEW, [0.5, 0.9, 0.99]).shape == (10, *end, 2, 3)
    for coverage, more in ((0.5, ()), ([0.5, 0.9], (2,))):
        shortest = found.predict_interval(NEW, coverage, method="highest_density", n_samples=50)
        assert shortest.shape == (10, *end, 2, *more)
    assert found.predict_quantiles(NEW).shape == (10, *end, 3)
    assert found.predict_quantiles(NEW, 0.5).shape == (10, *end, 1)
    assert [part.shape for part in found.predict_components(NEW)] == [(10, *end)] * 3
    assert found.predict_dist(NEW).mean().shape == (10, *end)
    for joint in (False, True):
        assert found.sample_y(NEW, 4, joint=joint).shape == (10, *end, 4)
    assert isinstance(found.score(X, targets), float)
    assert isinstance(found.log_score(X, targets), float)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_agree_with_one_another(kind: str, models: dict[str, BowTieRegressor]) -> None:
    found = models[kind]
    mean, deviation = found.predict(NEW, return_std=True)
    assert_array_equal(found.predict(NEW), mean)
    distribution = found.predict_dist(NEW)
    assert_allclose(distribution.mean(), mean, rtol=1e-12)
    assert_allclose(distribution.std(), deviation, rtol=1e-12)
    parts = found.predict_components(NEW)
    assert_array_equal(parts.mean, mean)
    total = parts.epistemic_variance + parts.noise_variance
    assert_allclose(total, deviation**2, rtol=1e-12)
    assert np.all(np.stack(parts[1:]) > 0.0)
    central = found.predict_interval(NEW, 0.8)
    assert_array_equal(central, found.predict_quantiles(NEW, [0.1, 0.9]))
    targets = mean + deviation
    expected = np.mean(distribution.logpdf(targets))
    assert found.log_score(NEW, targets) == pytest.approx(expected, rel=1e-12)
    errors = np.sum((targets - mean) ** 2, axis=0) / np.sum(
        (targets - targets.mean(axis=0)) ** 2, axis=0
    )
    assert found.score(NEW, targets) == pytest.approx(1.0 - np.mean(errors), rel=1e-9)


@pytest.mark.parametrize("kind", ["one", "two"])
def test_covariances_are_those_of_joint_draws(
    kind: str, models: dict[str, BowTieRegressor]
) -> None:
    """Of 2,000 draws, correlations are known to 1/sqrt(2000) = 0.022; five of these are allowed."""
    found = models[kind]
    mean, covariance = found.predict(NEW, return_cov=True)
    _, deviation = found.predict(NEW, return_std=True)
    assert_allclose(np.einsum("ii...->i...", covariance), deviation**2, rtol=1e-10)
    assert_allclose(covariance, np.swapaxes(covariance, 0, 1), atol=1e-12)
    by_target = np.moveaxis(covariance.reshape(10, 10, -1), -1, 0)
    assert np.all(np.linalg.eigvalsh(by_target) > 0.0)
    draws = found.sample_y(NEW, 2000, joint=True).reshape(10, -1, 2000)
    for target, expected in enumerate(by_target):
        size = np.sqrt(np.diag(expected))
        correlation = expected / np.outer(size, size)
        drawn = np.corrcoef(draws[:, target])
        assert np.max(np.abs(drawn - correlation)) < 0.11
    centers = draws.mean(axis=-1) - mean.reshape(10, -1)
    assert np.max(np.abs(centers) / deviation.reshape(10, -1)) < 0.11


def test_draws(model: BowTieRegressor) -> None:
    assert_array_equal(model.sample_y(NEW, 3), model.sample_y(NEW, 3, random_state=0))
    assert not np.array_equal(model.sample_y(NEW, 3), model.sample_y(NEW, 3, random_state=1))
    for joint in (False, True):
        with_noise, without = (
            model.sample_y(NEW, 500, joint=joint, noise=noise) for noise in (True, False)
        )
        assert np.all(without.std(axis=1) < with_noise.std(axis=1))
    parts = model.predict_components(NEW)
    spread = model.sample_y(NEW, 4000, noise=False).var(axis=1)
    assert_allclose(spread, parts.epistemic_variance, rtol=0.2)


def test_the_shortest_interval_is_about_as_likely_and_no_longer(model: BowTieRegressor) -> None:
    shortest = model.predict_interval(NEW, 0.9, method="highest_density", n_samples=4000)
    central = model.predict_interval(NEW, 0.9)
    distribution = model.predict_dist(NEW)
    held = distribution.cdf(shortest[:, 1:])[:, 0] - distribution.cdf(shortest[:, :1])[:, 0]
    assert_allclose(held, 0.9, atol=0.03)
    assert np.all(np.ptp(shortest, axis=1) < 1.05 * np.ptp(central, axis=1))


@pytest.mark.parametrize("size", [1, 3, 9])
def test_chunks_do_not_matter(
    model: BowTieRegressor, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def everything() -> list[Any]:
        model.predict_to_parquet(NEW, tmp_path / "out")
        return [
            *model.predict(NEW, return_std=True),
            *model.predict(NEW, return_cov=True),
            *model.predict_components(NEW),
            model.predict_interval(NEW, [0.5, 0.9]),
            model.predict_quantiles(NEW),
            model.predict_dist(NEW).ppf(0.3),
            model.sample_y(NEW, 3, joint=True),
            model.log_score(X, Y),
            model.score(X, Y),
            pq.read_table(tmp_path / "out")["upper"].to_numpy(),
        ]

    whole = everything()
    monkeypatch.setattr(ensemble_module, "CHUNK_ROWS", size)
    assert len(list(ensemble_module.chunks(NEW))) > 1
    for first, second in zip(whole, everything(), strict=True):
        assert_allclose(second, first, rtol=1e-9)
    ends = model.predict_interval(NEW, 0.9, method="highest_density", n_samples=50)
    assert np.all(ends[:, 0] < ends[:, 1])


def test_scores_weigh_the_rows(model: BowTieRegressor) -> None:
    weights = np.arange(60) % 3.0
    twice = np.repeat(np.arange(60), weights.astype(int))
    for score in (model.score, model.log_score):
        assert score(X, Y, weights) == pytest.approx(score(X[twice], Y[twice]), rel=1e-9)
        with pytest.raises(ValueError, match="weight"):
            score(X, Y, np.zeros(60))
    assert model.score(X, np.zeros(60)) == 0.0


# Questions that are refused


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda m: m.predict(NEW, return_std=True, return_cov=True), "return_std"),
        (lambda m: m.predict_interval(NEW, 90), "coverage"),
        (lambda m: m.predict_interval(NEW, []), "coverage"),
        (lambda m: m.predict_interval(NEW, method="widest"), "method"),
        (lambda m: m.predict_interval(NEW, method="highest_density", n_samples=0), "n_samples"),
        (lambda m: m.predict_quantiles(NEW, 1.5), "1.5"),
        (lambda m: m.sample_y(NEW, 0), "n_samples"),
        (lambda m: m.sample_y(NEW, random_state="lucky"), "lucky"),
        (lambda m: m.to_arviz(draws=0), "draws"),
        (lambda m: m.predict(NEW[:, :2]), "2 features"),
        (lambda m: m.predict(NEW[0]), "2D array"),
        (lambda m: m.score(NEW), "target"),
        (lambda m: m.score(X, BOTH), "2 targets"),
        (lambda m: m.log_score(X, Y[:-1]), "inconsistent"),
        (lambda m: m.score([(X[:30], Y[:30], np.zeros(30))]), "weight"),
        (lambda m: m.sample_y([X[:30], X[30:]]), "memory"),
        (lambda m: m.predict([X[:30], X[30:]], return_cov=True), "memory"),
    ],
)
def test_a_bad_question_is_refused(ask: Any, match: str, model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match=match):
        ask(model)


def test_nothing_is_answered_before_the_fit(tmp_path: Path) -> None:
    model = small()
    for ask in (
        model.predict,
        model.predict_interval,
        model.predict_quantiles,
        model.predict_components,
        model.predict_dist,
        model.sample_y,
        model.score,
        model.log_score,
        lambda _: model.predict_to_parquet(NEW, tmp_path / "out"),
        lambda _: model.save(tmp_path / "out"),
        lambda _: model.to_arviz(),
        model.prune,
    ):
        with pytest.raises(NotFittedError):
            ask(NEW)
    assert not hasattr(model, "sparsity_")
    assert not hasattr(model, "feature_relevance_")
    assert list(tmp_path.iterdir()) == []
