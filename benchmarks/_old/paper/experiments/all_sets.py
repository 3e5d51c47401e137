"""The UCI sets and the further ones together: where we lose, ranks, and accuracy against time.

All of it is made of records of these two experiments; ranks leave out the whole of kin40k, of which
5,000 rows are ranked already.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks._old.paper import drawing
from benchmarks._old.paper.experiments import more_sets, uci
from benchmarks._old.paper.experiments.uci_figures import draw_seconds, is_complete
from benchmarks._old.paper.rank_figure import draw_ranks
from benchmarks._old.paper.score_pages import JUDGED, OURS, OWN_NLL, losses_page, ranks_page
from benchmarks._old.paper.tables import Results

NAME = "all_sets"
SETS = (*uci.SETS, *more_sets.PARTS)
_WHOLE = "kin40k"


def results_of(frame: pd.DataFrame, *, ranked: bool = False) -> Results:
    """Records of both experiments."""
    found = pd.concat([frame[frame["experiment"] == uci.EXPERIMENT], more_sets.named(frame)])
    return Results(found[found["dataset"] != _WHOLE] if ranked else found, SETS)


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """Tables that records alone can make, by the names of their files."""
    if (results := results_of(frame)).frame.empty:
        return {}
    ranked = results_of(frame, ranked=True)
    return {
        f"{NAME}_losses": losses_page(results, "All data sets: where we lose"),
        f"{NAME}_ranks": ranks_page(ranked, "All data sets: ranks", JUDGED, "coverage"),
    }


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Ranks, and accuracy against time, of the methods that were run on all splits."""
    results = results_of(frame, ranked=True)
    if (figure := draw_ranks(results, JUDGED)) is not None:
        drawing.save_figure(figure, folder, f"{NAME}_ranks")
    complete = [m for m in results.methods if is_complete(results, m, OWN_NLL)]
    if OURS[0] in complete:
        figure = draw_seconds(results, complete, OURS[0], OWN_NLL)
        drawing.save_figure(figure, folder, f"{NAME}_seconds")
