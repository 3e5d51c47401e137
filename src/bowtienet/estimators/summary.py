"""Facts of a fit for people: selections, summaries, draws for ArviZ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import count, number
from bowtienet.ensemble.portfolio import LINEAR
from bowtienet.networks.networks import count_of
from bowtienet.outcomes import Softmax, StudentT
from bowtienet.posterior.factors import Posterior, n_networks, network
from bowtienet.posterior.selection import NetworkSelection
from bowtienet.prediction.variational import sample_layers
from bowtienet.tables.representation import Representation


@dataclass(frozen=True, kw_only=True, repr=False)
class Selection:
    """Columns, units and weights that matter, at a false discovery rate."""

    columns: tuple[str, ...]
    """Names of the columns that reach an output."""
    units: tuple[int, ...]
    """Hidden units on a path from a column to an output, layer by layer."""
    weights: int
    """Weights on such paths, without biases."""
    n_weights: int
    """All weights of the network."""
    keep_threshold: float
    """kappa: weights whose sign has at least this probability were chosen."""
    estimated_rate: float
    """The estimated share of wrong signs among them."""

    def __repr__(self) -> str:
        names = ", ".join(self.columns) if self.columns else "none"
        units = "-".join(map(str, self.units)) or "no hidden layers"
        return (
            f"columns: {names}\nhidden units: {units}\n"
            f"weights: {self.weights:,} of {self.n_weights:,}\n"
            f"sign probability at least {number(self.keep_threshold, 4)}, "
            f"estimated false discovery rate {number(self.estimated_rate)}"
        )


def selection_of(
    chosen: NetworkSelection, representation: Representation, inputs: NDArray[np.intp] | None
) -> Selection:
    """A selection in the words of the table."""
    seen = np.arange(len(chosen.inputs)) if inputs is None else inputs
    kept = np.unique(representation.owners[seen[chosen.inputs]])
    return Selection(
        columns=tuple(representation.columns[i].name for i in kept),
        units=tuple(int(mask.sum()) for mask in chosen.units),
        weights=int(sum(mask.sum() for mask in chosen.connections)),
        n_weights=int(sum(mask.size for mask in chosen.connections)),
        keep_threshold=chosen.keep_threshold,
        estimated_rate=chosen.estimated_rate,
    )


def describe(estimator: Any) -> str:
    """Facts of a fit; noise and densities are in the unit of the targets."""
    fitted = estimator._fitted
    lines = _networks(estimator) if hasattr(fitted, "posterior") else _recipes(estimator)
    return "\n".join([*lines, *(f"note: {note}" for note in fitted.representation.notes)])


def _networks(estimator: Any) -> list[str]:
    fitted = estimator._fitted
    widths = "-".join(map(str, fitted.model.architecture.widths))
    ended = "converged" if estimator.converged_ else "not converged"
    if estimator._has_few_sweeps and not estimator.converged_:
        ended = "as many as the default makes from ReLU networks"
    terms = estimator.elbo_terms_
    return [
        f"{type(estimator).__name__}: {count(n_networks(fitted.posterior), 'member')} of {widths} "
        f"on {count(len(fitted.representation.columns), 'column')}",
        f"prior {estimator.prior}, temperature {number(estimator.temperature)}, "
        f"{count(int(estimator.n_iter_), 'iteration')}, {ended}",
        f"evidence lower bound {number(sum(terms.values()), 6)}",
        *(f"  {name.replace('_', ' '):18s} {number(terms[name], 6)}" for name in terms),
    ]


def _recipes(estimator: Any) -> list[str]:
    representation, ensemble = estimator._fitted.representation, estimator._fitted.ensemble
    stacks, outcome, spreads = ensemble.stacks, ensemble.outcome, ensemble.spread
    spread = "temperature" if isinstance(outcome, Softmax) else "dispersion"
    if outcome.has_noise:
        spread, spreads = "noise", np.sqrt(spreads) * ensemble.warps[0].scale
    weights = np.mean([stack.weights for stack in stacks], axis=0)
    sizes = count(len(ensemble.recipes), "recipe"), count(len(representation.columns), "column")
    lines = [
        f"{type(estimator).__name__} of {', '.join(estimator._target_names)}: "
        f"{sizes[0]} on {sizes[1]}",
        "held-out log density " + _numbers(stack.log_density for stack in stacks),
        f"  {'weight':>6}  {'members':>14}  {spread:>12}  recipe",
    ]
    for i in np.argsort(-weights):
        networks, recipe = ensemble.members[i], ensemble.recipes[i]
        widths = "-".join(str(layer.shape[1]) for layer in networks.layers[:-1])
        members = f"{count_of(networks)} of {widths}" if widths else f"{count_of(networks)} linear"
        words = [f"{recipe.view} columns", f"penalty {recipe.penalty:g}"]
        words += ["local scales"] * recipe.shrinks + ["transformed target"] * recipe.is_warped
        words += ["Student-t loss"] * isinstance(recipe.outcome, StudentT)
        said = "linear function" if recipe.view == LINEAR else ", ".join(words)
        lines.append(f"  {weights[i]:6.3f}  {members:>14}  {_numbers(spreads[i]):>12}  {said}")
    if len(stacks[0].levels) > 1:
        levels = "; ".join(_numbers(np.sqrt(np.sort(stack.levels))) for stack in stacks)
        lines.append(f"noise levels, by row: {levels} times the noise of the recipe")
    return lines


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(number(float(value)) for value in values)


def arviz_draws(posterior: Posterior, draws: int, rng: np.random.Generator) -> Any:
    """Draws of q as ArviZ has them, a chain for each member."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install arviz.") from error
    chains: dict[str, list[list[Any]]] = {}
    for m in range(n_networks(posterior)):
        each = [sample_layers(network(posterior, m), rng) for _ in range(draws)]
        for layer in range(len(posterior.layers)):
            weights, noise = ([layers[layer][i] for layers in each] for i in (0, 1))
            chains.setdefault(f"weights_{layer + 1}", []).append(weights)
            chains.setdefault(f"noise_variance_{layer + 1}", []).append(noise)
    groups: Any = {"posterior": {name: np.asarray(values) for name, values in chains.items()}}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)  # before version 1 groups were arguments
