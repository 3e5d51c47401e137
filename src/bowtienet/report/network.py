"""The network of a report before and after pruning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.plotting import NetworkDisplay
from bowtienet.plotting.fitted import (
    chosen_member,
    member_column_names,
    member_column_weights,
    member_input_names,
)
from bowtienet.report.figures import WIDTH
from bowtienet.report.svg import Plot, inline_svg, new_figure
from bowtienet.report.wording import clean, count

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
    """The network before and after pruning."""

    sizes: tuple[tuple[str, int, int], ...]
    """What, before and after, of all members together."""
    rate: float | None
    """Estimated false sign rate of the kept weights, where it is known."""
    was_pruned: bool
    """Whether the model itself is a pruned one, whose earlier weights are gone."""
    n_inputs: int
    """Columns that the network sees; one in bins counts once."""
    n_drawn: int
    has_bins: bool
    """Whether some column has several components."""
    plots: tuple[Plot, ...]


def pruned_model(model: BowTieRegressor) -> BowTieRegressor:
    """The pruned model, or the model itself if it has been pruned."""
    return model if _is_pruned(model) else model.prune()


def network_content(
    model: BowTieRegressor, pruned: BowTieRegressor, targets: Sequence[str]
) -> NetworkContent:
    """Sizes and plots of the network before and after pruning."""
    sizes, member = pruned.sparsity_, chosen_member(model, None)
    inputs = _strongest_inputs(model, pruned, member)
    models = {"after": pruned} if model is pruned else {"before": model, "after": pruned}
    plots = []
    for side, which in models.items():
        numbers = [int(getattr(sizes, f"{name}_{side}")[member]) for name, _ in _SIZES]
        of = ", ".join(count(n, one) for n, (_, one) in zip(numbers, _SIZES, strict=True))
        words = f"The network with the largest weight {side} pruning: {of}."
        words += " It predicts a constant." if numbers[-1] == 0 else ""
        figure = _draw(which, inputs, member, targets)
        plots.append(inline_svg(figure, f"network-{side}", words))
    left = np.where(np.isnan(sizes.false_sign_rate), 0, sizes.weights_after)
    return NetworkContent(
        sizes=tuple(
            (
                f"{one}s",
                int(getattr(sizes, f"{name}_before").sum()),
                int(getattr(sizes, f"{name}_after").sum()),
            )
            for name, one in _SIZES
        ),
        rate=float(np.nansum(sizes.false_sign_rate * left) / left.sum()) if left.sum() else None,
        was_pruned=model is pruned,
        n_inputs=len(member_column_names(model, member)),
        n_drawn=inputs.size,
        has_bins=len(member_input_names(model, member)) > len(member_column_names(model, member)),
        plots=tuple(plots),
    )


def _is_pruned(model: BowTieRegressor) -> bool:
    """Whether `prune` has chosen among the weights of any member."""
    return any(member.model.connections is not None for member in model.ensemble_.members)


def _strongest_inputs(model: BowTieRegressor, pruned: BowTieRegressor, member: int) -> np.ndarray:
    """Inputs to draw, in the order of the table: first those left by pruning, then by weight."""
    before, after = (
        np.abs(member_column_weights(one, member)[0][:, 1:]).sum(axis=0) for one in (model, pruned)
    )
    return np.sort(np.lexsort((-before, after == 0.0))[:_MOST_INPUTS])


def _draw(model: BowTieRegressor, inputs: np.ndarray, member: int, targets: Sequence[str]) -> Any:
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
