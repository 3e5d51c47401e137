"""The network of an estimator as circles and lines: columns, units and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from bowtienet.plotting._display import BLUE, ORANGE, PALE, Display, label


class NetworkDisplay(Display):
    """A network from left to right, with a line for each weight that is not zero.

    The wider a line, the larger its weight, relative to the largest of its layer; blue weights are
    positive, orange ones negative. Only the 400 largest are drawn. Columns and units without any
    weight are grey. Best after `prune`.

    Parameters
    ----------
    weights : sequence of arrays (D, K)
        One matrix for each layer, without biases, the output last.
    input_names, output_names : sequence of str
        Names of the columns and of the outputs.
    """

    def __init__(
        self,
        *,
        weights: Sequence[Any],
        input_names: Sequence[str],
        output_names: Sequence[str],
    ) -> None:
        self.weights = [np.asarray(matrix, dtype=float) for matrix in weights]
        self.input_names, self.output_names = list(input_names), list(output_names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the member with the highest bound of a fitted bow tie network."""
        if not hasattr(estimator, "selection"):
            raise TypeError(
                "NetworkDisplay draws a fitted BowTieNetwork or BowTieNetworkClassifier, got "
                f"{type(estimator).__name__}."
            )
        fitted = estimator._fitted
        means = [layer.weights.mean[estimator._best][:, 1:] for layer in fitted.posterior.layers]
        masks = fitted.model.connections or [np.ones(mean.shape, dtype=bool) for mean in means]
        names = fitted.representation.names
        seen = range(len(names)) if fitted.inputs is None else fitted.inputs
        outputs = list(estimator._target_names)
        if len(outputs) != len(means[-1]):
            outputs = [str(label) for label in estimator.classes_][-len(means[-1]) :]
        display = cls(
            weights=[np.where(mask, m, 0.0) for mask, m in zip(masks, means, strict=True)],
            input_names=[names[i] for i in seen],
            output_names=outputs,
        )
        return display.plot(ax)

    def _draw(self, ax: Any) -> None:
        widths = [self.weights[0].shape[1], *(len(matrix) for matrix in self.weights)]
        # Circles of a layer are centred at zero, and closer together in narrow layers.
        tops = [min(1.0, width / 8.0 + 0.3) * (width > 1) for width in widths]
        heights = [np.linspace(top, -top, n) for top, n in zip(tops, widths, strict=True)]
        n_weights = sum(int(np.count_nonzero(matrix)) for matrix in self.weights)
        shares = [matrix / (np.abs(matrix).max(initial=0.0) or 1.0) for matrix in self.weights]
        sizes = np.sort(np.abs(np.concatenate([matrix.ravel() for matrix in shares])))
        least = sizes[-400] if n_weights > 400 else 0.0
        for layer, matrix in enumerate(shares):
            for unit, column in np.argwhere((matrix != 0.0) & (np.abs(matrix) >= least)):
                share = abs(matrix[unit, column])
                ax.plot(
                    [layer, layer + 1],
                    [heights[layer][column], heights[layer + 1][unit]],
                    color=BLUE if matrix[unit, column] > 0.0 else ORANGE,
                    linewidth=0.3 + 2.2 * share,
                    alpha=0.25 + 0.65 * share,
                    zorder=1,
                )
        leaving = [*(np.any(matrix, axis=0) for matrix in self.weights), False]
        arriving = [False, *(np.any(matrix, axis=1) for matrix in self.weights)]
        for layer, height in enumerate(heights):
            colors = np.where(leaving[layer] | arriving[layer], "white", PALE)
            ax.scatter(np.full(len(height), layer), height, s=70, c=colors, ec="0.3", zorder=3)
        style = {"textcoords": "offset points", "va": "center"}
        for name, height in zip(self.input_names, heights[0], strict=True):
            ax.annotate(name, (0, height), (-9, 0), ha="right", **style)
        for name, height in zip(self.output_names, heights[-1], strict=True):
            ax.annotate(name, (len(heights) - 1, height), (9, 0), **style)
        ax.set(xlim=(-0.15, len(heights) - 0.85), xticks=[], yticks=[])
        units = "-".join(map(str, widths[1:-1])) or "no hidden layer"
        shown = "" if n_weights <= 400 else ", the 400 largest drawn"
        title = f"{units} hidden units, {n_weights:,} weights{shown} (blue > 0, orange < 0)"
        label(ax, title)
        ax.spines[:].set_visible(False)
