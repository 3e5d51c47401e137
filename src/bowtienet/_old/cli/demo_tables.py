"""The tables of the demo: simulated rents of flats, and the diabetes data of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bowtienet._old.data.arrow_files import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

DISTRICTS = {"harbour": 1.45, "old town": 1.3, "park": 1.15, "mill": 1.0, "field": 0.85}
"""What a square metre costs beside that of the mill district."""
HEATING = {"district": 0.0, "gas": -0.03, "night storage": -0.12}
"""Added to the logarithm of the rent."""


def simulate_rents(n_rows: int, rng: np.random.Generator) -> pa.Table:
    """Monthly rents of flats with numbers, text, dates, truth values and missing cells.

    log rent = log(11 area^0.9) + log district + age(built) + heating + balcony (dearer by the
    harbour) - 0.25 (1 - exp(-station / 400 m)) + noise, with a curve of age that is lowest for
    1965, and noise of 0.04 that is threefold in flats that were never renovated.
    """
    area = np.clip(rng.lognormal(4.2, 0.35, n_rows), 18.0, 220.0).round(1)
    district = rng.choice(list(DISTRICTS), n_rows, p=[0.15, 0.2, 0.2, 0.25, 0.2])
    built = rng.integers(1890, 2025, n_rows)
    heating = rng.choice(list(HEATING), n_rows, p=[0.45, 0.4, 0.15])
    balcony = rng.random(n_rows) < 0.4
    station = rng.gamma(2.0, 350.0, n_rows).round()
    renovated = rng.random(n_rows) < 0.6
    months = rng.integers(0, 25 * 12, n_rows)
    base = np.log(11.0 * area**0.9) + np.log([DISTRICTS[name] for name in district])
    age = 0.3 * np.tanh(((built - 1965) / 45.0) ** 2)
    extra = np.array([HEATING[name] for name in heating])
    extra += 0.05 * balcony * np.where(district == "harbour", 3.0, 1.0)
    extra -= 0.25 * (1.0 - np.exp(-station / 400.0))
    noise = rng.normal(0.0, np.where(renovated, 0.04, 0.12))
    rent = np.exp(base + age + extra + noise).round(2)
    days = np.datetime64("2000-01", "M") + months
    return pyarrow().table(
        {
            "area": area,
            "district": district,
            "built": built,
            "heating": heating,
            "balcony": balcony,
            "station_metres": _with_gaps(station, rng.random(n_rows) < 0.05),
            "renovated": _with_gaps(days.astype("datetime64[D]").tolist(), ~renovated),
            "rent": rent,
        }
    )


def diabetes() -> pa.Table:
    """The 442 rows of scikit-learn's diabetes data, in their own units."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    return pyarrow().table({**columns, "progression": bunch.target})


def _with_gaps(values: Any, missing: np.ndarray) -> list[Any]:
    return [None if gap else value for value, gap in zip(values, missing, strict=True)]
