"""A few random cases; `make soak` looks at as many as there is time for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.cases import Case, cases
from tests.fuzz.properties import check


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_cases(case: Case) -> None:
    check(case)
