"""Section 2.1: the widths D_0, D_1, ..., D_L, D_{L+1} of a bow tie network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bowtienet._params import whole


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Widths of the inputs, of each hidden layer, and of the outputs."""

    n_inputs: int
    hidden: tuple[int, ...]
    n_outputs: int

    @property
    def widths(self) -> tuple[int, ...]:
        """(D_0, D_1, ..., D_{L+1})."""
        return (self.n_inputs, *self.hidden, self.n_outputs)

    @property
    def n_hidden(self) -> int:
        """L, the number of hidden layers."""
        return len(self.hidden)


def build_architecture(
    n_inputs: int, hidden_layer_sizes: Iterable[int], n_outputs: int
) -> Architecture:
    """Check the widths and put them together; no hidden layer means linear regression."""
    if isinstance(hidden_layer_sizes, (str, bytes)) or not isinstance(hidden_layer_sizes, Iterable):
        raise ValueError(
            f"hidden_layer_sizes must be a sequence of widths such as (50,) or (50, 20), got "
            f"{hidden_layer_sizes!r}."
        )
    return Architecture(
        n_inputs=whole(n_inputs, "n_inputs"),
        hidden=tuple(
            whole(width, f"hidden_layer_sizes[{i}]") for i, width in enumerate(hidden_layer_sizes)
        ),
        n_outputs=whole(n_outputs, "n_outputs"),
    )
