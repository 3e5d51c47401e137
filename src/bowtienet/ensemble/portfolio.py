"""The fixed list of recipes: views x targets plain or warped x penalties, and the linear one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bowtienet.outcomes import Gaussian, Outcome, StudentT

PENALTIES = (0.03, 10.0, 1.0)
"""λ of a weak, a strong and a shrinking recipe for numbers: weak for little noise, strong for
much, the last where columns do not matter (docs/measurements/portfolio.md)."""
EFFORTS = {"fast": 0, "balanced": 2, "best": 4}
"""Most rounds of further training."""
LINEAR = "linear"


def widths(n_rows: int, effort: str) -> tuple[int, ...]:
    """Hidden layers of all networks, if the user does not say.

    With fewer than a thousand rows a second layer takes twice the time for little gain; with more
    it may halve the error of smooth functions (docs/measurements/portfolio.md).
    """
    if effort == "best":
        return (64, 64) if n_rows < 5_000 else (128, 64)
    if n_rows < 1_000:
        return (50,)
    return (50, 50) if n_rows < 5_000 else (64, 64)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the networks of all folds have in common."""

    view: str
    """Of `tables.views`, or "linear" for the one without hidden layer."""
    outcome: Outcome
    """Whose loss is lowered."""
    is_warped: bool = False
    """Whether targets are Yeo-Johnson transformed."""
    penalty: float = 0.0
    shrinks: bool = False
    """Whether columns have local scales."""


def portfolio(
    views: Sequence[str], n_warps: int, outcome: Outcome, *, shrinks: bool, outliers: bool = False
) -> tuple[Recipe, ...]:
    """Every view x warp x penalty, and the linear recipe.

    With outliers among the targets weak recipes have a twin that hardly follows them.
    """
    # The loss of classes and counts has no noise variance to grow: stronger ones.
    *plain, shrinking = PENALTIES if outcome.has_noise else (0.1, 3.0, 30.0, 10.0)
    recipes = []
    for view in views:
        for is_warped in (False, True)[:n_warps]:
            recipe = Recipe(view=view, outcome=outcome, is_warped=is_warped)
            # A ridge penalty is the same in all directions: those of wide tables are enough.
            if view != "standard" or "principal" not in views:
                recipes += [replace(recipe, penalty=each) for each in plain]
            if shrinks and view != "principal":
                recipes.append(replace(recipe, penalty=shrinking, shrinks=True))
        if outliers and isinstance(outcome, Gaussian):
            recipes.append(Recipe(view=view, outcome=StudentT(), penalty=plain[0]))
    return (*recipes, Recipe(view=LINEAR, outcome=outcome))
