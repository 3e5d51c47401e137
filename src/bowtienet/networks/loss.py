"""Loss and gradient of R networks on one minibatch, for any depth.

    L_r = Σ_n c_rn l(y_n, f_rn) / Σ_n c_rn

with the loss l of an outcome. All networks see the same rows, whose first products are one matrix
product for all of them; a row with c_rn = 0 has no influence on network r, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet.networks.networks import Single
from bowtienet.outcomes import Outcome


def gradients(
    layers: Sequence[Single],
    inputs: Single,
    targets: Single,
    row_weights: Single,
    outcome: Outcome,
    into: Sequence[Single],
) -> NDArray[np.float32]:
    """Losses (R,), with their gradients by the weights written to `into`.

    Parameters
    ----------
    layers : sequence of arrays (R, D, K+1)
        Weights.
    inputs : array (b, K+1)
        Rows with the leading constant 1.
    targets : array (b, C)
        Targets of the outcome.
    row_weights : array (R, b)
        Weights c of the rows; 0 holds a row out.
    outcome : Outcome
        Whose loss it is.
    into : sequence of arrays (R, D, K+1)
        Where the gradients go.
    """
    count, width, size = layers[0].shape
    first = layers[0].reshape(count * width, size) @ inputs.T
    z = first.reshape(count, width, len(inputs))
    activations: list[Single] = []
    for layer in layers[1:]:
        activations.append(np.maximum(z, 0.0, out=z))
        z = layer[:, :, 1:] @ activations[-1]
        z += layer[:, :, :1]
    losses, slopes = outcome.loss(targets, np.swapaxes(z, 1, 2))
    total = row_weights.sum(axis=1)
    share = row_weights / np.where(total > 0.0, total, 1.0)[:, None]
    back = np.swapaxes(slopes, 1, 2) * share[:, None, :]
    for index in range(len(layers) - 1, 0, -1):
        below = activations[index - 1]
        np.matmul(back, np.swapaxes(below, 1, 2), out=into[index][:, :, 1:])
        np.sum(back, axis=2, out=into[index][:, :, 0])
        weights = np.swapaxes(layers[index][:, :, 1:], 1, 2)
        # With one output the product is an outer one, which matmul is slow at.
        back = weights * back if back.shape[1] == 1 else weights @ back
        np.multiply(back, below > 0.0, out=back)
    flat = back.reshape(count * width, len(inputs))
    np.matmul(flat, inputs, out=into[0].reshape(count * width, size))
    return np.asarray(np.sum(share * losses, axis=1), dtype=np.float32)
