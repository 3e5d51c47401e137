"""How much the slopes of an ensemble's functions differ between the rows of training."""

from __future__ import annotations

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows, take_rows
from bowtienet._old.ensemble.ensemble import Ensemble, Floats, group_shares, member_inputs, member_views
from bowtienet._old.ensemble.fold_networks import input_groups, on_host
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.prediction.outside import Outside
from bowtienet._old.representation.representation import View, network_features

SLOPE_ROWS = 300
"""Rows whose slopes are looked at, at most."""
STEP = 1e-4
"""Of a standardised column, to see which of its components grow with it."""


def fit_outside(ensemble: Ensemble, rows: Rows) -> Outside:
    """Ranges and slopes from standardised rows of training, in random order."""
    host = on_host(take_rows(rows, np.flatnonzero(to_numpy(rows.weights) > 0.0)))
    low, high = host.inputs.min(axis=0), host.inputs.max(axis=0)
    x, weights = host.inputs[:SLOPE_ROWS], host.weights[:SLOPE_ROWS]
    share = (weights / weights.sum())[:, None, None]
    views = member_views(ensemble)
    of_members = [
        column_slopes(member, view, x) for member, view in zip(ensemble.members, views, strict=True)
    ]
    found = []
    for own in group_shares(ensemble):
        slopes = sum(own[place] * of_members[place] for place in np.flatnonzero(own))
        mean = (share * slopes).sum(axis=0)
        found.append((share * (slopes - mean) ** 2).sum(axis=0))
    warped = dict(zip(ensemble.groups, (view.warp is not None for view in views), strict=True))
    return Outside(
        low=low,
        high=high,
        slope_variances=np.stack(found),
        bounded=np.array([warped[group] for group in sorted(warped)]),
    )


def column_slopes(member: FitResult, view: View, standardized: Floats) -> Floats:
    """∂f/∂x (n, E, D) of a member's network of mean weights, in standardised columns."""
    seen = network_features(view, standardized)
    slopes = _input_slopes(member, member_inputs(member, seen))
    if member.pruning is not None:
        own, slopes = slopes, np.zeros((len(seen), seen.shape[1], slopes.shape[2]))
        slopes[:, member.pruning.inputs] = own
    if view.principal is not None:
        return np.einsum("ep,npd->ned", view.principal.loadings, slopes)
    if view.pieces is None:
        return slopes
    ahead = network_features(view, standardized + STEP)
    behind = network_features(view, standardized - STEP)
    slopes = slopes * ((ahead - behind) / (2.0 * STEP))[:, :, None]
    found = np.zeros((len(seen), standardized.shape[1], slopes.shape[2]))
    groups = input_groups(view, standardized.shape[1])
    np.add.at(found.swapaxes(0, 1), groups, slopes.swapaxes(0, 1))
    return found


def _input_slopes(member: FitResult, inputs: Floats) -> Floats:
    """∂f/∂x (n, D_0, D) of the ReLU network of a member's mean weights."""
    layers = [to_numpy(layer.weights.mean).astype(float) for layer in member.factors.layers]
    values, active = np.asarray(inputs, dtype=float), []
    for weights in layers[:-1]:
        values = values @ weights[:, 1:].T + weights[:, 0]
        active.append(values > 0.0)
        values = np.maximum(values, 0.0)
    slopes = np.broadcast_to(layers[-1][:, 1:], (len(values), *layers[-1][:, 1:].shape))
    for weights, on in zip(reversed(layers[:-1]), reversed(active), strict=True):
        slopes = (slopes * on[:, None, :]) @ weights[:, 1:]
    return slopes.swapaxes(1, 2)
