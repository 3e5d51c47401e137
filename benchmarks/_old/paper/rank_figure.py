"""Average ranks of methods over data sets with critical differences (Demšar, 2006).

A bar reaches half the critical difference of Nemenyi's test to both sides of a rank: methods whose
bars have no rank in common differ by more than chance.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from benchmarks._old.paper.comparison import average_ranks, critical_difference
from benchmarks._old.paper.drawing import BLUE, INK, new_figure, tidy
from benchmarks._old.paper.score_pages import OURS, mean_losses, ranked_methods
from benchmarks._old.paper.tables import Results, label_of


def draw_ranks(results: Results, scores: dict[str, str]) -> Figure | None:
    """A panel for each score, the best method on top; None of fewer than two methods."""
    methods, _ = ranked_methods(results)
    if len(methods) < 2:
        return None
    half = 0.5 * critical_difference(len(methods), len(results.sets))
    figure = new_figure(4.6 * len(scores), 1.3 + 0.28 * len(methods))
    for ax, (score, name) in zip(figure.subplots(1, len(scores)), scores.items(), strict=True):
        ranks = average_ranks(mean_losses(results, methods, score)).sort_values(kind="stable")
        for place, (method, rank) in enumerate(ranks.items()):
            color = BLUE if method in OURS else INK
            ax.errorbar(rank, place, xerr=half, fmt="o", ms=5.0, color=color, capsize=2.5, lw=1.1)
        ax.axvline(ranks.iloc[0] + half, color=INK, lw=0.6, linestyle=":")
        ax.set_yticks(np.arange(len(ranks)), [label_of(m) for m in ranks.index], fontsize=9.5)
        ax.set_ylim(len(ranks) - 0.4, -0.6)
        ax.set_xlabel(f"average rank over {len(results.sets)} sets", fontsize=9.0)
        ax.grid(axis="x", color="#EEEEEE", lw=0.6)
        ax.set_axisbelow(True)
        tidy(ax, name)
    return figure
