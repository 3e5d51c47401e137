"""The study of outcomes: its sets, one tiny run that goes on, and its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.datasets import load_iris

from benchmarks._old.outcomes import class_methods, sets, study, tables
from benchmarks._old.outcomes.count_sets import ZeroInflated, count_sets
from benchmarks._old.outcomes.outliers import LEAST, draw_outliers
from benchmarks._old.outcomes.records import append, read


@pytest.mark.parametrize("name", sets.classification_sets())
def test_sets_are_repeatable_and_have_all_classes(name: str) -> None:
    draw = sets.classification_sets()[name]
    X_train, y_train, X_test, y_test = draw(500)
    assert len(X_train) == len(y_train)
    assert len(X_test) == len(y_test)
    assert set(y_train) == set(y_test)
    again, other = draw(500), draw(501)
    np.testing.assert_array_equal(again[1], y_train)
    assert not np.array_equal(other[1], y_train)
    pd.testing.assert_frame_equal(pd.DataFrame(again[2]), pd.DataFrame(X_test))


def test_imbalanced_has_one_in_twenty() -> None:
    _, y, _, _ = sets.classification_sets()["imbalanced"](500)
    assert np.mean(y) == pytest.approx(0.05, abs=0.015)


def test_others_get_numbers_of_a_mixed_table() -> None:
    train, *_ = sets.classification_sets()["mixed"](500)
    assert train.isna().to_numpy().any()
    found = class_methods.preparation(train).fit_transform(train)
    assert np.isfinite(np.asarray(found, dtype=float)).all()
    # Region with missing ones, plan and flag one-hot; four numbers; two columns of missing ones.
    assert found.shape[1] == 7 + 3 + 2 + 4 + 2


@pytest.mark.parametrize("name", count_sets())
def test_counts_are_of_their_distribution(name: str) -> None:
    """The mean of 2,000 counts; a z value beyond 4.5 is one chance in a hundred thousand."""
    _, rows = count_sets()[name](500)
    variance = np.mean((rows.counts - rows.truth.mean()) ** 2)
    error = np.mean(rows.counts - rows.truth.mean()) / np.sqrt(variance / len(rows.counts))
    assert abs(error) < 4.5


def test_zero_inflated_distribution() -> None:
    found = ZeroInflated(zero=expit(np.array([-1.0, 2.0])), rate=np.array([3.0, 5.0]))
    k = np.arange(80)
    p = np.exp([found.logpmf(np.full(2, one)) for one in k])
    np.testing.assert_allclose(p.sum(axis=0), 1.0)
    np.testing.assert_allclose(k @ p, found.mean())
    below = np.cumsum(p, axis=0)
    for level in (0.05, 0.5, 0.95):
        np.testing.assert_array_equal(found.ppf(level), np.argmax(below >= level, axis=0))


def test_a_tenth_of_the_targets_is_wild() -> None:
    _, clean, X_test, f = draw_outliers("none", 500)
    _, wild, X_again, f_again = draw_outliers("target sd", 500)
    assert np.mean(np.abs(wild - clean) >= LEAST) == pytest.approx(0.1)
    assert np.sum(wild != clean) == 50
    np.testing.assert_array_equal(X_test, X_again)
    np.testing.assert_array_equal(f, f_again)


def test_tiny_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Iris with a small network of ours and a logistic regression; the second run adds nothing."""
    monkeypatch.setitem(class_methods.CLASS_METHODS, "bowtienet", _small)
    out, page = tmp_path / "outcomes.jsonl", tmp_path / "page.md"
    page.write_text(
        "a\n<!-- table log_loss -->\n<!-- end -->\n<!-- table counts -->\n<!-- end -->\n"
    )
    given = ["--tasks", "classification", "--sets", "iris", "--repeats", "1", "--methods"]
    given += ["bowtienet", "logistic regression", "--out", str(out), "--page", str(page)]
    study.main(given)
    records = read(out)
    assert [record["method"] for record in records] == ["bowtienet", "logistic regression"]
    for record in records:
        assert record["seed"] == sets.FIRST_SEED
        assert record["n_train"] + record["n_test"] == len(load_iris().target)
        assert record["scores"]["log_loss"] < np.log(3.0) / 2.0
        assert record["scores"]["accuracy"] > 0.8
    text, content = page.read_text(), out.read_bytes()
    assert text.startswith("a\n<!-- table log_loss -->\n\n| set | rows | bowtienet |")
    assert text.endswith("<!-- end -->\n<!-- table counts -->\n<!-- end -->\n")
    study.main(given)
    assert out.read_bytes() == content
    assert page.read_text() == text
    study.main([*given, "--anew"])
    assert out.read_bytes().count(b"\n") == 4
    assert len(read(out)) == 2
    study.main([*given, "--first-seed", "600"])
    assert {record["seed"] for record in read(out)} == {500, 600}


def test_records_go_on_after_a_cut_line(tmp_path: Path) -> None:
    out = tmp_path / "outcomes.jsonl"
    append(out, _record("iris", 500, "bowtienet", 0.1))
    out.write_bytes(out.read_bytes() + b'{"task": "cla')
    assert len(read(out)) == 1
    append(out, _record("iris", 501, "bowtienet", 0.2))
    assert [record["seed"] for record in read(out)] == [500, 501]


def test_within_noise_is_of_paired_differences() -> None:
    """Losses vary by 0.4 between repeats, differences by little: 0.01 is then no noise."""
    losses = {"best": [0.1, 0.3, 0.5], "near": [0.11, 0.31, 0.512], "noisy": [0.0, 0.45, 0.53]}
    records = [
        _record("set", 500 + place, method, loss)
        for method, values in losses.items()
        for place, loss in enumerate(values)
    ]
    frame = tables.to_frame(records, "classification")
    values = tables.by_set(frame, "log_loss")["set"]
    assert tables.best_of(values) == "best"
    assert not tables.difference(values, "near").within_noise
    assert tables.difference(values, "noisy").within_noise
    near = tables.difference(values, "near")
    assert near.mean == pytest.approx(0.032 / 3.0)
    assert near.error == pytest.approx(np.std([0.01, 0.01, 0.012], ddof=1) / np.sqrt(3.0))
    summary = tables.class_summary(frame)
    assert "| best | 1 | 1 | 1 | 0.0000 |" in summary
    assert "| near | 1 | 0 | 0 | 0.0107 |" in summary
    assert "| noisy | 1 | 0 | 1 |" in summary


def _small(X_train: np.ndarray, y: np.ndarray, X_test: np.ndarray, seed: int) -> tuple:
    from bowtienet._old import BowTieClassifier

    model = BowTieClassifier((5,), effort="fast", n_estimators=1, random_state=seed)
    return model.fit(X_train, y).classes_, model.predict_proba(X_test)


def _record(name: str, seed: int, method: str, loss: float) -> dict:
    scores = {"log_loss": loss, "brier_score": 0.1, "calibration_error": 0.02, "accuracy": 0.9}
    return {
        **{"task": "classification", "set": name, "seed": seed, "method": method},
        **{"n_train": 100, "n_test": 1000, "scores": scores, "seconds": 1.0},
    }
