"""`load_set` against files and an OpenML that the tests make up, and the real files.

No published value stands here: the real tables are checked where BOWTIENET_DATA has them.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from benchmarks._old.paper import sets
from benchmarks._old.paper.sets import FOLDER, PUBLISHED, checksum, load_set, rounded, rows_of
from bowtienet._old.data.toy import simulate_toy

REAL = os.environ.get(FOLDER)
VALUES = np.array([[1.5, 2.0, 0.25], [-3.5, 24.0, 7.75], [0.1, 2.0, -1.05]])
KNOWN = {
    "names": ["a", "b", "y"],
    "decimals": [1, 0, 2],
    "checksum": checksum(VALUES),
    "page": "https://example.org/tiny",
    "openml": {"data_id": 7},
    "aliases": ["first", "second", "target"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and a tiny table that is known as slump."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setitem(PUBLISHED, "slump", KNOWN)
    load_set.cache_clear()
    yield tmp_path
    load_set.cache_clear()


def answer_with(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame | OSError) -> list[dict]:
    """Let OpenML give a frame or fail; what it is asked for."""
    requests = []

    def fetch(**request):
        requests.append(request)
        if isinstance(frame, OSError):
            raise frame
        return SimpleNamespace(frame=frame)

    monkeypatch.setattr(sets, "fetch_openml", fetch)
    return requests


def test_sets_without_files():
    expected = load_diabetes(scaled=False)
    features, targets = rows_of("diabetes")
    np.testing.assert_array_equal(features, expected.data)
    np.testing.assert_array_equal(targets, expected.target)
    features, targets = rows_of("toy")
    np.testing.assert_array_equal(features, simulate_toy(300, np.random.default_rng(0))[0])
    assert list(load_set("toy")) == ["x1", "x2", "y"]


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.skipif(not REAL, reason=f"{FOLDER} is not set")
def test_real_tables_have_their_checksum(name):
    found = load_set(name)
    assert list(found) == PUBLISHED[name]["names"]
    assert checksum(found.to_numpy()) == PUBLISHED[name]["checksum"]


def test_a_file_with_more_decimals_is_the_published_table(folder):
    (folder / "slump.csv").write_text("p,q,r\n1.5,2,0.25\n-3.4999,24.0,7.75\n0.1,2,-1.045\n")
    np.testing.assert_array_equal(load_set("slump").to_numpy(), VALUES)
    assert list(load_set("slump")) == ["a", "b", "y"]


@pytest.mark.parametrize(
    "text", ["a,b,y\n1.6,2,0.25\n-3.5,24,7.75\n0.1,2,-1.05\n", "a,b\n1,2\n", "a,b,y\n"]
)
def test_other_values_are_refused(folder, text):
    (folder / "slump.csv").write_text(text)
    with pytest.raises(ValueError, match="slump"):
        load_set("slump")


def test_openml_is_asked_and_its_columns_are_put_in_order(folder, monkeypatch):
    frame = pd.DataFrame(VALUES[:, [2, 0, 1]], columns=["Target (t)", "First", "Second"])
    frame["Second"] = frame["Second"].astype(int).astype(str).astype("category")
    requests = answer_with(monkeypatch, frame)
    np.testing.assert_array_equal(load_set("slump").to_numpy(), VALUES)
    assert [request["data_id"] for request in requests] == [7]


def test_an_absent_set_says_what_to_do(folder, monkeypatch):
    answer_with(monkeypatch, OSError("no network"))
    with pytest.raises(FileNotFoundError, match=f"slump.csv.*{FOLDER}"):
        load_set("slump")
    monkeypatch.setitem(PUBLISHED, "slump", {k: v for k, v in KNOWN.items() if k != "openml"})
    with pytest.raises(FileNotFoundError, match=f"slump.csv.*{FOLDER}"):
        load_set("slump")


def test_checksum_knows_values_and_order_but_not_layout():
    packed = b"".join(struct.pack("<d", value) for value in VALUES.ravel().tolist())
    assert checksum(VALUES) == hashlib.sha256(packed).hexdigest()
    assert checksum(np.asfortranarray(VALUES)) == checksum(VALUES)
    assert checksum(np.array([[-0.0, 1.0]])) == checksum(np.array([[0.0, 1.0]]))
    others = [VALUES[::-1], VALUES[:, ::-1], np.nextafter(VALUES, np.inf), VALUES[:2]]
    assert checksum(VALUES) not in {checksum(other) for other in others}


@pytest.mark.parametrize(
    ("value", "decimals", "expected"),
    [(0.285, 2, 0.29), (-0.285, 2, -0.29), (79.98611, 2, 79.99), (2.5, 0, 3.0), (1e15, 1, 1e15)],
)
def test_halves_go_away_from_zero(value, decimals, expected):
    assert rounded(np.array([value]), decimals).tolist() == [expected]
