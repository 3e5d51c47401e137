"""Fitted models for reports, and what to say where no browser can open them."""

from __future__ import annotations

import pandas as pd
import pytest

from bowtienet import make_table_pipeline
from bowtienet.estimators.table_pipeline import TablePipeline
from tests.report.fits import make_flats, quick


@pytest.fixture(scope="session")
def flats() -> pd.DataFrame:
    return make_flats()


@pytest.fixture(scope="session")
def pipeline(flats: pd.DataFrame) -> TablePipeline:
    """One target."""
    return make_table_pipeline(quick()).fit(flats.drop(columns="rent"), "price")


@pytest.fixture(scope="session")
def two_targets(flats: pd.DataFrame) -> TablePipeline:
    return make_table_pipeline(quick()).fit(flats, ["price", "rent"])
