"""The network of a report, and what pruning made of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.prune_fit import PruneSummary
from bowtienet._old.plotting import NetworkDisplay
from bowtienet._old.plotting.fitted import (
    chosen_member,
    member_column_names,
    member_column_weights,
    member_input_names,
)
from bowtienet._old.report.figures import WIDTH
from bowtienet._old.report.svg import Plot, inline_svg, new_figure
from bowtienet._old.report.wording import clean, count

_MOST_INPUTS = 30
"""Inputs that are drawn: the strongest of them."""
_MOST_LINES = 1200
"""Weights beyond which they are drawn as an image: lines would take megabytes."""
_NAME = 14
"""Letters of names on both sides of a plot."""
_SIZES = (("inputs", "input"), ("nodes", "unit"), ("weights", "weight"))
"""Parts of `sparsity_`, and what one of them is called."""


@dataclass(frozen=True, kw_only=True)
class NetworkContent:
    """The network with the largest weight, and all of them in numbers."""

    sizes: tuple[tuple[str, int], ...]
    """How many inputs, units and weights all members have together."""
    pruning: PruneSummary | None
    """What pruning saved and lost; None of a model that was not pruned."""
    columns_left: str
    """Names of the columns that pruning left."""
    n_inputs: int
    """Columns that the network sees; one in bins counts once."""
    n_drawn: int
    has_bins: bool
    """Whether some column has several components."""
    plot: Plot


def network_content(model: EnsembleEstimator, targets: Sequence[str]) -> NetworkContent:
    """Sizes and a plot of the network, and what pruning has to do with it."""
    sizes, member = model.sparsity_, chosen_member(model, None)
    inputs = _strongest_inputs(model, member)
    numbers = [int(getattr(sizes, f"{name}_after")[member]) for name, _ in _SIZES]
    of = ", ".join(count(n, one) for n, (_, one) in zip(numbers, _SIZES, strict=True))
    pruning: PruneSummary | None = getattr(model, "pruning_", None)
    return NetworkContent(
        sizes=tuple(
            (f"{one}s", int(getattr(sizes, f"{name}_after").sum())) for name, one in _SIZES
        ),
        pruning=pruning,
        columns_left="" if pruning is None else clean(", ".join(pruning.columns_after), 400),
        n_inputs=len(member_column_names(model, member)),
        n_drawn=inputs.size,
        has_bins=len(member_input_names(model, member)) > len(member_column_names(model, member)),
        plot=inline_svg(
            _draw(model, inputs, member, targets),
            "network-plot",
            f"The network with the largest weight: {of}.",
        ),
    )


def _strongest_inputs(model: EnsembleEstimator, member: int) -> np.ndarray:
    """Inputs to draw, in the order of the table: those with the largest weights."""
    size = np.abs(member_column_weights(model, member)[0][:, 1:]).sum(axis=0)
    return np.sort(np.argsort(-size, kind="stable")[:_MOST_INPUTS])


def _draw(model: EnsembleEstimator, inputs: np.ndarray, member: int, targets: Sequence[str]) -> Any:
    """A figure of the network of a member, with some of its inputs."""
    weights = member_column_weights(model, member)
    weights = [weights[0][:, [0, *(1 + inputs)]], *weights[1:]]
    names = member_column_names(model, member)
    tallest = max(inputs.size, 6.0 * max(len(matrix) for matrix in weights) ** 0.5)
    figure = new_figure(WIDTH, float(np.clip(1.2 + 0.2 * tallest, 3.0, 8.0)))
    display = NetworkDisplay(
        weights=weights,
        input_names=[clean(names[place], _NAME) for place in inputs],
        output_names=[clean(target, _NAME) for target in targets],
    ).plot(ax=figure.add_subplot())
    if sum(int(np.count_nonzero(matrix[:, 1:])) for matrix in weights) > _MOST_LINES:
        display.ax_.collections[0].set_rasterized(True)
    return figure
