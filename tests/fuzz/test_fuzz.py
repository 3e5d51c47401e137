"""A minute of random cases; `make soak` looks at as many as there is time for."""

from collections import Counter

import pytest

from tests.fuzz.soak import MOST_GROWTH, batch, peak


@pytest.mark.parametrize("seed", range(16))
def test_random_cases(seed: int) -> None:
    before = peak()
    batch(seed, Counter())
    assert peak() - before < MOST_GROWTH
