"""Tables and figures of the UCI sets from made-up records."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bowtienet.experiments import uci
from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.paper import SETS, published
from bowtienet.experiments.records import FAILED, MISSING, Record
from bowtienet.experiments.tables import collect
from bowtienet.experiments.uci_figures import far_end
from tests.experiments.made_up import made_up

TABLES = [
    "uci_summary",
    "uci_scores",
    "uci_paper",
    "uci_nuts",
    "uci_paired",
    "uci_wins",
    "uci_ranks",
]
FIGURES = ["uci_scores", "uci_seconds", "uci_coverage"]


def like_paper(name: str, method: str, shift: float = 0.0, n_splits: int = 3) -> list[Record]:
    """Records whose means are the paper's numbers of a method, RMSE and NLL shifted."""
    records = []
    for dataset in SETS:
        scores = {s: published(name, s, dataset) for s in ("rmse", "gaussian_nll")}
        means = {s: cell.mean + shift for s, cell in scores.items() if cell is not None}
        records += [made_up(dataset, method, seed, **means) for seed in range(n_splits)]
    return records


def noisy(method: str, level: float, n_splits: int = 4, **changes: Any) -> list[Record]:
    rng = np.random.default_rng(len(method))
    return [
        made_up(dataset, method, seed, rmse=level + 0.01 * rng.normal(), **changes)
        for dataset in SETS
        for seed in range(n_splits)
    ]


def table(text: str, heading: str = "") -> dict[str, list[str]]:
    """Rows of the first table after a heading, by their first cell."""
    lines = text[text.index(heading) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows: dict[str, list[str]] = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        rows[first] = rest
    return rows


def test_summary_has_both_scores_and_says_what_is_not_complete() -> None:
    records = [
        made_up("slump", "single", seed, rmse=1.0 + seed, gaussian_nll=2.0) for seed in (0, 1)
    ]
    records += [made_up("slump", "nuts", 0, rmse=4.0, gaussian_nll=0.5)]
    records += [made_up("slump", "lasso", seed, status=FAILED) for seed in (0, 1)]
    text = uci.pages(records)["uci_summary"]
    rows = table(text)
    assert rows["Bow tie"][0] == "1.50 / 2.00"
    assert rows["LassoCV"][0] == "failed (2 of 2)"
    assert "NUTS" not in rows
    assert "not here: NUTS." in text


def test_no_records_make_no_tables() -> None:
    assert uci.pages([]) == {}


def test_cases_are_all_methods_on_all_splits() -> None:
    found = uci.cases()
    assert len(found) == len({case.key for case in found}) == 5 * len(METHODS) * 10
    assert {case.dataset for case in found} == {"slump", "yacht", "boston", "energy", "concrete"}
    assert {case.seed for case in found} == set(range(10))
    assert {(case.hidden, case.members, case.experiment) for case in found} == {((50,), 1, "uci")}


def test_cases_of_some() -> None:
    found = uci.cases(splits=2, methods=["nuts"])
    assert [(case.method, case.seed) for case in found[:2]] == [("nuts", 0), ("nuts", 1)]
    assert len(found) == 10


def test_equal_to_the_paper_is_met_but_not_better() -> None:
    records = like_paper("VBNN", "single") + like_paper("4VBNN", "ensemble")
    results = collect(records, "uci")
    assert [verdict.met for verdict in uci.judge_single(results)] == [True] * 15
    assert [verdict.met for verdict in uci.judge_ensemble(results)] == [False] * 10
    text = uci.paper_page(results)
    assert "**15 of 15 met.**" in text
    assert "**0 of 10 better.**" in text


def test_worse_and_better_than_the_paper() -> None:
    records = like_paper("VBNN", "single", 0.02) + like_paper("4VBNN", "ensemble", -0.02)
    results = collect(records, "uci")
    assert uci.count_line(uci.judge_single(results), "met") == "**5 of 15 met.**"
    assert uci.count_line(uci.judge_ensemble(results), "better") == "**10 of 10 better.**"


@pytest.mark.parametrize(
    ("dataset", "coverage", "met"),
    [
        ("boston", 0.92, True),  # 0.03 away
        ("boston", 0.919, False),
        ("boston", 0.98, True),
        ("boston", 0.981, False),  # the paper's 0.95 is exact
        ("slump", 0.915, False),  # the paper's 0.92 is nearer
        ("slump", 0.98, True),
    ],
)
def test_coverage_is_near_or_nearer(dataset: str, coverage: float, met: bool) -> None:
    results = collect([made_up(dataset, "single", gaussian_coverage=coverage)], "uci")
    found = {(v.score, v.dataset): v.met for v in uci.judge_single(results)}
    assert found["gaussian_coverage", dataset] is met


def test_nearer_than_a_paper_that_is_far() -> None:
    """4VBNN has 0.99 on yacht: its distance of 0.04 leaves room that VBNN never leaves."""
    assert uci._covers(0.985, 0.99)
    assert not uci._covers(0.99, 0.99)


def test_failed_is_missed_and_absent_is_not_run() -> None:
    records = like_paper("VBNN", "single")
    records = [
        replace(r, status=FAILED, scores={}) if r.dataset == "yacht" and r.seed == 1 else r
        for r in records
        if r.dataset != "slump"
    ]
    verdicts = uci.judge_single(collect(records, "uci"))
    met = {(v.score, v.dataset): v.met for v in verdicts}
    assert met["rmse", "slump"] is None
    assert met["rmse", "yacht"] is False
    assert uci.count_line(verdicts, "met") == "**9 of 15 met; 3 not run.**"


def test_scores_page_has_ours_bold_and_the_papers_rows() -> None:
    text = uci.scores_page(collect(noisy("single", 2.0) + noisy("nuts", 1.0), "uci"))
    rows = table(text, "## RMSE")
    assert rows["NUTS"][0].startswith("**1.0")
    assert not rows["Bow tie"][0].startswith("**")
    assert rows["*HMC, paper*"] == [
        "7.00 ± 1.24", "0.56 ± 0.13", "2.42 ± 0.47", "0.30 ± 0.07", "4.01 ± 0.78",
    ]  # fmt: skip
    assert "*LassoCV, paper*" not in rows
    assert table(text, "## CPU seconds")["NUTS"] == ["2.0"] * 5
    assert "*HMC, paper*" not in table(text, "## CRPS")


def test_nuts_page_differences_and_ratio() -> None:
    records = noisy("single", 2.0, seconds=4.0) + noisy("nuts", 1.0, seconds=120.0)
    text = uci.nuts_page(collect(records, "uci"))
    lines = [line for line in text.splitlines() if line.startswith("| slump | Bow tie |")]
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[2].startswith(("**+1.0", "**+0.99"))
    assert cells[3] == "0.000 [0.000, 0.000]"
    assert cells[5:] == ["4.0", "120", "30"]


def test_nuts_page_has_a_table_for_deep_trees_if_they_were_run() -> None:
    records = noisy("single", 2.0) + noisy("nuts", 1.0)
    assert "deep trees" not in uci.nuts_page(collect(records, "uci"))
    text = uci.nuts_page(collect(records + noisy("nuts_deep", 5.0), "uci"))
    lines = text[text.index("## NUTS (deep trees)") :].splitlines()
    (line,) = [line for line in lines if line.startswith("| slump | Bow tie |")]
    assert line.split("|")[3].strip().startswith(("**−3.0", "**−2.99"))


def test_nuts_page_without_nuts() -> None:
    text = uci.nuts_page(collect(noisy("single", 2.0), "uci"))
    assert "| slump | Bow tie | – | – | – | 2.0 | – | – |" in text


def test_paired_page_has_each_method_minus_ours() -> None:
    records = noisy("single", 2.0) + noisy("nuts", 1.0) + noisy("ensemble", 1.5)
    text = uci.paired_page(collect(records, "uci"))
    assert table(text, "## RMSE: minus Bow tie ensemble")["NUTS"][0].startswith(
        ("**−0.4", "**−0.5")
    )
    rows = table(text, "## RMSE: minus Bow tie\n")
    assert set(rows) == {"method", "---", "Bow tie ensemble", "NUTS"}


def test_wins_page_counts_sets() -> None:
    worse = noisy("nuts", 3.0)
    worse = [r if r.dataset != "yacht" else made_up("yacht", "nuts", r.seed) for r in worse]
    ours = noisy("single", 2.0)
    text = uci.wins_page(collect(ours + worse, "uci"))
    assert table(text, "## Bow tie\n")["NUTS"] == ["4 / 0 / 1", *["0 / 5 / 0"] * 3]
    few = [record for record in worse if record.dataset != "boston"]
    rows = table(uci.wins_page(collect(ours + few, "uci")), "## Bow tie\n")
    assert rows["NUTS"][0] == "3 / 0 / 1 (4 of 5 sets)"
    assert table(text, "## Bow tie ensemble")["NUTS"] == ["–"] * 4


def test_ranks_page() -> None:
    records = noisy("single", 2.0) + noisy("nuts", 1.0) + noisy("lasso", 3.0)
    partial = [r for r in noisy("gpr", 0.5) if r.dataset != "slump" or r.seed > 0]
    text = uci.ranks_page(collect(records + partial, "uci"))
    rows = table(text)
    assert [rows[name][:2] for name in ("NUTS", "Bow tie", "LassoCV")] == [
        ["1.0", "2.0"], ["2.0", "2.0"], ["3.0", "2.0"],
    ]  # fmt: skip
    assert rows["*p of Friedman's test*"][:2] == ["0.0067", "1"]  # χ² = 10: exp(-5)
    assert "Gaussian process" not in rows
    assert "not run on all splits: Gaussian process" in text
    assert "1.5 ranks apart" in text  # 2.343 √(12 / 30)


def test_ranks_of_one_method() -> None:
    assert "Fewer than two methods" in uci.ranks_page(collect(noisy("single", 1.0), "uci"))


def test_write_makes_every_file(tmp_path: Path) -> None:
    told: list[str] = []
    records = noisy("single", 2.0) + noisy("ensemble", 1.5) + noisy("nuts", 1.0, seconds=99.0)
    records = [record for record in records if record.dataset in SETS[:2]]
    records += [made_up(experiment="toy", dataset="toy", method="gpr")]
    paths = uci.write(records, tmp_path, told.append)
    tables = [tmp_path / "tables" / f"{name}.md" for name in TABLES]
    assert paths == tables + [tmp_path / "figures" / f"{name}.png" for name in FIGURES]
    assert all(path.stat().st_size > 0 for path in paths)
    assert "Gaussian process" not in tables[0].read_text(encoding="utf-8")
    assert told


def test_write_copes_with_what_is_absent(tmp_path: Path) -> None:
    """One split, a failure, a library that is not there, an infinite score, a set without ours."""
    records = [
        made_up("slump", "single", nll=math.inf, gaussian_nll=math.inf),
        made_up("slump", "nuts", status=MISSING, note="NUTS needs numpyro.", n_train=0, n_test=0),
        made_up("yacht", "horseshoe", status=FAILED, note="ValueError: no"),
        made_up("yacht", "backprop"),
    ]
    paths = uci.write(records, tmp_path, lambda text: None)
    names = {path.stem for path in paths}
    assert names == {*TABLES, "uci_scores", "uci_coverage"}
    text = (tmp_path / "tables" / "uci_scores.md").read_text(encoding="utf-8")
    assert "- NUTS needs numpyro." in text
    assert "- Horseshoe VI failed (yacht, split 0): ValueError: no." in text
    assert table(text, "## RMSE")["NUTS"] == ["missing", "–"]


def test_write_without_a_single_success(tmp_path: Path) -> None:
    record = made_up("slump", "nuts", status=MISSING, note="NUTS needs numpyro.")
    assert {path.name for path in uci.write([record], tmp_path, lambda text: None)} == {
        "uci_scores.png",
        *(f"{name}.md" for name in TABLES),
    }


def test_write_without_records(tmp_path: Path) -> None:
    told: list[str] = []
    assert uci.write([], tmp_path, told.append) == []
    assert told == ["uci: there are no records yet"]


def test_far_end_by_hand() -> None:
    assert far_end(np.array([1.0, 2.0, 3.0, math.nan, math.inf])) == 4.5
