"""What a fit says while it runs, who may stop it, and how it goes on."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from bowtienet import BowTieRegressor
from bowtienet.estimators import progress, tasks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.sin(X[:, 0]) + 2.0 * X[:, 1] + 0.1 * RNG.normal(size=50)
LINE = (
    r"fit 2/2 \| sweep \d+ \| ELBO -?\d+(\.\d+)? \| change -?\d\.\de[+-]\d\d \| "
    r"[\d,]+ rows/s \| at most \d+ (s|min) left \| \d+\.\d s"
)


def small(**changes: Any) -> BowTieRegressor:
    """A regressor of two members of four sweeps each: beside 1000 every change is small."""
    settings: dict[str, Any] = {"n_estimators": 2, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (5,), "max_iter": 10, "tol": 1e3}
    return BowTieRegressor(**(settings | changes))


def stacked(**changes: Any) -> BowTieRegressor:
    """One recipe on five folds, then two members."""
    settings = {
        "combine": "stacking",
        "gate_temperature": 0.01,
        "init_penalty": 1.0,
        "max_iter": 10,
    }
    return small(**(settings | changes))


# The line


def test_without_verbose_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    stacked().fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_elsewhere_than_in_a_terminal_one_line_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=1).fit(X, Y)
    found = capsys.readouterr()
    assert re.fullmatch(LINE + "\n", found.out), found.out
    assert found.err == ""


class Listener:
    """A line that keeps what it is told."""

    def __init__(self) -> None:
        self.shares: list[float | None] = []
        self.closed = 0

    def show(self, text: str, share: float | None = None) -> None:
        self.shares.append(share)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_another_line_may_listen(n_jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It hears which share of a stage is done: of five folds, and then of two members."""
    listener = Listener()
    with progress.reporting_to(listener):
        model = stacked(n_jobs=n_jobs).fit(X, Y)
    stacked().fit(X, Y)  # not any more
    shares = [share for share in listener.shares if share is not None]
    assert listener.closed == 1
    assert all(0.0 < share <= 1.0 for share in shares)
    [turn] = [i for i in range(1, len(shares)) if shares[i] < shares[i - 1]]
    assert shares[turn - 1] > 0.8
    assert shares[-1] > 0.5
    assert capsys.readouterr().out == ""
    assert model.verbose == 0


def test_stacking_counts_all_its_fits(capsys: pytest.CaptureFixture[str]) -> None:
    stacked(verbose=1).fit(X, Y)
    assert re.fullmatch(LINE.replace("2/2", "7/7") + "\n", capsys.readouterr().out)


def test_fits_elsewhere_are_counted_too(capsys: pytest.CaptureFixture[str]) -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        small(verbose=1).fit(X, Y)
    found = capsys.readouterr().out
    assert re.fullmatch(r"fit 2/2 \| ELBO -?\d+(\.\d+)? \| \d+\.\d s\n", found), found


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_the_line_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    small(verbose=1).fit(X, Y)
    first, *lines = terminal.getvalue().split("\r")
    assert first == ""
    assert len(lines) == 2 * 4 + 1  # every sweep, and the last one again
    assert [line.split(" | ")[1] for line in lines] == [
        f"sweep {n}" for n in (1, 2, 3, 4, 1, 2, 3, 4, 4)
    ]
    assert re.fullmatch(LINE + " *\n", lines[-1]), lines[-1]
    assert not any("\n" in line for line in lines[:-1])
    # What is left of a longer line would stay in sight.
    widths = [len(line.rstrip("\n")) for line in lines]
    texts = [len(line.rstrip()) for line in lines]
    assert all(wide >= text for wide, text in zip(widths[1:], texts[:-1], strict=True))


def test_in_a_terminal_the_line_is_not_renewed_faster_than_the_eye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(progress, "INTERVAL", 1e9)
    small(verbose=1).fit(X, Y)
    assert terminal.getvalue().count("\r") == 1


# Callbacks of scikit-learn


class Recorder:
    """Notes all calls; what it answers and does at the end of a task can be chosen."""

    def __init__(self, at_end: Callable[..., Any] = lambda *_: None) -> None:
        self.at_end = at_end
        self.calls: list[tuple[str, str]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> bool | None:
        self.calls.append(("end", context.task_name))
        return self.at_end(self, context, fitted_estimator)

    def count(self, hook: str, task: str) -> int:
        return Counter(self.calls)[hook, task]


def watched(model: BowTieRegressor, at_end: Callable[..., Any] = lambda *_: None) -> Recorder:
    pytest.importorskip("sklearn.callback")
    recorder = Recorder(at_end)
    model.set_callbacks(recorder)
    return recorder


def test_callbacks_see_every_task_begin_and_end() -> None:
    model = small()
    recorder = watched(model)
    model.fit(X, Y)
    assert recorder.calls[:3] == [("setup", "fit"), ("begin", "fit"), ("begin", "member")]
    assert recorder.calls[-3:] == [("end", "member"), ("end", "fit"), ("teardown", "fit")]
    for hook in ("begin", "end"):
        assert recorder.count(hook, "fit") == 1
        assert recorder.count(hook, "member") == 2
        assert recorder.count(hook, "sweep") == 8
    assert recorder.count("setup", "fit") == recorder.count("teardown", "fit") == 1


def test_callbacks_change_no_bit() -> None:
    model = small()
    watched(model)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), small().fit(X, Y).predict(X))


def test_stacking_shows_trials_and_members() -> None:
    model = stacked()
    recorder = watched(model)
    model.fit(X, Y)
    assert recorder.count("begin", "member") == recorder.count("end", "member") == 5 + 2


@pytest.mark.parametrize("target", [Y, Y[:, None], np.column_stack([Y, -Y])], ids=["1", "1c", "2"])
def test_the_estimator_of_a_sweep_can_be_used(target: np.ndarray) -> None:
    """With one member, that of the last sweep predicts as the whole fit does."""
    seen = []

    def look(recorder: Recorder, context: Any, fitted: Any) -> None:
        if context.task_name == "sweep":
            seen.append((fitted.predict(X), fitted.score(X, target), fitted.predict_interval(X)))

    model = small(n_estimators=1)
    watched(model, look)
    model.fit(X, target)
    assert len(seen) == 4
    for prediction, score, interval in seen:
        assert prediction.shape == target.shape
        assert np.isfinite(score)
        assert interval.shape == (*target.shape, 2)
    np.testing.assert_array_equal(seen[-1][0], model.predict(X))
    assert not np.array_equal(seen[0][0], seen[-1][0])


def test_the_estimator_of_a_sweep_knows_the_names() -> None:
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    seen = []

    def look(recorder: Recorder, context: Any, fitted: Any) -> None:
        if fitted is not None:
            seen.append(fitted.predict(frame))

    model = small(n_estimators=1)
    watched(model, look)
    model.fit(frame, Y)
    np.testing.assert_array_equal(seen[-1], model.predict(frame))


def test_a_true_answer_after_a_sweep_stops_that_member() -> None:
    """The second sweep of the first member; the second member goes on to its own end."""

    def stop(recorder: Recorder, context: Any, fitted: Any) -> bool:
        return context.task_name == "sweep" and recorder.count("end", "sweep") == 2

    model = small()
    recorder = watched(model, stop)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    first, second = model.ensemble_.members
    assert (first.n_sweeps, second.n_sweeps) == (2, 4)
    assert (first.status, second.status) == ("interrupted", "converged")
    assert recorder.count("end", "member") == 2
    assert model.predict(X).shape == (50,)
    # Whoever stopped it did so on purpose: nothing is wrong with the data.
    assert not any("out of line" in str(warning.message) for warning in caught)


def test_a_fit_stopped_after_every_second_sweep_does_not_blame_the_data() -> None:
    def stop(recorder: Recorder, context: Any, fitted: Any) -> bool:
        return context.task_name == "sweep" and context.task_id == 1

    model = small()
    watched(model, stop)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert [member.n_sweeps for member in model.ensemble_.members] == [2, 2]
    assert not any("out of line" in str(warning.message) for warning in caught)


def test_a_true_answer_after_a_member_stops_the_fit() -> None:
    model = small(n_estimators=3)
    recorder = watched(model, lambda recorder, context, fitted: context.task_name == "member")
    model.fit(X, Y)
    assert recorder.count("begin", "member") == 1
    assert len(model.ensemble_.members) == 1
    np.testing.assert_array_equal(model.member_weights_, [1.0])
    assert np.all(np.isfinite(model.predict(X)))


def test_an_error_in_a_callback_leaves_the_estimator_as_it_was() -> None:
    def fail(recorder: Recorder, context: Any, fitted: Any) -> None:
        if recorder.count("end", "sweep") == 6:
            raise RuntimeError("broken callback")

    fresh = small()
    recorder = watched(fresh, fail)
    before = dict(vars(fresh))
    with pytest.raises(RuntimeError, match="broken callback"):
        fresh.fit(X, Y)
    assert vars(fresh) == before
    assert recorder.calls[-1] == ("teardown", "fit")
    fitted = small().fit(X, Y)
    expected = fitted.predict(X)
    watched(fitted, fail)
    with pytest.raises(RuntimeError, match="broken callback"):
        fitted.fit(X, -Y)
    np.testing.assert_array_equal(fitted.predict(X), expected)


def test_the_progress_bar_of_scikit_learn(capsys: pytest.CaptureFixture[str]) -> None:
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    small().set_callbacks(callback.ProgressBar()).fit(X, Y)
    printed = capsys.readouterr().out
    assert "BowTieRegressor - fit" in printed
    assert "BowTieRegressor - member #0" in printed
    assert "BowTieRegressor - member #1" in printed
    assert "100%" in printed


def test_the_scoring_monitor_of_scikit_learn() -> None:
    """A score of the training rows after every sweep; the last is that of the fit."""
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring="r2")
    model = small(n_estimators=1).set_callbacks(monitor).fit(X, Y)
    scores = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "sweep"]
    assert len(scores) == 4
    np.testing.assert_allclose(scores[-1], model.score(X, Y), rtol=1e-12)


# Ctrl-C


def interrupt_at(sweep: int) -> Callable[..., None]:
    """Ctrl-C during a given sweep, counted over all members."""

    def at_end(recorder: Recorder, context: Any, fitted: Any) -> None:
        if context.task_name == "sweep" and recorder.count("end", "sweep") == sweep:
            raise KeyboardInterrupt

    return at_end


def interrupted_start(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Ctrl-C while a given member looks for its start."""
    calls, original = [0], tasks.initialize

    def initialize(*arguments: Any, **keywords: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            raise KeyboardInterrupt
        return original(*arguments, **keywords)

    monkeypatch.setattr(tasks, "initialize", initialize)


def test_ctrl_c_in_a_later_member_keeps_what_there_is() -> None:
    """Two sweeps of the second of three members: it counts as it was then."""
    model = small(n_estimators=3)
    recorder = watched(model, interrupt_at(6))
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable.*2 members.*fit again"):
        model.fit(X, Y)
    assert [member.n_sweeps for member in model.ensemble_.members] == [4, 2]
    assert model.ensemble_.members[1].status == "interrupted"
    np.testing.assert_array_equal(model.member_weights_, [0.5, 0.5])
    assert np.all(np.isfinite(model.predict_interval(X)))
    assert recorder.count("begin", "member") == 2
    assert recorder.calls[-1] == ("teardown", "fit")


def test_ctrl_c_in_the_first_sweeps_keeps_that_member() -> None:
    model = small()
    watched(model, interrupt_at(2))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    assert [member.n_sweeps for member in model.ensemble_.members] == [2]
    assert np.all(np.isfinite(model.predict(X)))


def test_ctrl_c_between_two_members(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_start(monkeypatch, 2)
    model = small()
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable.*1 member"):
        model.fit(X, Y)
    monkeypatch.undo()
    alone = small().fit(X, Y).ensemble_.members[0]
    assert len(model.ensemble_.members) == 1
    np.testing.assert_array_equal(model.ensemble_.members[0].elbo_history, alone.elbo_history)
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("make", [small, stacked])
def test_ctrl_c_before_anything_is_fitted_propagates(
    make: Callable[..., BowTieRegressor], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_start(monkeypatch, 1)
    model = make()
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_ctrl_c_before_anything_is_fitted_anew_keeps_the_old_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = small().fit(X, Y)
    expected = model.predict(X)
    interrupted_start(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, -Y)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_ctrl_c_among_the_trials_of_stacking(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_start(monkeypatch, 3)
    model = stacked()
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable.*2 members"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.member_weights_, [0.5, 0.5])
    assert model.score(X, Y) > 0.5


def test_ctrl_c_in_the_last_trial_of_stacking_ends_the_fit() -> None:
    """Whoever presses Ctrl-C does not want to wait for the members that would follow."""

    def at_end(recorder: Recorder, context: Any, fitted: Any) -> None:
        if context.task_name == "sweep" and recorder.count("begin", "member") == 5:
            raise KeyboardInterrupt

    model = stacked()
    recorder = watched(model, at_end)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    assert recorder.count("begin", "member") == 5
    assert np.all(np.isfinite(model.predict(X)))


def test_ctrl_c_after_the_trials_of_stacking_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five trials are done; the first member of all rows looks for its start."""
    interrupted_start(monkeypatch, 6)
    model = stacked()
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable"):
        model.fit(X, Y)
    assert model.score(X, Y) > 0.5


def test_ctrl_c_among_the_members_of_stacking(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_start(monkeypatch, 7)
    model = stacked()
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable.*1 member"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.member_weights_, [1.0])
    assert model.score(X, Y) > 0.5


# Convergence


def test_too_few_sweeps_are_said_with_what_to_change() -> None:
    model = small(max_iter=3, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 .*raise max_iter .*tol \(now 1e-09\)"):
        model.fit(X, Y)
    assert not model.converged_
    assert model.status_ == "iteration limit"
    assert model.n_iter_ == 3
    assert np.all(np.isfinite(model.predict(X)))


def test_the_warning_points_at_the_line_of_the_user() -> None:
    with pytest.warns(ConvergenceWarning) as caught:
        small(max_iter=3, tol=1e-9).fit(X, Y)
    assert caught[0].filename == __file__


def test_a_converged_fit_says_so() -> None:
    model = small().fit(X, Y)
    assert model.converged_
    assert model.status_ == "converged"
    assert model.n_iter_ == len(model.elbo_history_) == 4
    assert model.elbo_ == model.elbo_history_[-1]


# Going on


@pytest.mark.parametrize("combine", ["equal", "elbo"])
def test_a_warm_start_goes_on_from_the_members(combine: str) -> None:
    model = small(warm_start=True, combine=combine).fit(X, Y)
    before = [member.elbo_history[-1] for member in model.ensemble_.members]
    weights = model.member_weights_.copy()
    for _ in range(3):
        model.fit(X, Y)
        after = [member.elbo_history[-1] for member in model.ensemble_.members]
        # 1e-9: a fall by so little is rounding, as in `inference.convergence`.
        assert np.all(np.asarray(after) >= np.asarray(before) - 1e-9 * np.abs(before))
        assert model.n_iter_ == 4
        assert len(model.ensemble_.members) == 2
        np.testing.assert_array_equal(model.member_weights_, weights)
        before = after
    cold = small(combine=combine).fit(X, Y)
    assert model.elbo_ > cold.elbo_


def test_without_warm_start_a_second_fit_starts_anew() -> None:
    model = small().fit(X, Y)
    first = model.predict(X)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), first)
    assert not np.array_equal(model.set_params(warm_start=True).fit(X, Y).predict(X), first)


def test_the_first_fit_of_a_warm_start_is_an_ordinary_one() -> None:
    expected = small().fit(X, Y).predict(X)
    np.testing.assert_array_equal(small(warm_start=True).fit(X, Y).predict(X), expected)


@pytest.mark.parametrize(
    ("table", "target", "words"),
    [
        (X[:, :2], Y, "2 features.*3 features.*warm_start=False"),
        (X, np.column_stack([Y, Y]), "y has 2 targets, but it had 1.*set warm_start=False"),
    ],
    ids=["columns", "targets"],
)
def test_a_warm_start_needs_the_same_columns_and_targets(
    table: np.ndarray, target: np.ndarray, words: str
) -> None:
    model = small(warm_start=True).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match=words):
        model.fit(table, target)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_a_warm_start_needs_the_same_names() -> None:
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    model = small(warm_start=True).fit(frame, Y)
    with pytest.raises(ValueError, match="now missing:\n- age"):
        model.fit(frame.rename(columns={"age": "Age"}), Y)


def test_ctrl_c_in_a_warm_start_keeps_the_other_members() -> None:
    model = small(warm_start=True).fit(X, Y)
    first, second = model.ensemble_.members
    watched(model, interrupt_at(2))
    with pytest.warns(ConvergenceWarning, match="interrupted.*usable.*2 members"):
        model.fit(X, Y)
    moved, kept = model.ensemble_.members
    assert moved.n_sweeps == 2
    assert moved.elbo_history[-1] > first.elbo_history[-1]
    assert kept is second
