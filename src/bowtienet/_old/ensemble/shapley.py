"""What each column adds to a prediction: Shapley values.

The game of a row x has the user's columns, or groups of them, as players. A coalition S has them
from x and the others from rows b of a background, all other things equal (marginal, also called
interventional, expectations):

    v(S) = Σ_b w_b f(x_S, b_rest) / W,

with f the predictive mean, or the standard deviation. The Shapley value of a player is what it adds
to the coalition of those before it, averaged over all orders (Shapley 1953; Strumbelj and Kononenko
2014),

    φ_g = Σ_{S without g} |S|! (G - |S| - 1)! / G!  (v(S + g) - v(S)),

so that v(none) + Σ_g φ_g = f(x). Of few players all coalitions are evaluated, and the values are
exact; of more, random orders, each with its reverse (Mitchell et al. 2022), and the spread over
these pairs is the standard error. The sum is exact for every order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bowtienet._old._arrays import slices
from bowtienet._old.ensemble.ensemble import Ensemble, Floats
from bowtienet._old.ensemble.mixed_rows import Indices, Mask, mixed_moments, mixed_rows
from bowtienet._old.ensemble.outcome_scores import mean_and_spread
from bowtienet._old.representation.background import Background
from bowtienet._old.representation.columns import owners

MOST_EXACT = 8
"""Players whose coalitions, 256 of them, are all evaluated."""
CHUNK_ROWS = 32_768
"""Mixed rows that are predicted at a time."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Coalitions to evaluate, and how values of players follow from theirs."""

    coalitions: Mask
    """(C, G)."""
    factors: Floats
    """(P, G, C): values of players by each of P pairs of orders, or by all orders if P = 1."""


def plan_coalitions(n_players: int, n_permutations: int, rng: np.random.Generator) -> Plan:
    """All coalitions of few players; those of random orders and their reverses of more."""
    if n_players <= MOST_EXACT:
        return _all_coalitions(n_players)
    orders = [rng.permutation(n_players) for _ in range(n_permutations)]
    chains = np.stack([_chain(order) for one in orders for order in (one, one[::-1])])
    flat = chains.reshape(-1, n_players)
    coalitions, places = np.unique(flat, axis=0, return_inverse=True)
    places = places.reshape(n_permutations, 2, n_players + 1)
    factors = np.zeros((n_permutations, n_players, len(coalitions)))
    for pair, one in enumerate(orders):
        for order, own in zip((one, one[::-1]), places[pair], strict=True):
            np.add.at(factors[pair], (order, own[1:]), 0.5)
            np.add.at(factors[pair], (order, own[:-1]), -0.5)
    return Plan(coalitions=coalitions, factors=factors)


def shapley_values(
    ensemble: Ensemble, features: Floats, background: Background, groups: Indices, plan: Plan
) -> tuple[Floats, Floats, Floats | None]:
    """Base values (2, D), contributions (2, n, G, D) and standard errors of mean and deviation.

    Parameters
    ----------
    ensemble : Ensemble
    features : array (n, E)
        Encoded rows to explain.
    background : Background
        Rows that columns outside a coalition come from.
    groups : array (columns,)
        The group of each of the user's columns, counted from 0.
    plan : Plan
        For the groups that networks see, `players`; the others add nothing. Errors are None if it
        has all coalitions.
    """
    inside, n_groups = players(ensemble, groups), int(groups.max()) + 1
    coalitions = np.zeros((len(plan.coalitions), n_groups), dtype=bool)
    coalitions[:, inside] = plan.coalitions
    n_background = len(background.features)
    together = slices(len(coalitions), max(1, CHUNK_ROWS // n_background))
    n_rows = max(1, CHUNK_ROWS // (n_background * len(coalitions)))
    parts = [
        np.concatenate(
            [
                _coalition_values(ensemble, features[rows], background, groups, coalitions[some])
                for some in together
            ],
            axis=1,
        )
        for rows in slices(len(features), n_rows)
    ]
    values = np.concatenate(parts, axis=2)
    base = values[:, np.flatnonzero(~coalitions.any(axis=1))[0], 0]
    found = np.einsum("pgc,scnd->spngd", plan.factors, values)
    shape = (2, len(features), n_groups, values.shape[-1])
    contributions, errors = np.zeros(shape), np.zeros(shape)
    contributions[:, :, inside] = found.mean(axis=1)
    if len(plan.factors) == 1:
        return base, contributions, None
    errors[:, :, inside] = found.std(axis=1, ddof=1) / math.sqrt(len(plan.factors))
    return base, contributions, errors


def players(ensemble: Ensemble, groups: Indices) -> Indices:
    """Groups of columns that networks see."""
    return np.unique(groups[owners(ensemble.representation.columns)])


def _coalition_values(
    ensemble: Ensemble, features: Floats, background: Background, groups: Indices, coalitions: Mask
) -> Floats:
    """v(S) (2, C, n, D) of the mean and of the standard deviation."""
    shape = (len(features), *background.features.shape)
    other = np.broadcast_to(features[:, None], shape)
    mixing = (background.features, other, groups, coalitions)
    mixed, moments = mixed_rows(ensemble, *mixing), mixed_moments(ensemble, *mixing)
    found = np.stack(mean_and_spread(ensemble, moments, mixed))
    found = found.reshape(2, len(coalitions), *shape[:2], -1)
    return np.einsum("m,scnmd->scnd", background.weights / background.weights.sum(), found)


def _all_coalitions(n_players: int) -> Plan:
    coalitions = (np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1 == 1
    sizes = coalitions.sum(axis=1)
    within = coalitions.T
    # |S|! (G - |S| - 1)! / G! of the coalition without the player.
    before = np.where(within, sizes - 1, sizes)
    share = np.asarray(
        [1.0 / (n_players * math.comb(n_players - 1, k)) for k in range(n_players)] or [0.0]
    )
    factors = np.where(within, share[before], -share[before])
    return Plan(coalitions=coalitions, factors=factors[None])


def _chain(order: Indices) -> Mask:
    """The coalitions (G + 1, G) along an order, from none to all."""
    found = np.zeros((len(order) + 1, len(order)), dtype=bool)
    for place, player in enumerate(order):
        found[place + 1 :, player] = True
    return found
