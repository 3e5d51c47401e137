"""Where the units of a network stand, so that few of its edges cross."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_SWEEPS = 12
"""There and back six times; later sweeps hardly change an order."""


def arrange(strengths: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Places in (0, 1), from top to bottom, of the units of each layer, inputs first.

    Inputs and outputs keep their order. Each hidden unit moves to the mean place of the units that
    it is linked to on one side, weighted by `strengths` (D, K) of the links, in sweeps from left to
    right and back; of all orders seen, the one with the fewest crossings stays. Units without links
    stand below the others.
    """
    linked = linked_units(strengths)
    places = [_even(unit.size) for unit in linked]
    for layer in range(1, len(linked) - 1):
        places[layer] = _standing(np.where(linked[layer], places[layer], np.inf))
    best, fewest = list(places), crossings(strengths, places)
    for sweep in range(_SWEEPS):
        _sweep(strengths, linked, places, forward=sweep % 2 == 0)
        found = crossings(strengths, places)
        if found < fewest:
            best, fewest = list(places), found
    return best


def linked_units(strengths: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Which units of each layer have a link on either side."""
    incoming = [
        np.zeros(strengths[0].shape[1], dtype=bool),
        *(np.any(s, axis=1) for s in strengths),
    ]
    outgoing = [
        *(np.any(s, axis=0) for s in strengths),
        np.zeros(strengths[-1].shape[0], dtype=bool),
    ]
    return [before | after for before, after in zip(incoming, outgoing, strict=True)]


def crossings(strengths: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> float:
    """Σ of the products of the strengths of every two links that cross."""
    total = 0.0
    for strength, left, right in zip(strengths, places[:-1], places[1:], strict=True):
        ordered = strength[np.argsort(right)][:, np.argsort(left)]
        later = np.sum(ordered, axis=1, keepdims=True) - np.cumsum(ordered, axis=1)
        above = np.cumsum(later, axis=0) - later
        total += float(np.sum(ordered * above))
    return total


def _sweep(
    strengths: Sequence[np.ndarray],
    linked: Sequence[np.ndarray],
    places: list[np.ndarray],
    forward: bool,
) -> None:
    hidden = range(1, len(places) - 1)
    for layer in hidden if forward else reversed(hidden):
        links = strengths[layer - 1] if forward else strengths[layer].T
        neighbours = places[layer - 1] if forward else places[layer + 1]
        total = np.sum(links, axis=1)
        mean = (links @ neighbours) / np.where(total > 0.0, total, 1.0)
        wanted = np.where(total > 0.0, mean, places[layer])
        wanted = np.where(linked[layer], wanted, np.inf)
        places[layer] = _standing(wanted, places[layer])


def _standing(wanted: np.ndarray, current: np.ndarray | None = None) -> np.ndarray:
    """Even places in the order of `wanted`; ties stay as they stand."""
    current = np.arange(wanted.size) if current is None else current
    places = np.empty(wanted.size)
    places[np.lexsort((current, wanted))] = _even(wanted.size)
    return places


def _even(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / max(count, 1)
