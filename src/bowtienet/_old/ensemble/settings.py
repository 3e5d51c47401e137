"""All that a fit is told, under the names that users know, and what may differ between members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bowtienet._old.model.outcomes import Gaussian, Outcome
from bowtienet._old.representation.pieces import MOST_COMPONENTS

AUTO_TEMPERATURE = 0.001
"""Gates that are nearly those of a ReLU; docs/measurements/accuracy.md says why."""
AUTO_BATCH = 4096
"""Rows of a minibatch, if there are many more."""
FEWEST_BATCHES = 5
"""Batches of an epoch, at least."""
FIRST_LENGTH, LENGTHENING = 5, 2
"""Sweeps from a random start: 5, 10, 20, ... as held-out rows ask."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all members share; the parameters of the estimator and its options."""

    hidden_layer_sizes: tuple[int, ...] = (50,)
    prior: str = "student_t"
    n_estimators: int | None = None
    effort: str = "balanced"
    solver: str = "auto"
    max_iter: int = 80
    n_jobs: int | None = None
    weighting: str = "stacking"
    elbo_tempering: float = 0.01
    gate_temperature: float | str = "auto"
    init: str = "relu_network"
    init_penalty: float | str = "auto"
    propagation: str = "push_forward"
    tol: float = 1e-5
    batch_size: int | str = "auto"
    forgetting_rate: float = 0.7
    step_delay: float = 1.0
    max_categories: int = 100
    features: str | int = "auto"
    target_transform: str = "auto"
    noise: str = "auto"
    outcome: Outcome = field(default_factory=Gaussian)
    """The likelihood of the targets."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is tried before the members of an ensemble are settled on."""

    screens: bool
    """Whether a few folds and steps tell which recipes are tried in all folds."""
    penalties: tuple[float, ...]
    parts: tuple[int, ...]
    """Small networks that share out the units of one: the mean of several errs less on noisy
    rows."""
    adapts: bool
    """Whether recipes with adaptive penalties are compared too."""
    lengths: tuple[int, ...]
    """Steps of L-BFGS after which recipes are compared in all folds;"""
    kept: tuple[int, ...]
    """recipes that are tried at each of them, at most."""
    n_recipes: int
    """Recipes that members are made of, at most."""
    sweeps: tuple[int, ...]
    """Numbers of sweeps that held-out rows choose from."""
    members: int
    """Of a large table, where a recipe has no network for each fold."""
    components: int = MOST_COMPONENTS
    """Bins of all columns together, or principal components, at most;"""
    few_components: int = 64
    """and of large tables, where each costs more."""


EFFORTS = {
    "fast": Effort(
        screens=True,
        penalties=(0.3, 3.0),
        parts=(5,),
        adapts=False,
        lengths=(150,),
        kept=(1,),
        n_recipes=1,
        sweeps=(1,),
        components=48,
        few_components=48,
        members=4,
    ),
    "balanced": Effort(
        screens=True,
        penalties=(0.03, 0.3, 3.0),
        parts=(1, 2, 5),
        adapts=True,
        lengths=(120, 250, 500, 1000, 2000),
        kept=(3, 2, 2, 2, 2),
        n_recipes=2,
        sweeps=(1,),
        members=8,
    ),
    "best": Effort(
        screens=False,
        penalties=(0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        parts=(1, 2, 5),
        adapts=True,
        lengths=(120, 250, 500, 1000, 2000, 4000),
        kept=(80, 12, 6, 4, 4, 4),
        n_recipes=4,
        sweeps=(1, 3, 10, 30),
        members=16,
    ),
}
"""By the names that users give them; docs/measurements/accuracy.md says what each is worth."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What may differ from member to member."""

    gate_temperature: float
    init_penalty: float
    start_iterations: int
    """Steps of L-BFGS of the network that a fit starts from."""
    parts: int = 1
    """Small networks that share out its units, each fitted by itself: their mean errs less."""
    adaptive: bool = False
    """Whether the penalty of a column falls as its weights grow: columns that matter little go."""
    linear: bool = False
    """Whether it has no hidden layer: a linear function, and with bins an additive one."""
    view: int = 0
    """What the network sees of the rows, by its place among the views to compare."""
    seed: int


def hidden_of(recipe: Recipe, settings: Settings) -> tuple[int, ...]:
    """Widths of the hidden layers of a recipe's networks, all parts together."""
    return () if recipe.linear else settings.hidden_layer_sizes


def gate_temperature(settings: Settings) -> float:
    """The temperature of the gates, also where it is left open."""
    automatic = settings.gate_temperature == "auto"
    return AUTO_TEMPERATURE if automatic else float(settings.gate_temperature)


def starts_from_networks(settings: Settings) -> bool:
    """Whether ordinary networks say where fits begin, and not only what they see."""
    return settings.init == "relu_network" and bool(settings.hidden_layer_sizes)


def sweep_lengths(settings: Settings) -> tuple[int, ...]:
    """Numbers of sweeps to choose from: few from a network, more from a random start."""
    if starts_from_networks(settings):
        wanted = EFFORTS[settings.effort].sweeps
        return tuple(sorted({min(length, settings.max_iter) for length in wanted}))
    lengths, length = [], FIRST_LENGTH
    while length < settings.max_iter:
        lengths.append(length)
        length *= LENGTHENING
    return (*lengths, settings.max_iter)


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
