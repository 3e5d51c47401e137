"""Cases, tables and figures of the simulated example, from records that were never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bowtienet.data.sets import load_set
from bowtienet.data.toy import toy_function
from bowtienet.evaluation.metrics import LEVELS
from bowtienet.experiments import toy
from bowtienet.experiments.drawing import new_figure
from bowtienet.experiments.records import FAILED, MISSING, Record
from tests.experiments.made_up import made_up

TINY = {"n_estimators": 1, "combine": "equal", "max_iter": 3, "random_state": 0}


def record(method: str, seed: int, depth: int, **changes: Any) -> Record:
    named = {"experiment": "toy", "hidden": (20,) * depth, "n_train": 270, "n_test": 30}
    return made_up("toy", method, seed, **(named | changes))


def some_records() -> list[Record]:
    done = [
        record("single", seed, depth, rmse=depth + 0.1 * seed, gaussian_nll=2.0)
        for seed in range(3)
        for depth in toy.DEPTHS
    ]
    return [
        *done,
        record("nuts", 0, 1, status=MISSING, note="no numpyro here"),
        record("backprop", 0, 1, rmse=0.5),
        record("backprop", 1, 1, status=FAILED, note="it broke"),
    ]


def test_cases() -> None:
    found = toy.cases(splits=2)
    assert len({case.key for case in found}) == 2 * 3 * len(toy.METHODS)
    assert {case.hidden for case in found} == {(20,), (20,) * 2, (20,) * 4}
    assert {(case.experiment, case.dataset, case.seed) for case in found} == {
        ("toy", "toy", 0),
        ("toy", "toy", 1),
    }
    assert {case.method for case in toy.cases(1, ["nuts"])} == {"nuts"}


def test_table_has_a_part_for_each_depth() -> None:
    text = toy._table({depth: toy.results_of(some_records(), depth) for depth in toy.DEPTHS})
    first, second, fourth = text.split("\n## ")[1:]
    assert first.startswith("1 hidden layer\n")
    assert "| Bow tie | **1.10 ± 0.10** |" in first
    assert "| NUTS | missing |" in first
    assert "- NUTS is missing: no numpyro here." in first
    assert "| Bayes by Backprop | failed (1 of 2) |" in first
    assert "- Bayes by Backprop failed (toy, split 1): it broke." in first
    assert "| Bow tie | **2.10 ± 0.10** |" in second
    assert "| Bow tie | **4.10 ± 0.10** |" in fourth
    assert "NUTS" not in second + fourth


def test_scores_by_depth_are_means_with_standard_errors() -> None:
    figure = toy._draw_scores({d: toy.results_of(some_records(), d) for d in toy.DEPTHS})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["Bow tie", "noise alone"]  # what failed or is missing has no mean
    line = figure.axes[0].containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [1.1, 2.1, 4.1])
    np.testing.assert_allclose(line.get_xdata() / line.get_xdata()[0], [1.0, 2.0, 4.0])
    bar = figure.axes[0].containers[0].lines[2][0].get_segments()[0]
    np.testing.assert_allclose(bar[:, 1], 1.1 + np.array([-1.0, 1.0]) * 0.1 / np.sqrt(3.0))


def test_coverage_is_the_mean_of_the_curves() -> None:
    low, high = np.array(LEVELS) * 0.8, np.array(LEVELS)
    records = [record("single", 0, 2, curve=tuple(low)), record("single", 1, 2, curve=tuple(high))]
    figure = toy._draw_coverage({d: toy.results_of(records, d) for d in toy.DEPTHS})
    assert [len(ax.lines) for ax in figure.axes] == [1, 2, 1]  # besides the diagonal
    np.testing.assert_allclose(figure.axes[1].lines[1].get_ydata(), 0.9 * np.array(LEVELS))


def test_tables_and_figures(tmp_path: Path) -> None:
    said: list[str] = []
    paths = toy.write(some_records(), tmp_path, said.append)
    assert not said
    paths += toy.write_fits(tmp_path, said.append, n_jobs=1, fit=TINY, width=3)
    assert [path.name for path in paths] == [
        "toy.md",
        "toy_depth.png",
        "toy_coverage.png",
        "toy_pruning.md",
        "toy_bands.png",
        "toy_networks.png",
    ]
    assert all(plt.imread(path).std() > 0.01 for path in paths if path.suffix == ".png")
    assert [text for text in said if text.startswith("fitting")] == [
        f"fitting toy_{depth}" for depth in toy.DEPTHS
    ]
    rows = [line.split(" | ") for line in paths[3].read_text().splitlines() if "| " in line][1:]
    assert [row[0] for row in rows] == ["| 1", "| 2", "| 4"]
    assert [row[1] for row in rows] == ["3", "6", "12"]
    assert [row[3] for row in rows] == ["9", "18", "36"]
    assert rows[0][5] == "11, 33"


def test_without_records_there_is_a_table_and_no_figure_of_scores(tmp_path: Path) -> None:
    paths = toy.write([], tmp_path, lambda _: None)
    assert [path.name for path in paths] == ["toy.md"]
    assert "Nothing was run." in paths[0].read_text()


@pytest.mark.parametrize("column", [0, 1])
def test_slice_goes_along_one_input(column: int) -> None:
    class Model:
        def predict(self, new: np.ndarray) -> np.ndarray:
            return new[:, 0] - 10.0 * new[:, 1]

        def predict_interval(self, new: np.ndarray, coverage: float) -> np.ndarray:
            assert coverage == 0.95
            return self.predict(new)[:, None] + np.array([-1.0, 1.0])

    ax = new_figure(3.0, 3.0).subplots()
    toy._draw_slice(ax, load_set("toy"), column, (Model(), Model()))
    lines = {line.get_label(): line for line in ax.lines}
    x, mean = lines["fitted, mean and 95 %"].get_data()
    np.testing.assert_allclose(mean, x if column == 0 else -10.0 * x)
    truth = lines["true function"].get_ydata()
    np.testing.assert_allclose(truth, toy_function(x) if column == 0 else 0.0)
    assert ax.get_xlabel() == ("x1 (x2 = 0)", "x2 (x1 = 0)")[column]
