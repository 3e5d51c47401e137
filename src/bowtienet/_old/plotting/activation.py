"""Display of the stochastic activation, the paper's first figure: where the bow tie comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, ndtr

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import positive
from bowtienet._old.distributions import inverse_gamma
from bowtienet._old.plotting._axes import (
    NEGATIVE,
    SMALL_SIZE,
    add_figure_legend,
    add_figure_title,
    load,
    new_figure,
)
from bowtienet._old.plotting.fitted import chosen_member, network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 240
"""Rows and columns of a heat map."""
_REACH = 6.0
"""Half-width of the plot in temperatures, or in deviations of the noise if they are larger."""


class ActivationDisplay:
    """p(a | z) = σ(z/T) N(a | z, η²) + (1 - σ(z/T)) N(a | 0, η²), with its mean σ(z/T) z.

    One panel for each temperature T (columns) and deviation η of the noise (rows). Darkness is the
    square root of the density, relative to its maximum for that z. ReLU, the limit of T = 0 and
    η = 0, is dashed.

    Parameters
    ----------
    temperatures, noise_deviations : sequence of float
        Positive.
    limit : float, optional
        The axes go from -limit to limit; for None six times the largest of temperatures and
        deviations.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array of its axes
        Where it was drawn last.
    """

    def __init__(
        self,
        *,
        temperatures: Sequence[float],
        noise_deviations: Sequence[float],
        limit: float | None = None,
    ) -> None:
        self.temperatures = [positive(t, "temperatures") for t in temperatures]
        self.noise_deviations = [positive(eta, "noise_deviations") for eta in noise_deviations]
        largest = max(*self.temperatures, *self.noise_deviations)
        self.limit = _REACH * largest if limit is None else positive(limit, "limit")

    @classmethod
    def from_parameters(
        cls,
        temperatures: Sequence[float] = (0.1, 0.5, 1.0),
        noise_deviations: Sequence[float] = (0.1, 0.5),
        *,
        limit: float | None = 3.0,
        fig: Figure | None = None,
    ) -> Self:
        """Draw the activation for combinations of temperature and noise.

        The arguments are those of the class, and `fig` a matplotlib figure to draw in.
        """
        display = cls(temperatures=temperatures, noise_deviations=noise_deviations, limit=limit)
        return display.plot(fig=fig)

    @classmethod
    def from_estimator(
        cls, model: Any, *, member: int | None = None, fig: Figure | None = None
    ) -> Self:
        """Draw the activation of a fitted network, with the median noise of its hidden units.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted, with hidden units.
        member : int, optional
            Its place among the members; the one with the largest weight by default.
        fig : matplotlib figure, optional
            Where to draw; a new one by default.
        """
        network = network_of(model)
        found = network.ensemble_.members[chosen_member(network, member)]
        hidden = [
            to_numpy(inverse_gamma.mean_inverse(layer.noise_variance)).astype(float)
            for layer in found.factors.layers[:-1]
        ]
        precision = np.concatenate([np.empty(0), *hidden])
        if precision.size == 0:
            raise ValueError(
                "model has no hidden units, and so no activations: fit with hidden_layer_sizes, "
                "or draw ActivationDisplay.from_parameters()."
            )
        display = cls(
            temperatures=[found.model.gate_temperature],
            noise_deviations=[float(np.median(precision)) ** -0.5],
        )
        return display.plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        rows, columns = len(self.noise_deviations), len(self.temperatures)
        fig = new_figure(1.0 + 2.3 * columns, 1.0 + 2.2 * rows) if fig is None else fig
        axes = fig.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for row, eta in enumerate(self.noise_deviations):
            for column, temperature in enumerate(self.temperatures):
                self._draw_panel(axes[row, column], temperature, eta)
        for ax in axes[-1]:
            ax.set_xlabel("preactivation z")
        for ax in axes[:, 0]:
            ax.set_ylabel("activation a")
        add_figure_legend(fig, list(axes[0, 0].lines), "lower")
        add_figure_title(fig, "Stochastic activation: density of a given z")
        self.figure_, self.axes_ = fig, axes
        return self

    def _draw_panel(self, ax: Any, temperature: float, deviation: float) -> None:
        edges = np.linspace(-self.limit, self.limit, _CELLS + 1)
        z = 0.5 * (edges[1:] + edges[:-1])
        density = activation_density(z, edges, temperature, deviation)
        ax.imshow(
            np.sqrt(density / np.max(density, axis=0)),
            origin="lower",
            extent=(-self.limit, self.limit, -self.limit, self.limit),
            cmap=load("colors").LinearSegmentedColormap.from_list(
                "density", ["white", "#BFD9EA", "#3B8CC0"]
            ),
            interpolation="bilinear",
        )
        ax.plot(edges, expit(edges / temperature) * edges, color=NEGATIVE, lw=1.8, label="mean")
        relu = {"color": "black", "lw": 1.3, "linestyle": (0, (3, 2)), "label": "ReLU"}
        ax.plot(edges, np.maximum(edges, 0.0), **relu)
        ax.set_title(f"T = {temperature:.3g}, η = {deviation:.3g}", fontsize=SMALL_SIZE + 1.0)


def activation_density(
    preactivations: np.ndarray, edges: np.ndarray, temperature: float, deviation: float
) -> np.ndarray:
    """Mean of p(a | z) over the cells between `edges` (m + 1,), of shape (m, preactivations).

    The mean over a cell, from the distribution function, because noise may be finer than a cell.
    """
    gate = expit(preactivations / temperature)
    ends = edges[:, None]
    open_gate = np.diff(ndtr((ends - preactivations) / deviation), axis=0)
    closed_gate = np.diff(ndtr(ends / deviation), axis=0)
    return (gate * open_gate + (1.0 - gate) * closed_gate) / np.diff(ends, axis=0)
