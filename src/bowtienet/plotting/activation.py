"""Display of the stochastic activation, the paper's first figure: where the bow tie comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, ndtr

from bowtienet._arrays import to_numpy
from bowtienet._validation import non_negative, positive
from bowtienet.distributions import inverse_gamma
from bowtienet.plotting._axes import NEGATIVE, SMALL_SIZE, load, new_figure
from bowtienet.plotting.fitted import chosen_member, network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 240
"""Rows and columns of a heat map."""
_REACH = 6.0
"""Half-width of the plot in temperatures, or in deviations of the noise if they are larger."""


class ActivationDisplay:
    """p(a | z) = σ(z/T) N(a | z, η²) + (1 - σ(z/T)) N(a | 0, η²), with its mean σ(z/T) z.

    One panel for each temperature T (columns) and deviation η of the noise (rows). Darkness is the
    square root of the density, relative to its maximum for that z. Dotted is the mean plus and
    minus the deviation √(η² + z² σ(z/T) (1 - σ(z/T))). ReLU, the limit of T = 0 and η = 0, is
    dashed.

    Parameters
    ----------
    temperatures : sequence of float
        Not negative.
    noise_deviations : sequence of float
        Positive.
    limit : float, optional
        The axes go from -limit to limit; for None six times the largest of temperatures and
        deviations.

    Attributes
    ----------
    preactivations : array (m + 1,)
        Edges of the cells along z, and along a.
    densities : array (noise_deviations, temperatures, m, m)
        Density of every cell, with a along the rows.
    figure_, axes_ : matplotlib figure and array of its axes
        Where it was drawn last.
    images_, mean_lines_ : lists of matplotlib artists
        One for each panel, row by row.
    deviation_lines_ : list of pairs of matplotlib artists
        Below and above the mean, the same.
    """

    def __init__(
        self,
        *,
        temperatures: Sequence[float],
        noise_deviations: Sequence[float],
        limit: float | None = None,
    ) -> None:
        self.temperatures = [non_negative(t, "temperatures") for t in temperatures]
        self.noise_deviations = [positive(eta, "noise_deviations") for eta in noise_deviations]
        largest = max(*self.temperatures, *self.noise_deviations)
        self.limit = _REACH * largest if limit is None else positive(limit, "limit")
        self.preactivations = np.linspace(-self.limit, self.limit, _CELLS + 1)
        centers = 0.5 * (self.preactivations[1:] + self.preactivations[:-1])
        self.densities = np.array(
            [
                [
                    activation_density(centers, self.preactivations, t, eta)
                    for t in self.temperatures
                ]
                for eta in self.noise_deviations
            ]
        )

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
        model : BowTieRegressor or pipeline that ends with one
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
        shape = self.densities.shape[:2]
        if fig is None:
            fig = new_figure(1.0 + 2.3 * shape[1], 1.0 + 2.2 * shape[0])
        axes = fig.subplots(*shape, squeeze=False, sharex=True, sharey=True)
        self.images_: list[Any] = []
        self.mean_lines_: list[Any] = []
        self.deviation_lines_: list[tuple[Any, Any]] = []
        for row, eta in enumerate(self.noise_deviations):
            for column, gate_temperature in enumerate(self.temperatures):
                self._draw_panel(axes[row, column], row, column)
                axes[row, column].set_title(
                    f"T = {gate_temperature:.3g}, η = {eta:.3g}", fontsize=SMALL_SIZE + 1.0
                )
        for ax in axes[-1]:
            ax.set_xlabel("preactivation z")
        for ax in axes[:, 0]:
            ax.set_ylabel("activation a")
        handles, words = axes[0, 0].get_legend_handles_labels()
        fig.legend(
            handles, words, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL_SIZE
        )
        self.figure_, self.axes_ = fig, axes
        return self

    def _draw_panel(self, ax: Any, row: int, column: int) -> None:
        density = self.densities[row, column]
        relative = np.sqrt(density / np.max(density, axis=0))
        extent = (-self.limit, self.limit, -self.limit, self.limit)
        image = ax.imshow(
            relative,
            origin="lower",
            extent=extent,
            cmap=_shades(),
            vmin=0.0,
            vmax=1.0,
            interpolation="bilinear",
        )
        z = self.preactivations
        mean, deviation = activation_moments(
            z, self.temperatures[column], self.noise_deviations[row]
        )
        outline = load("patheffects").withStroke(linewidth=3.2, foreground="white")
        (line,) = ax.plot(z, mean, color=NEGATIVE, lw=1.8, label="mean", path_effects=[outline])
        ax.plot(z, np.maximum(z, 0.0), color="black", lw=1.3, linestyle=(0, (3, 2)), label="ReLU")
        look = {"color": NEGATIVE, "lw": 1.0, "linestyle": ":"}
        (below,) = ax.plot(z, mean - deviation, label="mean ± deviation", **look)
        (above,) = ax.plot(z, mean + deviation, **look)
        ax.set(xlim=extent[:2], ylim=extent[2:])
        self.images_.append(image)
        self.mean_lines_.append(line)
        self.deviation_lines_.append((below, above))


def gate_probability(preactivations: np.ndarray, gate_temperature: float) -> np.ndarray:
    """σ(z/T), and its limit 1[z > 0] for T = 0."""
    if gate_temperature == 0.0:
        return (preactivations > 0.0).astype(float)
    with np.errstate(over="ignore"):
        return expit(preactivations / gate_temperature)


def activation_moments(
    preactivations: np.ndarray, gate_temperature: float, noise_deviation: float
) -> tuple[np.ndarray, np.ndarray]:
    """E[a | z] = s z and √Var[a | z] = √(η² + z² s (1 - s)), with s = σ(z/T)."""
    gate = gate_probability(preactivations, gate_temperature)
    spread = preactivations * np.sqrt(gate * (1.0 - gate))
    return gate * preactivations, np.hypot(noise_deviation, spread)


def activation_density(
    preactivations: np.ndarray, edges: np.ndarray, gate_temperature: float, deviation: float
) -> np.ndarray:
    """Mean of p(a | z) over the cells between `edges` (m + 1,), of shape (m, preactivations).

    The mean over a cell, from the distribution function, because noise may be finer than a cell.
    """
    gate = gate_probability(preactivations, gate_temperature)
    ends = edges[:, None]
    open_gate = np.diff(ndtr((ends - preactivations) / deviation), axis=0)
    closed_gate = np.diff(ndtr(ends / deviation), axis=0)
    return (gate * open_gate + (1.0 - gate) * closed_gate) / np.diff(ends, axis=0)


def _shades() -> Any:
    return load("colors").LinearSegmentedColormap.from_list(
        "density", ["white", "#BFD9EA", "#3B8CC0"]
    )
