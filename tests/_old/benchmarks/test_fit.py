"""The studies of fits run, at sizes that mean nothing, and their tables say what was measured."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from benchmarks._old.accuracy import defaults, study
from benchmarks._old.accuracy import fit as accuracy
from benchmarks._old.speed import fit as speed
from benchmarks._old.speed.fit import Bench, Cost, Shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("40x2", Shape(rows=40, columns=2)),
        ("50x3.parquet", Shape(rows=50, columns=3, in_file=True)),
        ("concrete", Shape(rows=927, columns=8, is_concrete=True)),
    ],
)
def test_shapes_are_read(text, shape):
    assert speed.read_shape(text) == shape


@pytest.mark.parametrize("text", ["40", "40x", "0x2", "40x2.csv", "slump"])
def test_other_shapes_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no shape"):
        speed.read_shape(text)


def test_peers_are_left_out_where_they_cannot_do_it(monkeypatch):
    monkeypatch.setattr(speed.importlib.util, "find_spec", lambda name: object())
    large, wide = Shape(rows=20_000, columns=10), Shape(rows=1_000, columns=1_000)
    assert speed.why_not("Gaussian process", large) is not None
    assert speed.why_not("Gaussian process", wide) is not None
    assert speed.why_not("BART", large) is not None
    assert speed.why_not("BART", wide) is None
    for model in ("bowtienet", "HistGradientBoosting"):
        assert speed.why_not(model, large) is None


def test_table_has_seconds_memory_and_ratios(monkeypatch):
    costs = {"bowtienet": 2.0, "bowtienet, fast": 0.5, "BART": 6.0, "HistGradientBoosting": None}

    def answer(job, longest=None):
        seconds = costs[job["model"]]
        assert (longest is None) == job["model"].startswith("bowtienet")
        return None if seconds is None else vars(Cost(seconds=seconds, megabytes=100.0))

    monkeypatch.setattr(speed, "child", answer)
    monkeypatch.setattr(speed, "why_not", lambda model, shape: None)
    shapes = [speed.read_shape("concrete"), speed.read_shape("2000x3")]
    text = speed.tables(Bench("", 600.0, 2), shapes, list(costs))
    assert "| 927 x 8, concrete (simulated) | 2 | 100 | 6 | 100 | 3 | > 600 | – | – |" in text
    assert "| 2,000 x 3 | 2 | 100 |" in text
    assert "| bowtienet, fast | 0.5 | 100 |" in text


@pytest.mark.process
def test_speed_runs(capsys, tmp_path):
    pytest.importorskip("pyarrow")
    models = ["--models", "bowtienet", "bowtienet, fast", "HistGradientBoosting"]
    arguments = ["--shapes", "40x2", "40x2.parquet", "--splits", "1", "--most-rows", "40"]
    speed.main([*arguments, *models])
    table = capsys.readouterr().out
    assert "| 40 x 2 |" in table
    assert "| 40 x 2, Parquet |" in table


def test_plot_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "child", lambda job, longest=None: vars(Cost(seconds=1.0)))
    path = tmp_path / "figures" / "fit_time.png"
    speed.plot(Bench(str(tmp_path), 1.0, 1), speed.MODELS, 1_000, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_simulated_rows_are_written(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    shape, path = Shape(rows=25, columns=3, in_file=True), tmp_path / "rows.parquet"
    speed.write_parquet(str(path), shape, 0)
    table = pq.read_table(path)
    assert table.num_rows == 25
    assert table.column_names == ["x0", "x1", "x2", "y"]


def test_scores_of_models_with_and_without_a_distribution():
    pytest.importorskip("scoringrules")
    table = np.random.default_rng(0).normal(size=(60, 3))
    train, test = study.split(table, 0)
    assert (len(train), len(test)) == (54, 6)
    quick = study.ours(hidden_layer_sizes=(4,), effort="fast")
    found = study.score(quick, train, test, 0)
    assert np.isfinite(found).all()
    error, *of_distribution, seconds = study.score(accuracy.boosted, train, test, 0)
    assert np.isfinite([error, seconds]).all()
    assert np.isnan(of_distribution).all()


def test_parts_held_fixed_are_back_afterwards():
    from bowtienet._old.ensemble import member, settings

    before = settings.EFFORTS["balanced"], member.HIDDEN_NOISE
    rows = np.random.default_rng(0).normal(size=(30, 2))
    model = accuracy.with_sweeps(2)(rows[:, :1], rows[:, 1], 0)
    assert {member.n_sweeps for member in model.ensemble_.members} == {2}
    accuracy.with_constants(member, HIDDEN_NOISE=(2.0, 0.5))(rows[:, :1], rows[:, 1], 0)
    assert (settings.EFFORTS["balanced"], member.HIDDEN_NOISE) == before


def test_reports_have_means_errors_and_differences():
    scores = np.array([[[[1.0, 2.0, 0.5, 0.9, 3.0], [3.0, 4.0, 0.5, 1.0, 5.0]]] * 2])
    scores[0, 1, :, 1] += 0.25
    text = study.report(["slump"], ["default", "other"], scores)
    assert "| slump | default | 2 ± 1 | 3.000 ± 1.000 | 0.5 ± 0 | 0.950 ± 0.050 | 4.0 |" in text
    assert text.endswith("| +0.250 ± 0.000 |")
    assert "| other | 2 / 3.25 / 0.95 | 3.250 | +0.250 ± 0.000 | 4.0 |" in defaults.by_variant(
        ["default", "other"], ["slump"], scores
    )
    alone = np.array([[[[1.0, np.nan, np.nan, np.nan, 3.0]]]])
    assert "| kin40k | boosted | 1 | – | – | – | 3.0 |" in study.report(
        ["kin40k"], ["boosted"], alone
    )
