"""`read_table` against pandas, and against files that hold no table."""

import bz2
import gzip
import io
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from bowtienet._old.data.files import MISSING, read_table

TABLE = pa.table({"a": [1.5, None, 3.0], "b": ["u", "v", None], "y": [1, 2, 3]})
TEXT = "a,b,y\n1.5,u,1\n,v,2\n3.0,,3\n"


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def write(content, name="table.csv"):
        place = tmp_path / name
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    return write


def test_an_ordinary_file_is_read_as_pandas_reads_it(write, rng):
    n = 200
    frame = pd.DataFrame(
        {
            "whole": rng.integers(-(10**6), 10**6, n),
            "real": rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n),
            "some": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "text": rng.choice(["plain", "with, comma", 'a "quote"', "two\nlines", "ünï"], n),
            "gaps": rng.choice(["u", "v", ""], n),
            "truth": rng.random(n) < 0.5,
        }
    )
    text = frame.to_csv(index=False)
    found = read_table(write(text)).to_pydict()
    expected = pd.read_csv(io.StringIO(text), float_precision="round_trip")
    assert list(found) == list(expected.columns)
    for name in expected.columns:
        given = [None if pd.isna(value) else value for value in expected[name].tolist()]
        assert found[name] == given, name


def test_what_is_missing_is_missing_for_pandas_too(write):
    content = "a,b\n1,u\n" + "".join(f"{text},{text}\n" for text in MISSING)
    absent = [None] * len(MISSING)
    assert read_table(write(content)).to_pydict() == {"a": [1, *absent], "b": ["u", *absent]}
    frame = pd.read_csv(io.StringIO(content), skip_blank_lines=False)
    assert frame[1:].isna().to_numpy().all()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_marks_make_no_difference(write, end, mark, last):
    text = (TEXT if last else TEXT[:-1]).replace("\n", end)
    assert read_table(write(mark + text)).to_pydict() == TABLE.to_pydict()


def test_blanks_around_names_and_values_are_gone(write):
    table = read_table(write("a , b, c,  d\n 1.5, u ,NA, 7\n  , v, 2 , NA\n"))
    assert table.to_pydict() == {
        "a": [1.5, None],
        "b": ["u", "v"],
        "c": [None, 2.0],
        "d": [7.0, None],
    }


def test_decimal_commas(write):
    path = write("a;b;c\n1,5;u,v;-2,25e1\n2;w; 3,5\n")
    assert read_table(path, delimiter=";", decimal=",").to_pydict() == {
        "a": [1.5, 2.0],
        "b": ["u,v", "w"],
        "c": [-22.5, 3.5],
    }
    quoted = write('a,b\n"1,5",1\n"2,5",2\n')
    assert read_table(quoted, decimal=",")["a"].to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("name", "delimiter", "given"),
    [
        ("t.csv", ",", None),
        ("t.txt", ",", None),
        ("t.tsv", "\t", None),
        ("T.TAB", "\t", None),
        ("t.csv", "|", "|"),
        ("t.csv", "\t", "tab"),
        ("t.csv", ";", "semicolon"),
        ("t.v1.2.csv", ",", None),
    ],
)
def test_delimiters(write, name, delimiter, given):
    path = write(TEXT.replace(",", delimiter), name)
    assert read_table(path, delimiter=given).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-32"]
)
def test_encodings(write, encoding):
    path = write("ä,b\nü,1\né,2\n".encode(encoding))
    assert read_table(path, encoding=encoding).to_pydict() == {"ä": ["ü", "é"], "b": [1, 2]}


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_packed_text(write, ending, pack):
    assert read_table(write(pack(TEXT.encode()), f"t.csv.{ending}")).equals(read_table(write(TEXT)))
    tabs = write(pack(TEXT.replace(",", "\t").encode()), f"t.tsv.{ending}")
    assert read_table(tabs).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("name", ["t.parquet", "t.PARQ", "t.arrow", "t.feather", "folder.csv"])
def test_parquet_and_arrow(tmp_path, name):
    place = tmp_path / name
    if name == "folder.csv":  # a folder is a folder, whatever its name
        place.mkdir()
        pa.parquet.write_table(TABLE, place / "part.parquet")
    elif name.lower().startswith("t.par"):
        pa.parquet.write_table(TABLE, place)
    else:
        pl.DataFrame(TABLE.to_pydict()).write_ipc(place)
    found = read_table(place)
    assert found.to_pydict() == TABLE.to_pydict()
    assert found.take([2]).to_pylist() == TABLE.to_pylist()[2:]


@pytest.mark.parametrize("name", [None, "key"])
def test_the_nameless_index_of_pandas_is_no_column(tmp_path, name):
    index = pd.Index(["p", "q", "r"], name=name)
    TABLE.to_pandas().set_index(index).to_parquet(tmp_path / "t.parquet")
    expected = ["a", "b", "y", *([] if name is None else [name])]
    assert read_table(tmp_path / "t.parquet").column_names == expected


def test_nameless_columns_are_left_out_with_a_warning(write):
    with pytest.warns(UserWarning, match=r"table\.csv has no name for column 1, 4, which is left"):
        table = read_table(write(",a,b, \n0,1,2,\n"))
    assert table.to_pydict() == {"a": [1], "b": [2]}


# What is refused


def parquet(table=TABLE):
    stream = io.BytesIO()
    pa.parquet.write_table(table, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("", "t.csv"),
        ("\n\n \n", "t.csv"),
        ("a,b", "t.csv"),
        ("a,b\n\n\n", "t.csv"),
        (",,\n1,2,3\n", "t.csv"),
        ("a,b\n1,2\n3\n", "t.csv"),
        ("a,b, a\n1,2,3\n", "t.csv"),
        (parquet(), "t.csv"),
        (b"PK\x03\x04aaaa", "t.csv"),
        (b"PK\x03\x04aaaa", "t.xlsx"),
        (b"a\n1\n", "t.dat"),
        (b"a\n1\n", "t"),
        (b"a\n1\n", "t.parquet"),
        (b"", "t.parquet"),
        (parquet()[:200], "t.parquet"),
        (parquet(TABLE[:0]), "t.parquet"),
        (parquet(pa.Table.from_arrays([[1], [2]], names=["a", "a"])), "t.parquet"),
        (b"a\n1\n", "t.csv.gz"),
        (gzip.compress(TEXT.encode() * 9, mtime=0)[:-20], "t.csv.gz"),
    ],
)
def test_files_without_a_table_are_named(write, content, name):
    path = write(content, name)
    with pytest.raises(ValueError, match=re.escape(name)):
        read_table(path)


@pytest.mark.parametrize(
    "content", [TEXT.encode("utf-16"), "a,b\n1,é\n".encode("latin-1"), b"\xe9,b\n1,2\n"]
)
def test_a_wrong_encoding(write, content):
    with pytest.raises(ValueError, match=r"t\.csv.*utf-8"):
        read_table(write(content, "t.csv"), encoding="utf-8")


def test_a_line_of_another_length_is_told_by_its_number(write):
    with pytest.raises(ValueError, match="#4"):
        read_table(write("a,b\n1,2\n3,4\n5,6,7\n"))


def test_a_bad_line_is_shown_without_what_a_terminal_obeys(write):
    with pytest.raises(ValueError, match="#2") as caught:
        read_table(write("a,b\r\t\x1b[31m"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "given", "named"),
    [
        ("a;b\n1;2\n", ",", ";"),
        ("a;b;y\n1,5;2,5;3,5\n", ",", ";"),
        ("a\tb\n1\t2\n", ",", "tab"),
        ("a,b\n1,2\n", ";", ","),
    ],
)
def test_a_wrong_delimiter(write, content, given, named):
    with pytest.raises(ValueError, match=f"delimiter '{re.escape(named)}'"):
        read_table(write(content), delimiter=given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("delimiter", ";;"), ("delimiter", '"'), ("decimal", ""), ("encoding", "latin-99")],
)
def test_bad_settings(write, name, value):
    with pytest.raises(ValueError, match=name):
        read_table(write(TEXT), **{name: value})


def test_paths_that_are_not_there(tmp_path, write):
    write(TEXT, "houses.csv")
    with pytest.raises(FileNotFoundError, match=r"did you mean houses\.csv"):
        read_table(tmp_path / "house.csv")
    (tmp_path / "folder").mkdir()
    write(TEXT, "folder/table.csv")
    with pytest.raises(ValueError, match="folder"):
        read_table(tmp_path / "folder")


@pytest.mark.parametrize("closed", [True, False])
def test_a_quote_that_never_ends_swallows_no_rows(tmp_path, closed):
    path = tmp_path / "notes.csv"
    path.write_text('a,note\n1,plain\n2,"two\nlines' + ('"\n' if closed else "\n3,lost\n"))
    if closed:
        assert read_table(path)["note"].to_pylist() == ["plain", "two\nlines"]
    else:
        with pytest.raises(ValueError, match=r"quote.*notes\.csv"):
            read_table(path)
