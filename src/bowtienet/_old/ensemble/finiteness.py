"""Tables whose predictions no double can hold are refused, and so are fits that are not finite.

Features may have any finite values (`representation.scaling`). Predictions have the unit of the
targets, and weights of rows multiply squares: both have a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.model.outcomes import Outcome, StudentT
from bowtienet._old.representation.scaling import Scaling

SPREADS = (1e-290, 1e290)
"""Least and largest unit of a target: deviations of far rows, up to 1e15 of it, are in range."""
FARTHEST_TARGET = 1e12
"""Robust deviations of a target with outliers: beyond, the digits of the others are lost."""
LARGEST = float(np.finfo(np.float64).max)
LEAST_WEIGHT = 1e-100
"""Of all rows together."""


def check_spread(scaling: Scaling, names: Sequence[str] | None) -> None:
    """Raise a ValueError where predictions in the unit of a target would be 0 or infinite."""
    scales = np.asarray(to_numpy(scaling.scale), dtype=np.float64)
    least, largest = SPREADS
    for place in np.flatnonzero((scales < least) | (scales > largest)).tolist():
        raise ValueError(
            f"{_named(names, place)} has a spread of {scales[place]:.3g}, and predictions of it "
            f"would leave the range of doubles: divide it by {scales[place]:.0e} (the spread must "
            f"lie between {least:g} and {largest:g})."
        )


def check_targets(
    rows: Rows, scaling: Scaling, outcome: Outcome, names: Sequence[str] | None
) -> None:
    """Raise a ValueError if the standardised targets of a fit are of numbers that it cannot hold.

    Parameters
    ----------
    rows : Rows
        Of which the targets are standardised.
    scaling : Scaling
        Theirs.
    outcome : Outcome
        Where it is Student's t, scales are those of quartiles, which outliers have no part in.
    names : sequence of str, optional
        Of the targets.
    """
    check_spread(scaling, names)
    if isinstance(outcome, StudentT):
        check_outliers(rows, scaling, names)


def check_outliers(rows: Rows, scaling: Scaling, names: Sequence[str] | None) -> None:
    """Raise a ValueError where a standardised target is so far out that nothing else is seen."""
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    counted = np.asarray(to_numpy(rows.weights)) > 0.0
    for row, place in np.argwhere(counted[:, None] & ~(np.abs(targets) <= FARTHEST_TARGET)):
        scale, center = (float(to_numpy(x)[place]) for x in (scaling.scale, scaling.center))
        with np.errstate(over="ignore"):
            value = np.clip(center + scale * targets[row, place], -LARGEST, LARGEST)
        raise ValueError(
            f"{_named(names, int(place))} holds {value:.3g}, more than {FARTHEST_TARGET:g} times "
            f"the spread of the others ({scale:.3g}), which no fit can follow: correct or drop it."
        )


def check_total_weight(weights: Array) -> None:
    """Raise a ValueError where all rows together are as good as none."""
    total = float(np.sum(to_numpy(weights), dtype=np.float64))
    if total < LEAST_WEIGHT:
        raise ValueError(
            f"sample_weight has a sum of {total:.3g}, as if there were no rows: weights say how "
            "many times a row counts; divide them by their mean."
        )


def check_finite(ensemble: Ensemble) -> None:
    """Raise a ValueError if anything that prediction needs is not finite."""
    needed: list[Any] = [
        ensemble.weights,
        ensemble.levels,
        ensemble.calibration,
        ensemble.outside,
        *((member.factors, member.variance_ratio) for member in ensemble.members),
    ]
    if not all(_is_finite(part) for part in needed):
        raise ValueError(
            "the fit ended with numbers that are not finite, and would predict nothing but NaN: "
            "look for values of X, y and sample_weight that are many orders of magnitude larger "
            "or smaller than the others, and rescale or drop them."
        )


def _named(names: Sequence[str] | None, place: int) -> str:
    return "the target" if names is None else f"the target {names[place]!r}"


def _is_finite(container: Any) -> bool:
    """Whether all numbers of nested dataclasses and tuples are finite."""
    if container is None:
        return True
    if is_dataclass(container):
        return all(_is_finite(getattr(container, field.name)) for field in fields(container))
    if isinstance(container, tuple):
        return all(map(_is_finite, container))
    return bool(np.isfinite(to_numpy(container)).all())
