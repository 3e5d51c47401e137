"""Which worker has which partition."""

from __future__ import annotations

from collections import Counter

import pytest

from bowtienet._old.ensemble.cluster import share_out

SIZES = {0: 50, 1: 30, 2: 30, 3: 10}


@pytest.mark.parametrize(
    ("homes", "threads", "rows"),
    [
        pytest.param("aaaa", {"a": 1}, {"a": 120}, id="one worker"),
        pytest.param("aaaa", {"a": 1, "b": 1}, {"a": 60, "b": 60}, id="one joins"),
        pytest.param("abba", {"a": 1, "b": 1}, {"a": 60, "b": 60}, id="shared already"),
        pytest.param("a--a", {"a": 1, "c": 1}, {"a": 60, "c": 60}, id="one has died"),
        pytest.param("----", {"a": 1, "b": 1}, {"a": 60, "b": 60}, id="nobody has any"),
        pytest.param("aaaa", {"a": 1, "b": 3}, {"a": 30, "b": 90}, id="more threads"),
    ],
)
def test_workers_share_the_rows(homes: str, threads: dict, rows: dict) -> None:
    before = {n: None if home == "-" else home for n, home in enumerate(homes)}
    after = share_out(SIZES, before, threads)
    found: Counter = Counter()
    for n, home in after.items():
        found[home] += SIZES[n]
    assert found == rows
    assert share_out(SIZES, after, threads) == after
