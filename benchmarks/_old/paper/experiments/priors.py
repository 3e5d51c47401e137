"""The paper's figure of the shrinkage priors, from their densities in closed form.

With psi ~ GIG(p, s, r) a weight W ~ N(0, psi) has the density

    p(w) = (2π)^{-½} Z(p - ½, s + w²/2, r) / Z(p, s, r),

Z the GIG's normaliser. The horseshoe has sqrt(psi) half-Cauchy, and with u = w² / (2A²)

    p(w) = (2 π³ A²)^{-½} e^u E_1(u).

The regularised horseshoe multiplies it by exp(-w²/(2c²)) with c² ~ IG(v/2, v s²/2), which leaves

    p(w) ∝ p_horseshoe(w) (1 + w²/(v s²))^{-v/2}.

Panels of the first figure: the density of the four priors that the paper tabulates, of the
horseshoes and of a Gaussian, all with the same median of |w|; their tails; and what is left of a
value y = w + N(0, 1) after shrinkage, E[w | y] / y. The second figure shows what the scale tau of
a layer does: weights of a layer depend on each other, those of different layers do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.special import erf, erfc, logsumexp

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.drawing import BLUE, GREEN, INK, ORANGE, PINK, SKY, YELLOW, new_figure, tidy
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions import half_cauchy
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import build_model
from bowtienet._old.model.shrinkage import SLAB_FAMILY, Shrinkage, build_shrinkage, scaled

Floats = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Slabbed:
    """psi and c² of the regularised horseshoe."""

    local: HalfCauchy
    slab: InverseGamma


Mixing = Shrinkage | HalfCauchy | Slabbed
"""What mixes the variances of a weight."""


class Family(NamedTuple):
    """A prior of the paper's table: what it is called, what mixes it, and how it is drawn."""

    label: str
    mixing: str
    tails: str
    color: str
    line: str


FAMILIES = {
    "student_t": Family("Student-t", "inverse gamma", "polynomial", BLUE, "-"),
    "laplace": Family("Laplace", "gamma", "exponential", ORANGE, "--"),
    "normal_gamma": Family("normal-gamma", "gamma", "exponential", GREEN, "-."),
    "normal_inverse_gaussian": Family(
        "normal-inverse Gaussian", "inverse Gaussian", "exponential", PINK, ":"
    ),
    "horseshoe": Family("horseshoe", "half-Cauchy, squared", "polynomial", SKY, "--"),
    "regularized_horseshoe": Family(
        "regularised horseshoe", "half-Cauchy, squared, with a slab", "polynomial", YELLOW, "-."
    ),
    "gaussian": Family("Gaussian", "none", "Gaussian", INK, "-"),
}
JOINT = {"student_t": "inverse gamma", "laplace": "gamma"}
"""Priors of the second figure and what mixes them, of tau as of psi."""
_WIDTHS = (4, 16)
"""Inputs of the two layers of the second figure: psi shrinks with their number."""
_GIVEN = ((0.1, BLUE, "-"), (1.0, GREEN, "-."), (3.0, ORANGE, "--"))
"""Values of another weight of the layer, and how they are drawn."""
_TINY, _HUGE, _NODES = 1e-18, 1e9, 2001
"""Ends of the scales that are integrated over, relative to a typical one, and their number."""
_SLAB_NODES = 61
"""Values of c²: more change no digit of the table."""
_LEAST_SHARE = 1e-30
"""Of a scale, relative to the likeliest: rarer ones can say nothing in any figure."""


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Write the table of the priors and both figures; records are of no use here."""
    priors = {name: with_median_one(build_prior(name)) for name in FAMILIES}
    drawing.save_table(_table(priors), folder, "priors")
    drawing.save_figure(_draw_marginals(priors), folder, "priors_marginal")
    drawing.save_figure(_draw_joint(), folder, "priors_joint")


def build_prior(name: str) -> Mixing:
    """Prior of psi by the name of the family, with the slab that the library gives it."""
    if name != SLAB_FAMILY:
        return build_shrinkage(name)
    prior = build_model(build_architecture(1, (), 1), prior=name).prior
    return Slabbed(local=prior.local_shrinkage[0], slab=prior.slab)


def log_marginal(prior: Mixing, w: Floats) -> Floats:
    """log p(w) = -½ log 2π + log Z(p - ½, s + w²/2, r) - log Z(p, s, r) of W ~ N(0, psi).

    Of the horseshoes the sum over scales and their shares.
    """
    w = np.asarray(w, dtype=float)
    constant = -0.5 * np.log(2.0 * np.pi)
    if isinstance(prior, HalfCauchy | Slabbed):
        psi, shares = scale_nodes(prior)
        log_weight = np.log(shares) - 0.5 * np.log(psi)
        return constant + np.array([logsumexp(log_weight - 0.5 * v**2 / psi) for v in w.ravel()])
    if isinstance(prior, PointMass):
        return constant - 0.5 * np.log(prior.value) - 0.5 * w**2 / prior.value
    known = GeneralizedInverseGaussian(
        order=prior.order - 0.5, scale=prior.scale + 0.5 * w**2, rate=prior.rate
    )
    return constant + gig.log_normalizer(known) - gig.log_normalizer(prior)


def with_median_one(prior: Mixing) -> Mixing:
    """The prior scaled so that the median of |w| is 1: only its shape is left."""

    def excess(log_median: float) -> float:
        return mass_within(prior, float(np.exp(log_median))) - 0.5

    median = float(np.exp(brentq(excess, np.log(1e-4), np.log(1e4), xtol=1e-12)))
    if isinstance(prior, Slabbed):
        slab = replace(prior.slab, scale=prior.slab.scale * median**-2)
        return Slabbed(local=scaled(prior.local, median**-2), slab=slab)
    return scaled(prior, median**-2)


def mass_within(prior: Mixing, limit: float) -> float:
    """P(|w| < c) = E[erf(c / √(2 psi))]."""
    psi, shares = scale_nodes(prior)
    return float(shares @ erf(limit / np.sqrt(2.0 * psi)))


def mass_beyond(prior: Mixing, limit: float) -> float:
    """P(|w| > c) = E[erfc(c / √(2 psi))], without cancellation."""
    psi, shares = scale_nodes(prior)
    return float(shares @ erfc(limit / np.sqrt(2.0 * psi)))


def kept_share(prior: Mixing, y: Floats) -> Floats:
    """E[w | y] / y = E[psi / (1 + psi) | y] for y = w + N(0, 1): 1 is no shrinkage at all.

    Given psi, y ~ N(0, 1 + psi), which says how likely the scales are.
    """
    psi, shares = scale_nodes(prior)
    y = np.asarray(y, dtype=float)[:, None]
    log_weight = np.log(shares) - 0.5 * np.log1p(psi) - 0.5 * y**2 / (1.0 + psi)
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return (weight @ (psi / (1.0 + psi))) / weight.sum(axis=1)


def scale_nodes(prior: Mixing) -> tuple[Floats, Floats]:
    """Scales and their shares of the probability: the trapezoidal rule in log psi.

    Of the regularised horseshoe these are of v = 1 / (1/psi + 1/c²), since

        N(w | 0, psi) exp(-w²/(2c²)) = sqrt(v / psi) N(w | 0, v).
    """
    if isinstance(prior, PointMass):
        return np.array([prior.value]), np.array([1.0])
    if isinstance(prior, HalfCauchy):
        # Both tails of log psi fall as slowly as exp(-½ |log psi|).
        psi = prior.scale * np.geomspace(_TINY, 1.0 / _TINY, _NODES)
        return _shares(psi, half_cauchy.log_density(prior, psi) + np.log(psi))
    if isinstance(prior, Slabbed):
        psi, shares = scale_nodes(prior.local)
        squares, slab_shares = _slab_nodes(prior.slab)
        v = 1.0 / (1.0 / psi[:, None] + 1.0 / squares)
        log_share = np.log(shares)[:, None] + np.log(slab_shares) + 0.5 * np.log(v / psi[:, None])
        return _shares(v.ravel(), log_share.ravel())
    typical = prior.scale + (1.0 / prior.rate if prior.rate else 0.0)
    psi = typical * np.geomspace(_TINY, _HUGE, _NODES)
    return _shares(psi, gig.log_density(prior, psi) + np.log(psi))


def _slab_nodes(slab: InverseGamma) -> tuple[Floats, Floats]:
    """Values of c² and their shares."""
    squares = slab.scale / slab.concentration * np.geomspace(1e-3, 1e6, _SLAB_NODES)
    log_density = -(slab.concentration + 1.0) * np.log(squares) - slab.scale / squares
    return _shares(squares, log_density + np.log(squares))


def _shares(nodes: Floats, log_share: Floats) -> tuple[Floats, Floats]:
    """Nodes that count, and their shares."""
    share = np.exp(log_share - log_share.max())
    counts = share > _LEAST_SHARE
    return nodes[counts], share[counts] / share[counts].sum()


def joint_density(shared: Shrinkage, local: Shrinkage, first: Floats, second: Floats) -> Floats:
    """p(w_1, w_2) = E_tau[p(w_1 | tau) p(w_2 | tau)] (first, second) of two weights of a layer."""
    given, shares = _given_tau(shared, local)
    left, right = (np.exp([log_marginal(prior, w) for prior in given]) for w in (first, second))
    return np.einsum("t,ti,tj->ij", shares, left, right)


def layer_density(shared: Shrinkage, local: Shrinkage, w: Floats) -> Floats:
    """p(w) = E_tau[p(w | tau)] of one weight, its layer's scale integrated out."""
    given, shares = _given_tau(shared, local)
    return shares @ np.exp([log_marginal(prior, w) for prior in given])


def _given_tau(shared: Shrinkage, local: Shrinkage) -> tuple[list[Shrinkage], Floats]:
    """Priors of a weight given values of tau, and their shares."""
    tau, shares = scale_nodes(shared)
    # Every eighth node of the rule is still fine for a figure, and tau costs a Bessel function.
    tau, shares = tau[::8], shares[::8] / shares[::8].sum()
    kept = shares > 1e-9
    return [scaled(local, float(value)) for value in tau[kept]], shares[kept]


def _table(priors: dict[str, Mixing]) -> str:
    rows = []
    for name, prior in priors.items():
        family = FAMILIES[name]
        beyond = [mass_beyond(prior, limit) for limit in (5.0, 10.0)]
        rows.append(
            [family.label, family.mixing, _parameters(prior), family.tails]
            + [f"{share:.2g}" for share in beyond]
            + [f"{kept:.2f}" for kept in kept_share(prior, np.array([1.0, 10.0]))]
        )
    header = ["prior of a weight", "mixing", "order, scale, rate", "tails"]
    header += ["beyond 5 medians", "beyond 10 medians", "kept of y = 1", "kept of y = 10"]
    words = (
        "Priors of the paper's table, the horseshoes and a Gaussian, tau fixed, scaled so that the "
        "median of |w| is 1. The scale "
        "psi is GIG, with density proportional to psi^(order - 1) exp(-scale/psi - rate psi); in "
        "the paper's letters nu, δ²/2 and λ²/2. Kept is E[w | y] / y for y = w + N(0, 1). The "
        "paper's table has order ½ for the inverse Gaussian; it is -½. Of the horseshoes the "
        "median of psi, and v and s of the slab c² ~ IG(v/2, v s²/2) stand in their place."
    )
    return tables.page("Shrinkage priors", words, tables.markdown(header, rows))


def _parameters(prior: Mixing) -> str:
    if isinstance(prior, PointMass):
        return f"variance {prior.value:.3g}"
    if isinstance(prior, HalfCauchy):
        return f"median {prior.scale:.3g}"
    if isinstance(prior, Slabbed):
        freedom, scale = 2.0 * prior.slab.concentration, prior.slab.scale
        width = float(np.sqrt(2.0 * scale / freedom))
        return f"{_parameters(prior.local)}, slab {freedom:g}, {width:.3g}"
    return f"{prior.order:g}, {prior.scale:.3g}, {prior.rate:.3g}"


def _draw_marginals(priors: dict[str, Mixing]) -> Figure:
    figure = new_figure(12.0, 3.9)
    density, tails, shrinkage = axes = figure.subplots(1, 3)
    near, far, seen = (
        np.linspace(-4.0, 4.0, 801),
        np.geomspace(1.0, 100.0, 300),
        0.1 * np.arange(1, 121),
    )
    for name, prior in priors.items():
        family = FAMILIES[name]
        look = {"color": family.color, "linestyle": family.line, "linewidth": 1.6}
        density.plot(near, np.exp(log_marginal(prior, near)), **look, label=family.label)
        tails.plot(far, np.exp(log_marginal(prior, far)), **look)
        shrinkage.plot(seen, kept_share(prior, seen), **look)
    density.set(xlabel="weight w (median of |w| is 1)", ylabel="p(w)", ylim=(0.0, 0.8))
    tails.set(xlabel="weight w", ylabel="p(w)", xscale="log", yscale="log", ylim=(1e-9, 1.0))
    shrinkage.set(
        xlabel="y = w + N(0, 1)", ylabel="E[w | y] / y", ylim=(0.0, 1.02), xlim=(0.0, 12.0)
    )
    for ax, title in zip(axes, ("density", "tails", "what shrinkage leaves"), strict=True):
        tidy(ax, title)
    drawing.shared_legend(figure)
    return figure


def _draw_joint() -> Figure:
    figure = new_figure(9.0, 7.4)
    axes = figure.subplots(2, len(JOINT))
    for column, (name, mixing) in enumerate(JOINT.items()):
        architecture = build_architecture(_WIDTHS[0], (_WIDTHS[1],), 1)
        prior = build_model(architecture, prior=name).prior
        _draw_conditional(axes[0, column], prior.global_shrinkage, prior.local_shrinkage[0])
        _draw_layers(axes[1, column], prior.global_shrinkage, prior.local_shrinkage)
        tidy(axes[0, column], f"{mixing} mixing: one weight given another of its layer")
        tidy(axes[1, column], f"{mixing} mixing: weights of two layers")
    return figure


def _draw_conditional(ax: Axes, shared: Shrinkage, local: Shrinkage) -> None:
    w = np.linspace(-3.0, 3.0, 400)  # an even number: 0, where a density may be infinite, is none
    others = np.array([given for given, *_ in _GIVEN])
    joint = joint_density(shared, local, w, others) / layer_density(shared, local, others)
    for place, (given, color, line) in enumerate(_GIVEN):
        ax.plot(w, joint[:, place], color=color, linestyle=line, label=f"w' = {given:g}")
    ax.set(xlabel="w", ylabel="p(w | w')")
    ax.legend(frameon=False)


def _draw_layers(ax: Axes, shared: Shrinkage, local: Sequence[Shrinkage]) -> None:
    w = np.linspace(-1.5, 1.5, 160)  # without 0, as above
    first, second = (layer_density(shared, prior, w) for prior in local)
    density = np.outer(second, first)
    levels = density.max() * np.array([0.01, 0.03, 0.1, 0.3, 0.6])
    ax.contour(w, w, density, levels=levels, cmap="viridis", linewidths=1.2)
    ax.set(
        xlabel=f"w of layer 1 ({_WIDTHS[0]} inputs)", ylabel=f"w of layer 2 ({_WIDTHS[1]} inputs)"
    )
    ax.set_aspect("equal")
