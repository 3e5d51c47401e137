"""Cases, table and figures of the diabetes example, from records that were never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bowtienet.data.sets import load_set
from bowtienet.evaluation.methods import Forecaster, Method, central, gaussian
from bowtienet.experiments import diabetes
from bowtienet.experiments.methods import Entry
from bowtienet.experiments.records import FAILED, MISSING, Record
from tests.experiments.made_up import made_up

TINY = {"n_estimators": 1, "combine": "equal", "max_iter": 2, "random_state": 0}


def record(method: str, seed: int, **changes: Any) -> Record:
    named = {"experiment": "diabetes", "hidden": (20,), "n_train": 397, "n_test": 45}
    return made_up("diabetes", method, seed, **(named | changes))


def constant(hidden: tuple[int, ...] = (50,)) -> Method:
    """Predicts the mean of the targets, with their deviation."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        mean, deviation = float(np.mean(y)), float(np.std(y))
        return lambda new: central(
            gaussian(np.full(len(new), mean), np.full(len(new), deviation)), coverage
        )

    return Method(name="constant", fit=fit)


def broken(hidden: tuple[int, ...] = (50,)) -> Method:
    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        raise RuntimeError("out of luck")

    return Method(name="broken", fit=fit)


def test_cases() -> None:
    found = diabetes.cases(splits=3)
    assert len({case.key for case in found}) == 3 * len(diabetes.METHODS)
    assert {(case.experiment, case.dataset, case.hidden) for case in found} == {
        ("diabetes", "diabetes", (20,))
    }
    assert [case.seed for case in diabetes.cases(2, ["lasso"])] == [0, 1]


def test_table_stands_beside_the_papers() -> None:
    records = [record("single", s, rmse=50.0 + s, gaussian_nll=5.3) for s in range(3)]
    records += [record("pruned", s, rmse=60.0) for s in range(3)]
    records += [record("nuts", 0, status=MISSING, note="no numpyro here")]
    records += [record("lasso", 0, rmse=40.0), record("lasso", 1, status=FAILED, note="it broke")]
    text = diabetes._table(records)
    assert "over 3 random splits" in text
    rows = {line.split(" | ")[0][2:]: line for line in text.splitlines() if line.startswith("| ")}
    assert rows["Bow tie"].startswith(
        "| Bow tie | VBNN | **51.0 ± 1.0** | 54.50 ± 7.20 | 5.30 ± 0.00"
    )
    assert rows["Bow tie, pruned"].startswith("| Bow tie, pruned | – | 60.0 ± 0.0 | – |")
    assert rows["NUTS"].startswith("| NUTS | HMC | missing | 54.50 ± 7.80 |")
    assert rows["LassoCV"].startswith("| LassoCV | LassoCV | failed (1 of 2) | 54.20 ± 6.50 |")
    assert "- NUTS is missing: no numpyro here." in text
    assert "it broke" in text
    assert "Nothing was run." in diabetes._table([])


def test_slices_hold_the_others_at_their_means() -> None:
    data = load_set("diabetes")
    for name, new in diabetes.slices_of(data).items():
        column = data.input_names.index(name)
        others = np.delete(np.arange(10), column)
        np.testing.assert_allclose(
            new[:, others], data.inputs[:, others].mean(axis=0)[None] + 0 * new[:, others]
        )
        assert np.all(np.diff(new[:, column]) > 0.0)
        assert data.inputs[:, column].min() <= new[0, column] < new[-1, column]


def test_sizes_from_zero_to_one() -> None:
    np.testing.assert_allclose(
        diabetes.scaled_sizes(np.array([[1.0, -2.0], [3.0, -5.0]])), [[0, 0.25], [0.5, 1]]
    )
    np.testing.assert_array_equal(diabetes.scaled_sizes(np.full((2, 2), -3.0)), np.zeros((2, 2)))


def test_lasso_coefficients_are_of_standardised_inputs() -> None:
    data = load_set("diabetes")
    found = dict(zip(data.input_names, diabetes._lasso_coefficients(data), strict=True))
    assert max(found, key=lambda name: abs(found[name])) == "s5"
    assert found["bmi"] == pytest.approx(24.8, abs=0.5)


def test_table_and_figures_with_others_that_fail_or_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {
        name: Entry(label=name, modules=(), make=make, source="a test.")
        for name, make in (("lasso", constant), ("mean_field", broken))
    }
    monkeypatch.setattr(diabetes, "ENTRIES", entries)
    absent = {"nuts": "NUTS needs numpyro."}
    monkeypatch.setattr(diabetes, "missing", absent.get)
    said: list[str] = []
    others = ("lasso", "mean_field", "nuts")
    paths = diabetes.write([record("single", 0)], tmp_path, said.append)
    paths += diabetes.write_fits(
        tmp_path, said.append, n_jobs=1, fit=TINY, hidden=(3,), beside=others
    )
    assert [path.name for path in paths] == [
        "diabetes.md",
        "diabetes_weights.png",
        "diabetes_slices.png",
        "diabetes_predictors.png",
    ]
    assert all(plt.imread(path).std() > 0.01 for path in paths[1:])
    assert any(text.endswith("without Mean-field VI, since out of luck") for text in said)
    assert any(text.endswith("since NUTS needs numpyro.") for text in said)

    entries["lasso"] = Entry(label="lasso", modules=(), make=broken, source="a test.")
    data = load_set("diabetes")
    slices = diabetes.slices_of(data)
    again = diabetes._others(("lasso",), (3,), data, slices, tmp_path, said.append)
    np.testing.assert_allclose(again["lasso"]["bmi"].mean, data.targets.mean())
    np.testing.assert_allclose(
        np.ptp(again["lasso"]["age"].intervals, axis=1),
        2 * 1.959964 * data.targets.std(),
        rtol=1e-6,
    )
