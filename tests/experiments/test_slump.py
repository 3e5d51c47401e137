"""Single runs against ensembles of four, from made-up records."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bowtienet.experiments import slump, uci
from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.records import FAILED, Record
from tests.experiments.made_up import made_up


def runs(method: str, members: int, rmse: float, **scores: float) -> list[Record]:
    experiment = "uci" if members == 1 else "slump"
    settings = {"experiment": experiment, "members": members, "method": method}
    return [made_up(seed=seed, rmse=rmse + 0.01 * seed, **settings, **scores) for seed in range(3)]


def test_cases_pair_single_runs_with_fours() -> None:
    found = slump.cases()
    assert len({case.key for case in found}) == len(found)
    fours = {case.method for case in found if case.members == 4}
    assert fours >= {"mean_field", "backprop", "horseshoe", "gaussian", "single", "svi"}
    ones = {(case.method, case.seed) for case in found if case.members == 1}
    assert {(case.method, case.seed) for case in found if case.members == 4} <= ones
    assert {case.members for case in found} == {1, 4}
    assert {(case.dataset, case.hidden) for case in found} == {("slump", (50,))}
    assert all(METHODS[method].stochastic for method in fours)


def test_single_runs_are_those_of_the_uci_experiment() -> None:
    ones = {case.key for case in slump.cases() if case.members == 1}
    assert ones <= {case.key for case in uci.cases()}
    records = [made_up("yacht"), made_up(), made_up(method="gpr"), *runs("single", 4, 1.0)]
    assert set(slump.results_of(records)) == {("slump", "single", 1), ("slump", "single", 4)}


def test_cases_of_some_methods() -> None:
    found = slump.cases(splits=2, methods=["svi", "nuts", "ensemble"])
    assert {(case.method, case.members) for case in found} == {("svi", 1), ("svi", 4), ("nuts", 1)}
    assert len(found) == 6


@pytest.mark.parametrize(
    ("single", "ensemble", "score", "change"),
    [
        (2.0, 1.0, "rmse", -0.5),
        (2.0, 2.5, "rmse", 0.25),
        (-2.0, -3.0, "gaussian_nll", -0.5),
        (1.0, 0.95, "gaussian_coverage", -0.05),
        (0.94, 0.99, "gaussian_coverage", 0.03),
    ],
)
def test_relative_change(single: float, ensemble: float, score: str, change: float) -> None:
    assert slump.relative_change(single, ensemble, score) == pytest.approx(change)


def test_page_shows_what_four_runs_change() -> None:
    records = runs("svi", 1, 8.0) + runs("svi", 4, 7.0) + runs("nuts", 1, 6.0)
    text = slump.slump_page(slump.results_of(records))
    assert "| Bow tie SVI | 8.01 ± 0.01 | **1.00 ± 0.00** |" in text
    assert "| 4 × Bow tie SVI | 7.01 ± 0.01 |" in text
    assert "| NUTS | **6.01 ± 0.01** |" in text
    assert "| *4SVBNN, paper* | 7.15 ± 1.50 | 3.42 ± 0.20 | 0.95 ± 0.06 | – |" in text
    changes = text[text.index("## What four runs change") :]
    assert "| Bow tie SVI | **−1.000 [−1.000, −1.000]** | 0.000 [0.000, 0.000] |" in changes
    assert "NUTS" not in changes


def test_figure_hatches_what_improved() -> None:
    records = runs("svi", 1, 8.0) + runs("svi", 4, 6.0)
    records += runs("gaussian", 1, 4.0) + runs("gaussian", 4, 5.0)
    figure = slump.draw_slump(slump.results_of(records))
    changes = [bar for bar in figure.axes[3].patches if math.isfinite(bar.get_height())]
    heights = sorted((bar.get_x(), round(bar.get_height(), 2), bar.get_hatch()) for bar in changes)
    assert [(height, hatch) for _, height, hatch in heights] == [(0.25, "///"), (0.25, None)]


def test_figure_scales_to_the_best() -> None:
    records = runs("svi", 1, 8.0) + runs("svi", 4, 4.0)
    bars = slump.draw_slump(slump.results_of(records)).axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([8.01 / 4.01, 1.0])
    assert [bar.get_hatch() for bar in bars] == [None, "///"]


def test_figure_does_not_scale_by_a_best_below_zero() -> None:
    records = runs("svi", 1, 1.0, gaussian_nll=0.5) + runs("svi", 4, 1.0, gaussian_nll=-0.5)
    bars = slump.draw_slump(slump.results_of(records)).axes[1].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([0.5, -0.5])


def test_write(tmp_path: Path) -> None:
    records = runs("svi", 1, 8.0) + runs("svi", 4, 7.0)
    paths = slump.write(records, tmp_path, lambda text: None)
    assert paths == [tmp_path / "tables" / "slump.md", tmp_path / "figures" / "slump.png"]
    assert all(path.stat().st_size > 0 for path in paths)


def test_write_with_failures_only(tmp_path: Path) -> None:
    record = made_up(experiment="slump", method="svi", status=FAILED, note="ValueError: no")
    (table, _) = slump.write([record], tmp_path, lambda text: None)
    text = table.read_text(encoding="utf-8")
    assert "| Bow tie SVI | failed (1 of 1) |" in text
    assert "- Bow tie SVI failed (slump, split 0): ValueError: no." in text


def test_write_without_records(tmp_path: Path) -> None:
    told: list[str] = []
    assert slump.write([made_up("yacht")], tmp_path, told.append) == []
    assert told == ["slump: there are no records yet"]
