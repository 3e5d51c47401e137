"""Display of shrinkage: what the data made of the prior of the scales tau and psi of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._arrays import is_number, to_numpy
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.point_mass import PointMass
from bowtienet.inference.iterate import FitResult
from bowtienet.model.shrinkage import Shrinkage
from bowtienet.plotting._axes import INK, MUTED, POSITIVE, SMALL_SIZE, new_figure, tidy, tint
from bowtienet.plotting._checks import chosen
from bowtienet.plotting.fitted import chosen_member, network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 400
_MOST_SCALES = 2000
"""Scales whose densities are averaged."""
_WIDTHS = 10.0
"""How far curves are followed, in widths of their peaks, before what is flat is cut off."""
_STEEP = 50.0
"""Beyond the peak, what the exponent may lose at least before a curve is not followed."""
_FLAT = 0.005
"""Of the peak: below this a curve is not drawn."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """x p(x), the density of log x, over x; or all probability at one x, with density inf."""

    x: np.ndarray
    density: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Prior and posterior of the scales of one kind in one layer."""

    layer: int
    """Counted from 0."""
    kind: str
    """"global" (tau, one for the layer) or "local" (psi, one for each weight)."""
    prior: Curve
    posterior: Curve | None
    """For local scales the mean of the densities of the weights; None if no weight is left."""


class ShrinkageDisplay:
    """Densities of log tau and log psi, prior and posterior, of W ~ N(0, tau psi) in each layer.

    Weights far left are shrunk to nothing; the posterior of tau says by how much the layer as a
    whole is shrunk, that of psi (the mean of the weights' densities, of more than 2000 weights that
    of 2000 even quantiles of their parameters) which part of its weights got away. The prior of tau
    is the one that empirical Bayes has chosen.

    Parameters
    ----------
    panels : sequence of Panel
        Global and local ones in turns, layer by layer.
    n_layers : int
        Layers of the network.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array (layers, 2) of its axes
        Where it was drawn last.
    prior_lines_, posterior_lines_ : lists of matplotlib artists
        One for each panel, row by row; None where there is no posterior.
    """

    def __init__(self, *, panels: Any, n_layers: int) -> None:
        self.panels = list(panels)
        self.n_layers = n_layers

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        layer: int | None = None,
        member: int | None = None,
        fig: Figure | None = None,
    ) -> Self:
        """Draw the shrinkage of a member of a fitted estimator.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        layer : int, optional
            Counted from 0, the output last; all by default.
        member : int, optional
            Its place among the members; the one with the largest weight by default.
        fig : matplotlib figure, optional
            Where to draw; a new one by default.
        """
        network = network_of(model)
        found = network.ensemble_.members[chosen_member(network, member)]
        count = len(found.factors.layers)
        layers = range(count) if layer is None else [chosen(layer, count, "layer")]
        panels = [panel for index in layers for panel in shrinkage_panels(found, index)]
        return cls(panels=panels, n_layers=count).plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        rows = len(self.panels) // 2
        fig = new_figure(8.0, 0.8 + 2.0 * rows) if fig is None else fig
        axes = fig.subplots(rows, 2, squeeze=False, sharex="col")
        self.prior_lines_: list[Any] = []
        self.posterior_lines_: list[Any] = []
        for ax, panel in zip(axes.flat, self.panels, strict=True):
            self._draw_panel(ax, panel)
        for column in (0, 1):
            _show_points(axes[-1, column], self.panels[column::2])
        for ax, words in zip(
            axes[-1], ("global scale τ", "local scales ψ of weights"), strict=True
        ):
            ax.set_xlabel(words)
        handles = [line for line in (self.prior_lines_[0], self.posterior_lines_[0]) if line]
        fig.legend(
            handles=handles,
            loc="outside upper center",
            ncols=2,
            frameon=False,
            fontsize=SMALL_SIZE + 0.5,
        )
        self.figure_, self.axes_ = fig, axes
        return self

    def _draw_panel(self, ax: Any, panel: Panel) -> None:
        ax.set_xscale("log")
        ax.set_title(self._layer_words(panel.layer), fontsize=SMALL_SIZE + 1.0, loc="left")
        if panel.prior.x.size > 1:
            ax.set_ylabel(f"density of log {'τ' if panel.kind == 'global' else 'ψ'}")
        dashed = {"color": INK, "lw": 1.3, "linestyle": (0, (4, 2)), "label": "prior"}
        solid = {"color": POSITIVE, "lw": 1.8, "label": "posterior"}
        self.prior_lines_.append(_draw_curve(ax, panel.prior, dashed | {"zorder": 3}))
        if panel.posterior is None:
            look = {"ha": "right", "color": MUTED, "fontsize": SMALL_SIZE}
            ax.text(0.98, 0.9, "no weights left", transform=ax.transAxes, **look)
            self.posterior_lines_.append(None)
        else:
            self.posterior_lines_.append(_draw_curve(ax, panel.posterior, solid | {"zorder": 2}))
            if panel.posterior.x.size > 1:
                ax.fill_between(
                    panel.posterior.x,
                    panel.posterior.density,
                    lw=0.0,
                    zorder=1,
                    color=tint(POSITIVE, 0.2),
                )
        ax.set_ylim(bottom=0.0)
        tidy(ax)

    def _layer_words(self, layer: int) -> str:
        source = "inputs" if layer == 0 else f"layer {layer}"
        return f"{source} → {'output' if layer == self.n_layers - 1 else f'layer {layer + 1}'}"


def shrinkage_panels(member: FitResult, layer: int) -> tuple[Panel, Panel]:
    """Global and local panel of one layer, counted from 0."""
    prior, factors = member.model.prior, member.factors.layers[layer]
    connections = member.model.connections
    present = None if connections is None else to_numpy(connections[layer])
    return (
        Panel(
            layer=layer,
            kind="global",
            prior=density_curve(prior.global_shrinkage),
            posterior=density_curve(factors.global_shrinkage),
        ),
        Panel(
            layer=layer,
            kind="local",
            prior=density_curve(prior.local_shrinkage[layer]),
            posterior=_local_posterior(factors.local_shrinkage, present),
        ),
    )


def _local_posterior(q: Shrinkage, present: np.ndarray | None) -> Curve | None:
    if isinstance(q, PointMass):
        return density_curve(q)
    scale = to_numpy(q.scale).astype(float)
    scale = scale.ravel() if present is None else scale[present]
    if scale.size == 0:
        return None
    return density_curve(GeneralizedInverseGaussian(order=q.order, scale=scale, rate=q.rate))


def density_curve(q: Shrinkage) -> Curve:
    """x p(x) of a scale, or the mean of those of several, over the x where it is not flat.

    Of more than 2000 the mean is taken over as many even quantiles of `q.scale`.
    """
    if isinstance(q, PointMass):
        return Curve(x=np.array([q.value]), density=np.array([np.inf]))
    q = GeneralizedInverseGaussian(
        order=q.order, scale=_thinned(_plain(q.scale)), rate=_plain(q.rate)
    )
    log_normalizer = to_numpy(gig.log_normalizer(q))
    log_x = np.linspace(*_reach(q), 4 * _POINTS)
    density = _density(q, log_normalizer, log_x)
    seen = log_x[density >= _FLAT * np.max(density)]
    log_x = np.linspace(seen[0], seen[-1], _POINTS)
    return Curve(x=np.exp(log_x), density=_density(q, log_normalizer, log_x))


def _thinned(scale: Any) -> Any:
    """The scale itself, or even quantiles of very many: each stands for as many of them."""
    count = np.size(scale)
    if count <= _MOST_SCALES:
        return scale
    places = (np.arange(_MOST_SCALES) + 0.5) * count / _MOST_SCALES
    return np.sort(scale, axis=None)[places.astype(int)]


def _plain(value: Any) -> Any:
    """NumPy, but numbers as they are: the number 0 says which limit of the GIG it is."""
    return value if is_number(value) else to_numpy(value).astype(float)


def _peak(q: GeneralizedInverseGaussian) -> tuple[np.ndarray, np.ndarray]:
    """Mode x of the density of log x, and the width (s/x + r x)^{-1/2} of its peak.

    The logarithm p log x - s/x - r x has its maximum at the root of r x² - p x - s = 0.
    """
    p = q.order
    scale, rate = (to_numpy(value).astype(float) for value in (q.scale, q.rate))
    root = np.sqrt(p * p + 4.0 * scale * rate)
    # The two forms of the root: each is free of cancellation, and of 0/0, where it is used.
    mode = 2.0 * scale / (root - p) if p < 0.0 else (p + root) / (2.0 * rate)
    return mode, 1.0 / np.sqrt(scale / mode + rate * mode)


def _reach(q: GeneralizedInverseGaussian) -> tuple[float, float]:
    """Ends of log x beyond which nothing is seen of any of the densities.

    They lie so many widths from the modes m, but not where s/x or r x is larger than twice its
    value at m and 50 more, which takes at least e^-40 off the peak: for order 0 and small s r the
    density is flat between s and 1/r, and the width says nothing.
    """
    mode, width = _peak(q)
    with np.errstate(divide="ignore"):
        below, above = (
            np.minimum(_WIDTHS * width, np.log(2.0 + _STEEP / part))
            for part in (to_numpy(q.scale) / mode, to_numpy(q.rate) * mode)
        )
    return float(np.min(np.log(mode) - below)), float(np.max(np.log(mode) + above))


def _density(
    q: GeneralizedInverseGaussian, log_normalizer: np.ndarray, log_x: np.ndarray
) -> np.ndarray:
    """Mean over scales of exp(p log x - s/x - r x - log Z), the density of log x.

    `gig.log_density` would compute log Z, which needs Bessel functions, again for every x.
    """
    density = np.empty(log_x.size)
    for place, point in enumerate(log_x):
        x = np.exp(point)
        found = q.order * point - q.scale / x - q.rate * x - log_normalizer
        density[place] = np.mean(np.exp(found))
    return density


def _show_points(ax: Any, panels: Sequence[Panel]) -> None:
    """Limits of axes that hold nothing but scales which are fixed."""
    if all(panel.prior.x.size == 1 for panel in panels):
        fixed = [float(panel.prior.x[0]) for panel in panels]
        ax.set_xlim(min(fixed) / 10.0, max(fixed) * 10.0)


def _draw_curve(ax: Any, curve: Curve, look: dict[str, Any]) -> Any:
    if curve.x.size > 1:
        return ax.plot(curve.x, curve.density, **look)[0]
    value = float(curve.x[0])
    ax.set(ylim=(0.0, 1.0), yticks=[])
    return ax.axvline(value, **look)
