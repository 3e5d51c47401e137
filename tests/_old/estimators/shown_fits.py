"""Small fits to tables whose names would harm a page, for what is shown of a model."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bowtienet._old import BowTieClassifier, BowTieRegressor

EVIL = "<script>alert('a & b')</script>"
N_ROWS = 120


@cache
def table() -> pd.DataFrame:
    """Numbers, texts and dates, with an index of its own; targets are the last four columns."""
    rng = np.random.default_rng(500)
    area, shift = rng.uniform(1.0, 3.0, size=N_ROWS), rng.normal(size=N_ROWS)
    city = rng.choice(["Oslo", "Rome"], size=N_ROWS)
    price = 50.0 * area + 20.0 * (city == "Rome") + 3.0 * rng.normal(size=N_ROWS)
    frame = pd.DataFrame({"area": area, "city": city, EVIL: shift})
    frame = frame.assign(
        price=price,
        height=0.1 * price + shift,
        grade=np.where(price > np.median(price), "<b>high</b>", "low"),
        visits=rng.poisson(area**2),
    )
    frame.index = pd.Index([f"row {place}" for place in range(N_ROWS)], name="id")
    return frame


FEATURES = ["area", "city", EVIL]


@cache
def fitted(target: Any) -> Any:
    """A fit of a moment to a target, or to a tuple of targets."""
    names = list(target) if isinstance(target, tuple) else target
    settings: dict[str, Any] = {"hidden_layer_sizes": (4,), "effort": "fast", "random_state": 0}
    if target == "grade":
        return BowTieClassifier(**settings).fit(table()[FEATURES], table()[names])
    outcome = "counts" if target == "visits" else "gaussian"
    model = BowTieRegressor(**settings, outcome=outcome, features="standard")
    return model.fit(table()[FEATURES], table()[names])
