"""The paper's figures of the stochastic activation: its prior, and its variational posterior.

The first shows p(a | z) for a few temperatures and noises. The second is of a network with two
hidden layers that is fitted to the toy data: for one unit of the first layer q(gamma_n = 1) and
q(a_n) of every row along the first input, and for one row the joint q(a_{n,1,d}, a_{n,2,d'}) with
a unit of the second layer, a Gaussian whose correlation a mean-field family could not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._old.paper import drawing
from benchmarks._old.paper.drawing import BLUE, GREY, INK, ORANGE, Report, new_figure, tidy
from benchmarks._old.paper.methods import ours
from bowtienet._old import BowTieRegressor
from bowtienet._old.data.toy import simulate_toy
from bowtienet._old.inference.local_step import settle
from bowtienet._old.plotting import ActivationDisplay
from bowtienet._old.posterior.moments import last_covariance

FIT = {
    "n_estimators": 1,
    "weighting": "equal",
    "gate_temperature": 0.5,
    "max_iter": 100,
    "random_state": 0,
}
"""Of the network of the second figure: one member, at a temperature at which gates are soft enough
for their probabilities and deviations to be seen."""
ROWS, HIDDEN = 300, (20, 20)
_TAKES_PART = 0.2
"""Least effect of a unit that is shown, relative to that of the strongest."""
_SETTLED, _MOST_STEPS = 1e-8, 500
"""Local factors are iterated until gates move by less than this."""


@dataclass(frozen=True, kw_only=True)
class UnitPosterior:
    """Local factors of one unit of the first layer, and its joint with one of the second."""

    unit: int
    other_unit: int
    row: int
    gates: np.ndarray
    """q(gamma_n = 1) (n,)."""
    mean: np.ndarray
    """E[a_n] (n,), on the scale of the network."""
    deviation: np.ndarray
    """√Var[a_n] (n,)."""
    joint_mean: np.ndarray
    """E of (a_{n,1,d}, a_{n,2,d'}) (2,) for the row."""
    joint_covariance: np.ndarray
    """Their covariance (2, 2)."""


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Draw the activation; records are of no use here."""
    figure = new_figure(8.0, 5.4)
    ActivationDisplay.from_parameters(fig=figure)
    drawing.save_figure(figure, folder, "activation")


def write_fits(
    folder: Path,
    report: Report,
    *,
    n_jobs: int = -1,
    fit: dict[str, Any] = FIT,
    hidden: tuple[int, int] = HIDDEN,
) -> None:
    """Draw the posterior of a network with these settings."""
    report("activation: a network with two hidden layers")
    X, y = simulate_toy(ROWS, np.random.default_rng(0))
    model = drawing.remembered(ours.fit_for_figures, folder, ["n_jobs"])(X, y, hidden, fit, n_jobs)
    figure = _draw_posterior(unit_posterior(model, X, y), X[:, 0])
    drawing.save_figure(figure, folder, "activation_posterior")


def unit_posterior(model: BowTieRegressor, X: np.ndarray, y: np.ndarray) -> UnitPosterior:
    """q(gamma), q(a) and their joint across layers, of a network with two hidden layers.

    The unit is the noisiest of those that take part: open for some rows, closed for others, and
    with a strong way out. Its partner and the row are where |Corr(a_{n,1,d}, a_{n,2,d'})| is
    largest.
    """
    member, rows = model.ensemble_.members[0], ours.network_rows(model, X, y)
    local, moments = settle(
        member.model, member.factors, rows.inputs, rows.targets, _SETTLED, _MOST_STEPS
    )
    first = np.broadcast_to(moments.own[0], (len(X), *moments.own[0].shape[1:]))
    variances = np.diagonal(first, axis1=1, axis2=2)
    others = np.diagonal(last_covariance(local.activations, moments), axis1=1, axis2=2)
    gates, means = local.gate_probability[0], moments.inputs[1][:, 1:]
    out = np.linalg.norm(member.factors.layers[1].weights.mean[:, 1:], axis=0)
    unit = _softest(gates, means, variances, out)
    own, cross = variances[:, unit], moments.cross[1][:, :, unit]
    row, partner = np.unravel_index(np.argmax(cross**2 / (own[:, None] * others)), cross.shape)
    both = cross[row, partner]
    return UnitPosterior(
        unit=unit,
        other_unit=int(partner),
        row=int(row),
        gates=gates[:, unit],
        mean=means[:, unit],
        deviation=np.sqrt(own),
        joint_mean=np.array([means[row, unit], moments.inputs[2][row, 1 + partner]]),
        joint_covariance=np.array([[own[row], both], [both, others[row, partner]]]),
    )


def _softest(gates: np.ndarray, means: np.ndarray, variances: np.ndarray, out: np.ndarray) -> int:
    """The unit with the largest deviation relative to how its mean varies over the rows."""
    varied = np.std(means, axis=0)
    effect = out * varied * np.std(gates, axis=0)
    noise = np.mean(np.sqrt(variances), axis=0) / np.where(varied > 0.0, varied, np.inf)
    return int(np.argmax(np.where(effect >= _TAKES_PART * effect.max(), noise, -1.0)))


def _draw_posterior(found: UnitPosterior, x: np.ndarray) -> Figure:
    figure = new_figure(12.0, 3.7)
    gates, activations, joint = figure.subplots(1, 3)
    gates.plot(x, found.gates, ".", color=BLUE, markersize=4.0)
    gates.set(xlabel="first input x", ylabel="q(γ = 1)", ylim=(-0.03, 1.03))
    low, high = found.mean - 2.0 * found.deviation, found.mean + 2.0 * found.deviation
    activations.vlines(x, low, high, color=GREY, lw=1.0, label="± 2 deviations")
    activations.plot(x, found.mean, ".", color=BLUE, markersize=4.0, label="mean of q(a)")
    activations.set(xlabel="first input x", ylabel="activation a")
    activations.legend(frameon=False)
    _draw_joint(joint, found)
    tidy(gates, f"gate of unit {found.unit + 1} of layer 1")
    tidy(activations, f"activation of unit {found.unit + 1} of layer 1")
    return figure


def _draw_joint(ax: Axes, found: UnitPosterior) -> None:
    """Ellipses that hold half and 95 % of the Gaussian, whose radius² is -2 log(1 - share)."""
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    root = np.linalg.cholesky(found.joint_covariance)
    for share, line in ((0.5, "-"), (0.95, "--")):
        circle = np.sqrt(-2.0 * np.log1p(-share)) * np.stack([np.cos(angle), np.sin(angle)])
        first, second = found.joint_mean[:, None] + root @ circle
        ax.plot(first, second, color=ORANGE, linestyle=line, label=f"{100 * share:.0f} %")
    ax.plot(*found.joint_mean, "+", color=INK)
    (own, cross), (_, other) = found.joint_covariance
    names = (f"unit {found.unit + 1} of layer 1", f"unit {found.other_unit + 1} of layer 2")
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.legend(frameon=False, loc="upper right")
    tidy(ax, f"both layers, row {found.row + 1}: correlation {cross / np.sqrt(own * other):.2f}")
