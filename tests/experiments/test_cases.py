"""A case gives the scores that its definition says, and a record whatever happens."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import train_test_split

from bowtienet.data.published import TABLES
from bowtienet.data.sets import load_set
from bowtienet.evaluation import LEVELS, Forecast, Method, evaluate
from bowtienet.experiments import cases as cases_module
from bowtienet.experiments import methods
from bowtienet.experiments.cases import Case, load_split, member_seeds, mix, run_case, score
from bowtienet.prediction.mixture import build_mixture

CASE = Case(experiment="toy", dataset="toy", method="fake", seed=300, hidden=(5,))


def forecast_of(mean: np.ndarray, deviation: float, note: str | None = None) -> Forecast:
    distribution = build_mixture([1.0], mean[None], np.full((1, len(mean)), deviation))
    return Forecast(distribution=distribution, intervals=distribution.interval(0.95), note=note)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """A method that forecasts N(seed, 2²), and what it was called with."""
    calls = []

    def make(hidden, shift=0.0, error=None):
        def fit(X, y, seed, coverage):
            calls.append({"hidden": hidden, "n": len(X), "seed": seed, "coverage": coverage})
            warnings.warn("of no interest", UserWarning, stacklevel=1)
            np.log(np.zeros(1))
            if error is not None:
                raise error
            return lambda new: forecast_of(np.full(len(new), seed + shift), 2.0, f"seed {seed}")

        return Method(name="fake", fit=fit)

    entry = methods.Entry(label="Fake", modules=("math",), make=make, source="a test.")
    monkeypatch.setitem(methods.METHODS, "fake", entry)
    return calls


@pytest.mark.parametrize("dataset", TABLES)
def test_a_note_of_missing_data_says_what_to_do(dataset, monkeypatch, tmp_path):
    def unreachable(**_):
        raise OSError("<urlopen error [Errno -3] Temporary failure in name resolution>")

    monkeypatch.setenv("BOWTIENET_CACHE", str(tmp_path))
    monkeypatch.delenv("BOWTIENET_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    note = cases_module.lacks_data(dataset)
    assert note.startswith(f"FileNotFoundError: the data set {dataset!r} is not on this machine")
    assert note.endswith("and set BOWTIENET_DATA to its folder.")


def test_the_split_is_that_of_train_test_split():
    split = load_split(replace(CASE, seed=301))
    data = load_set("toy")
    _, inputs, _, targets = train_test_split(
        data.inputs, data.targets, test_size=0.1, random_state=301
    )
    np.testing.assert_array_equal(split.test_inputs, inputs)
    np.testing.assert_array_equal(split.test_targets, targets)
    assert len(split.train_targets) == 270


def test_scores_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=40)
    mixture = build_mixture([0.3, 0.7], rng.normal(size=(2, 40)), rng.uniform(0.5, 2, (2, 40)))
    forecast = Forecast(distribution=mixture, intervals=mixture.interval(0.95))
    scores, curve = score(targets, forecast)
    expected = evaluate(targets, mixture, coverage=0.95)
    for name in ("rmse", "nll", "crps", "coverage"):
        assert scores[name] == pytest.approx(getattr(expected, name), rel=1e-12)
    mean, variance = mixture.mean(), mixture.var()
    z = (targets - mean) / np.sqrt(variance)
    nll = np.mean(0.5 * np.log(2.0 * np.pi * variance) + 0.5 * z**2)
    assert scores["gaussian_nll"] == pytest.approx(nll, rel=1e-12)
    assert scores["gaussian_coverage"] == np.mean(np.abs(z) <= norm.ppf(0.975))
    assert scores["interval_width"] == pytest.approx(np.mean(np.diff(mixture.interval(0.95))))
    inside = [np.mean(np.abs(z) <= norm.ppf(0.5 + 0.5 * level)) for level in LEVELS]
    np.testing.assert_allclose(curve, inside)
    assert len(scores) == 7


def test_the_coverage_is_of_the_methods_own_intervals():
    targets = np.zeros(4)
    forecast = forecast_of(np.zeros(4), 1.0)
    ends = np.array([[-1.0, 1.0], [1.0, 2.0], [-2.0, -1.0], [-1.0, 3.0]])
    scores, _ = score(targets, Forecast(distribution=forecast.distribution, intervals=ends))
    assert scores["coverage"] == 0.5
    assert scores["gaussian_coverage"] == 1.0
    assert scores["interval_width"] == 2.0


def test_a_case_is_run_with_its_seed_widths_and_settings(fake):
    found = run_case(replace(CASE, settings=(("shift", -300.0),)))
    assert fake == [{"hidden": (5,), "n": 270, "seed": 300, "coverage": 0.95}]
    targets = load_split(CASE).test_targets
    assert found.status == "done"
    assert found.scores["rmse"] == pytest.approx(np.sqrt(np.mean(targets**2)))
    assert (found.n_train, found.n_test, found.note) == (270, 30, "seed 300")
    assert found.settings == {"shift": -300.0}
    assert len(found.curve) == 19
    assert min(found.seconds, found.wall_seconds, found.predict_seconds) >= 0.0
    assert found.key == replace(CASE, settings=(("shift", -300.0),)).key


def test_members_are_an_equal_mixture_of_fits_with_different_seeds(fake):
    case = replace(CASE, members=3)
    found = run_case(case)
    assert [call["seed"] for call in fake] == member_seeds(case) == [300, 1300, 2300]
    mean = load_split(CASE).test_targets - 1300.0
    assert found.scores["rmse"] == pytest.approx(np.sqrt(np.mean(mean**2)))
    assert found.note == "seed 300; seed 1300; seed 2300"
    assert member_seeds(replace(CASE, seed=1))[0] == 1


def test_members_of_different_splits_share_no_seed():
    seeds = [seed for s in range(10) for seed in member_seeds(replace(CASE, seed=s, members=4))]
    assert len(set(seeds)) == 40


def test_mix_is_the_mean_of_the_densities():
    one = build_mixture([0.25, 0.75], [[0.0], [1.0]], [[1.0], [2.0]])
    two = build_mixture([1.0], [[5.0]], [[0.5]])
    parts = [Forecast(distribution=d, intervals=d.interval(0.95)) for d in (one, two)]
    found = mix(parts)
    points = np.linspace(-3.0, 7.0, 11)[None]
    expected = 0.5 * (one.pdf(points) + two.pdf(points))
    np.testing.assert_allclose(found.distribution.pdf(points), expected, rtol=1e-12)
    np.testing.assert_array_equal(found.intervals, found.distribution.interval(0.95))
    assert mix(parts[:1]) is parts[0]


@pytest.mark.parametrize("error", [ValueError("bad\n  value"), MemoryError(), ArithmeticError("0")])
def test_a_method_that_raises_is_a_record(fake, error):
    found = run_case(replace(CASE, settings=(("error", error),)))
    assert found.status == "failed"
    assert found.note == f"{type(error).__name__}: {' '.join(str(error).split())}"
    assert (found.scores, found.curve) == ({}, ())
    assert math.isnan(found.seconds)
    assert (found.n_train, found.n_test) == (270, 30)


def test_notes_are_short_and_hold_no_folder(fake):
    error = OSError(
        "no file '/home/somebody/data/x.csv' at https://example.org/a/b " + "long " * 999
    )
    note = run_case(replace(CASE, settings=(("error", error),))).note
    assert "somebody" not in note
    assert "'x.csv'" in note
    assert "https://example.org/a/b" in note
    assert note.endswith(" ...")
    assert len(note) < 1030


def test_a_wrong_setting_is_a_failure(fake):
    found = run_case(replace(CASE, settings=(("colour", 1),)))
    assert found.status == "failed"
    assert "colour" in found.note


def test_without_its_library_a_case_is_missing(fake, monkeypatch):
    entry = replace(methods.METHODS["fake"], modules=("no_such_module",))
    monkeypatch.setitem(methods.METHODS, "fake", entry)
    found = run_case(CASE)
    assert found.status == "missing"
    assert "no_such_module" in found.note
    assert fake == []


def test_without_its_data_a_case_is_missing(fake, monkeypatch):
    def load(name):
        raise FileNotFoundError(f"the data set {name!r} is not on this machine")

    monkeypatch.setattr(cases_module, "load_set", load)
    found = run_case(CASE)
    assert found.status == "missing"
    assert found.note == "FileNotFoundError: the data set 'toy' is not on this machine"


def test_warnings_of_methods_are_swallowed(fake):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_case(CASE)
    assert caught == []


def test_the_same_case_gives_the_same_scores():
    case = replace(CASE, method="lasso")
    one, two = run_case(case), run_case(case)
    assert one.status == "done"
    assert (one.scores, one.curve) == (two.scores, two.curve)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no method 'laso'; did you mean 'lasso'"):
        run_case(replace(CASE, method="laso"))
    with pytest.raises(ValueError, match="no data set 'toi'; did you mean 'toy'"):
        run_case(replace(CASE, method="lasso", dataset="toi"))


def test_a_method_may_load_its_library_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries are imported before the clock starts, but not before the method is made."""

    def make(hidden: tuple[int, ...]) -> Method:
        monkeypatch.setitem(sys.modules, "a_library_that_needs_help", ModuleType("helped"))
        return methods.METHODS["lasso"].make(hidden=hidden)

    entry = replace(methods.METHODS["lasso"], modules=("a_library_that_needs_help",), make=make)
    monkeypatch.setitem(methods.METHODS, "helped", entry)
    monkeypatch.setattr(cases_module, "missing", lambda name: None)
    record = run_case(Case(experiment="x", dataset="toy", method="helped", seed=300))
    assert record.status == "done", record.note
