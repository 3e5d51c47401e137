"""Recipes by the densities that ordinary networks give to held-out rows.

What a network should see of the rows (columns as they are, in bins or as principal components;
targets as they are or warped), how strong its penalty and how long its training should be differs
from table to table. Many ordinary networks, trained side by side in little time, tell: a recipe has
a network for each fold of the rows, fitted without it, and is judged by the log density of the
targets there, in the user's unit and with the noise that they ask for (`fold_networks.score`).
Views are screened first, then penalties and numbers of small networks, on a few folds and steps;
the best go on in all folds for as long as held-out rows gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bowtienet._old.data.rows import Rows
from bowtienet._old.distributions.yeo_johnson import Warp, fit_warp
from bowtienet._old.ensemble.fold_networks import (
    Candidate,
    Run,
    SeenRows,
    advance,
    density,
    mean_inputs,
    on_host,
    score,
)
from bowtienet._old.ensemble.settings import (
    EFFORTS,
    Recipe,
    Settings,
    gate_temperature,
    starts_from_networks,
)
from bowtienet._old.model.outcomes import Classes, Gaussian
from bowtienet._old.prediction.calibration import is_discrete
from bowtienet._old.representation.pieces import N_BINS, fit_pieces
from bowtienet._old.representation.principal import fit_principal
from bowtienet._old.representation.representation import View

SCREENED_ROWS = 300
"""Folds are held out in turn until this many rows have been, to screen recipes."""
FEWEST_UNITS = 3
"""Units that a small network has in each layer, at least."""
SCREEN_STEPS = (40, 60)
"""Steps of L-BFGS after which views, and then recipes, are compared."""
MIDDLE_PENALTY = 0.3
CLOSE = 0.03
"""Log density per row by which a view may be behind and still be tried."""
COMPANION = 0.2
"""Log density per row by which a recipe of other inputs may be behind and still join the best."""
WARPED_ROWS = 500
"""Up to this, a recipe with a warp joins the best if that has none: it knows more of the noise."""
FAR = 0.05
"""Lead in log density per row by which a large network asks for a larger one."""
WORTHWHILE = 0.01
"""Gain in log density per row for which the next length is worth its time."""
LEAST_BEND = 0.05
"""Distance of all exponents from 1 below which a warp is none."""
MANY_COLUMNS = 128
"""Of more columns networks see principal components."""
WIDE = 0.4
"""Inputs for each row above which penalties are ten times as strong."""
STRONGER = 10.0
"""How much stronger one more penalty is for classes and counts, whose rows tell less."""
LINEAR = 0.1
"""Log density per row by which a linear recipe may be behind and still join the others."""
MANY_ROWS = 3_000
"""Above this a table is large."""


def possible_views(rows: Rows, settings: Settings) -> tuple[View, ...]:
    """The views of standardised rows that the settings allow."""
    host = on_host(rows)
    n_rows, n_columns = host.inputs.shape
    effort = EFFORTS[settings.effort]
    most = effort.components if n_rows <= MANY_ROWS else effort.few_components
    features = settings.features
    columns: list[View] = []
    if features == "principal" or (features == "auto" and n_columns > MANY_COLUMNS):
        columns = [View(principal=fit_principal(host.inputs, host.weights, effort.components))]
    elif features == "standard":
        columns = [View()]
    else:
        n_bins = N_BINS if isinstance(features, str) else features
        found = fit_pieces(host.inputs, host.weights, n_bins, most)
        pieces = View(pieces=found)
        columns = [View(), pieces] if features == "auto" and found is not None else [pieces]
    warps: list[Warp | None] = [None]
    if settings.target_transform != "none" and isinstance(settings.outcome, Gaussian):
        warp = fit_warp(host.targets, host.weights)
        if settings.target_transform == "yeo-johnson":
            warps = [warp]
        elif np.max(np.abs(warp.exponent - 1.0)) > LEAST_BEND:
            warps = [None, warp]
    return tuple(replace(view, warp=warp) for view in columns for warp in warps)


def possible_recipes(
    seen: Sequence[SeenRows], settings: Settings, rng: np.random.Generator
) -> list[Recipe]:
    """All recipes to compare, each with a seed."""
    effort = EFFORTS[settings.effort]
    parts = possible_parts(settings.hidden_layer_sizes, effort.parts, _fewest_units(settings))
    adapts = effort.adapts and bool(settings.hidden_layer_sizes)
    if not starts_from_networks(settings) or settings.weighting != "stacking":
        # These only tell what to see; or one network goes on to convergence, and its prior shrinks
        # what is not needed.
        parts, adapts = [1], False
    return [
        Recipe(
            gate_temperature=gate_temperature(settings),
            init_penalty=penalty,
            start_iterations=0,
            parts=count,
            adaptive=adaptive,
            view=view,
            seed=int(rng.integers(2**32)),
        )
        for view, own in enumerate(seen)
        for count in parts
        for adaptive in ((False, True) if adapts else (False,))
        for penalty in _penalties(own.rows, settings)
    ] + _linear_recipes(seen, settings, rng)


def _linear_recipes(
    seen: Sequence[SeenRows], settings: Settings, rng: np.random.Generator
) -> list[Recipe]:
    """Linear functions of each view, for classes and counts: often a few rows support no more."""
    stacked = starts_from_networks(settings) and settings.weighting == "stacking"
    if not stacked or not is_discrete(settings.outcome) or not settings.hidden_layer_sizes:
        return []
    return [
        Recipe(
            gate_temperature=gate_temperature(settings),
            init_penalty=penalty,
            start_iterations=0,
            linear=True,
            view=view,
            seed=int(rng.integers(2**32)),
        )
        for view, own in enumerate(seen)
        for penalty in _penalties(own.rows, settings)
    ]


def _penalties(rows: Rows, settings: Settings) -> tuple[float, ...]:
    """Penalties to compare: stronger ones where there are many inputs for each row."""
    if settings.init_penalty != "auto":
        return (float(settings.init_penalty),)
    n_rows, n_inputs = rows.inputs.shape
    factor = 10.0 if n_inputs > WIDE * n_rows else 1.0
    penalties = EFFORTS[settings.effort].penalties
    if is_discrete(settings.outcome):
        penalties = (*penalties, STRONGER * max(penalties))
    return tuple(factor * penalty for penalty in penalties)


def choose_recipes(
    seen: Sequence[SeenRows],
    folds: Sequence[slice],
    recipes: Sequence[Recipe],
    settings: Settings,
    run: Run,
    say: Callable[[int, int, float], None],
    *,
    longest: int | None = None,
) -> list[Candidate]:
    """The recipes that predict held-out rows best, the best first, with networks of all folds.

    Parameters
    ----------
    seen : sequence of SeenRows
        The rows, in random order, through each view.
    folds : sequence of slice
        Parts of the rows, each held out once.
    recipes : sequence of Recipe
        What to compare.
    settings : Settings
        With the widths of the networks and the effort.
    run : callable
        Trains groups of networks, perhaps on several cores.
    say : callable
        Is told before each round how many networks take how many steps, and of how many inputs
        they are on average.
    longest : int, optional
        Most steps.
    """
    effort = EFFORTS[settings.effort]

    def reach(some: Sequence[Candidate], own: Sequence[slice], length: int) -> list[Candidate]:
        say(len(some) * len(own), length, mean_inputs(some, seen))
        return advance(some, seen, own, length, settings, run)

    lines = [Candidate(recipe=recipe) for recipe in recipes if recipe.linear]
    recipes = [recipe for recipe in recipes if not recipe.linear]
    alive = [Candidate(recipe=recipe) for recipe in recipes]
    few = _few_folds(folds)
    if effort.screens and len(seen) > 1:
        alive = _screened_views(alive, seen, lambda some: reach(some, few, SCREEN_STEPS[0]))
    if effort.screens and len(alive) > effort.kept[0]:
        most = max(one.recipe.parts for one in alive)
        tried = [one for one in alive if one.recipe.parts == most]
        ordered = _companion_second(_best(reach(tried, few, SCREEN_STEPS[1]), len(tried)), seen)
        alive = _with_twin(ordered, recipes)[: effort.kept[0]]
    found: list[Candidate] = []
    highest = np.full(2, -np.inf)
    for length, n_kept in zip(effort.lengths, (*effort.kept[1:], 0), strict=True):
        if longest is not None and length > longest:
            break
        reached = _best(reach(alive, folds, length), len(alive))
        found += reached
        # Of warps the density may still rise where the means do not, or the other way round.
        own = np.array([score(reached[0]), max(density(one) for one in reached)])
        gain, highest = np.max(own - highest), np.maximum(own, highest)
        alive = _diverse(reached, seen)[:n_kept] if gain >= WORTHWHILE else []
        if not alive:
            break
        if _wants_larger(reached):
            alive = _with_twin(alive, recipes)[:n_kept]
        elif gain < np.inf:
            alive = _with_weaker_penalty(alive, recipes)[:n_kept]
    chosen = _companion_second(_distinct(_best(found, len(found))), seen)[: effort.n_recipes]
    if effort.n_recipes > 1 and len(seen[0].log_slopes) <= WARPED_ROWS:
        twins = _warped_twins(chosen, recipes, seen)
        reached = reach(twins, folds, chosen[0].recipe.start_iterations) if twins else []
        chosen += [one for one in reached if score(one) > score(chosen[0]) - COMPANION]
    if lines:
        line = _best(reach(lines, folds, effort.lengths[0]), 1)[0]
        ahead = score(line) > score(chosen[0])
        if score(line) > score(chosen[0]) - LINEAR:
            chosen = [line, *chosen] if ahead else [*chosen, line]
    return chosen


def _fewest_units(settings: Settings) -> int:
    """Units that a small network has in each layer, at least: more classes ask for more."""
    outcome = settings.outcome
    return 2 * outcome.n_classes if isinstance(outcome, Classes) else FEWEST_UNITS


def possible_parts(
    hidden: Sequence[int], wanted: Sequence[int], fewest: int = FEWEST_UNITS
) -> list[int]:
    """Numbers of small networks to compare: those that share out all units of all layers."""
    found = {
        max(
            parts
            for parts in range(1, most + 1)
            if all(
                width % parts == 0 and (parts == 1 or width >= fewest * parts) for width in hidden
            )
        )
        for most in wanted
    }
    return sorted(found) if hidden else [1]


def _few_folds(folds: Sequence[slice]) -> list[slice]:
    """The first folds, two at least, with rows enough to screen by."""
    size = folds[0].stop - folds[0].start
    return list(folds[: max(2, -(-SCREENED_ROWS // size))])


def _screened_views(
    alive: Sequence[Candidate],
    seen: Sequence[SeenRows],
    reach: Callable[[Sequence[Candidate]], list[Candidate]],
) -> list[Candidate]:
    """The recipes of the views whose recipe of middle penalty predicts best."""

    def middle(view: int) -> Candidate:
        own = [one for one in alive if one.recipe.view == view]
        distance = [
            (-one.recipe.parts, abs(np.log((one.recipe.init_penalty + 1e-3) / MIDDLE_PENALTY)))
            for one in own
        ]
        return own[min(range(len(own)), key=distance.__getitem__)]

    views = sorted({one.recipe.view for one in alive})
    tried = _best(reach([middle(view) for view in views]), len(views))
    best, *others = _companion_second(tried, seen)
    chosen = {best.recipe.view}
    for second in others[:1]:
        behind = COMPANION if _sees_other_inputs(second, best, seen) else CLOSE
        if score(second) > score(best) - behind:
            chosen.add(second.recipe.view)
    return [one for one in alive if one.recipe.view in chosen]


def _best(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    scores = [-score(candidate) for candidate in candidates]
    return [candidates[place] for place in np.argsort(scores, kind="stable")[:count]]


def _with_twin(ordered: Sequence[Candidate], recipes: Sequence[Recipe]) -> list[Candidate]:
    """Candidates, after the first of which stands its like with the next fewer parts.

    Several small networks learn faster than a large one, so a screen would always take them.
    """
    best = ordered[0].recipe
    fewer = [recipe.parts for recipe in recipes if recipe.parts < best.parts]
    twins = [
        Candidate(recipe=recipe)
        for recipe in recipes
        if recipe.parts == max(fewer, default=0)
        and (recipe.view, recipe.adaptive, recipe.init_penalty)
        == (best.view, best.adaptive, best.init_penalty)
    ]
    return [ordered[0], *twins, *ordered[1:]]


def _warped_twins(
    chosen: Sequence[Candidate], recipes: Sequence[Recipe], seen: Sequence[SeenRows]
) -> list[Candidate]:
    """The best recipe with a warp of the targets, if it has none and this is not chosen yet."""
    best = chosen[0].recipe
    if seen[best.view].warp is not None:
        return []
    known = {one.recipe.view for one in chosen}
    return [
        Candidate(recipe=one)
        for one in recipes
        if _own(replace(one, view=best.view)) == _own(best)
        and one.view not in known
        and seen[one.view].warp is not None
        and np.array_equal(seen[one.view].groups, seen[best.view].groups)
    ]


def _with_weaker_penalty(
    ordered: Sequence[Candidate], recipes: Sequence[Recipe]
) -> list[Candidate]:
    """Candidates, after the first of which stand its networks with the next weaker penalty.

    Strong penalties learn faster, and some tables want weak ones in the end.
    """
    best = ordered[0].recipe
    alike = [
        one for one in recipes if replace(_own(one), init_penalty=best.init_penalty) == _own(best)
    ]
    weaker = [one.init_penalty for one in alike if one.init_penalty < best.init_penalty]
    tried = {_own(one.recipe) for one in ordered}
    relaxed = replace(best, init_penalty=max(weaker, default=best.init_penalty))
    if _own(relaxed) in tried:
        return list(ordered)
    return [ordered[0], replace(ordered[0], recipe=relaxed), *ordered[1:]]


def _own(recipe: Recipe) -> Recipe:
    """What tells a recipe from others, whatever its seed and length."""
    return replace(recipe, start_iterations=0, seed=0)


def _wants_larger(candidates: Sequence[Candidate]) -> bool:
    """Whether the best of these is far ahead of all that are of more and smaller networks."""
    ordered = _best(candidates, len(candidates))
    others = [score(one) for one in ordered if one.recipe.parts > ordered[0].recipe.parts]
    return bool(others) and score(ordered[0]) > others[0] + FAR


def _diverse(candidates: Sequence[Candidate], seen: Sequence[SeenRows]) -> list[Candidate]:
    """The best candidates, those with each number of parts first.

    Some tables want large networks in the end, which learn more slowly.
    """
    ordered = _companion_second(_best(candidates, len(candidates)), seen)
    firsts: dict[int, Candidate] = {}
    for one in ordered:
        firsts.setdefault(one.recipe.parts, one)
    kept = {id(one) for one in firsts.values()}
    return [*firsts.values(), *(one for one in ordered if id(one) not in kept)]


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first candidates of different view, parting and penalty."""
    chosen: dict[Recipe, Candidate] = {}
    for one in candidates:
        chosen.setdefault(_own(one.recipe), one)
    return list(chosen.values())


def _companion_second(ordered: Sequence[Candidate], seen: Sequence[SeenRows]) -> list[Candidate]:
    """The best candidate, then the best one whose networks see other inputs, if it is near.

    Networks of different inputs err in different rows: together they err less than two that are
    alike, even if each of these is a little better.
    """
    for place, one in enumerate(ordered):
        near = score(one) > score(ordered[0]) - COMPANION
        if near and _sees_other_inputs(one, ordered[0], seen):
            return [ordered[0], one, *ordered[1:place], *ordered[place + 1 :]]
    return list(ordered)


def _sees_other_inputs(one: Candidate, other: Candidate, seen: Sequence[SeenRows]) -> bool:
    return not np.array_equal(seen[one.recipe.view].groups, seen[other.recipe.view].groups)
