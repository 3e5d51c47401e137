"""Tables and fits of a moment, for reports."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bowtienet._old import BowTieRegressor
from tests._old.plotting.fits import quick

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
TARGET = "</script><b>price"


def make_flats(n_rows: int = 80, seed: int = 1) -> pd.DataFrame:
    """Numbers with gaps, texts, truth values and dates; the targets are price and rent."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Lima"], p=[0.5, 0.3, 0.2], size=n_rows)
    area = rng.gamma(4.0, 20.0, size=n_rows).round()
    built = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 12000, n_rows), unit="D")
    price = 2.0 * area + 80.0 * (city == "Oslo") + rng.normal(0.0, 20.0, size=n_rows)
    return pd.DataFrame(
        {
            "city": city,
            "area": np.where(np.arange(n_rows) % 17 == 0, np.nan, area),
            "new": rng.uniform(size=n_rows) < 0.3,
            "built": built,
            "price": price,
            "rent": price / 20.0 + rng.normal(0.0, 2.0, size=n_rows),
        }
    )


def make_hostile(n_rows: int = 60) -> pd.DataFrame:
    """Names and texts that would run or break a page if they were not escaped."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=n_rows)
    word = rng.choice([IMAGE, "plain", "&amp; \x00\u202e <!-- $x^{$"], size=n_rows)
    price = 2.0 * first + 3.0 * (word == "plain") + rng.normal(0.0, 0.3, size=n_rows)
    return pd.DataFrame({SCRIPT: first, "word]]><": word, TARGET: price})


def fit_hostile() -> tuple[BowTieRegressor, pd.DataFrame]:
    table = make_hostile()
    return quick(hidden_layer_sizes=(5,)).fit(table, TARGET), table
