"""Cases, tables and figures of the experiments, from records that were never run."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks.paper import drawing
from benchmarks.paper.experiments import activation, diabetes, slump, toy, uci, uci_figures
from benchmarks.paper.methods import METHODS
from benchmarks.paper.records import FAILED, MISSING, to_frame
from benchmarks.paper.sets import rows_of
from benchmarks.paper.tables import PUBLISHED, Results
from bowtienet.data.toy import toy_function
from bowtienet.evaluation import LEVELS
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


def test_single_runs_on_slump_are_those_of_the_uci_experiment():
    found = slump.cases([500])
    ones = {case.key for case in found if case.members == 1}
    assert ones <= {case.key for case in uci.cases([500])}
    assert {case.method for case in found if case.members == 4} == set(slump.REPEATED)


# The UCI data sets


def page(name, *records):
    return uci.pages(to_frame([record for some in records for record in some]))[name]


def test_as_good_as_the_paper_is_met_but_not_better():
    text = page("uci_paper", like_paper("VBNN", "single"), like_paper("4VBNN", "ensemble"))
    assert "**15 of 15 met.**" in text
    assert "**0 of 10 better.**" in text


def test_worse_and_better_than_the_paper():
    records = like_paper("VBNN", "single", 0.02), like_paper("4VBNN", "ensemble", -0.02)
    text = page("uci_paper", *records)
    assert "**5 of 15 met.**" in text
    assert "**10 of 10 better.**" in text


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


def test_scores_have_the_best_in_bold_and_the_papers_rows():
    text = page("uci_scores", noisy("single", 2.0), noisy("nuts", 1.0))
    rows = table(text, "## RMSE")
    assert rows["NUTS"][0].startswith(("**1.0", "**0.9"))
    assert not rows["Bow tie"][0].startswith("**")
    assert rows["*HMC, paper*"][:2] == ["7.00 ± 1.24", "0.56 ± 0.13"]
    assert table(text, "## CPU seconds")["NUTS"] == ["2.0"] * 5
    assert "*HMC, paper*" not in table(text, "## CRPS")


def test_distance_to_nuts_and_its_time():
    ours, nuts = noisy("single", 2.0, seconds=4.0), noisy("nuts", 1.0, seconds=120.0)
    lines = page("uci_nuts", ours, nuts).splitlines()
    (line,) = [line for line in lines if line.startswith("| slump | Bow tie |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2].startswith(("**+1.0", "**+0.9"))
    assert cells[3] == "0.000 [0.000, 0.000]"
    assert cells[5:] == ["4.0", "120", "30"]
    assert "deep trees" in page("uci_nuts", ours, nuts, noisy("nuts_deep", 5.0))
    assert "| slump | Bow tie | – | – | – | 4.0 | – | – |" in page("uci_nuts", ours)


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


def test_ranks():
    part = [r for r in noisy("gpr", 0.5) if r["dataset"] != "slump" or r["seed"] > 0]
    text = page("uci_ranks", noisy("single", 2.0), noisy("nuts", 1.0), noisy("lasso", 3.0), part)
    rows = table(text)
    assert [rows[name][:2] for name in ("NUTS", "Bow tie", "LassoCV")] == [
        ["1.0", "2.0"], ["2.0", "2.0"], ["3.0", "2.0"],
    ]  # fmt: skip
    assert rows["*p of Friedman's test*"][:2] == ["0.0067", "1"]  # χ² = 10: exp(-5)
    assert "Gaussian process" in text
    assert "Gaussian process" not in rows
    assert "1.5 ranks apart" in text  # 2.343 √(12 / 30)


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


def test_figures_of_the_uci_sets(tmp_path):
    records = noisy("single", 2.0) + noisy("nuts", 1.0, seconds=99.0) + noisy("lasso", 30.0)
    uci.draw(to_frame(records), tmp_path)
    found = figures(tmp_path)
    assert set(found) == {"uci_scores", "uci_coverage", "uci_seconds"}
    assert all(image.std() > 0.01 for image in found.values())
    assert uci_figures.far_end(np.array([1.0, 2.0, 3.0, math.nan, math.inf])) == 4.5


# Ensembles of four on slump


def runs(method, members, rmse):
    changes = {"experiment": "uci" if members == 1 else "slump", "members": members}
    return [made_up("slump", method, s, rmse=rmse + 0.01 * s, **changes) for s in range(3)]


def test_slump_shows_what_four_runs_change(tmp_path):
    records = runs("svi", 1, 8.0) + runs("svi", 4, 7.0) + runs("nuts", 1, 6.0)
    frame = to_frame([*records, made_up("yacht"), made_up(method="gpr")])
    text = slump.pages(frame)["slump"]
    rows = table(text)
    assert rows["Bow tie SVI"][:2] == ["8.01 ± 0.01", "**1.00 ± 0.00**"]
    assert rows["4 × Bow tie SVI"][0] == "7.01 ± 0.01"
    assert rows["NUTS"][0] == "**6.01 ± 0.01**"
    assert rows["*4SVBNN, paper*"] == ["7.15 ± 1.50", "3.42 ± 0.20", "0.95 ± 0.06", "–"]
    assert "Gaussian process" not in rows
    changes = table(text, "## What four runs change")
    assert changes["Bow tie SVI"][0] == "**−1.000 [−1.000, −1.000]**"
    assert "NUTS" not in changes
    slump.draw(frame, tmp_path)
    assert figures(tmp_path)["slump"].std() > 0.01


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


# The simulated example


def toy_record(method, seed, depth, **changes):
    return made_up("toy", method, seed, experiment="toy", hidden=[20] * depth, **changes)


def test_toy_has_a_table_for_each_depth_and_figures_of_means():
    records = [
        toy_record("single", seed, depth, rmse=depth + 0.1 * seed, curve=[0.5 * x for x in LEVELS])
        for seed in range(3)
        for depth in toy.DEPTHS
    ]
    records += [toy_record("nuts", 0, 1, status=MISSING, note="no numpyro here")]
    records += [toy_record("backprop", 1, 1, status=FAILED, note="it broke")]
    frame = to_frame(records)
    first, second, fourth = toy.pages(frame)["toy"].split("\n## ")[1:]
    assert table(first)["Bow tie"][0] == "**1.10 ± 0.10**"
    assert table(first)["NUTS"][0] == "missing"
    assert "- NUTS is missing: no numpyro here." in first
    assert table(fourth)["Bow tie"][0] == "**4.10 ± 0.10**"
    assert "NUTS" not in second + fourth
    ax = toy._draw_scores(toy.results_of(frame)).axes[0]
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [1.1, 2.1, 4.1])
    bar = ax.containers[0].lines[2][0].get_segments()[0]
    np.testing.assert_allclose(bar[:, 1], 1.1 + np.array([-1.0, 1.0]) * 0.1 / np.sqrt(3.0))
    ax = toy._draw_coverage(toy.results_of(frame)).axes[1]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 0.5 * np.array(LEVELS))


@pytest.mark.parametrize("column", [0, 1])
def test_slice_goes_along_one_input(column):
    class Model:
        def predict(self, new):
            return new[:, 0] - 10.0 * new[:, 1]

        def predict_interval(self, new, coverage):
            assert coverage == 0.95
            return self.predict(new)[:, None] + np.array([-1.0, 1.0])

    ax = drawing.new_figure(3.0, 3.0).subplots()
    toy._draw_slice(ax, column, Model(), Model())
    lines = {line.get_label(): line for line in ax.lines}
    x, mean = lines["fitted, mean and 95 %"].get_data()
    np.testing.assert_allclose(mean, x if column == 0 else -10.0 * x)
    truth = lines["true function"].get_ydata()
    np.testing.assert_allclose(truth, toy_function(x) if column == 0 else 0.0)


def test_fits_behind_figures_are_made_once(tmp_path):
    for _ in range(2):
        toy.write_fits(tmp_path, lambda _: None, n_jobs=1, fit=TINY, width=3)
        diabetes.write_fits(
            tmp_path, lambda _: None, n_jobs=1, fit=TINY, hidden=(3,), beside=["lasso"]
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
    # Three networks of toy, of which activation needs one, one of diabetes, and one lasso.
    assert len(list((tmp_path / "fits").rglob("output.pkl"))) == 5
    rows = table((tmp_path / "tables" / "toy_pruning.md").read_text())
    assert [(rows[d][0], rows[d][2]) for d in "124"] == [("3", "9"), ("6", "18"), ("12", "36")]
    assert rows["1"][4] == "11, 33"


# Diabetes


def test_diabetes_stands_beside_the_papers():
    records = [
        made_up("diabetes", method, seed, experiment="diabetes", hidden=[20], rmse=rmse + seed)
        for method, rmse in (("single", 50.0), ("pruned", 60.0))
        for seed in range(3)
    ]
    rows = table(diabetes.pages(to_frame(records))["diabetes"])
    assert rows["Bow tie"][:3] == ["VBNN", "**51.0 ± 1.0**", "54.50 ± 7.20"]
    assert rows["Bow tie, pruned"][:3] == ["–", "61.0 ± 1.0", "–"]


def test_slices_hold_the_others_at_their_means():
    X, _ = rows_of("diabetes")
    for name, new in diabetes.slices_of(X).items():
        column = diabetes._column(name)
        others = np.delete(np.arange(10), column)
        np.testing.assert_allclose(new[:, others], np.tile(X[:, others].mean(axis=0), (100, 1)))
        assert np.all(np.diff(new[:, column]) > 0.0)
        assert X[:, column].min() <= new[0, column] < new[-1, column]


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
