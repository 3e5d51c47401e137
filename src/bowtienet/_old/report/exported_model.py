"""The predictive distribution of an ensemble as numbers in a page, for `templates/whatif.js`.

Features on a panel vary, and all others stay as they are in one of R base rows. The inputs of a
network are then A u + a_r, with u what it sees of the panel, and its first preactivations have

    E[z] = m'(1, a_r) + (A'm)'u,   Var[z] = (1, a_r)'B (1, a_r) + 2 u'A'B (1, a_r) + u'A'B A u.

That is the whole model, with what does not move worked out beforehand: A'BA is small where few
features are on the panel. Noise gates, and what is not known outside the training range, are sums
over columns, and have a part of the base row in the same way. Numbers keep double precision.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import packed_size, to_numpy
from bowtienet._old.distributions import gaussian, inverse_gamma
from bowtienet._old.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS
from bowtienet._old.distributions.yeo_johnson import NODES
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    group_shares,
    group_warps,
    group_weights,
    outcome_of,
    ratio_of,
)
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.model.outcomes import Binary, Classes
from bowtienet._old.posterior.factors import LayerFactors
from bowtienet._old.prediction.class_probabilities import normal_points
from bowtienet._old.prediction.levels import FURTHEST, gate_inputs
from bowtienet._old.prediction.outside import excess
from bowtienet._old.prediction.predictive import output_noise
from bowtienet._old.representation.pieces import first_and_last
from bowtienet._old.representation.representation import (
    View,
    network_features,
    standardized_features,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_BYTES = 8.0 * 4.0 / 3.0
"""Of a double, written in base 64."""


@dataclass(frozen=True, kw_only=True)
class ExportedModel:
    """What a script needs to predict."""

    structure: dict[str, Any]
    """Shapes of arrays, ``{"at": first number, "shape": [...]}``, and what else is not many."""
    numbers: str
    """All arrays, one after the other: doubles, the low byte first, in base 64."""


@dataclass(frozen=True, kw_only=True)
class _Buffer:
    """Arrays one after the other."""

    parts: list[Floats] = field(default_factory=list)

    def keep(self, values: Any) -> dict[str, Any]:
        """Where an array is from now on."""
        array = np.asarray(to_numpy(values), dtype=np.float64)
        begin = sum(part.size for part in self.parts)
        self.parts.append(array.ravel())
        return {"at": begin, "shape": list(array.shape)}

    def text(self) -> str:
        """All numbers in base 64."""
        return base64.b64encode(np.concatenate(self.parts).astype("<f8").tobytes()).decode()


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What a view makes of the panel and of base rows."""

    matrix: Floats
    """A (P, q)."""
    fixed: Floats
    """a_r (R, P)."""


def export_model(ensemble: Ensemble, panel: Indices, base: Floats) -> ExportedModel:
    """All that predictions need where the encoded columns `panel` (e,) vary.

    Parameters
    ----------
    ensemble : Ensemble
        Of numbers or classes, with the propagation "push_forward".
    panel : array (e,)
        Places of encoded columns.
    base : array (R, encoded)
        Encoded base rows: what all other columns are.
    """
    representation, kept = ensemble.representation, _Buffer()
    places = np.argsort(representation.column_order)[panel]
    rows = to_numpy(standardized_features(representation, base)).astype(np.float64)
    scaling = representation.feature_scaling
    used = sorted({ensemble.views[member] for member in _members(ensemble)})
    views = [representation.views[place] for place in used]
    seen = {place: _seen(view, places, rows) for place, view in zip(used, views, strict=True)}
    shares = group_shares(ensemble)
    return ExportedModel(
        structure={
            "center": kept.keep(to_numpy(scaling.center)[panel]),
            "scale": kept.keep(to_numpy(scaling.scale)[panel]),
            "views": [_view(kept, view, places) for view in views],
            "members": [
                _member(kept, ensemble.members[member], seen[ensemble.views[member]])
                | {
                    "view": used.index(ensemble.views[member]),
                    "group": ensemble.groups[member],
                    "share": float(shares[ensemble.groups[member], member]),
                }
                for member in _members(ensemble)
            ],
            "groups": _groups(kept, ensemble),
            "outside": _outside(kept, ensemble, places, rows),
            "levels": _levels(kept, ensemble, places, rows),
            "outcome": _outcome(kept, ensemble),
            "constants": _constants(),
        },
        numbers=kept.text(),
    )


def exported_bytes(ensemble: Ensemble, panel: Indices, n_rows: int) -> int:
    """About how much of a page the networks of `export_model` take."""
    places = np.argsort(ensemble.representation.column_order)[panel]
    total = 0
    for member in _members(ensemble):
        view = ensemble.representation.views[ensemble.views[member]]
        size = places.size
        if view.pieces is not None:
            size = int(np.isin(view.pieces.column, places).sum())
        first, *others = (
            layer.weights.mean.shape for layer in ensemble.members[member].factors.layers
        )
        total += first[0] * (size + packed_size(size) + n_rows * (2 + size))
        total += sum(width * (packed_size(below) + 2 * below) for width, below in others)
    return int(_BYTES * total)


def _members(ensemble: Ensemble) -> list[int]:
    """Places of members that have a say."""
    shares = group_shares(ensemble) * (group_weights(ensemble) > 0.0)[:, None]
    return np.flatnonzero(shares.any(axis=0)).tolist()


def _seen(view: View, places: Indices, rows: Floats) -> _Seen:
    features = to_numpy(network_features(view, rows))
    if view.principal is not None:
        matrix = np.asarray(view.principal.loadings)[places].T
        return _Seen(matrix=matrix, fixed=features - rows[:, places] @ matrix.T)
    chosen = places if view.pieces is None else _chosen_pieces(view, places)
    fixed = features.copy()
    fixed[:, chosen] = 0.0
    return _Seen(matrix=np.eye(features.shape[1])[:, chosen], fixed=fixed)


def _chosen_pieces(view: View, places: Indices) -> Indices:
    """Components of the columns on the panel."""
    assert view.pieces is not None
    return np.flatnonzero(np.isin(view.pieces.column, places))


def _view(kept: _Buffer, view: View, places: Indices) -> dict[str, Any]:
    """How a network's inputs on the panel follow from its standardised columns."""
    if view.pieces is None:
        return {"pieces": None}
    chosen, pieces = _chosen_pieces(view, places), view.pieces
    first, last = first_and_last(pieces)
    order = {int(place): number for number, place in enumerate(places)}
    return {
        "pieces": {
            "column": [order[int(place)] for place in pieces.column[chosen]],
            "first": first[chosen].tolist(),
            "last": last[chosen].tolist(),
        }
        | {
            name: kept.keep(getattr(pieces, name)[chosen])
            for name in ("low", "high", "center", "scale")
        }
    }


def _member(kept: _Buffer, member: FitResult, seen: _Seen) -> dict[str, Any]:
    """One network."""
    inputs = slice(None) if member.pruning is None else np.asarray(member.pruning.inputs)
    matrix, fixed = seen.matrix[inputs], seen.fixed[:, inputs]
    # One is enough where base rows differ in nothing but the panel.
    fixed = fixed[:1] if not np.ptp(fixed, axis=0).any() else fixed
    first, *others = member.factors.layers
    return {
        "temperature": float(member.model.gate_temperature),
        "ratio": kept.keep(ratio_of(member)),
        "noise": kept.keep(output_noise(member.model, member.factors)),
        "first": _first_layer(kept, first, matrix, fixed),
        "layers": [_layer(kept, layer) for layer in others],
    }


def _first_layer(
    kept: _Buffer, layer: LayerFactors, matrix: Floats, fixed: Floats
) -> dict[str, Any]:
    mean = to_numpy(layer.weights.mean).astype(np.float64)
    covariance = to_numpy(layer.weights.covariance).astype(np.float64)
    bases = np.concatenate([np.ones((len(fixed), 1)), fixed], axis=1)
    halves = covariance @ bases.T
    return {
        "mean": kept.keep(mean[:, 1:] @ matrix),
        "covariance": kept.keep(_packed(matrix.T @ covariance[:, 1:, 1:] @ matrix)),
        "base_mean": kept.keep(bases @ mean.T),
        "base_variance": kept.keep(np.einsum("rp,dpr->rd", bases, halves)),
        "base_slope": kept.keep(2.0 * np.einsum("pq,dpr->rdq", matrix, halves[:, 1:])),
        "noise": kept.keep(inverse_gamma.mean(layer.noise_variance)),
    }


def _layer(kept: _Buffer, layer: LayerFactors) -> dict[str, Any]:
    return {
        "mean": kept.keep(layer.weights.mean),
        "covariance": kept.keep(_packed(to_numpy(layer.weights.covariance).astype(np.float64))),
        "squares": kept.keep(gaussian.squares(layer.weights)[:, 1:]),
        "noise": kept.keep(inverse_gamma.mean(layer.noise_variance)),
    }


def _packed(matrices: Floats) -> Floats:
    """Upper triangles (D, K(K+1)/2), row by row; what stands twice in a matrix is doubled."""
    i, j = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[:, i, j] * np.where(i == j, 1.0, 2.0))


def _groups(kept: _Buffer, ensemble: Ensemble) -> dict[str, Any]:
    """Weights, warps and slopes of the groups, and the unit of the targets."""
    warp, scaling = group_warps(ensemble), ensemble.representation.target_scaling
    return {
        "weights": kept.keep(group_weights(ensemble)),
        "warp": None if warp is None else {name: kept.keep(a) for name, a in vars(warp).items()},
        "slope": None if ensemble.calibration is None else kept.keep(ensemble.calibration.slope),
        "center": kept.keep(scaling.center),
        "scale": kept.keep(scaling.scale),
    }


def _outside(
    kept: _Buffer, ensemble: Ensemble, places: Indices, rows: Floats
) -> dict[str, Any] | None:
    """Ranges of the panel, Var[∂f/∂x] (G, e, D), and Σ Var e² (R, G, D) of all other columns."""
    own = ensemble.outside
    if own is None:
        return None
    squares = (excess(own, rows) ** 2).sum(axis=0)
    squares[:, places] = 0.0
    return {
        "low": kept.keep(own.low[places]),
        "high": kept.keep(own.high[places]),
        "variance": kept.keep(own.slope_variances[:, places]),
        "base": kept.keep(np.einsum("re,ged->rgd", squares, own.slope_variances)),
        "bounded": own.bounded.tolist(),
    }


def _levels(
    kept: _Buffer, ensemble: Ensemble, places: Indices, rows: Floats
) -> dict[str, Any] | None:
    """Levels of noise, and logits of their gates: of the panel, and of all other columns."""
    own = ensemble.levels
    if own is None:
        return None
    order = {int(place): number for number, place in enumerate(places)}
    chosen = [number for number, place in enumerate(own.columns) if int(place) in order]
    inputs = gate_inputs(own.columns, rows)
    inputs[:, [1 + number for number in chosen]] = 0.0
    return {
        "scale": kept.keep(own.scale),
        "columns": [order[int(own.columns[number])] for number in chosen],
        "gates": kept.keep(own.gates[:, [1 + number for number in chosen]]),
        "base": kept.keep(np.einsum("rq,kqd->rkd", inputs, own.gates)),
    }


def _outcome(kept: _Buffer, ensemble: Ensemble) -> dict[str, Any]:
    """What outputs are: numbers, or what gives probabilities of classes."""
    outcome = outcome_of(ensemble)
    if isinstance(outcome, Binary):
        return {"kind": "binary"}
    if not isinstance(outcome, Classes):
        return {"kind": "numbers"}
    points, weights = normal_points(ensemble.members[0].model.architecture.n_outputs)
    return {"kind": "classes", "points": kept.keep(points), "weights": kept.keep(weights)}


def _constants() -> dict[str, Any]:
    """Numbers of the method: the mixture of probits, and the quadrature of warped targets."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return {
        "probit_weights": list(PROBIT_WEIGHTS),
        "probit_slopes": list(PROBIT_SLOPES),
        "furthest": FURTHEST,
        "nodes": nodes.tolist(),
        "node_weights": (weights / np.sum(weights)).tolist(),
    }
