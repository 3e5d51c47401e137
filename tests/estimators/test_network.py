"""`BowTieNetwork` from outside: what it learns, what it answers, and what its parameters mean."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.estimators import _start, _variational
from bowtienet.inference.ascend import Status
from bowtienet.model import Prior
from bowtienet.model.shrinkage import FAMILIES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NOISE = 0.1


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(1.2 * X[:, 0]) + 3.0


def rows(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, wave(X) + NOISE * rng.normal(size=n)


X, Y = rows(0)
NEW, Y_NEW = rows(1, 400)


def quick(**changes: Any) -> BowTieNetwork:
    """A few sweeps from a random start: what most tests need."""
    settings = {"hidden_layer_sizes": (5,), "n_members": 2, "init": "laplace", "max_iter": 10}
    return BowTieNetwork(**{**settings, "random_state": 0, **changes})


def error(model: BowTieNetwork, X: np.ndarray = NEW) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - wave(X)) ** 2)))


@pytest.fixture(scope="module")
def model() -> BowTieNetwork:
    """The defaults, but for size."""
    return BowTieNetwork((10,), n_members=2, random_state=0).fit(X, Y)


def lines(prior_variance: float, bias_variance: float, noise: float, y: np.ndarray) -> Any:
    """Mean and variance at new rows of y = Phi w + noise, w ~ N(0, S), on standardised columns."""
    scaler = StandardScaler().fit(X)
    phi, new = (np.column_stack([np.ones(len(x)), scaler.transform(x)]) for x in (X, NEW))
    precision = np.diag(1.0 / np.array([bias_variance, prior_variance, prior_variance]))
    covariance = np.linalg.inv(precision + phi.T @ phi / noise)
    mean = new @ covariance @ phi.T @ y / noise
    return mean, np.einsum("ni,ij,nj->n", new, covariance, new)


# What it learns


@pytest.mark.parametrize("scale_target", [True, False])
def test_without_hidden_layers_it_is_bayesian_linear_regression(scale_target: bool) -> None:
    """Held noise moves by about n / 1e8."""
    held, noise = 1e8, 0.4
    model = quick(
        hidden_layer_sizes=(),
        prior=Prior("gaussian", delta_global=1.2, delta_local=0.7),
        output_noise=(held, held * noise),
        bias_variance=1.7,
        scale_target=scale_target,
        max_iter=100,
        tol=1e-14,
    ).fit(X, Y)
    center, scale = (Y.mean(), Y.std()) if scale_target else (0.0, 1.0)
    mean, variance = lines((1.2 * 0.7) ** 2 / 2.0, 1.7, noise, (Y - center) / scale)
    found = model.predict_components(NEW)
    assert_allclose(found.mean, center + scale * mean, rtol=1e-6)
    assert_allclose(found.epistemic, scale * np.sqrt(variance), rtol=1e-5)
    assert_allclose(found.noise, scale * np.sqrt(noise), rtol=1e-5)


@pytest.mark.parametrize("init", ["laplace", "relu_network"])
def test_student_t_noise_hardly_follows_outliers(init: str) -> None:
    y = Y.copy()
    y[::12] += 30.0
    fits = [
        quick(noise=noise, init=init, max_iter=150).fit(X, y) for noise in ("gaussian", "student_t")
    ]
    assert error(fits[1]) < 0.1 * error(fits[0])
    assert error(fits[1]) < 0.3
    assert fits[1].predict_components(NEW).noise.mean() < 2.0  # of eight with outliers


# Parameters


def test_the_settings_of_the_paper() -> None:
    paper = {
        "hidden_layer_sizes": (50,),
        "prior": "student_t",
        "temperature": 0.1,
        "hidden_noise": (2.0, 1e-4),
        "output_noise": None,
        "bias_variance": "intercept",
        "scale_target": False,
        "init": "laplace",
        "solver": "cavi",
        "accelerate": False,
        "n_members": 1,
        "elbo_tempering": 0.01,
        "propagation": "variational",
        "max_iter": 200,
    }
    assert BowTieNetwork.as_in_paper().get_params().items() >= paper.items()
    classes = BowTieNetworkClassifier.as_in_paper().get_params().items()
    assert classes >= {k: paper[k] for k in ("init", "temperature", "propagation")}.items()
    changes = {"n_members": 4, "temperature": 0.3, "scale_target": True}
    changed = BowTieNetwork.as_in_paper(**changes).get_params()
    assert changed.items() >= {**paper, **changes}.items()


def test_the_scales_of_the_paper_follow_a_linear_fit() -> None:
    fitted = BowTieNetwork.as_in_paper(hidden_layer_sizes=(4,), max_iter=1).fit(X, Y)._fitted
    design = np.column_stack([np.ones(len(X)), StandardScaler().fit_transform(X)])
    coefficients, residuals = np.linalg.lstsq(design, Y)[:2]
    prior = fitted.model
    assert prior.bias_variance == pytest.approx(abs(coefficients[0]))
    assert prior.output_noise.concentration == 2.0
    assert_allclose(prior.output_noise.scale, residuals / len(X) / 4.0)
    for layer, width in zip(prior.local_shrinkage, (2, 4), strict=True):
        assert layer.order == prior.global_shrinkage.order == -1.5
        assert layer.scale == pytest.approx(0.5 / width)  # delta²/2 with delta = 1/√D


@pytest.mark.parametrize("prior", FAMILIES)
def test_every_prior_by_name(prior: str) -> None:
    assert quick(prior=prior, max_iter=40).fit(X, Y).score(NEW, Y_NEW) > 0.5
    same = [quick(prior=p, max_iter=3).fit(X, Y).predict(NEW) for p in (prior, Prior(prior))]
    assert_array_equal(*same)


@pytest.mark.parametrize(("rate", "delay"), [("adaptive", 1.0), (0.7, 1.0), (1.0, 5.0)])
def test_minibatches(rate: Any, delay: float) -> None:
    model = quick(
        solver="svi",
        batch_size=25,
        forgetting_rate=rate,
        step_delay=delay,
        init="relu_network",
        max_iter=20,
    ).fit(X, Y)
    assert error(model) < 0.2
    assert model.n_iter_ == len(model.elbo_history_) <= 20 * 4
    assert sum(model.elbo_terms_.values()) == pytest.approx(model.elbo_history_[-1])


def test_equal_and_tempered_members() -> None:
    """w = softmax(zeta ELBO): log ratios of weights are in proportion to zeta."""
    fits = [quick(n_members=3, elbo_tempering=zeta).fit(X, Y) for zeta in (0.0, 0.01, 0.03)]
    weights = [fit.predict_dist(NEW).weights for fit in fits]
    assert_allclose(weights[0], 1.0 / 3.0)
    logs = [np.log(w) - np.log(w[0]) for w in weights]
    assert_allclose(logs[2], 3.0 * logs[1])
    assert np.ptp(logs[1]) > 0.0
    means = fits[2].predict_dist(NEW).means
    assert_allclose(fits[2].predict(NEW), weights[2] @ means)
    bounds = logs[1] / 0.01
    alone = quick(n_members=3, elbo_tempering=1e3).fit(X, Y)
    assert_array_equal(alone.predict(NEW), means[np.argmax(bounds)])


def test_what_there_is_one_of_is_of_the_best_member() -> None:
    """Bounds, selections, and nearly all joint draws if members are tempered."""
    best = []
    for seed in range(4):
        model = quick(n_members=3, elbo_tempering=1e3, random_state=seed).fit(X, Y)
        best.append((model._best, int(np.argmax(model.predict_dist(NEW).weights))))
        draws = model.sample_y(NEW, 100, joint=True).mean(axis=1)
        apart = [np.mean((draws - mean) ** 2) for mean in model.predict_dist(NEW).means]
        assert np.argmin(apart) == model._best
        terms = [model.elbo_history_[-1], sum(model.elbo_terms_.values())]
        assert terms[0] == pytest.approx(terms[1])
    assert all(a == b for a, b in best)
    assert len(set(best)) > 1


def test_progress_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(_variational, "SECONDS_BETWEEN_LINES", 0.0)
    quick(verbose=0).fit(X, Y)
    assert capsys.readouterr().out == ""
    quick(verbose=1).fit(X, Y)
    assert len(re.findall(r"^iteration \d+, bound .*, .* s$", capsys.readouterr().out, re.M)) == 10


@pytest.mark.parametrize(
    "bad",
    [
        {"hidden_layer_sizes": (0,)},
        {"hidden_layer_sizes": (2.5,)},
        {"prior": "nothing"},
        {"temperature": 0.0},
        {"hidden_noise": (-1.0, 1.0)},
        {"hidden_noise": (2.0,)},
        {"output_noise": (2.0, -1.0)},
        {"output_noise": (2.0, (1.0, 1.0))},
        {"bias_variance": "no"},
        {"noise": "none"},
        {"init": "zero"},
        {"solver": "sgd"},
        {"n_members": 0},
        {"elbo_tempering": -0.1},
        {"propagation": "none"},
        {"max_iter": 0},
        {"forgetting_rate": 0.5},
        {"random_state": "x"},
    ],
    ids=str,
)
def test_bad_parameters_are_named(bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before networks train, which takes long."""
    monkeypatch.delattr(_start, "choose_penalty")
    bad = {"init": "relu_network", **bad}
    with pytest.raises(ValueError, match=list(bad)[-1]):
        quick(**bad).fit(X[:20], Y[:20])


# Rows and tables


@pytest.mark.parametrize(
    ("init", "columns", "unit"),
    [
        ("laplace", np.array([1e3, 1e-3]), 1e6),
        ("laplace", 1e120, 1e150),
        ("relu_network", 1e-120, 1e-150),
    ],
)
def test_units_do_not_matter(init: str, columns: Any, unit: float) -> None:
    model = quick(init=init).fit(X, Y)
    other = quick(init=init).fit(columns * X, unit * Y)
    tolerance = 1e-6 if init == "laplace" else 0.02  # networks train in single precision
    for a, b in zip(model.predict(NEW, True), other.predict(columns * NEW, True), strict=True):
        assert_allclose(b / unit, a, rtol=tolerance)


@pytest.mark.parametrize(
    ("hidden", "init", "accelerate"),
    [((6, 4), "relu_network", True), ((5,), "spike_slab", True), (8, "laplace", False)],
)
def test_the_bound_rises_and_is_the_sum_of_its_terms(
    hidden: Any, init: str, accelerate: bool
) -> None:
    """From every start, at all depths; the function is learnt."""
    n_sweeps = 10 if init == "relu_network" else 150
    settings = {"hidden_layer_sizes": hidden, "init": init, "accelerate": accelerate}
    model = quick(**settings, max_iter=n_sweeps).fit(X, Y)
    assert error(model) < 0.35
    assert 2 <= len(model.elbo_history_) <= model.n_iter_ == n_sweeps
    assert np.all(np.diff(model.elbo_history_) >= -1e-9 * np.abs(model.elbo_history_[1:]))
    assert sum(model.elbo_terms_.values()) == pytest.approx(model.elbo_history_[-1], rel=1e-12)


@pytest.mark.parametrize("sizes", [(), (3,)])
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_the_end_of_a_fit(sizes: tuple[int, ...]) -> None:
    """Converged without a word, or at a limit that somebody set, with one for the caller."""
    model = quick(hidden_layer_sizes=sizes, max_iter=3000, tol=1e-2).fit(X, Y)
    assert model.converged_
    assert model.n_iter_ < 3000
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        model = quick(hidden_layer_sizes=sizes, max_iter=1).fit(X, Y)
    assert caught[0].filename == __file__
    assert not model.converged_
    model = quick(init="relu_network", max_iter=None).fit(X, Y)  # a few sweeps are intended
    assert model.n_iter_ == _variational.SWEEPS_OF_NETWORK
    assert "not converged" not in model.summary()
    with pytest.warns(ConvergenceWarning, match="raise max_iter.$"):
        quick(solver="svi", accelerate=False, max_iter=1).fit(X, Y)


def test_relu_starts_want_scaled_targets_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    used, choose = [], _start.choose_penalty

    def note(*arguments: Any) -> Any:
        used.extend(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return choose(*arguments)

    monkeypatch.setattr(_start, "choose_penalty", note)
    model = quick(init="relu_network", scale_target=False)
    with threadpool_limits(2, "blas"), pytest.warns(UserWarning, match="scale_target=True"):
        model.fit(X, 1e6 * Y)
    assert set(used) == {1}


def test_interrupted_fits_keep_what_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(text: str) -> None:
        if "iteration 4" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(_variational, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("builtins.print", stop)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = quick(verbose=1).fit(X, Y)
    assert model.n_iter_ == 4
    assert np.isfinite(model.predict(NEW)).all()


def test_members_that_broke_down_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, ascend = quick().fit(X, Y), _variational.ascend

    def broken(*arguments: Any, gone: int, **settings: Any) -> Any:
        ascent = ascend(*arguments, **settings)
        kept = [() if m < gone else history for m, history in enumerate(ascent.elbo_history)]
        status = [Status.NON_FINITE if m < gone else s for m, s in enumerate(ascent.status)]
        return replace(ascent, elbo_history=tuple(kept), status=tuple(status))

    monkeypatch.setattr(_variational, "ascend", lambda *a, **k: broken(*a, gone=1, **k))
    with pytest.warns(RuntimeWarning, match="1 of 2 members") as caught:
        model = quick().fit(X, Y)
    assert caught[0].filename == __file__
    assert_allclose(model.predict(NEW), whole.predict_dist(NEW).means[1], rtol=1e-12)
    monkeypatch.setattr(_variational, "ascend", lambda *a, **k: broken(*a, gone=2, **k))
    with pytest.raises(ValueError, match="broke down"):
        quick().fit(X, Y)


def test_summary(model: BowTieNetwork) -> None:
    text = model.summary()
    for word in ("BowTieNetwork", "2 members", "2-10-1", "2 columns", "student_t", "0.01"):
        assert word in text
    assert all(name.replace("_", " ") in text for name in model.elbo_terms_)


# Further rows


@pytest.mark.parametrize("first", ["cavi", "svi", "partial_fit"])
def test_batches_say_as_much_as_all_rows(first: str) -> None:
    """Of lines the sums of all batches are those of a fit, whatever their order and size.

    Also a fit by coordinate ascent goes on, with the statistics of its rows.
    """
    settings = {"hidden_layer_sizes": (), "prior": "gaussian", "max_iter": 100}
    whole = quick(**settings).fit(X, Y).predict_components(NEW)
    model = quick(**settings, solver="svi" if first == "svi" else "cavi")
    begin = model.partial_fit if first == "partial_fit" else model.fit
    assert begin(X[:40], Y[:40]) is model
    before = len(model.elbo_history_)
    for part in np.split(np.arange(40, 100), [10, 15, 50]):
        model.partial_fit(X[part], Y[part])
    found = model.predict_components(NEW)
    assert_allclose(found.mean, whole.mean, atol=0.02)
    assert_allclose(found.epistemic, whole.epistemic, rtol=0.05)
    assert_allclose(found.noise, whole.noise, rtol=0.05)
    assert len(model.elbo_history_) == before + 4
    assert not model.converged_


@pytest.mark.parametrize(("solver", "rate"), [("cavi", "adaptive"), ("svi", 0.7)])
def test_further_rows_improve_a_fit(solver: str, rate: Any) -> None:
    model = quick(solver=solver, init="relu_network", forgetting_rate=rate, max_iter=5)
    before = error(model.fit(X[:40], Y[:40]))
    for part in np.split(np.arange(400), 8):
        model.partial_fit(NEW[part], Y_NEW[part])
    assert error(model) < min(before, 0.2)


def test_further_rows_that_do_not_fit() -> None:
    model = quick().partial_fit(X, Y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="2 targets"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="as it was"):
        model.partial_fit(X, 1e200 * Y)
    assert pickle.dumps(model) == before
    assert model.partial_fit(X, Y[:, None]).predict(X).shape == (100,)


# Answers


def test_answers_are_of_a_mixture_of_gaussians(model: BowTieNetwork) -> None:
    mean, std = model.predict(NEW, return_std=True)
    mixture = model.predict_dist(NEW)
    w, m, d = mixture.weights[:, None], mixture.means, np.hypot(mixture.epistemic, mixture.noise)
    assert_allclose(mean, np.sum(w * m, axis=0))
    assert_allclose(std**2, np.sum(w * (d**2 + m**2), axis=0) - mean**2, rtol=1e-8)
    logs = logsumexp(stats.norm.logpdf(Y_NEW, m, d) + np.log(w), axis=0)
    assert model.log_score(NEW, Y_NEW) == pytest.approx(logs.mean())
