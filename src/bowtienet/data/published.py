"""Tables of numbers that others published, known by their values: what they are, and from where.

No value of them is part of this package. A table is known by the SHA-256 of its values, so that
results of two machines are results on the same rows in the same order.
"""

from __future__ import annotations

import decimal
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_WIDE = decimal.Context(prec=400)
"""Digits enough for every finite float, so that rounding cannot fail."""


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """A table that others published: inputs first, the target last.

    Attributes
    ----------
    names : tuple of str
        Columns, the target last.
    decimals : tuple of int
        Decimals of each column. Some copies give more, which are rounded away.
    checksum : str
        `checksum` of the rounded values.
    page : str
        Where people find the table.
    request : mapping
        What `sklearn.datasets.fetch_openml` needs to find it; empty if OpenML is not known to
        have it.
    aliases : tuple of str
        How the columns begin on OpenML, in the order of `names`; empty if in the same places.
    """

    names: tuple[str, ...]
    decimals: tuple[int, ...]
    checksum: str
    page: str
    request: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


def checksum(table: Floats) -> str:
    """SHA-256 of the values, row by row, as little-endian float64; 0 and -0 are the same."""
    return hashlib.sha256((table + 0.0).astype("<f8").tobytes(order="C")).hexdigest()


def rounded(table: Floats, decimals: tuple[int, ...]) -> Floats:
    """Values with so many decimals in each column; halves go away from zero, as in spreadsheets.

    The shortest text of a float is what is rounded, so 0.285 gives 0.29, although the float is
    a little less; readers of numbers that miss the last bit then give the same value, too.

    Examples
    --------
    >>> rounded(np.array([[0.285, 79.98611]]), (2, 1))
    array([[ 0.29, 80. ]])
    """
    columns = [_rounded(column, places) for column, places in zip(table.T, decimals, strict=True)]
    return np.column_stack(columns)


def _rounded(column: Floats, places: int) -> Floats:
    values = np.array(column, dtype=np.float64)
    step = decimal.Decimal(1).scaleb(-places)
    # Most values have no more decimals; the exact way is slow.
    for row in np.flatnonzero(np.isfinite(values) & (values != np.round(values, places))):
        exact = decimal.Decimal(repr(float(values[row])))
        values[row] = float(exact.quantize(step, decimal.ROUND_HALF_UP, context=_WIDE))
    return values


_MIXTURE = (
    *("cement", "slag", "fly_ash", "water", "superplasticizer"),
    *("coarse_aggregate", "fine_aggregate"),
)
TABLES: Mapping[str, PublishedTable] = MappingProxyType(
    {
        "slump": PublishedTable(
            names=(*_MIXTURE, "slump"),
            decimals=(1, 1, 1, 1, 1, 1, 1, 2),
            checksum="6129e0a3e24c3d5c6f5c1a50f91afd71fc039417df9d23f13b77a89b41fe4564",
            page="https://archive.ics.uci.edu/dataset/182/concrete+slump+test",
        ),
        "yacht": PublishedTable(
            names=(
                *("long_pos", "prismatic", "length_disp", "beam_draught", "length_beam"),
                *("froude", "resistance"),
            ),
            decimals=(1, 3, 2, 2, 2, 3, 2),
            checksum="ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
            page="https://archive.ics.uci.edu/dataset/243/yacht+hydrodynamics",
            request={"name": "yacht_hydrodynamics", "version": 1},
        ),
        "boston": PublishedTable(
            names=(
                *("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX"),
                *("PTRATIO", "B", "LSTAT", "MEDV"),
            ),
            decimals=(5, 1, 2, 0, 4, 3, 1, 4, 0, 0, 1, 2, 2, 1),
            checksum="832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7",
            page="https://www.openml.org/d/531",
            request={"data_id": 531},
            aliases=(
                *("crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax"),
                *("ptratio", "b", "lstat", "medv"),
            ),
        ),
        "energy": PublishedTable(
            names=(
                *("rel_compactness", "surface_area", "wall_area", "roof_area", "height"),
                *("orientation", "glazing_area", "glazing_dist", "heating_load"),
            ),
            decimals=(2, 1, 1, 2, 1, 0, 2, 0, 2),
            checksum="3563209cb65c108b72e6ee45f56f12e53c3f346f10b6b30a79ec5b7c0a0a1dd9",
            page="https://archive.ics.uci.edu/dataset/242/energy+efficiency",
            request={"data_id": 1472},
        ),
        "concrete": PublishedTable(
            names=(*_MIXTURE, "age", "strength"),
            decimals=(1, 1, 1, 1, 1, 1, 1, 0, 2),
            checksum="d0e2d2f0f50277624d7d00b98c4e8b66465e8d5f2f51738500552b8b10a4689b",
            page="https://archive.ics.uci.edu/dataset/165/concrete+compressive+strength",
            request={"data_id": 4353},
            aliases=(
                *("cement", "blast furnace slag", "fly ash", "water", "superplasticizer"),
                *("coarse aggregate", "fine aggregate", "age", "concrete compressive strength"),
            ),
        ),
        "power": PublishedTable(
            names=("AT", "V", "AP", "RH", "PE"),
            decimals=(2, 2, 2, 2, 2),
            checksum="99a3e1a8b4d8640155030577f49c00789d0d390e4e5b4cd8e28f1a6a288abab2",
            page="https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant",
        ),
    }
)
