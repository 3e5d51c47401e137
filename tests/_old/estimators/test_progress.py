"""What a fit says while it runs, and who may look on and stop it."""

from __future__ import annotations

import io
import itertools
import re
import sys
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor
from bowtienet._old.ensemble import pace
from bowtienet._old.estimators import progress
from tests._old.estimators import models
from tests._old.estimators.models import Recorder, assert_same, rows, watched

X, Y = rows(50)
LINE = (
    r"fit 2/2 \| sweep \d+ \| ELBO -?\d+(\.\d+)? \| change -?\d\.\de[+-]\d\d \| "
    r"[\d,]+ rows/s \| at most \d+ (s|min) left \| \d+\.\d s"
)


def small(**changes: Any) -> BowTieRegressor:
    """Two members of four sweeps each: beside 1000 every change is small."""
    return models.small(**({"max_iter": 10, "tol": 1e3} | changes))


def stacked(**changes: Any) -> BowTieRegressor:
    """One recipe, of plain columns and targets, on five folds; then two members."""
    plain = {"features": "standard", "target_transform": "none"}
    return small(**({"weighting": "stacking", "init_penalty": 1.0} | plain | changes))


# The line


def test_without_verbose_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    stacked().fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_elsewhere_than_in_a_terminal_one_line_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=1).fit(X, Y)
    found = capsys.readouterr()
    assert re.fullmatch(LINE + "\n", found.out), found.out
    assert found.err == ""


def test_fits_are_counted_wherever_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        small(verbose=1).fit(X, Y)
    found = capsys.readouterr().out
    assert re.fullmatch(r"fit 2/2 \| ELBO -?\d+(\.\d+)? \| \d+\.\d s\n", found), found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stream_says_which_solver_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    with progress.reporting_to(progress.LiveLine(terminal)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "INTERVAL", 0.0)
        small(solver="svi", n_estimators=1, batch_size=10).fit(X, Y)
    said = terminal.getvalue().split("\r")
    assert any("reading" in text for text in said)
    assert any("50 rows" in text and "'svi'" in text for text in said)
    assert not any("at most -" in text for text in said)
    assert capsys.readouterr().out == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_the_line_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    small(verbose=1).fit(X, Y)
    first, reading, choosing, *lines = terminal.getvalue().split("\r")
    assert first == ""
    assert "reading" in reading
    assert "comparing recipes" in choosing
    # Every sweep, and the last one again.
    sweeps = [line.split(" | ")[1] for line in lines]
    assert sweeps == [f"sweep {n}" for n in (1, 2, 3, 4, 1, 2, 3, 4, 4)]
    assert re.fullmatch(LINE + " *\n", lines[-1]), lines[-1]
    assert not any("\n" in line for line in lines[:-1])
    # What is left of a longer line would stay in sight.
    widths = [len(line.rstrip("\n")) for line in lines]
    texts = [len(line.rstrip()) for line in lines]
    assert all(wide >= text for wide, text in zip(widths[1:], texts[:-1], strict=True))


def test_the_line_is_not_renewed_faster_than_the_eye(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(progress, "INTERVAL", 1e9)
    small(verbose=1).fit(X, Y)
    assert terminal.getvalue().count("\r") <= 2


class Listener:
    """A line that keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.shares: list[float] = []
        self.closed = 0

    def show(self, text: str, share: float | None = None, **_: Any) -> None:
        self.texts.append(text)
        if share is not None:
            self.shares.append(share)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_another_line_may_listen(n_jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It hears which share of the members is done."""
    listener = Listener()
    with progress.reporting_to(listener), joblib.parallel_config("threading", n_jobs=n_jobs):
        small().fit(X, Y)
    small().fit(X, Y)  # not any more
    shares = listener.shares
    assert listener.closed == 1
    assert all(0.0 < share <= 1.0 for share in shares)
    assert shares == sorted(shares)
    assert shares[-1] > 0.5
    assert capsys.readouterr().out == ""


def test_a_cross_fit_says_what_it_is_at(capsys: pytest.CaptureFixture[str]) -> None:
    listener = Listener()
    with progress.reporting_to(listener):
        stacked(features="auto").fit(X, Y)
    texts = [text.partition(" | ")[0] for text in listener.texts]
    compared = [text for text in texts if text.startswith("comparing recipes: ")]
    assert len(compared) > 1
    assert texts[0] == "reading"
    last = ["posteriors out of fold", "weights and levels of noise", "members with all rows"]
    assert texts == ["reading", *compared, *last]
    assert listener.shares
    assert all(0.0 <= share < 1.0 for share in listener.shares)
    stacked(verbose=1).fit(X, Y)
    assert re.fullmatch(r"members with all rows \| \d+\.\d s\n", capsys.readouterr().out)


def test_of_a_long_fit_the_seconds_to_come_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that goes on by a minute each time that it is looked at."""
    ticks = itertools.count(0.0, 60.0)
    monkeypatch.setattr(pace.time, "monotonic", lambda: next(ticks))
    listener = Listener()
    with progress.reporting_to(listener):
        stacked(features="auto").fit(X, Y)
    promised = [text for text in listener.texts if "to go" in text]
    assert len(promised) > 1
    assert all(re.search(r"^about [1-9]\d* s to go, ", text) for text in promised)
    assert "posteriors out of fold" in promised[-1]


def test_the_line_ends_when_a_fit_fails(capsys: pytest.CaptureFixture[str]) -> None:
    listener = Listener()
    model = small()
    watched(model, models.at_sweep(3, RuntimeError))
    with progress.reporting_to(listener), pytest.raises(RuntimeError):
        model.fit(X, Y)
    assert listener.closed == 1


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7300.0, "2 h"), (2e5, "2 d")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert progress.duration(seconds) == expected


# Callbacks of scikit-learn


def test_callbacks_see_every_task_begin_and_end() -> None:
    model = small()
    recorder = watched(model)
    model.fit(X, Y)
    assert recorder.calls[:3] == [("setup", "fit"), ("begin", "fit"), ("begin", "member")]
    assert recorder.calls[-3:] == [("end", "member"), ("end", "fit"), ("teardown", "fit")]
    for hook in ("begin", "end"):
        counts = [recorder.count(hook, task) for task in ("fit", "member", "sweep")]
        assert counts == [1, 2, 8]
    assert recorder.count("setup", "fit") == recorder.count("teardown", "fit") == 1
    # Whoever looks on changes nothing.
    assert_same(model, small().fit(X, Y))


def test_of_a_cross_fit_callbacks_see_the_begin_and_the_end() -> None:
    """Its networks are fitted side by side: there is no member to look at, or to stop after."""
    model = stacked()
    recorder = watched(model, lambda *_: True)
    model.fit(X, Y)
    expected = [("setup", "fit"), ("begin", "fit"), ("end", "fit"), ("teardown", "fit")]
    assert recorder.calls == expected
    assert_same(model, stacked().fit(X, Y))


@pytest.mark.parametrize("target", [Y, Y[:, None], np.column_stack([Y, -Y])], ids=["1", "1c", "2"])
def test_the_estimator_of_a_sweep_can_be_used(target: np.ndarray) -> None:
    """With one member, that of the last sweep predicts as the whole fit does."""
    frame = pd.DataFrame(X, columns=["age", "height", "weight"]).assign(city=["A", "B"] * 25)
    seen = []

    def look(recorder: Recorder, context: Any, fitted: Any) -> None:
        if context.task_name == "sweep":
            seen.append(
                (fitted.predict(frame), fitted.score(frame, target), fitted.predict_interval(frame))
            )

    model = small(n_estimators=1)
    watched(model, look)
    model.fit(frame, target)
    assert len(seen) == 4
    for prediction, score, interval in seen:
        assert prediction.shape == target.shape
        assert np.isfinite(score)
        assert interval.shape == (len(target), 2 * target[:1].size)
    assert_array_equal(seen[-1][0], model.predict(frame))
    assert not np.array_equal(seen[0][0], seen[-1][0])


def test_a_true_answer_after_a_sweep_stops_that_member() -> None:
    """The second sweep of the first member; the second member goes on to its own end.

    Whoever stopped it did so on purpose: nothing is warned of.
    """

    def stop(recorder: Recorder, context: Any, fitted: Any) -> bool:
        return context.task_name == "sweep" and recorder.count("end", "sweep") == 2

    model = small()
    recorder = watched(model, stop)
    model.fit(X, Y)
    first, second = model.ensemble_.members
    assert (first.n_sweeps, second.n_sweeps) == (2, 4)
    assert (first.status, second.status) == ("interrupted", "converged")
    assert recorder.count("end", "member") == 2
    assert model.predict(X).shape == (50,)


def test_a_true_answer_after_a_member_stops_the_fit() -> None:
    model = small(n_estimators=3)
    recorder = watched(model, lambda recorder, context, fitted: context.task_name == "member")
    model.fit(X, Y)
    assert recorder.count("begin", "member") == 1
    assert_array_equal(model.member_weights_, [1.0])
    assert np.all(np.isfinite(model.predict(X)))


def test_partial_fit_is_watched_too() -> None:
    model = small()
    recorder = watched(model)
    model.partial_fit(X, Y)
    assert recorder.count("begin", "member") == 2
    assert recorder.count("end", "member") == 2


def test_the_progress_bar_of_scikit_learn(capsys: pytest.CaptureFixture[str]) -> None:
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    small().set_callbacks(callback.ProgressBar()).fit(X, Y)
    printed = capsys.readouterr().out
    for task in ("fit", "member #0", "member #1"):
        assert f"BowTieRegressor - {task}" in printed
    assert "100%" in printed


def test_the_scoring_monitor_of_scikit_learn() -> None:
    """A score of the training rows after every sweep; the last is that of the fit."""
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring="r2")
    model = small(n_estimators=1).set_callbacks(monitor).fit(X, Y)
    scores = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "sweep"]
    assert len(scores) == 4
    assert_allclose(scores[-1], model.score(X, Y), rtol=1e-12)
