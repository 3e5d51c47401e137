"""The fits of the tests of scores, and no windows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matplotlib import pyplot

from tests.evaluation.conftest import fitted as fitted


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
