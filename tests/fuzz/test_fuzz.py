"""A minute of random cases; `make soak` looks at as many as there is time for."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.soak import batch


@pytest.mark.parametrize("seed", range(4))
def test_random_cases(seed: int) -> None:
    batch(seed, Counter())
