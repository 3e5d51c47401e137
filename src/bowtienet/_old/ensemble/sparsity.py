"""How large the networks of an ensemble are, and how strong columns are in them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.ensemble.ensemble import Ensemble, Floats, member_views, original
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.relevance import path_strength
from bowtienet._old.posterior.selection import Mask, existing
from bowtienet._old.representation.representation import PLAIN, input_owners

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

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each member; the fields are the columns."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        members = {"member": np.arange(len(self.nodes_before))}
        return new_frame(members | found, library, index="member")

    def __str__(self) -> str:
        members = len(self.nodes_before)
        lines = [f"{members} member{'s' if members > 1 else ''}, before -> after"]
        for name in ("inputs", "nodes", "weights"):
            before, after = getattr(self, f"{name}_before"), getattr(self, f"{name}_after")
            lines.append(f"{name:<8}{before.sum():>8} -> {after.sum()}")
        return "\n".join(lines)


class FeatureRelevance(NamedTuple):
    """Which columns matter; `to_frame` makes a table of it."""

    name: NDArray[Any]
    """Names of the columns, x0, x1, ... if they have none."""
    strength: Floats
    """Sum over paths of the products of the sizes of mean weights, (columns,) or (columns,
    outputs): in a ReLU network the most by which one standard deviation of the input can move the
    target, in its standard deviations; of several encoded inputs the sum. It describes the fit:
    columns that do not matter have some too."""
    p_value: Floats
    """Of the hypothesis that the target does not depend on the column given all others, (columns,);
    NaN until `structure` has tested it."""

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each column: its strength, with several targets `strength_0`, ..., p-value.

        The names are the index of a pandas frame, `column` in others.
        """
        sizes = {"strength": self.strength}
        if self.strength.ndim > 1:
            sizes = {f"strength_{place}": own for place, own in enumerate(self.strength.T)}
        found = {"column": self.name, **sizes, "p_value": self.p_value}
        return new_frame(found, library, index="column")

    def strongest(self) -> FeatureRelevance:
        """With the strength (columns,) that is the largest over the targets."""
        return self._replace(strength=self.strength.reshape(len(self.name), -1).max(axis=1))


def sparsity(ensemble: Ensemble) -> Sparsity:
    """Inputs, nodes and weights of every member before and after pruning."""
    members = ensemble.members
    before, after = [original(m) for m in members], [m.model.architecture for m in members]
    return Sparsity(
        inputs_before=np.array([a.n_inputs for a in before]),
        inputs_after=np.array([a.n_inputs for a in after]),
        nodes_before=np.array([sum(a.hidden) for a in before]),
        nodes_after=np.array([sum(a.hidden) for a in after]),
        weights_before=np.array([a.n_weights for a in before]),
        weights_after=np.array([member.model.n_weights() for member in members]),
    )


def column_strength(ensemble: Ensemble) -> Floats:
    """Strength (columns, outputs) of the user's columns.

    From the members' weights, combined by the ensemble weights; the encoded inputs of a
    column are one group.
    """
    representation = ensemble.representation
    n_columns = len(representation.columns)
    shape = (n_columns, ensemble.members[0].model.architecture.n_outputs)
    strength = np.zeros(shape)
    for member, weight, view in zip(
        ensemble.members, ensemble.weights, member_views(ensemble), strict=True
    ):
        connections = existing(member.model, member.factors)
        kept = slice(None) if member.pruning is None else member.pruning.inputs
        if view.principal is not None:
            loadings = view.principal.loadings[:, kept]
            places = input_owners(representation, PLAIN)
            sizes = _strength_of_columns(member.factors, connections, loadings)
        else:
            places = input_owners(representation, view)[kept]
            sizes = path_strength(member.factors, connections)
        if view.pieces is not None:
            # Components are on one scale: strength is that of a standard deviation.
            sizes = view.pieces.deviation[kept, None] * sizes
        together = np.zeros(shape)
        np.add.at(together, places, sizes)
        strength += weight * together
    return strength


def _strength_of_columns(
    factors: GlobalFactors, connections: tuple[Mask, ...], loadings: Floats
) -> Floats:
    """Strength (E, outputs) of columns that a network sees by their components.

    A unit's weights w of the components are L w for the columns.
    """
    weights = factors.layers[0].weights
    mean = np.where(connections[0], to_numpy(weights.mean)[:, 1:], 0.0) @ loadings.T
    above = replace(factors, layers=factors.layers[1:])
    size = path_strength(above, connections[1:]) if connections[1:] else np.eye(len(mean))
    return np.asarray(np.abs(mean).T @ size)
