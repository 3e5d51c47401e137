"""Cases, tables and figures of the experiments, from records that were never run."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks.paper.experiments import activation, diabetes, slump, toy, uci
from benchmarks.paper.methods import METHODS
from benchmarks.paper.records import FAILED, MISSING, to_frame
from benchmarks.paper.sets import rows_of
from benchmarks.paper.tables import PUBLISHED, Results
from tests.paper.made_up import made_up, table

TINY = {"n_estimators": 1, "weighting": "equal", "max_iter": 3, "random_state": 0}
UCI_TABLES = {"uci_summary", "uci_scores", "uci_paper", "uci_nuts", "uci_paired", "uci_wins"} | {
    "uci_ranks"
}


def noisy(method, rmse, **changes):
    """Three splits of every set, each a little off."""
    rng = np.random.default_rng(len(method))
    return [
        made_up(dataset, method, seed, rmse=rmse + 0.01 * rng.normal(), **changes)
        for dataset in uci.SETS
        for seed in range(3)
    ]


def like_paper(name, method, shift=0.0):
    """Two splits whose means are the paper's, but RMSE and NLL are moved."""
    moved = {"rmse": shift, "gaussian_nll": shift, "gaussian_coverage": 0.0}
    return [
        made_up(
            dataset,
            method,
            seed,
            **{s: PUBLISHED.loc[(name, s, dataset), "mean"] + by for s, by in moved.items()},
        )
        for dataset in uci.SETS
        for seed in range(2)
    ]


def figures(folder: Path) -> dict[str, np.ndarray]:
    return {path.stem: plt.imread(path) for path in (folder / "figures").glob("*.png")}


@pytest.mark.parametrize(
    ("module", "count"),
    [
        (uci, 5 * len(METHODS)),
        (slump, 7 * 2 + 2),
        (toy, 3 * len(toy.METHODS)),
        (diabetes, len(diabetes.METHODS)),
    ],
)
def test_cases_are_those_of_all_splits_and_of_chosen_methods(module, count):
    found = module.cases(range(500, 503))
    assert len({case.key for case in found}) == len(found) == 3 * count
    assert {case.seed for case in found} == {500, 501, 502}
    assert {case.method for case in module.cases([500], ["single"])} == {"single"}


# The UCI data sets


def page(name, *records):
    return uci.pages(to_frame([record for some in records for record in some]))[name]


@pytest.mark.parametrize(("shift", "met", "better"), [(0.0, 15, 0), (0.02, 5, 0), (-0.02, 15, 10)])
def test_verdicts_against_the_paper(shift, met, better):
    records = like_paper("VBNN", "single", shift), like_paper("4VBNN", "ensemble", shift)
    text = page("uci_paper", *records)
    assert f"**{met} of 15 met.**" in text
    assert f"**{better} of 10 better.**" in text


@pytest.mark.parametrize(
    ("ours", "paper", "met"),
    [
        (0.92, 0.95, True),  # 0.03 away
        (0.919, 0.95, False),
        (0.98, 0.95, True),
        (0.915, 0.92, False),
        (0.985, 0.99, True),
        (0.99, 0.99, False),
    ],
)
def test_coverage_is_near_or_nearer(ours, paper, met):
    assert uci.covers(ours, paper) is met


def test_failed_is_missed_and_absent_is_not_run():
    records = [record for record in like_paper("VBNN", "single") if record["dataset"] != "slump"]
    records[0] |= {"status": FAILED, "scores": {}}  # yacht
    verdicts = uci.judge(Results(to_frame(records)), "single", ("rmse",))
    assert [verdict.met for verdict in verdicts] == [None, False, True, True, True]
    assert uci.count_line(verdicts, "met") == "**3 of 5 met; 1 not run.**"


def test_paired_differences_and_wins():
    records = noisy("single", 2.0), noisy("nuts", 3.0), noisy("ensemble", 1.5)
    rows = table(page("uci_paired", *records), "## RMSE: minus Bow tie\n")
    assert set(rows) == {"method", "---|---|---|---|---|---", "Bow tie ensemble", "NUTS"}
    assert rows["NUTS"][0].startswith(("**+1.0", "**+0.9"))
    rows = table(page("uci_wins", *records), "## Bow tie\n")
    assert rows["NUTS"] == ["5 / 0 / 0", *["0 / 5 / 0"] * 3]
    assert rows["Bow tie ensemble"][0] == "0 / 0 / 5"
    few = [record for record in records[1] if record["dataset"] != "boston"]
    rows = table(page("uci_wins", records[0], few), "## Bow tie\n")
    assert rows["NUTS"][0] == "4 / 0 / 0 (4 of 5 sets)"


def test_tables_and_figures_cope_with_what_is_absent(tmp_path):
    """One split, a failure, a library that is not there, an infinite score, a set without ours."""
    records = [
        made_up("slump", "single", nll=math.inf, gaussian_nll=math.inf),
        made_up("slump", "nuts", status=MISSING, note="NUTS needs numpyro.", n_train=0, n_test=0),
        made_up("yacht", "horseshoe", status=FAILED, note="ValueError: no"),
        made_up("yacht", "backprop"),
    ]
    frame = to_frame(records)
    assert set(uci.pages(frame)) == UCI_TABLES
    assert "- NUTS needs numpyro." in uci.pages(frame)["uci_scores"]
    uci.draw(frame, tmp_path)
    assert set(figures(tmp_path)) == {"uci_scores", "uci_coverage"}
    for module in (uci, slump, toy, diabetes):
        assert module.pages(to_frame([])) == {}


@pytest.mark.parametrize(
    ("single", "ensemble", "score", "change"),
    [
        (2.0, 1.0, "rmse", -0.5),
        (-2.0, -3.0, "gaussian_nll", -0.5),
        (0.94, 0.99, "gaussian_coverage", 0.03),
    ],
)
def test_relative_change(single, ensemble, score, change):
    assert slump.relative_change(single, ensemble, score) == pytest.approx(change)


# Figures


def test_fits_behind_figures_are_made_once(tmp_path):
    for _ in range(2):
        toy.write_fits(tmp_path, lambda _: None, n_jobs=1, fit=TINY, width=3)
        diabetes.write_fits(
            *(tmp_path, lambda _: None),
            n_jobs=1,
            fit=TINY,
            hidden=(3,),
            beside=["lasso"],
            structure={"n_estimators": 1, "effort": "fast", "random_state": 0},
        )
        activation.write_fits(tmp_path, lambda _: None, n_jobs=1, fit=TINY, hidden=(3, 3))
    activation.draw(to_frame([]), tmp_path)
    names = ("bands", "networks"), ("weights", "slices", "predictors"), ("posterior",)
    found = figures(tmp_path)
    assert set(found) == {"activation"} | {
        f"{name}_{part}"
        for name, parts in zip(("toy", "diabetes", "activation"), names, strict=True)
        for part in parts
    }
    assert all(image.std() > 0.01 for image in found.values())
    # Three networks of toy, of which activation needs one, one of diabetes, a structure, a lasso.
    assert len(list((tmp_path / "fits").rglob("output.pkl"))) == 6
    rows = table((tmp_path / "tables" / "diabetes_structure.md").read_text())
    assert rows["bmi"][1] == rows["s5"][1] == "yes"
    assert set(rows) >= {"age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"}
    rows = table((tmp_path / "tables" / "toy_pruning.md").read_text())
    assert [(rows[d][0], rows[d][2]) for d in "124"] == [("3", "9"), ("6", "18"), ("12", "36")]
    assert rows["1"][4] == "11, 33"


# Diabetes


def test_sizes_from_zero_to_one_and_coefficients_of_standardised_inputs():
    np.testing.assert_allclose(
        diabetes.scaled_sizes(np.array([[1.0, -2.0], [3.0, -5.0]])), [[0, 0.25], [0.5, 1]]
    )
    np.testing.assert_array_equal(diabetes.scaled_sizes(np.full((2, 2), -3.0)), np.zeros((2, 2)))
    found = diabetes.lasso_coefficients()
    assert np.argmax(np.abs(found)) == diabetes._column("s5")
    assert found[diabetes._column("bmi")] == pytest.approx(24.8, abs=0.5)


# The stochastic activation


def test_the_joint_of_two_layers_is_a_covariance():
    X, y = rows_of("toy")
    model = activation.ours.fit_for_figures(X, y, (3, 3), TINY | {"gate_temperature": 0.5}, 1)
    found = activation.unit_posterior(model, X, y)
    assert np.all((found.gates >= 0.0) & (found.gates <= 1.0))
    assert np.all(np.linalg.eigvalsh(found.joint_covariance) > 0.0)
    assert found.joint_covariance[0, 0] == pytest.approx(found.deviation[found.row] ** 2)
    assert found.joint_mean[0] == found.mean[found.row]
