"""The paper's numbers: sums of its rows, so that no digit can change unseen."""

from __future__ import annotations

import pytest

from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.paper import COUNTERPARTS, PUBLISHED, SETS, published

ROWS = {
    ("4SVBNN", "rmse"): (22.87, 4.0),
    ("4VBNN", "rmse"): (19.26, 2.9),
    ("SVBNN", "rmse"): (27.53, 4.92),
    ("VBNN", "rmse"): (22.35, 4.5),
    ("GVBNN", "rmse"): (26.88, 5.85),
    ("mfVI", "rmse"): (21.18, 3.41),
    ("BBB", "rmse"): (21.37, 4.37),
    ("HMC", "rmse"): (14.29, 2.69),
    ("HSBNN", "rmse"): (16.34, 2.71),
    ("4SVBNN", "gaussian_nll"): (14.09, 0.77),
    ("4VBNN", "gaussian_nll"): (12.89, 0.75),
    ("SVBNN", "gaussian_nll"): (15.25, 1.2),
    ("VBNN", "gaussian_nll"): (13.65, 1.19),
    ("GVBNN", "gaussian_nll"): (14.98, 1.22),
    ("mfVI", "gaussian_nll"): (14.19, 1.1),
    ("BBB", "gaussian_nll"): (15.68, 3.34),
    ("HMC", "gaussian_nll"): (9.53, 1.23),
    ("HSBNN", "gaussian_nll"): (16.74, 4.1),
    ("4SVBNN", "gaussian_coverage"): (4.85, 0.14),
    ("4VBNN", "gaussian_coverage"): (4.86, 0.1),
    ("SVBNN", "gaussian_coverage"): (4.62, 0.2),
    ("VBNN", "gaussian_coverage"): (4.75, 0.14),
    ("GVBNN", "gaussian_coverage"): (4.75, 0.16),
    ("mfVI", "gaussian_coverage"): (4.45, 0.21),
    ("BBB", "gaussian_coverage"): (4.68, 0.16),
    ("HMC", "gaussian_coverage"): (4.73, 0.18),
    ("HSBNN", "gaussian_coverage"): (3.83, 0.37),
}


@pytest.mark.parametrize(("method", "score"), list(ROWS))
def test_sums_of_rows(method: str, score: str) -> None:
    cells = [PUBLISHED[method, score, dataset] for dataset in SETS]
    found = sum(cell.mean for cell in cells), sum(cell.deviation for cell in cells)
    assert found == pytest.approx(ROWS[method, score])


def test_cells_by_hand() -> None:
    assert published("VBNN", "rmse", "yacht") == (2.47, 1.1)
    assert published("4VBNN", "gaussian_nll", "boston") == (2.57, 0.13)
    assert published("HSBNN", "gaussian_coverage", "concrete") == (0.71, 0.06)
    assert published("LassoCV", "rmse", "diabetes") == (54.2, 6.5)
    assert published("mfVI", "gaussian_coverage", "diabetes") == (0.47, 0.1)
    assert published("GVBNN", "gaussian_nll", "diabetes") == (5.5, 0.14)
    assert published("LassoCV", "rmse", "yacht") is None


def test_all_cells_are_there() -> None:
    assert len(PUBLISHED) == 9 * 3 * 5 + 7 * 3
    assert sum(dataset == "diabetes" for *_, dataset in PUBLISHED) == 21


def test_counterparts_are_methods_on_both_sides() -> None:
    assert set(COUNTERPARTS) <= set(METHODS)
    assert set(COUNTERPARTS.values()) == {method for method, *_ in PUBLISHED}
