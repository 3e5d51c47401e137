"""All that a fit is told, under the names that users know, and what may differ between members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bowtienet.posterior.initialize import possible_parts

AUTO_TEMPERATURE = 0.01
RECIPES = ((0.01, 1), (0.1, 1), (0.01, 5), (0.1, 10), (10.0, 1))
"""Penalties of "auto", and numbers of small networks to start from, for stacking to choose from.

docs/measurements/accuracy.md says why.
"""
RECIPES_ALONE = ((0.01, 5), (0.1, 10), (0.01, 16), (10.0, 1))
"""For a single member: small networks are an ensemble by themselves."""
ALIKE = (0.1, 1)
"""For members that are to be compared by their ELBO."""
AUTO_BATCH = 4096
"""Rows of a minibatch, if there are many more."""
FEWEST_BATCHES = 5
"""Batches of an epoch, at least."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all members share; the parameters of the estimator and its options."""

    hidden_layer_sizes: tuple[int, ...] = (50,)
    prior: str = "student_t"
    n_estimators: int = 8
    solver: str = "auto"
    max_iter: int = 80
    false_sign_rate: float = 0.01
    n_jobs: int | None = None
    weighting: str = "stacking"
    elbo_tempering: float = 0.01
    gate_temperature: float | str = "auto"
    init: str = "relu_network"
    init_penalty: float | str = "auto"
    propagation: str = "push_forward"
    tol: float = 1e-5
    prune_every: int | None = None
    batch_size: int | str = "auto"
    forgetting_rate: float = 0.7
    step_delay: float = 1.0
    max_categories: int = 100
    features: str | int = "auto"
    target_transform: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What may differ from member to member."""

    gate_temperature: float
    init_penalty: float
    parts: int = 1
    """Small networks that the start is made of."""
    view: int = 0
    """What the network sees of the rows, by its place among the views to compare."""
    seed: int


def build_recipes(settings: Settings, rng: np.random.Generator, n_views: int) -> list[Recipe]:
    """For stacking what it may choose from; otherwise members that differ in their seed."""
    alike = settings.weighting != "stacking"
    starts = [ALIKE] * settings.n_estimators if alike else _starts_to_compare(settings)
    automatic = settings.gate_temperature == "auto"
    temperature = AUTO_TEMPERATURE if automatic else float(settings.gate_temperature)
    candidates = [(start, view) for view in range(n_views) for start in starts]
    seeds = rng.integers(2**32, size=len(candidates))
    return [
        Recipe(
            gate_temperature=temperature,
            init_penalty=_penalty(settings, penalty),
            parts=parts,
            view=view,
            seed=int(seed),
        )
        for ((penalty, parts), view), seed in zip(candidates, seeds, strict=True)
    ]


def repeat(recipes: Sequence[Recipe], count: int, rng: np.random.Generator) -> list[Recipe]:
    """Recipes in turn, each with a seed of its own."""
    seeds = rng.integers(2**32, size=count)
    return [
        replace(recipes[index % len(recipes)], seed=int(seed)) for index, seed in enumerate(seeds)
    ]


def batch_rows(batch_size: int | str, n_rows: int) -> int:
    """Rows of a minibatch: as many as wanted, or such that an epoch has batches enough."""
    if not isinstance(batch_size, str):
        return int(batch_size)
    return max(1, min(AUTO_BATCH, n_rows // FEWEST_BATCHES))


def _starts_to_compare(settings: Settings) -> list[tuple[float, int]]:
    """Penalties and numbers of small networks; those that would be the same are tried once."""
    sizes = settings.hidden_layer_sizes
    menu = RECIPES_ALONE if settings.n_estimators == 1 else RECIPES
    if settings.init != "relu_network" or not sizes:
        return [(menu[0][0], 1)]  # no network is fitted to start from
    possible = [(_penalty(settings, p), possible_parts(sizes, parts)) for p, parts in menu]
    return list(dict.fromkeys(possible))


def _penalty(settings: Settings, automatic: float) -> float:
    return automatic if settings.init_penalty == "auto" else float(settings.init_penalty)
