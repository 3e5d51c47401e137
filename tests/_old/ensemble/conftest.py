"""Clusters for the tests that ask for one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests._old.ensemble.clusters import local_cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_cluster() as client:
        yield client


@pytest.fixture
def doomed() -> Iterator[Any]:
    """A client of a cluster that the test may destroy."""
    with local_cluster() as client:
        yield client
