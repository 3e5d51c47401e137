"""The paper's own numbers: mean and ± over ten random splits, by method, score and data set.

Methods have the paper's names and scores those of the records. Its NLL is that of the Gaussian with
the mean and variance of the forecast, and its coverage that of the Gaussian's 95 % interval. Energy
is the heating load; one table of the paper writes 4SVBNN as 4SVIBNN.
"""

from __future__ import annotations

from typing import NamedTuple

RMSE, NLL, COVERAGE = "rmse", "gaussian_nll", "gaussian_coverage"
"""The paper's three scores, as records name them."""
SETS = ("slump", "yacht", "boston", "energy", "concrete")
"""Data sets of the paper's table, in its order."""
COUNTERPARTS: dict[str, str] = {
    "single": "VBNN",
    "ensemble": "4VBNN",
    "svi": "SVBNN",
    "svi_ensemble": "4SVBNN",
    "gaussian": "GVBNN",
    "lasso": "LassoCV",
    "mean_field": "mfVI",
    "nuts": "HMC",
    "horseshoe": "HSBNN",
    "backprop": "BBB",
}
"""Names of the paper for the methods of the experiments that it has, too."""


class Published(NamedTuple):
    """A cell of a table of the paper."""

    mean: float
    deviation: float


_Row = tuple[tuple[float, float], ...]

_UCI: dict[str, dict[str, _Row]] = {
    RMSE: {
        "4SVBNN": ((7.15, 1.5), (3.57, 0.8), (3.38, 0.9), (1.62, 0.2), (7.15, 0.6)),
        "4VBNN": ((7.01, 1.2), (1.23, 0.3), (3.21, 0.6), (1.1, 0.2), (6.71, 0.6)),
        "SVBNN": ((7.36, 1.62), (5.57, 1.14), (3.76, 0.92), (2.41, 0.49), (8.43, 0.75)),
        "VBNN": ((7.37, 1.4), (2.47, 1.1), (3.47, 0.8), (1.37, 0.3), (7.67, 0.9)),
        "GVBNN": ((7.64, 1.21), (4.88, 2.66), (4.02, 0.88), (2.5, 0.42), (7.84, 0.68)),
        "mfVI": ((7.9, 1.7), (1.61, 0.36), (3.29, 0.6), (2.27, 0.25), (6.11, 0.5)),
        "BBB": ((7.33, 1.94), (1.45, 0.6), (3.46, 0.96), (2.65, 0.26), (6.48, 0.61)),
        "HMC": ((7, 1.24), (0.56, 0.13), (2.42, 0.47), (0.3, 0.07), (4.01, 0.78)),
        "HSBNN": ((6.41, 1.28), (1.2, 0.23), (2.92, 0.55), (0.6, 0.09), (5.21, 0.56)),
    },
    NLL: {
        "4SVBNN": ((3.42, 0.2), (2.74, 0.2), (2.61, 0.2), (1.94, 0.1), (3.38, 0.07)),
        "4VBNN": ((3.39, 0.2), (1.97, 0.2), (2.57, 0.13), (1.63, 0.16), (3.33, 0.06)),
        "SVBNN": ((3.47, 0.29), (3.13, 0.27), (2.78, 0.31), (2.31, 0.22), (3.56, 0.11)),
        "VBNN": ((3.46, 0.2), (2.25, 0.4), (2.69, 0.26), (1.75, 0.21), (3.5, 0.12)),
        "GVBNN": ((3.47, 0.17), (2.86, 0.59), (2.82, 0.22), (2.35, 0.15), (3.48, 0.09)),
        "mfVI": ((3.77, 0.5), (1.96, 0.09), (2.61, 0.22), (2.28, 0.09), (3.57, 0.2)),
        "BBB": ((6.23, 2.76), (1.69, 0.14), (2.47, 0.16), (2.08, 0.15), (3.21, 0.13)),
        "HMC": ((3.41, 0.24), (0.87, 0.1), (2.28, 0.18), (0.23, 0.44), (2.74, 0.27)),
        "HSBNN": ((5.02, 1.79), (1.31, 0.18), (5.01, 1.24), (1.08, 0.2), (4.32, 0.69)),
    },
    COVERAGE: {
        "4SVBNN": ((0.95, 0.06), (0.98, 0.03), (0.97, 0.03), (0.98, 0.01), (0.97, 0.01)),
        "4VBNN": ((0.94, 0.04), (0.99, 0.02), (0.97, 0.02), (0.99, 0), (0.97, 0.02)),
        "SVBNN": ((0.91, 0.08), (0.93, 0.02), (0.94, 0.03), (0.91, 0.04), (0.93, 0.03)),
        "VBNN": ((0.92, 0.06), (0.96, 0.01), (0.95, 0.03), (0.98, 0.02), (0.94, 0.02)),
        "GVBNN": ((0.96, 0.04), (0.95, 0.04), (0.96, 0.02), (0.93, 0.04), (0.95, 0.02)),
        "mfVI": ((0.78, 0.1), (0.96, 0.03), (0.96, 0.01), (0.95, 0.03), (0.8, 0.04)),
        "BBB": ((0.75, 0.12), (1, 0), (0.97, 0.02), (0.99, 0), (0.97, 0.02)),
        "HMC": ((0.9, 0.08), (0.98, 0.02), (0.96, 0.02), (0.95, 0.03), (0.94, 0.03)),
        "HSBNN": ((0.67, 0.14), (0.94, 0.05), (0.62, 0.08), (0.89, 0.04), (0.71, 0.06)),
    },
}
"""In the order of `SETS`."""

_DIABETES: dict[str, _Row] = {
    "LassoCV": ((54.2, 6.5), (5.4, 0.13), (0.96, 0.03)),
    "mfVI": ((57.2, 7.4), (9.3, 1.7), (0.47, 0.1)),
    "HMC": ((54.5, 7.8), (5.4, 0.16), (0.96, 0.04)),
    "BBB": ((54.9, 7.3), (5.49, 0.18), (0.94, 0.04)),
    "HSBNN": ((56.8, 7.4), (6.8, 1.6), (0.67, 0.15)),
    "GVBNN": ((55.65, 7.8), (5.5, 0.14), (0.96, 0.04)),
    "VBNN": ((54.5, 7.2), (5.4, 0.15), (0.96, 0.04)),
}
"""RMSE, NLL and coverage."""


def _join() -> dict[tuple[str, str, str], Published]:
    cells: dict[tuple[str, str, str], Published] = {}
    for score, rows in _UCI.items():
        for method, row in rows.items():
            for dataset, cell in zip(SETS, row, strict=True):
                cells[method, score, dataset] = Published(*cell)
    for method, row in _DIABETES.items():
        for score, cell in zip((RMSE, NLL, COVERAGE), row, strict=True):
            cells[method, score, "diabetes"] = Published(*cell)
    return cells


PUBLISHED: dict[tuple[str, str, str], Published] = _join()
"""All numbers by method, score and data set."""


def published(method: str, score: str, dataset: str) -> Published | None:
    """What the paper reports for one of its methods, or None where it has no such cell.

    Examples
    --------
    >>> published("VBNN", "rmse", "yacht")
    Published(mean=2.47, deviation=1.1)
    """
    return PUBLISHED.get((method, score, dataset))
