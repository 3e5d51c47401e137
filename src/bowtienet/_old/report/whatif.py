"""The what-if panel of a report: features to move, rows to start from, and the model itself.

The most important features are on the panel for as long as the numbers of `exported_model` fit
into a page; all others stay as they are in the row that one starts from. The script computes what
Python would.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.plotting._along import typical_row
from bowtienet._old.plotting.fitted import encoded_features
from bowtienet._old.report.exported_model import export_model, exported_bytes
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.training_ranges import TrainingRanges
from bowtienet._old.report.wording import clean, kind_of, number
from bowtienet._old.representation.columns import Column, owners
from bowtienet._old.representation.kinds import CATEGORY, NUMBER, Numbers, Texts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_BYTES = 8_000_000
"""Of the numbers in a page."""
MOST_FEATURES = 8
_STEPS = 200
"""About how many values a slider has."""
_TOO_LARGE = (
    "There is no panel to move the features: the numbers of this model would take "
    "{size} MB of the page, and the limit is {limit} MB. Fewer or smaller networks "
    "(n_estimators, hidden_layer_sizes), or prune, make one possible."
)
_ITERATED = (
    "There is no panel to move the features: with propagation='variational' predictions are "
    "iterated, and only those of 'push_forward' have the closed form that this page computes."
)
_NOTHING = "There is no panel to move the features: the model uses none that varies."


@dataclass(frozen=True, kw_only=True)
class PanelFeature:
    """A control of the panel."""

    name: str
    kind: str
    """"number", "year", "date", "duration" or "category"."""
    low: float
    """Ends of the slider, inside the range of training; 0 for categories."""
    high: float
    step: float
    categories: tuple[str, ...]
    has_missing: bool
    """Whether the model knows what a missing value means."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The panel, or why there is none."""

    reason: str = ""
    """In words; empty if there is a panel."""
    features: tuple[PanelFeature, ...] = ()
    others: tuple[str, ...] = ()
    """Features that stay as they are in the base row."""
    rows: tuple[str, ...] = ()
    """Names of base rows."""
    structure: str = ""
    """JSON for the script."""
    numbers: str = ""
    """Base 64 for the script."""


@dataclass(frozen=True, kw_only=True)
class PanelTarget:
    """What the panel shows of a target of numbers."""

    name: str
    kind: str
    low: float
    """Between these lie most targets of the rows."""
    high: float


def what_if(
    model: EnsembleEstimator,
    rows: ReportRows,
    contents: dict[str, Numbers | Texts],
    *,
    ranking: Sequence[int],
    bases: Sequence[tuple[int, str]],
    ranges: TrainingRanges | None,
    coverage: float,
    targets: Sequence[PanelTarget] = (),
    classes: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> WhatIf:
    """The panel of a fitted model.

    Parameters
    ----------
    ranking : sequence
        Places of the features, the most important first.
    bases : sequence of (place, words)
        Rows to start from besides a typical one, and what is special about them.
    targets, classes : sequence
        Targets of numbers, or the classes.
    """
    if model.ensemble_.propagation != "push_forward":
        return WhatIf(reason=_ITERATED)
    columns, names = tuple(model.columns_), list(contents)
    usable = [place for place in ranking if _varies(columns[place], contents[names[place]])]
    if not usable:
        return WhatIf(reason=_NOTHING)
    chosen, size = _chosen(model, usable, 1 + len(bases), most_bytes)
    if not chosen:
        return WhatIf(
            reason=_TOO_LARGE.format(size=number(size / 1e6, 2), limit=number(most_bytes / 1e6, 2))
        )
    encoded = encoded_features(model, rows.source)
    starts = [typical_row(columns, encoded)[0], *(encoded[place] for place, _ in bases)]
    panel = _encoded_places(columns, chosen)
    controls = [_control(place, columns, contents, ranges) for place in chosen]
    titles = ("a typical row", *(f"row {clean(rows.names[k], 24)}: {note}" for k, note in bases))
    exported = export_model(model.ensemble_, panel, np.stack(starts))
    about = {
        "coverage": coverage,
        "targets": [vars(target) for target in targets],
        "classes": list(classes),
        "features": [
            vars(control) | _encoding(place, columns, panel) | _known(place, ranges)
            for place, control in zip(chosen, controls, strict=True)
        ],
        "rows": [[_state(place, columns, start) for place in chosen] for start in starts],
    }
    return WhatIf(
        features=tuple(controls),
        others=tuple(
            clean(name)
            for place, name in enumerate(names)
            if place not in chosen and columns[place].has_value
        ),
        rows=titles,
        structure=json.dumps({"model": exported.structure, "panel": about}, allow_nan=False),
        numbers=exported.numbers,
    )


def _varies(column: Column, content: Numbers | Texts) -> bool:
    if not column.has_value:
        return False
    if isinstance(content, Texts):
        return len(column.categories) > 0
    return bool(np.isfinite(content.values).any())


def _chosen(
    model: EnsembleEstimator, usable: Sequence[int], n_rows: int, most_bytes: int
) -> tuple[list[int], int]:
    """Features that fit, in their order; and the size with the first of them."""
    columns, found = tuple(model.columns_), list[int]()
    used = sum(column.has_value for column in columns)
    for place in usable:
        wanted = [*found, place]
        # Base rows that differ in nothing else have no numbers of their own.
        rows = 1 if len(wanted) == used else n_rows
        size = exported_bytes(model.ensemble_, _encoded_places(columns, wanted), rows)
        if size <= most_bytes and len(found) < MOST_FEATURES:
            found = wanted
    first = exported_bytes(model.ensemble_, _encoded_places(columns, usable[:1]), n_rows)
    return found, first


def _encoded_places(columns: Sequence[Column], chosen: Sequence[int]) -> Indices:
    """Encoded columns of features, one feature after the other."""
    of = owners(columns)
    return np.concatenate([np.flatnonzero(of == place) for place in chosen])


def _control(
    place: int,
    columns: Sequence[Column],
    contents: dict[str, Numbers | Texts],
    ranges: TrainingRanges | None,
) -> PanelFeature:
    column, (name, content) = columns[place], list(contents.items())[place]
    about: dict[str, Any] = {"name": clean(name, 40), "has_missing": column.has_indicator}
    if isinstance(content, Texts):
        labels = tuple(clean(label, 40) for label in column.categories)
        return PanelFeature(**about, kind=CATEGORY, low=0.0, high=0.0, step=1.0, categories=labels)
    present = content.values[np.isfinite(content.values)]
    low, high = float(present.min()), float(present.max())
    if ranges is not None and math.isfinite(ranges.low[place]):
        low, high = float(ranges.low[place]), float(ranges.high[place])
    step = _step(low, high, whole=column.kind != NUMBER or bool(np.all(present % 1.0 == 0.0)))
    # Ends are steps inside the range, up to rounding.
    first, last = math.ceil(low / step - 1e-6) * step, math.floor(high / step + 1e-6) * step
    return PanelFeature(
        **about, kind=kind_of(content), low=first, high=last, step=step, categories=()
    )


def _step(low: float, high: float, *, whole: bool) -> float:
    """1, 2 or 5 times a power of ten, for about `_STEPS` values; 1 at least for whole numbers."""
    wanted = high / _STEPS - low / _STEPS  # no difference of two numbers overflows
    if not wanted > 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    step = power * max(factor for factor in (1.0, 2.0, 5.0) if factor * power <= wanted)
    if whole and step < 1.0:
        return 1.0
    # As it is written: 0.1 and not 0.1000000001.
    return float(f"{step:.1g}")


def _encoding(place: int, columns: Sequence[Column], panel: Indices) -> dict[str, Any]:
    """Where the script puts a value: columns of the panel."""
    column = columns[place]
    own = np.flatnonzero(owners(columns)[panel] == place).tolist()
    values = own[:-1] if column.has_indicator else own
    return {
        "columns": values,
        "indicator": own[-1] if column.has_indicator else None,
        "typical": column.typical or 0.0,
    }


def _known(place: int, ranges: TrainingRanges | None) -> dict[str, Any]:
    """The range of training, where it is known."""
    if ranges is None or not math.isfinite(ranges.low[place]):
        return {"range": None}
    return {"range": [float(ranges.low[place]), float(ranges.high[place])]}


def _state(place: int, columns: Sequence[Column], row: Floats) -> dict[str, Any]:
    """What a control shows for an encoded row: a number, or the place of a category."""
    column, own = columns[place], row[owners(columns) == place]
    missing = bool(column.has_indicator and own[-1] > 0.5)
    if column.kind != CATEGORY:
        return {"value": float(own[0]), "missing": missing}
    labels = own[: len(column.categories)]
    return {"value": int(np.argmax(labels)) if labels.any() else -1, "missing": missing}
