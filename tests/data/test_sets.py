"""`load_set` against files, a cache and an OpenML that the tests make up, and the real files.

No published value stands here: the real tables are checked where BOWTIENET_DATA has them.
"""

import dataclasses
import hashlib
import os
import struct
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from bowtienet.data import sets
from bowtienet.data.published import TABLES, PublishedTable, checksum, rounded
from bowtienet.data.sets import SETS, DataSet, cache_folder, load_set
from bowtienet.data.toy import simulate_toy

REAL = os.environ.get("BOWTIENET_DATA")
VALUES = np.array([[1.5, 2.0, 0.25], [-3.5, 24.0, 7.75], [0.1, 2.0, -1.05]])
TEXT = "a,b,y\n1.5,2,0.25\n-3.5,24,7.75\n0.1,2,-1.05\n"
KNOWN = PublishedTable(
    names=("a", "b", "y"),
    decimals=(1, 0, 2),
    checksum=checksum(VALUES),
    page="https://example.org/tiny",
    request={"data_id": 7},
    aliases=("first", "second", "target"),
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Folders `data` and `cache`, a tiny table that is known as slump, and no OpenML."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("BOWTIENET_DATA", str(data))
    monkeypatch.setenv("BOWTIENET_CACHE", str(cache))
    monkeypatch.setattr(sets, "TABLES", {**TABLES, "slump": KNOWN})
    requests = []

    def openml(answer):
        def fetch(**request):
            requests.append(request)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)

    openml(AssertionError("nobody may ask OpenML here"))
    return SimpleNamespace(data=data, cache=cache, openml=openml, requests=requests)


def known_as(monkeypatch, **changes):
    changed = dataclasses.replace(KNOWN, **changes)
    monkeypatch.setattr(sets, "TABLES", {**TABLES, "slump": changed})


def answer(columns, classes=None):
    """What OpenML gives: columns by name, those with classes as positions."""
    classes = classes or {}
    coded = [
        [classes[name].index(f"{value:g}") for value in values] if name in classes else values
        for name, values in columns.items()
    ]
    return SimpleNamespace(
        data=np.array(coded, dtype=np.float64).T, feature_names=list(columns), categories=classes
    )


def straight():
    return answer({"First": VALUES[:, 0], "Second": VALUES[:, 1], "Target": VALUES[:, 2]})


def check(found):
    assert isinstance(found, DataSet)
    assert found.name == "slump"
    np.testing.assert_array_equal(found.inputs, VALUES[:, :2])
    np.testing.assert_array_equal(found.targets, VALUES[:, 2])
    assert found.inputs.dtype == found.targets.dtype == np.float64
    assert (found.input_names, found.target_name) == (("a", "b"), "y")


def test_names():
    assert (
        *("slump", "yacht", "boston", "energy", "concrete", "power"),
        *("diabetes", "toy"),
    ) == SETS


@pytest.mark.parametrize("name", TABLES)
def test_descriptions_fit_together(name):
    known = TABLES[name]
    assert len(set(known.names)) == len(known.names) == len(known.decimals)
    assert len(known.aliases) in (0, len(known.names))
    assert len(bytes.fromhex(known.checksum)) == hashlib.sha256().digest_size
    assert known.page.startswith("https://")


def test_diabetes_is_that_of_scikit_learn():
    found, expected = load_set("diabetes"), load_diabetes(scaled=False)
    np.testing.assert_array_equal(found.inputs, expected.data)
    np.testing.assert_array_equal(found.targets, expected.target)
    assert found.input_names == tuple(expected.feature_names)
    assert (found.name, found.target_name) == ("diabetes", "progression")


def test_toy_is_that_of_seed_0():
    found = load_set("toy")
    inputs, targets = simulate_toy(300, np.random.default_rng(0))
    np.testing.assert_array_equal(found.inputs, inputs)
    np.testing.assert_array_equal(found.targets, targets)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("yahct", "there is no data set 'yahct'; did you mean 'yacht'"),
        ("Boston", "did you mean 'boston'"),
        ("xyz", "there are 'slump', 'yacht'.* and 3 more"),
    ],
)
def test_an_unknown_name_is_refused_with_a_hint(name, message):
    with pytest.raises(ValueError, match=message):
        load_set(name)


# --- values and their checksum


def test_checksum_is_that_of_the_packed_numbers():
    packed = b"".join(struct.pack("<d", value) for value in VALUES.ravel().tolist())
    assert checksum(VALUES) == hashlib.sha256(packed).hexdigest()


def test_checksum_knows_values_and_order_but_not_layout():
    assert checksum(np.asfortranarray(VALUES)) == checksum(VALUES)
    assert checksum(VALUES.astype(">f8")) == checksum(VALUES)
    assert checksum(np.array([[-0.0, 1.0]])) == checksum(np.array([[0.0, 1.0]]))
    others = [VALUES[::-1], VALUES[:, ::-1], np.nextafter(VALUES, np.inf), VALUES[:2]]
    assert checksum(VALUES) not in {checksum(other) for other in others}


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        (0.285, 2, 0.29),
        (-0.285, 2, -0.29),
        (98.05, 1, 98.1),
        (2.5, 0, 3.0),
        (79.98611, 2, 79.99),
        (463.26, 2, 463.26),
        (np.nextafter(463.26, 0.0), 2, 463.26),
        (1e300, 2, 1e300),
        (np.inf, 2, np.inf),
        (np.nan, 2, np.nan),
    ],
)
def test_halves_are_rounded_away_from_zero(value, places, expected):
    np.testing.assert_array_equal(rounded(np.array([[value]]), (places,)), [[expected]])


def test_rounding_keeps_every_decimal_text(rng):
    texts = [f"{value:.3f}" for value in rng.normal(0.0, 500.0, size=2000)]
    values = np.array([[float(text)] for text in texts])
    np.testing.assert_array_equal(rounded(values, (3,)), values)
    np.testing.assert_array_equal(rounded(np.nextafter(values, 0.0), (3,)), values)


# --- the user's own folder


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT + "\n\n",
        TEXT.replace("a,b,y", "other,names,here"),
        TEXT.replace("0.25", "0.2500000001").replace("1.5,", "1.4999,"),
    ],
    ids=["plain", "crlf", "bom", "names", "more decimals"],
)
def test_a_file_of_the_folder(place, text):
    (place.data / "slump.csv").write_text(text, encoding="utf-8", newline="")
    found = load_set("slump")
    check(found)
    assert found.origin == str(place.data / "slump.csv")
    assert not place.cache.exists()


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("7.75", "7.76"),
        "a,b,y\n-3.5,24,7.75\n1.5,2,0.25\n0.1,2,-1.05\n",
        TEXT.removesuffix("0.1,2,-1.05\n"),
        TEXT.removeprefix("a,b,y\n"),
        TEXT.replace("7.75", "nan"),
        "",
        "a,b,y\n",
    ],
    ids=["value", "order", "row gone", "no names", "nan", "empty", "only names"],
)
def test_other_values_in_the_folder_are_refused(place, text):
    path = place.data / "slump.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="other values or another order of rows") as caught:
        load_set("slump")
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "save the table of https://example.org/tiny as slump.csv" in message
    assert "columns a, b, y" in message
    assert "set BOWTIENET_DATA" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("7.75", "many"), "could not convert string to float: 'many'"),
        (TEXT.replace(",7.75", ""), "its row 2 has 2 values instead of 3"),
        (TEXT.replace("7.75", "7" * 200_000), "field larger than field limit .131072."),
        (TEXT.replace(",", ";"), "its row 1 has 1 values instead of 3"),
    ],
)
def test_what_is_no_table_is_refused(place, text, message):
    (place.data / "slump.csv").write_text(text)
    with pytest.raises(ValueError, match=f"slump.csv cannot be used, {message}: save the table"):
        load_set("slump")


def test_a_folder_that_is_none_is_refused(place, monkeypatch):
    monkeypatch.setenv("BOWTIENET_DATA", str(place.data / "absent"))
    with pytest.raises(ValueError, match=r"BOWTIENET_DATA is .*absent', which is no folder"):
        load_set("slump")


# --- the cache and OpenML


def test_the_folder_comes_before_the_cache_and_the_cache_before_openml(place):
    place.cache.mkdir()
    (place.cache / "slump.csv").write_text(TEXT)
    assert str(place.cache) in load_set("slump").origin
    (place.data / "slump.csv").write_text(TEXT)
    assert str(place.data) in load_set("slump").origin


@pytest.mark.parametrize("setting", ["", None])
def test_without_a_folder_the_table_is_fetched_once(place, monkeypatch, setting):
    if setting is None:
        monkeypatch.delenv("BOWTIENET_DATA")
    else:
        monkeypatch.setenv("BOWTIENET_DATA", setting)
    place.openml(straight())
    check(load_set("slump"))
    assert [path.name for path in place.cache.iterdir()] == ["slump.csv"]
    assert [request["data_id"] for request in place.requests] == [7]
    place.openml(AssertionError("asked twice"))
    found = load_set("slump")
    check(found)
    assert found.origin == f"OpenML, kept as {place.cache / 'slump.csv'}"


def test_what_is_kept_is_a_file_for_the_folder(place):
    place.openml(straight())
    load_set("slump")
    (place.cache / "slump.csv").rename(place.data / "slump.csv")
    place.openml(AssertionError("the file is there"))
    check(load_set("slump"))


@pytest.mark.parametrize("text", [TEXT.replace("7.75", "8"), TEXT[:20], "", "a\n" + "7" * 200_000])
def test_a_damaged_cache_is_fetched_again(place, text):
    place.cache.mkdir()
    (place.cache / "slump.csv").write_text(text)
    place.openml(straight())
    check(load_set("slump"))
    place.openml(AssertionError("not repaired"))
    check(load_set("slump"))


A, B, Y = VALUES.T
FETCHED = {
    "other order": answer({"target": Y, "second": B, "first": A}),
    "longer names": answer({"second_(kg)": B, "first.part": A, "target value": Y}),
    "other names": answer({"V1": A, "V2": B, "y1": Y, "y2": Y + 1.0}),
    "other names, classes": answer({"a": A, "b": B, "y": Y}, {"b": ["2", "24"]}),
    "classes": answer({"first": A, "second": B, "target": Y}, {"second": ["24", "2"]}),
    "more decimals": answer({"first": A + 0.04, "second": B, "target": Y - 0.001}),
    "exact before longer": answer({"first": A, "firsts": B, "second": B, "target": Y}),
}


@pytest.mark.parametrize("kind", FETCHED)
def test_columns_of_openml_become_ours(place, kind):
    place.openml(FETCHED[kind])
    check(load_set("slump"))


def test_arrays_without_classes_are_read(place):
    place.openml(SimpleNamespace(**{**vars(straight()), "categories": None}))
    check(load_set("slump"))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (urllib.error.URLError("no route to host"), "OpenML did not give it .*no route to host"),
        (ValueError("Dataset 7 not found."), "OpenML did not give it .*7 not found"),
        (answer({"a": A, "b": B}), "it has 2 columns instead of 3"),
        (answer({"first": A, "second": B, "target": Y + 1.0}), "other values than were published"),
        (answer({"a": B, "b": A, "y": Y}), "other values than were published"),
    ],
)
def test_what_openml_does_not_give_is_told_with_the_page(place, given, reason):
    place.openml(given)
    with pytest.raises(FileNotFoundError, match=reason) as caught:
        load_set("slump")
    message = str(caught.value)
    assert message.startswith("the data set 'slump' is not on this machine, and ")
    assert "save the table of https://example.org/tiny as slump.csv" in message
    assert "set BOWTIENET_DATA" in message
    assert not place.cache.exists()


def test_texts_for_classes_are_told(place):
    fetched = straight()
    fetched.categories = {"First": ["low", "high"]}
    fetched.data = np.abs(np.sign(fetched.data))
    place.openml(fetched)
    with pytest.raises(FileNotFoundError, match="could not convert string to float: 'low'"):
        load_set("slump")


def test_a_set_that_openml_does_not_have_is_not_asked_for(place, monkeypatch):
    known_as(monkeypatch, request={})
    with pytest.raises(FileNotFoundError, match="it cannot be downloaded from OpenML: save the"):
        load_set("slump")
    assert place.requests == []


def test_a_cache_that_cannot_be_written_is_told(place):
    place.cache.write_text("a file where the folder should be")
    place.openml(straight())
    with pytest.raises(OSError, match=r"cannot be written .*: set BOWTIENET_CACHE to a folder"):
        load_set("slump")


def test_nothing_half_written_stays(place, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    place.openml(straight())
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left on device"):
        load_set("slump")
    assert list(place.cache.iterdir()) == []


def test_place_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BOWTIENET_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("BOWTIENET_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "bowtienet" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / "home" / ".cache" / "bowtienet" / "data"


# --- the real tables

SHAPES = {
    "slump": (103, 7),
    "yacht": (308, 6),
    "boston": (506, 13),
    "energy": (768, 8),
    "concrete": (1030, 8),
    "power": (9568, 4),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_real_table(name, monkeypatch, tmp_path):
    path = Path(REAL or "") / f"{name}.csv"
    if not REAL or not path.is_file():
        pytest.skip("BOWTIENET_DATA has no such file")
    found = load_set(name)
    plain = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found.inputs, plain[:, :-1])
    np.testing.assert_array_equal(found.targets, plain[:, -1])
    assert found.inputs.shape == SHAPES[name]
    assert (*found.input_names, found.target_name) == tuple(
        path.read_text().splitlines()[0].split(",")
    )
    # A round trip through our own file changes no bit.
    sets._keep(tmp_path / f"{name}.csv", TABLES[name].names, plain)
    monkeypatch.setenv("BOWTIENET_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_set(name).inputs, found.inputs)
