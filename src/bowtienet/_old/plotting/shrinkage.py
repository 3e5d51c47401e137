"""Display of shrinkage: what the data made of the prior of the scales tau and psi of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bowtienet._old._arrays import is_number, to_numpy
from bowtienet._old._validation import chosen
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions import half_cauchy
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.model.shrinkage import ShrinkagePrior
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting.fitted import chosen_member, network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REACH = np.log(1e-14), np.log(1e14)
"""Ends of log x between which densities are looked for."""
_POINTS = 400
_MOST_SCALES = 500
"""Scales whose densities are averaged."""
_MEANINGS = (
    "global scale τ of a layer\n(left of the prior: all of its weights are shrunk)",
    "local scales ψ of single weights\n(a tail to the right: weights that got away)",
)
_FLAT = 0.005
"""Of the peak: below this a curve is not drawn."""


class Curve(NamedTuple):
    """x p(x), the density of log x, over x; all probability at one x if there is only one."""

    x: np.ndarray
    density: np.ndarray


class Panel(NamedTuple):
    """Prior and posterior of the scales of one kind in one layer."""

    prior: Curve | None
    posterior: Curve | None
    """For local scales the mean of the densities of the weights; None of no weights."""


class ShrinkageDisplay:
    """Densities of log tau and log psi, prior and posterior, of W ~ N(0, tau psi) in each layer.

    Weights far left are shrunk to nothing; the posterior of tau says by how much the layer as a
    whole is shrunk, that of psi (the mean of the weights' densities, of many weights that of 500
    even quantiles of their parameters) which part of its weights got away. The prior of tau is the
    one that empirical Bayes has chosen.

    Parameters
    ----------
    panels : sequence of pairs of Panel
        That of the global and that of the local scales of each layer.
    titles : sequence of str
        One for each layer.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array (layers, 2) of its axes
        Where it was drawn last.
    """

    def __init__(self, *, panels: Sequence[tuple[Panel, Panel]], titles: Sequence[str]) -> None:
        self.panels, self.titles = list(panels), list(titles)

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
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
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
        display = cls(
            panels=[shrinkage_panels(found, index) for index in layers],
            titles=[_axes.layer_title(index, count) for index in layers],
        )
        return display.plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        rows = len(self.panels)
        fig = _axes.new_figure(8.0, 1.3 + 1.9 * rows) if fig is None else fig
        axes = fig.subplots(rows, 2, squeeze=False, sharex="col")
        for row, pair, title in zip(axes, self.panels, self.titles, strict=True):
            for ax, panel, letter in zip(row, pair, "τψ", strict=True):
                ax.set_title(title, fontsize=_axes.SMALL_SIZE + 1.0, loc="left")
                _draw_panel(ax, panel)
                note = median_note(panel, letter)
                ax.set_title(note, fontsize=_axes.SMALL_SIZE, loc="right", color=_axes.MUTED)
        for ax, words in zip(axes[-1], _MEANINGS, strict=True):
            ax.set_xlabel(words)
            ax.xaxis.set_major_formatter(_axes.load("ticker").StrMethodFormatter("{x:g}"))
        _axes.add_figure_legend(fig, list(axes[0, 0].lines), "lower")
        _axes.add_figure_title(fig, "Shrinkage: scales of the weights before and after the data")
        self.figure_, self.axes_ = fig, axes
        return self


def shrinkage_panels(member: FitResult, layer: int) -> tuple[Panel, Panel]:
    """Global and local panel of one layer, counted from 0."""
    prior, factors = member.model.prior, member.factors.layers[layer]
    q, connections = factors.local_shrinkage, member.model.connections
    if connections is not None and isinstance(q, GeneralizedInverseGaussian):
        present = to_numpy(connections[layer])
        q = GeneralizedInverseGaussian(order=q.order, scale=to_numpy(q.scale)[present], rate=q.rate)
    return (
        Panel(density_curve(prior.global_shrinkage), density_curve(factors.global_shrinkage)),
        Panel(density_curve(prior.local_shrinkage[layer]), density_curve(q)),
    )


def density_curve(q: ShrinkagePrior) -> Curve | None:
    """x p(x) of a scale, or the mean of those of several, over the x where it is not flat."""
    if isinstance(q, PointMass):
        return Curve(np.array([q.value]), np.array([np.inf]))
    scale = q.scale
    if not is_number(scale):
        scale = np.sort(to_numpy(scale).astype(float), axis=None)[:, None]
        if scale.size == 0:
            return None
        scale = scale[np.linspace(0, scale.size - 1, min(scale.size, _MOST_SCALES)).astype(int)]
    found: GeneralizedInverseGaussian | HalfCauchy = HalfCauchy(scale=scale)
    if isinstance(q, GeneralizedInverseGaussian):
        rate = q.rate if is_number(q.rate) else float(to_numpy(q.rate))
        found = GeneralizedInverseGaussian(order=q.order, scale=scale, rate=rate)
    log_x = np.linspace(*_REACH, 10 * _POINTS)
    density = _density(found, log_x)
    seen = np.flatnonzero(density >= _FLAT * np.max(density))
    first, last = max(seen[0] - 1, 0), min(seen[-1] + 1, log_x.size - 1)
    log_x = np.linspace(log_x[first], log_x[last], _POINTS)
    return Curve(np.exp(log_x), _density(found, log_x))


def _density(q: GeneralizedInverseGaussian | HalfCauchy, log_x: np.ndarray) -> np.ndarray:
    """Mean over the scales of the density of log x."""
    x = np.exp(log_x)
    found = half_cauchy.log_density(q, x) if isinstance(q, HalfCauchy) else gig.log_density(q, x)
    log_density = to_numpy(found) + log_x
    return np.mean(np.atleast_2d(np.exp(log_density)), axis=0)


def median_note(panel: Panel, letter: str) -> str:
    """Medians of a scale before and after the data, in words."""
    if panel.prior is None or panel.posterior is None:
        return ""
    before, after = _median(panel.prior), _median(panel.posterior)
    return f"median {letter}: {before:.2g} → {after:.2g}"


def _median(curve: Curve) -> float:
    """Where half of the area below x p(x) over log x is reached."""
    if curve.x.size == 1:
        return float(curve.x[0])
    log_x = np.log(curve.x)
    steps = 0.5 * (curve.density[1:] + curve.density[:-1]) * np.diff(log_x)
    share = np.concatenate([[0.0], np.cumsum(steps)]) / np.sum(steps)
    return float(np.exp(np.interp(0.5, share, log_x)))


def _draw_panel(ax: Any, panel: Panel) -> None:
    ax.set_xscale("log")
    ax.set_yticks([])  # the unit of a density of log x tells nobody anything
    ax.spines["left"].set_visible(False)
    dashed = {"color": _axes.INK, "lw": 1.3, "linestyle": (0, (4, 2)), "label": "prior"}
    solid = {"color": _axes.POSITIVE, "lw": 1.8, "label": "posterior"}
    for curve, look in ((panel.prior, dashed), (panel.posterior, solid)):
        if curve is None:
            words = {"ha": "right", "color": _axes.MUTED, "fontsize": _axes.SMALL_SIZE}
            ax.text(0.98, 0.9, "no weights left", transform=ax.transAxes, **words)
        elif curve.x.size > 1:
            ax.plot(*curve, **look)
            if curve is panel.posterior:
                ax.fill_between(*curve, lw=0.0, color=_axes.tint(_axes.POSITIVE, 0.2))
        else:
            value = float(curve.x[0])
            ax.set(xlim=(value / 10.0, value * 10.0))
            ax.axvline(value, **look)
    ax.set_ylim(bottom=0.0)
    _axes.tidy(ax)
