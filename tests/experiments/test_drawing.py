"""Files of an experiment: whole or not at all, and fits that are not made twice."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bowtienet import BowTieRegressor
from bowtienet.data.toy import simulate_toy
from bowtienet.estimators import tasks
from bowtienet.experiments import drawing
from bowtienet.inference.coordinate_ascent import fit

MODEL = BowTieRegressor((3,), n_estimators=1, combine="equal", max_iter=2, random_state=0)
X, Y = simulate_toy(30, np.random.default_rng(0))


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "models").iterdir())


def test_a_fit_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = drawing.load_or_fit(MODEL, X, Y, tmp_path, "toy", said.append)
    assert said == ["fitting toy", "toy stopped after 2 sweeps, before it had converged"]
    assert not hasattr(MODEL, "ensemble_")

    def refuse(*_: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(BowTieRegressor, "fit", refuse)
    other_jobs = BowTieRegressor(**(MODEL.get_params() | {"n_jobs": 2}))
    second = drawing.load_or_fit(other_jobs, X, Y, tmp_path, "toy", said.append)
    np.testing.assert_array_equal(second.predict(X), first.predict(X))
    assert len(said) == 2


@pytest.mark.parametrize("what", ["settings", "inputs", "targets"])
def test_another_fit_is_not_taken_for_it(what: str, tmp_path: Path) -> None:
    drawing.load_or_fit(MODEL, X, Y, tmp_path, "toy", lambda _: None)
    model = BowTieRegressor(**(MODEL.get_params() | {"random_state": 1}))
    said: list[str] = []
    drawing.load_or_fit(
        model if what == "settings" else MODEL,
        X + 1e-9 if what == "inputs" else X,
        Y[::-1] if what == "targets" else Y,
        tmp_path,
        "toy",
        said.append,
    )
    assert said[0] == "fitting toy"
    assert len(kept(tmp_path)) == 2


def test_a_damaged_fit_is_made_again(tmp_path: Path) -> None:
    drawing.load_or_fit(MODEL, X, Y, tmp_path, "toy", lambda _: None)
    (path,) = (tmp_path / "models").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    said: list[str] = []
    drawing.load_or_fit(MODEL, X, Y, tmp_path, "toy", said.append)
    assert said[0].startswith(f"{path.name} cannot be read, so it is fitted again: ")
    assert said[1] == "fitting toy"
    assert path.read_bytes() == whole


@pytest.mark.parametrize("members", [1, 2])
def test_a_fit_that_was_interrupted_is_not_kept(
    members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its only member, which is cut short, or before its second, which is lost."""
    model = BowTieRegressor(**(MODEL.get_params() | {"n_estimators": members, "n_jobs": 1}))
    fits = [0]

    def interrupting(*arguments: Any, **settings: Any) -> Any:
        fits[0] += 1
        if fits[0] == 2:
            signal.raise_signal(signal.SIGINT)
        if members == 1:
            settings["callback"] = lambda _: signal.raise_signal(signal.SIGINT)
        return fit(*arguments, **settings)

    monkeypatch.setattr(tasks, "fit", interrupting)
    with pytest.raises(KeyboardInterrupt):
        drawing.load_or_fit(model, X, Y, tmp_path, "toy", lambda _: None)
    assert fits == [members]
    assert kept(tmp_path) == []
    fits[0] = 0
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        cut = clone(model).fit(X, Y)
    monkeypatch.undo()
    whole = drawing.load_or_fit(model, X, Y, tmp_path, "toy", lambda _: None)
    assert len(whole.ensemble_.members) == members
    (path,) = (tmp_path / "models").iterdir()
    cut.save(path)  # as it was before such fits were refused
    said: list[str] = []
    again = drawing.load_or_fit(model, X, Y, tmp_path, "toy", said.append)
    assert said[0] == f"{path.name} is of a fit that was interrupted, so it is fitted again"
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_a_figure_that_cannot_be_drawn_leaves_the_old_one(tmp_path: Path) -> None:
    figure = drawing.new_figure(2.0, 2.0)
    figure.subplots().plot([0.0, 1.0])
    path = drawing.save_figure(figure, tmp_path, "line")
    assert path == tmp_path / "figures" / "line.png"
    before = path.read_bytes()
    assert plt.imread(path).shape[:2] == (240, 240)
    figure.axes[0].set_title("$no such \\symbol$")
    with pytest.raises(ValueError, match="symbol"):
        drawing.save_figure(figure, tmp_path, "line")
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == ["line.png"]


def test_table(tmp_path: Path) -> None:
    path = drawing.save_table("a ± b\n\n", tmp_path / "new", "scores")
    assert path.read_bytes() == "a ± b\n".encode()
    assert path == tmp_path / "new" / "tables" / "scores.md"


def test_no_two_methods_look_alike_in_lines_and_colours() -> None:
    together = ("single", "ensemble", "gaussian", "mean_field", "nuts", "backprop", "horseshoe")
    looks = [drawing.style(method) for method in together]
    assert len({look["color"] for look in looks}) == len(together)
    assert len({look["marker"] for look in looks}) == len(together)
    assert drawing.style("unknown", linewidth=3.0)["linewidth"] == 3.0


def test_legend_holds_every_label_once() -> None:
    figure = drawing.new_figure(4.0, 2.0)
    axes = figure.subplots(1, 2)
    for ax, name in zip(axes, ("b", "c"), strict=True):
        ax.plot([0.0, 1.0], label="a")
        ax.plot([1.0, 0.0], label=name)
    drawing.shared_legend(figure, axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]
