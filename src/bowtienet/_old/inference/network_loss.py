"""Losses of many ordinary networks and their gradients, on every array library.

    E_r = Σ_n w_rn l(y_n, f_rn),    h(z) = (z + s) / 2,  s = sqrt(z² + t²),  h'(z) = h / s

for networks r = 1..R of one architecture that see the same inputs, with the loss l of an outcome.
Units are rectifiers without a corner: a square root and a division. Rows are worked on in single
precision; their losses are summed in double where the device has it.

`plain_losses` is the formula, for arrays of any library. `_blocked_losses` is the same for NumPy,
in blocks that stay in the cache, without allocation, and with few passes over the units. There unit
0 of a hidden layer is one at all times and carries the biases of the next layer.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, like, namespace, slices, take, to_numpy, transpose, with_ones
from bowtienet._old.model.outcomes import Gaussian, Outcome

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Indices = NDArray[np.intp]
Shapes = tuple[tuple[int, int], ...]
"""(D_l, K_l + 1) of the layers."""

SMOOTHING = 0.01
"""t: h differs from a ReLU by t/2 at the corner and by less than t²/4 beyond |z| = 1. Standardised
inputs give preactivations of about 1, and a square that single precision still adds to 1."""
BLOCK_ROWS = 1024
BLOCK_NUMBERS = 2**18
"""Activations of a block, 1 MB: larger blocks leave the cache, smaller ones have small products."""
LOSS_NUMBERS = 2**14
"""Outputs of a block: the loss of an outcome allocates several arrays of this size, and the system
hands out larger ones slowly."""
FEW_INPUTS = 32
"""Up to so many, a product for each network is faster than one for all."""
DEVICE_NUMBERS = 2**24
"""Activations that a device works on at a time: some hundred megabytes with their derivatives."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows that networks are evaluated on, in any array library."""

    inputs: Array  # (n, D_0)
    targets: Array  # (n, C), the columns of the outcome
    row_weights: Floats  # (R, n), on the host


Losses = Callable[[NDArray[Any], Indices], tuple[Floats, NDArray[Any]]]
"""E (A,) and its gradients (A, P) at points (A, P) of the networks (A,)."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Memory of a block, written again and again: to allocate it costs as much as to fill it."""

    group: int  # networks that are worked on together
    rows: int  # of a block
    rooms: tuple[Singles, ...]  # (3, group, 1 + D_l, rows): 2 h, s and then 2 h', derivative by z


def build_workspace(widths: Sequence[int], count: int, n_rows: int) -> Workspace:
    """Memory for `count` networks with `widths` D_1, ..., D_out on `n_rows` rows."""
    rows = max(1, min(n_rows, _most_rows(widths[-1])))
    group = BLOCK_NUMBERS // ((1 + max(widths)) * rows)
    group = min(count, max(1, min(group, LOSS_NUMBERS // (widths[-1] * rows))))
    rooms = [np.empty((3, group, 1 + width, rows), dtype=np.float32) for width in widths[:-1]]
    return Workspace(group=group, rows=rows, rooms=tuple(rooms))


def enough_workspace(
    workspace: Workspace | None, shapes: Shapes, count: int, n_rows: int
) -> Workspace:
    """The same memory for the next batch, or more if it has more rows."""
    widths = [width for width, _ in shapes]
    if workspace is not None and workspace.rows >= min(n_rows, _most_rows(widths[-1])):
        return workspace
    return build_workspace(widths, count, n_rows)


def _most_rows(n_outputs: int) -> int:
    """Rows of a block, at most."""
    return min(BLOCK_ROWS, max(1, LOSS_NUMBERS // n_outputs))


def network_losses(
    batch: Batch, shapes: Shapes, outcome: Outcome, workspace: Workspace | None = None
) -> Losses:
    """The losses of networks on a batch, computed where its rows live.

    The outcome's parameters are numbers, the same for all networks. NumPy rows are worked on in
    `workspace`, which must have been built for as many rows or more.
    """
    if not array_api_compat.is_numpy_array(batch.inputs):
        inputs = _single(batch.inputs)
        there = _DeviceRows(
            inputs=inputs,
            targets=_single(batch.targets),
            row_weights=like(inputs, batch.row_weights),
            shapes=shapes,
            outcome=outcome,
        )
        return partial(_device_losses, there)
    if workspace is None:
        workspace = build_workspace([width for width, _ in shapes], *batch.row_weights.shape)
    rows = _HostRows(
        columns=_columns(batch.inputs),
        targets=np.asfortranarray(
            batch.targets, dtype=np.float64 if isinstance(outcome, Gaussian) else np.float32
        ),
        row_weights=batch.row_weights,
        shapes=shapes,
        outcome=outcome,
        workspace=workspace,
    )
    return partial(_blocked_losses, rows)


def outputs_of(layers: Sequence[NDArray[Any]], inputs: Array) -> Floats:
    """Outputs f (R, n, D_out), on the host; computed where `inputs` (n, D_0) live."""
    if not array_api_compat.is_numpy_array(inputs):
        rows = _single(inputs)
        return to_numpy(plain_outputs([like(rows, x) for x in layers], rows)[0][-1]).astype(float)
    columns = _columns(inputs)
    outputs = np.empty((len(layers[-1]), columns.shape[1], layers[-1].shape[1]))
    workspace = build_workspace([layer.shape[1] for layer in layers], *outputs.shape[:2])
    weights = _padded(layers)
    for some in slices(len(outputs), workspace.group):
        own = [layer[some] for layer in weights]
        for rows in slices(columns.shape[1], workspace.rows):
            above, _ = _forward(own, columns[:, rows], workspace.rooms)
            outputs[some, rows] = above[-1].transpose(0, 2, 1)
    return outputs


def split(points: NDArray[Any], shapes: Shapes) -> list[NDArray[Any]]:
    """Weights (R, D, K + 1) of the layers, views of points (R, P)."""
    ends = np.cumsum([width * size for width, size in shapes])
    return [
        points[:, end - width * size : end].reshape(-1, width, size)
        for end, (width, size) in zip(ends, shapes, strict=True)
    ]


def plain_outputs(layers: Sequence[Array], inputs: Array) -> tuple[list[Array], list[Array]]:
    """(1, h) below each layer and the outputs; h'(z) of hidden layers."""
    xp = namespace(inputs)
    below, slopes = [with_ones(inputs)], []
    for layer in layers[:-1]:
        z = below[-1] @ transpose(layer)
        root = xp.sqrt(z * z + SMOOTHING**2)
        below.append(with_ones(0.5 * (z + root)))
        slopes.append(0.5 * (z + root) / root)
    return [*below, below[-1] @ transpose(layers[-1])], slopes


def plain_losses(
    layers: Sequence[Array], inputs: Array, targets: Array, row_weights: Array, outcome: Outcome
) -> tuple[Array, list[Array]]:
    """E (R,) and its derivatives (R, D_l, K_l + 1) by the weights of each layer."""
    xp = namespace(inputs)
    below, slopes = plain_outputs(layers, inputs)
    losses, derivatives = outcome.loss(targets, below[-1])
    e = row_weights[:, :, None] * derivatives
    if isinstance(outcome, Gaussian):  # the targets of a row are summed in double, too
        weighted = 0.5 * xp.sum(xp.astype(e * derivatives, _widest(inputs)), axis=2)
    else:
        weighted = xp.astype(row_weights * losses, _widest(inputs))
    gradients = []
    for index in reversed(range(len(layers))):
        gradients.append(transpose(e) @ below[index])
        if index:
            e = (e @ layers[index][:, :, 1:]) * slopes[index - 1]
    return xp.sum(weighted, axis=1), gradients[::-1]


@dataclass(frozen=True, kw_only=True)
class _DeviceRows:
    inputs: Array  # (n, D_0), all in single precision on one device
    targets: Array  # (n, C)
    row_weights: Array  # (R, n)
    shapes: Shapes
    outcome: Outcome


def _device_losses(
    rows: _DeviceRows, points: NDArray[Any], networks: Indices
) -> tuple[Floats, NDArray[Any]]:
    """`plain_losses` of rows in any array library; points and gradients are on the host.

    JAX compiles for each number of networks: that is a power of four, or all of them.
    """
    losses, count = plain_losses, len(points)
    if array_api_compat.is_jax_array(rows.inputs):
        losses = _compiled()
        filled = np.resize(np.arange(count), _few_sizes(count, len(rows.row_weights)))
        points, networks = points[filled], networks[filled]
    layers = [like(rows.inputs, layer) for layer in split(points, rows.shapes)]
    row_weights = take(rows.row_weights, networks)
    values, gradients = np.zeros(len(points)), np.zeros(points.shape)
    block = DEVICE_NUMBERS // (len(points) * max(width for width, _ in rows.shapes))
    for some in slices(rows.inputs.shape[0], max(1, block)):
        found, slopes = losses(
            layers,
            rows.inputs[some, :],
            rows.targets[some, :],
            row_weights[:, some],
            rows.outcome,
        )
        values += to_numpy(found)
        flat = [to_numpy(slope).reshape(len(points), -1) for slope in slopes]
        gradients += np.concatenate(flat, axis=1)
    return values[:count], gradients[:count]


def _few_sizes(count: int, most: int) -> int:
    """The least power of four that is not below `count`, at most `most`."""
    size = 1
    while size < count:
        size *= 4
    return min(size, most)


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    """`plain_losses` compiled by JAX, once for each outcome and shape."""
    compiled: Callable[..., Any] = importlib.import_module("jax").jit(
        plain_losses, static_argnums=4
    )
    return compiled


def _single(x: Array) -> Array:
    xp = namespace(x)
    return xp.astype(x, xp.float32, copy=False)


def _widest(x: Array) -> Any:
    """Double precision, or single on devices without."""
    xp = namespace(x)
    kinds = xp.__array_namespace_info__().dtypes(kind="real floating")
    return kinds.get("float64", xp.float32)


@dataclass(frozen=True, kw_only=True)
class _HostRows:
    columns: Singles  # (1 + D_0, n), with a leading one
    targets: NDArray[Any]  # (n, C), column after column; in double for squared errors
    row_weights: Floats  # (R, n)
    shapes: Shapes
    outcome: Outcome
    workspace: Workspace


def _blocked_losses(
    rows: _HostRows, points: NDArray[Any], networks: Indices
) -> tuple[Floats, Singles]:
    """`plain_losses` of NumPy rows, block by block in a workspace."""
    rooms = rows.workspace.rooms
    values, gradients = np.zeros(len(points)), np.zeros(points.shape, dtype=np.float32)
    weights, slopes = _padded(split(points, rows.shapes)), split(gradients, rows.shapes)
    for some in slices(len(points), rows.workspace.group):
        own, own_slopes = [x[some] for x in weights], [x[some] for x in slopes]
        for block in slices(rows.columns.shape[1], rows.workspace.rows):
            columns = rows.columns[:, block]
            above, roots = _forward(own, columns, rooms)
            row_weights = rows.row_weights[networks[some], block]
            losses, e = _weighted(rows.outcome, rows.targets[block], above[-1], row_weights)
            values[some] += losses
            _backward(own, [columns, *above[:-1]], roots, e, rooms, own_slopes)
    return values, gradients


def _weighted(
    outcome: Outcome, targets: NDArray[Any], outputs: Singles, row_weights: Floats
) -> tuple[Floats, Singles]:
    """Σ_n w_n l(y_n, f_n) (A,) and its derivatives by outputs (A, D_out, n).

    Squared errors are as fast in double precision; other losses have many more operations.
    """
    if isinstance(outcome, Gaussian):
        residuals = outputs - targets.T
        weighted = row_weights[:, None] * residuals
        return 0.5 * np.einsum("rdn,rdn->r", weighted, residuals), weighted.astype(np.float32)
    losses, derivatives = outcome.loss(targets, outputs.transpose(0, 2, 1))
    e = row_weights.astype(np.float32)[:, None] * derivatives.transpose(0, 2, 1)
    return np.vecdot(row_weights, losses), e


def _columns(inputs: NDArray[Any]) -> Singles:
    """Rows as columns (1 + D_0, n), with a leading one."""
    columns = np.empty((1 + inputs.shape[1], len(inputs)), dtype=np.float32)
    columns[0], columns[1:] = 1.0, inputs.T
    return columns


def _padded(layers: Sequence[NDArray[Any]]) -> list[Singles]:
    """Weights with the unit that is one before each hidden layer, for inputs 2 h.

    z = 1 - t²/4 gives h(z) = 1.
    """
    weights: list[Singles] = []
    for index, layer in enumerate(layers):
        count, width, size = layer.shape
        constant = int(index + 1 < len(layers))
        padded = np.empty((count, constant + width, size), dtype=np.float32)
        padded[:, :constant] = 0.0
        padded[:, :constant, 0] = 1.0 - 0.25 * SMOOTHING**2
        padded[:, constant:] = layer
        if index:
            padded *= np.float32(0.5)
        weights.append(padded)
    return weights


def _forward(
    weights: list[Singles], columns: Singles, rooms: Sequence[Singles]
) -> tuple[list[Singles], list[Singles]]:
    """2 h (R, 1 + D_l, n) of all hidden layers and the outputs; s of hidden layers."""
    above, roots = [columns], []
    for layer, room in zip(weights[:-1], rooms, strict=True):
        values, root, _ = room[:, : len(layer), :, : columns.shape[1]]
        _product(layer, above[-1], values)
        np.multiply(values, values, out=root)
        root += np.float32(SMOOTHING**2)
        np.sqrt(root, out=root)
        values += root
        above.append(values)
        roots.append(root)
    outputs = np.empty((*weights[-1].shape[:2], columns.shape[1]), dtype=np.float32)
    return [*above[1:], _product(weights[-1], above[-1], outputs)], roots


def _product(layer: Singles, values: Singles, out: Singles) -> Singles:
    """Weights of a layer (R, D, K) times values (R, K, n), or (K, n) that all networks share."""
    if values.ndim == 2 and len(values) > FEW_INPUTS:
        np.matmul(layer.reshape(-1, len(values)), values, out=out.reshape(-1, values.shape[1]))
    else:
        np.matmul(layer, values, out=out)
    return out


def _backward(
    weights: list[Singles],
    below: list[Singles],
    roots: list[Singles],
    e: Singles,
    rooms: Sequence[Singles],
    gradients: list[Singles],
) -> None:
    """Add to the gradients, where e is the derivative by the outputs: by z_l it is (W' e) h'(z_l).

    With one output, W' is left out of the sums over rows.
    """
    for index in reversed(range(1, len(weights))):
        # A layer's own constant unit has no weights to learn.
        hidden = e[:, e.shape[1] - gradients[index].shape[1] :]
        gradients[index] += np.float32(0.5) * (hidden @ below[index].transpose(0, 2, 1))
        slopes = np.divide(below[index], roots[index - 1], out=roots[index - 1])
        back = weights[index].transpose(0, 2, 1)
        if e.shape[1] == 1 and index == 1:
            gradients[0] += (back * _shared_product(slopes, e, below[0]))[:, 1:]
            return
        room = rooms[index - 1][2, : len(e), :, : e.shape[2]]
        # A product over one output is an outer product, which BLAS is slow at.
        e = np.multiply(back, e, out=room) if e.shape[1] == 1 else np.matmul(back, e, out=room)
        e *= slopes
    first = e.reshape(-1, e.shape[2]) @ below[0].T
    gradients[0] += first.reshape(*e.shape[:2], -1)[:, e.shape[1] - gradients[0].shape[1] :]


def _shared_product(slopes: Singles, e: Singles, columns: Singles) -> Singles:
    """Σ_n slopes_rdn e_rn x_kn (R, D, K); the slopes are lost."""
    if len(columns) <= FEW_INPUTS:
        return slopes @ (columns * e).transpose(0, 2, 1)
    slopes *= e
    product = slopes.reshape(-1, columns.shape[1]) @ columns.T
    return product.reshape(*slopes.shape[:2], -1)
