"""Smaller networks from the weights whose sign is sure, and which columns matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bowtienet._arrays import to_numpy
from bowtienet.distributions import inverse_gamma
from bowtienet.ensemble.ensemble import Ensemble, Floats, member_views, original
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.pruning import combine, prune
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.relevance import path_probability, path_strength
from bowtienet.posterior.selection import Mask, existing, select
from bowtienet.representation.representation import PLAIN, input_owners

Counts = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """Size of an ensemble before and after pruning, with one entry for each member."""

    inputs_before: Counts
    """Inputs of the networks: a column of categories, or one in bins, has several."""
    inputs_after: Counts
    nodes_before: Counts
    """Hidden units of all layers."""
    nodes_after: Counts
    weights_before: Counts
    """Weights without biases."""
    weights_after: Counts
    keep_threshold: Floats
    """Least sign probability among the weights that `prune` chose; NaN without it."""
    false_sign_rate: Floats
    """Estimated share of the weights left by `prune` whose sign is wrong; NaN without it. It may
    lie a little above the rate that was asked for, since sure weights on no path go too."""

    def __str__(self) -> str:
        members = len(self.nodes_before)
        lines = [f"{members} member{'s' if members > 1 else ''}, before -> after"]
        for name in ("inputs", "nodes", "weights"):
            before, after = getattr(self, f"{name}_before"), getattr(self, f"{name}_after")
            lines.append(f"{name:<8}{before.sum():>8} -> {after.sum()}")
        if not np.isnan(self.false_sign_rate).all():
            # Of all weights together: each member's rate counts by what it has left.
            known = ~np.isnan(self.false_sign_rate)
            wrong = np.sum((self.false_sign_rate * self.weights_after)[known])
            total = max(int(self.weights_after[known].sum()), 1)
            lines.append(f"estimated false sign rate of the weights left {wrong / total:.4f}")
        return "\n".join(lines)


class FeatureRelevance(NamedTuple):
    """Which columns matter; for one target `pandas.DataFrame(found._asdict())` is a table."""

    name: NDArray[Any]
    """Names of the columns, x0, x1, ... if they have none."""
    probability: Floats
    """Posterior probability of a path to the target, (columns,) or (columns, outputs); of several
    encoded inputs of a column the largest."""
    strength: Floats
    """Sum over paths of the products of the sizes of mean weights: in a ReLU network the most by
    which one standard deviation of the input can move the target, in its standard deviations. Same
    shape; of several encoded inputs the sum."""

    def strongest(self) -> FeatureRelevance:
        """Probability and strength (columns,), each the largest over the targets."""
        probability, strength = (
            values.reshape(len(self.name), -1).max(axis=1)
            for values in (self.probability, self.strength)
        )
        return self._replace(probability=probability, strength=strength)


def prune_ensemble(ensemble: Ensemble, rate: float) -> Ensemble:
    """Members with the weights whose sign is sure at an estimated false sign rate."""
    members = tuple(_pruned(member, rate) for member in ensemble.members)
    return replace(ensemble, members=members)


def with_whole_noise(pruned: Ensemble, before: Ensemble) -> Ensemble:
    """Members that are fitted again: their noise no longer stands for weights that are gone."""
    members = tuple(
        replace(small, variance_ratio=member.variance_ratio)
        for small, member in zip(pruned.members, before.members, strict=True)
    )
    return replace(pruned, members=members)


def is_constant(ensemble: Ensemble) -> bool:
    """Whether no member has an input left."""
    return all(member.model.architecture.n_inputs == 0 for member in ensemble.members)


def sparsity(ensemble: Ensemble) -> Sparsity:
    """Inputs, nodes and weights of every member before and after pruning."""
    members = ensemble.members
    before, after = [original(m) for m in members], [m.model.architecture for m in members]
    # Units that went while a fit ran say nothing of the weights between those that stayed.
    chosen = [m.pruning if m.model.connections is not None else None for m in members]
    nothing = float("nan")
    return Sparsity(
        inputs_before=np.array([a.n_inputs for a in before]),
        inputs_after=np.array([a.n_inputs for a in after]),
        nodes_before=np.array([sum(a.hidden) for a in before]),
        nodes_after=np.array([sum(a.hidden) for a in after]),
        weights_before=np.array([a.n_weights for a in before]),
        weights_after=np.array([member.model.n_weights() for member in members]),
        keep_threshold=np.array([p.keep_threshold if p else nothing for p in chosen]),
        false_sign_rate=np.array([p.false_sign_rate if p else nothing for p in chosen]),
    )


def relevance(ensemble: Ensemble, rate: float) -> tuple[Floats, Floats]:
    """Probability and strength (columns, outputs) of the user's columns.

    From the members' surviving weights, combined by the ensemble weights; the encoded inputs of a
    column are one group.
    """
    representation = ensemble.representation
    n_columns = len(representation.columns)
    shape = (n_columns, ensemble.members[0].model.architecture.n_outputs)
    probability, strength = np.zeros(shape), np.zeros(shape)
    for member, weight, view in zip(
        ensemble.members, ensemble.weights, member_views(ensemble), strict=True
    ):
        connections = _surviving(member, rate)
        kept = slice(None) if member.pruning is None else member.pruning.inputs
        if view.principal is not None:
            loadings = view.principal.loadings[:, kept]
            places = input_owners(representation, PLAIN)
            paths, sizes = _paths_of_columns(member.factors, connections, loadings)
        else:
            places = input_owners(representation, view)[kept]
            paths = path_probability(member.factors, connections)
            sizes = path_strength(member.factors, connections)
        if view.pieces is not None:
            # Components are on one scale: strength is that of a standard deviation.
            sizes = view.pieces.deviation[kept, None] * sizes
        likeliest, together = np.zeros(shape), np.zeros(shape)
        np.maximum.at(likeliest, places, paths)
        np.add.at(together, places, sizes)
        probability += weight * likeliest
        strength += weight * together
    return probability, strength


def _paths_of_columns(
    factors: GlobalFactors, connections: tuple[Mask, ...], loadings: Floats
) -> tuple[Floats, Floats]:
    """Probability and strength (E, outputs) of columns that a network sees by their components.

    A unit's weights w of the components have the mean and variance of L w for the columns.
    """
    weights = factors.layers[0].weights
    mean = np.where(connections[0], to_numpy(weights.mean)[:, 1:], 0.0) @ loadings.T
    covariance = to_numpy(weights.covariance)[:, 1:, 1:]
    variance = np.einsum("ep,dpq,eq->de", loadings, covariance, loadings, optimize=True)
    doubt = ndtr(-np.abs(mean) / np.sqrt(np.maximum(variance, np.finfo(float).tiny)))
    above = replace(factors, layers=factors.layers[1:])
    reach = path_probability(above, connections[1:]) if connections[1:] else np.eye(len(mean))
    with np.errstate(divide="ignore"):
        missing = np.log1p(-(1.0 - doubt)[:, :, None] * reach[:, None, :])
    size = path_strength(above, connections[1:]) if connections[1:] else np.eye(len(mean))
    return -np.expm1(missing.sum(axis=0)), np.abs(mean).T @ size


def _surviving(member: FitResult, rate: float) -> tuple[Mask, ...]:
    """Weights that a pruned member has, or that pruning at a rate would leave of another."""
    if member.model.connections is None:
        return select(member.model, member.factors, rate).connections
    return existing(member.model, member.factors)


def _diluted_ratio(member: FitResult, factors: GlobalFactors) -> Floats | None:
    """(r σ² + grown) / (σ² + grown): noise that stands for weights that are gone is not stretched.

    How sure a network may be of what it predicts says nothing of what it no longer predicts.
    """
    if member.variance_ratio is None:
        return None
    before, after = (
        np.asarray(to_numpy(inverse_gamma.mean(found.layers[-1].noise_variance)), dtype=float)
        for found in (member.factors, factors)
    )
    grown = np.maximum(after - before, 0.0)
    return np.asarray((member.variance_ratio * before + grown) / (before + grown))


def _pruned(member: FitResult, rate: float) -> FitResult:
    """A smaller member. Its bound is not known without the rows."""
    model, factors, pruning = prune(member.model, member.factors, false_sign_rate=rate)
    return replace(
        member,
        variance_ratio=_diluted_ratio(member, factors),
        model=model,
        factors=factors,
        elbo_terms=None,
        elbo_history=(),
        pruning=combine(member.pruning, pruning),
        statistics=None,
    )
