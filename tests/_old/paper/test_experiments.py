"""Cases, tables and figures of the experiments, from records that were never run."""

from __future__ import annotations

import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks._old.paper.comparison import critical_difference
from benchmarks._old.paper.experiments import (
    activation,
    all_sets,
    diabetes,
    more_sets,
    slump,
    toy,
    uci,
    uci_lines,
)
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.rank_figure import draw_ranks
from benchmarks._old.paper.records import FAILED, MISSING, to_frame
from benchmarks._old.paper.sets import FOLDER, rows_of
from benchmarks._old.paper.tables import PUBLISHED, Results
from tests._old.paper.made_up import made_up, table

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
    for module in (uci, more_sets, all_sets, slump, toy, diabetes):
        assert module.pages(to_frame([])) == {}


def test_memory_is_shown_where_it_was_recorded():
    old = [made_up("slump", "single", seed) for seed in range(2)]
    new = [made_up("slump", "ensemble", seed, peak_mb=200.0 + seed) for seed in range(2)]
    rows = table(page("uci_scores", old, new), "## Peak memory")
    assert (rows["Bow tie"], rows["Bow tie ensemble"]) == (["–"], ["200 ± 1"])
    widths = table(page("uci_scores", old, new), "## Mean width")
    assert widths["Bow tie"] == ["4.00 ± 0.00"]


def test_the_readme_has_the_own_density_and_says_who_has_fewer_splits():
    shown = [noisy(method, 1.0, nll=2.5) for method in uci_lines.SHOWN]
    shown[-1] = [record for record in shown[-1] if record["seed"] < 2]
    found = uci_lines.lines(to_frame([record for some in shown for record in some]))
    rows = table(found["uci_readme"])
    assert rows["**Bow tie ensemble**"][0].endswith("/ 2.50")
    assert "NUTS (deep trees) (2 splits)" in rows
    assert "NLL of its own density" in found["beside_gpr"]


# More data sets


def further(method, part, n_splits, **changes):
    """Records of one of the further sets."""
    known = more_sets.PARTS[part]
    rows = {"train_rows": known.train_rows, "n_train": known.n_train, "experiment": "more_sets"}
    return [made_up(known.dataset, method, seed, **rows, **changes) for seed in range(n_splits)]


def test_larger_sets_have_fewer_splits_and_methods():
    found = more_sets.cases(range(500, 510))
    count = {
        (dataset, rows): len(
            {c.seed for c in found if (c.dataset, c.train_rows) == (dataset, rows)}
        )
        for dataset, rows in {(c.dataset, c.train_rows) for c in found}
    }
    assert count[("autompg", None)] == count[("airfoil", None)] == count[("diabetes", None)] == 10
    assert (count[("power", None)], count[("kin40k", 5000)], count[("kin40k", None)]) == (5, 5, 2)
    assert {c.dataset for c in found if c.method == "gpr"} == {"diabetes", "autompg", "airfoil"}
    assert {c.train_rows for c in found if (c.dataset, c.method) == ("kin40k", "stochtree")} == {
        5000
    }
    assert len({case.key for case in found}) == len(found)


@pytest.mark.skipif(not os.environ.get(FOLDER), reason=f"{FOLDER} is not set")
@pytest.mark.parametrize("name", more_sets.PARTS)
def test_training_rows_are_those_of_a_split(name):
    part = more_sets.PARTS[name]
    n = len(rows_of(part.dataset)[1])
    assert part.n_train == (part.train_rows or n - math.ceil(0.1 * n))


def test_rows_of_one_table_are_two_sets():
    records = [
        *further("ensemble", "kin40k 5,000", 2, rmse=0.4),
        *further("ensemble", "kin40k", 2, rmse=0.2),
        *further("catboost", "kin40k 5,000", 2, rmse=0.5),
        *further("catboost", "kin40k", 2, rmse=0.1),
    ]
    found = more_sets.pages(to_frame(records))
    rows = table(found["more_sets_scores"], "## RMSE")
    assert rows["method"] == ["kin40k 5,000", "kin40k"]
    assert rows["Bow tie ensemble"] == ["**0.40 ± 0.00**", "0.20 ± 0.00"]
    assert "Average rank over 1 sets" in found["more_sets_ranks"]
    rows = table(found["more_sets_wins"])
    assert rows["CatBoost"][0] == "1 / 0 / 1"


def test_where_we_lose_names_who_wins_and_whether_it_is_chance():
    values = {
        "ensemble": [1.0] * 5,
        "gpr": [0.4, 1.4, 0.9, 0.5, 1.3],
        "nuts": [0.49, 0.5, 0.51],
        "lasso": [2.0] * 5,
        "pruned": [0.1] * 5,
    }
    records = [
        *(made_up("slump", m, seed, rmse=v) for m in values for seed, v in enumerate(values[m])),
        *further("ensemble", "power", 2, rmse=4.0),
        *further("catboost", "power", 2, rmse=4.5, nll=0.5),
    ]
    rows = table(all_sets.pages(to_frame(records))["all_sets_losses"])
    assert rows["slump"][0] == "**NUTS −0.5 (3 splits)**; Gaussian process −0.1"
    assert rows["slump"][1:] == ["none", "none"]
    assert rows["power"][:2] == ["none", "**CatBoost −0.5**"]


def test_ranks_and_seconds_are_drawn_of_methods_that_were_run_on_all_sets(tmp_path):
    records = [
        record
        for method, loss in (("ensemble", 1.0), ("catboost", 2.0), ("lasso", 3.0))
        for record in (
            *noisy(method, loss, nll=loss, crps=loss),
            *further(method, "power", 3, rmse=loss, nll=loss, crps=loss),
        )
    ]
    frame = to_frame([*records, *noisy("nuts", 0.5)])
    figure = draw_ranks(all_sets.results_of(frame, ranked=True), {"rmse": "RMSE", "nll": "NLL"})
    ax = figure.axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["Bow tie ensemble", "CatBoost", "LassoCV"]
    assert ax.get_xlabel() == "average rank over 6 sets"
    ends = np.array([bar.get_segments()[0][:, 0] for bar in ax.collections])
    np.testing.assert_allclose(ends.mean(axis=1), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.ptp(ends, axis=1), critical_difference(3, 6))
    all_sets.draw(frame, tmp_path)
    assert set(figures(tmp_path)) == {"all_sets_ranks", "all_sets_seconds"}
    assert draw_ranks(all_sets.results_of(to_frame(noisy("lasso", 1.0))), {"rmse": "RMSE"}) is None


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
