"""Fitted models for reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from bowtienet._old import BowTieRegressor
from tests._old.plotting.fits import quick
from tests._old.report.browser import open_browser
from tests._old.report.fits import make_flats


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Iterator[Any]:
    """One browser for all pages."""
    yield from open_browser(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="session")
def flats() -> pd.DataFrame:
    return make_flats()


@pytest.fixture(scope="session")
def model(flats: pd.DataFrame) -> BowTieRegressor:
    """One target."""
    return quick().fit(flats.drop(columns="rent"), "price")


@pytest.fixture(scope="session")
def two_targets(flats: pd.DataFrame) -> BowTieRegressor:
    return quick().fit(flats, ["price", "rent"])
