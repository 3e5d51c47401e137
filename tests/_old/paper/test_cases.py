"""A case gives the scores that its definition says, and a record whatever happens."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import train_test_split

from benchmarks._old.paper import cases as cases_module
from benchmarks._old.paper.cases import Case, lacks_data, run_case, run_cases, score, to_do
from benchmarks._old.paper.methods import METHODS, Entry
from benchmarks._old.paper.methods.common import Fitted
from benchmarks._old.paper.records import Journal, key_of, load
from benchmarks._old.paper.sets import rows_of
from bowtienet._old.evaluation import LEVELS, evaluate
from bowtienet._old.prediction.mixture import build_mixture

CASE = Case(experiment="toy", dataset="toy", method="fake", seed=500, hidden=(5,))
LASSO = replace(CASE, method="lasso")
RUN = {"kind": "run", "id": "one"}


@pytest.fixture
def fake(monkeypatch):
    """A method that forecasts N(seed, 2²), and what it was called with."""
    calls = []

    def make(hidden, shift=0.0, error=None):
        def fit(X, y, seed):
            calls.append((hidden, len(X), seed))
            warnings.warn("of no interest", UserWarning, stacklevel=1)
            np.log(np.zeros(1))
            if error is not None:
                raise error

            def predict(new):
                mean = np.full((1, len(new)), seed + shift)
                return build_mixture([1.0], mean, np.full_like(mean, 2.0))

            return Fitted(predict, f"seed {seed}")

        return fit

    monkeypatch.setitem(METHODS, "fake", Entry("Fake", make, "a test.", ("math",)))
    return calls


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "results.jsonl", RUN)


def test_scores_are_those_of_their_definitions(rng):
    targets = rng.normal(size=40)
    mixture = build_mixture([0.3, 0.7], rng.normal(size=(2, 40)), rng.uniform(0.5, 2, (2, 40)))
    scores, curve = score(targets, mixture, mixture.mean())
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


def test_a_case_is_run_with_its_split_widths_and_settings(fake):
    found = run_case(replace(CASE, settings={"shift": -500.0}))
    assert fake == [((5,), 270, 500)]
    _, targets = train_test_split(rows_of("toy")[1], test_size=0.1, random_state=500)
    assert found["status"] == "done"
    assert found["scores"]["rmse"] == pytest.approx(np.sqrt(np.mean(targets**2)))
    assert (found["n_train"], found["n_test"], found["note"]) == (270, 30, "seed 500")
    assert len(found["curve"]) == 19
    assert min(found["seconds"], found["wall_seconds"], found["predict_seconds"]) >= 0.0


def test_members_are_an_equal_mixture_of_fits_with_different_seeds(fake):
    found = run_case(replace(CASE, members=3))
    assert [seed for *_, seed in fake] == [500, 1500, 2500]
    _, targets = train_test_split(rows_of("toy")[1], test_size=0.1, random_state=500)
    assert found["scores"]["rmse"] == pytest.approx(np.sqrt(np.mean((targets - 1500.0) ** 2)))
    assert found["note"] == "seed 500; seed 1500; seed 2500"


def test_a_method_that_raises_is_a_record(fake):
    found = run_case(replace(CASE, settings={"error": ValueError("bad\n  value")}))
    assert (found["status"], found["note"]) == ("failed", "ValueError: bad value")
    assert (found["scores"], found["curve"]) == ({}, [])
    assert (found["n_train"], found["n_test"]) == (270, 30)


def test_without_its_library_or_data_a_case_is_missing(fake, monkeypatch):
    monkeypatch.setitem(METHODS, "fake", METHODS["fake"]._replace(needs=("no_such_module",)))
    found = run_case(CASE)
    assert (found["status"], fake) == ("missing", [])
    assert "no_such_module" in found["note"]

    def load_nothing(name):
        raise FileNotFoundError(f"the data set {name!r} is not here")

    monkeypatch.setattr(cases_module, "load_set", load_nothing)
    lacks_data.cache_clear()
    found = run_case(LASSO)
    lacks_data.cache_clear()
    assert (found["status"], "toy" in found["note"]) == ("missing", True)


def test_a_run_does_what_is_left_and_keeps_records_at_once(journal, fake, monkeypatch):
    """In processes of their own: two seeds of lasso, one of which is done, and a missing method."""
    monkeypatch.setitem(METHODS, "fake", METHODS["fake"]._replace(needs=("no_such_module",)))
    journal.append({**run_case(LASSO), "note": "kept"})
    said = []
    cases = [LASSO, replace(LASSO, seed=501), CASE, LASSO]
    assert run_cases(cases, journal, said.append, n_jobs=2)
    _, records = load(journal.path)
    assert [(r["method"], r["seed"], r["status"], r["note"]) for r in records[:1]] == [
        ("lasso", 500, "done", "kept")
    ]
    assert {(r["method"], r["seed"]): r["status"] for r in records[1:]} == {
        ("lasso", 501): "done",
        ("fake", 500): "missing",
    }
    assert len(said) == 1
    before = journal.path.read_bytes()
    assert run_cases(cases, journal, said.append, n_jobs=2)
    assert journal.path.read_bytes() == before
    expected = run_case(replace(LASSO, seed=501))["scores"]
    assert journal.records[replace(LASSO, seed=501).key]["scores"] == expected


def test_what_failed_is_left_alone_unless_asked_for_and_what_was_missing_is_tried(journal, fake):
    for seed, status in enumerate(("done", "failed", "missing"), start=500):
        record = cases_module.unscored(replace(CASE, seed=seed), status, "why")
        journal.append(record)
    cases = [replace(CASE, seed=seed) for seed in range(500, 504)]
    assert [case.seed for case in to_do(cases, journal)] == [502, 503]
    assert [case.seed for case in to_do(cases, journal, again=True)] == [501, 502, 503]


def die(case):
    os._exit(3)


def test_a_process_that_dies_is_told_and_others_go_on(journal, monkeypatch):
    run = cases_module.run_case
    monkeypatch.setattr(cases_module, "run_case", die)
    said = []
    assert not run_cases([LASSO], journal, said.append, n_jobs=2)
    assert any("lasso" in text for text in said)
    monkeypatch.setattr(cases_module, "run_case", run)
    assert run_cases([LASSO], journal, said.append, n_jobs=2)
    assert [record["status"] for record in load(journal.path)[1]] == ["done"]


def test_a_number_of_training_rows_is_a_case_of_its_own():
    """Keys of cases without it are those of older records."""
    plain = Case(experiment="uci", dataset="toy", method="lasso", seed=500)
    few = Case(experiment="uci", dataset="toy", method="lasso", seed=500, train_rows=40)
    assert plain.key == '["uci","toy","lasso",500,[50],1,{}]'
    assert few.key == '["uci","toy","lasso",500,[50],1,{},40]'
    assert (run_case(plain)["n_train"], run_case(plain)["n_test"]) == (270, 30)
    record = run_case(few)
    assert (record["n_train"], record["n_test"], record["train_rows"]) == (40, 40, 40)
    assert key_of(record) == few.key
