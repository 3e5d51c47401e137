"""What an ensemble predicts for rows that take some of the user's columns from other rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    Moments,
    combine_members,
    member_moments,
    member_views,
    stack_moments,
)
from bowtienet._old.prediction.coalitions import mix_rows, predict_mixed
from bowtienet._old.representation.columns import owners
from bowtienet._old.representation.representation import (
    PLAIN,
    View,
    input_owners,
    network_features,
    standardized_features,
)

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


def mixed_rows(
    ensemble: Ensemble, base: Floats, other: Floats, groups: Indices, coalitions: Mask
) -> Floats:
    """Encoded rows (C R n, E) with the columns of each coalition from `other`; see `mix_rows`.

    `groups` (columns,) has the group of each of the user's columns.
    """
    encoded = groups[owners(ensemble.representation.columns)]
    return mix_rows(base, other, encoded, coalitions).reshape(-1, base.shape[1])


def mixed_moments(
    ensemble: Ensemble, base: Floats, other: Floats, groups: Indices, coalitions: Mask
) -> Moments:
    """Moments of every group of members for `mixed_rows`, without a prediction for each of them."""
    representation = ensemble.representation
    mixed = mixed_rows(ensemble, base, other, groups, coalitions)
    if ensemble.propagation != "push_forward":
        return combine_members(ensemble, member_moments(ensemble, mixed), mixed)
    x = standardized_features(representation, base)
    changed = standardized_features(representation, other.reshape(-1, base.shape[1]))
    seen = [(_columns(view, x), _columns(view, changed)) for view in representation.views]
    found = []
    for member, view, place in zip(
        ensemble.members, member_views(ensemble), ensemble.views, strict=True
    ):
        kept = slice(None) if member.pruning is None else member.pruning.inputs
        before, after = seen[place]
        if view.principal is None:
            loadings, own = None, groups[input_owners(representation, view)[kept]]
            before, after = before[:, kept], after[:, kept]
        else:
            loadings = np.asarray(view.principal.loadings)[:, kept]
            own = groups[input_owners(representation, PLAIN)]
        after = after.reshape(*other.shape[:2], before.shape[1])
        found.append(
            predict_mixed(member.model, member.factors, before, after, own, coalitions, loadings)
        )
    return combine_members(ensemble, stack_moments(ensemble, found), mixed)


def _columns(view: View, standardized: Floats) -> Floats:
    """What coalitions change: inputs of networks, or the columns of which they see components."""
    return standardized if view.principal is not None else network_features(view, standardized)
