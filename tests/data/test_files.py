"""`read_file` against pandas, against what was written, and against files that are none."""

import bz2
import csv
import datetime
import gzip
import io
import math
import os
import string
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet.data.files import MISSING, read_file

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


def kinds(table):
    return [str(kind) for kind in table.schema.types]


# What is read


def test_types_are_found_from_what_columns_hold(write):
    table = read_file(
        write(
            "whole,real,text,truth,date,moment,time,empty\n"
            "1,1.5,u,true,2024-01-31,2024-01-31 10:00:00,10:00:00,\n"
            "-2,1e3,v,False,2024-02-01,2024-02-01 11:30:00,11:30:00,NA\n"
        )
    )
    assert kinds(table) == [
        *("int64", "double", "string", "bool"),
        *("date32[day]", "timestamp[s]", "time32[s]", "null"),
    ]
    assert table.to_pylist()[1] == {
        "whole": -2,
        "real": 1000.0,
        "text": "v",
        "truth": False,
        "date": datetime.date(2024, 2, 1),
        "moment": datetime.datetime(2024, 2, 1, 11, 30),
        "time": datetime.time(11, 30),
        "empty": None,
    }


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
    found = read_file(write(text)).to_pydict()
    expected = pd.read_csv(io.StringIO(text), float_precision="round_trip")
    assert list(found) == list(expected.columns)
    for name in expected.columns:
        given = [None if pd.isna(value) else value for value in expected[name].tolist()]
        assert found[name] == given, name


@pytest.mark.parametrize("text", MISSING)
def test_what_is_missing_is_missing_for_pandas_too(write, text):
    content = f"a,b,c\n{text},{text},1\n2.5,u,2\n"
    assert read_file(write(content)).to_pydict() == {
        "a": [None, 2.5],
        "b": [None, "u"],
        "c": [1, 2],
    }
    assert pd.read_csv(io.StringIO(content)).isna().to_numpy().tolist() == [
        [True, True, False],
        [False, False, False],
    ]


@pytest.mark.parametrize("text", ["-", "?", "missing", "na", "Null", "none", "NIL"])
def test_other_texts_are_texts(write, text):
    content = f"a,b\n{text},1\n2.5,2\n"
    assert read_file(write(content))["a"].to_pylist() == [text, "2.5"]
    assert pd.read_csv(io.StringIO(content))["a"].tolist() == [text, "2.5"]


def test_a_text_far_below_makes_a_column_of_texts(write):
    rows = "".join(f"{i},{i}\n" for i in range(100_000))
    table = read_file(write(f"a,b\n{rows}oops,1\n"))
    assert kinds(table) == ["string", "int64"]
    assert table["a"].to_pylist()[-2:] == ["99999", "oops"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_marks_make_no_difference(write, end, mark, last):
    text = (TEXT if last else TEXT[:-1]).replace("\n", end)
    assert read_file(write(mark + text)).to_pydict() == TABLE.to_pydict()


def test_blanks_around_names_and_values_are_gone(write):
    table = read_file(write("a , b, c,  d\n 1.5, u ,NA, 7\n  , v, 2 , NA\n"))
    assert table.to_pydict() == {
        "a": [1.5, None],
        "b": ["u", "v"],
        "c": [None, 2.0],
        "d": [7.0, None],
    }


def test_quotes_after_blanks_are_quotes(write):
    table = read_file(write('"a", "b" , "c d"\n"u", "1" , "v w"\n"""x""", 2 , "NA"\n'))
    assert table.to_pydict() == {"a": ["u", '"x"'], "b": [1.0, 2.0], "c d": ["v w", None]}


def test_quotes_hold_delimiters_quotes_and_newlines(write):
    table = read_file(write('a,b\n1,"x, ""y""\nz"\n2,"\n"\n3,w\n'))
    assert table.to_pydict() == {"a": [1, 2, 3], "b": ['x, "y"\nz', None, "w"]}


def test_decimal_commas(write):
    path = write("a;b;c\n1,5;u,v;-2,25e1\n2;w; 3,5\n")
    assert read_file(path, delimiter=";", decimal=",").to_pydict() == {
        "a": [1.5, 2.0],
        "b": ["u,v", "w"],
        "c": [-22.5, 3.5],
    }
    quoted = write('a,b\n"1,5",1\n"2,5",2\n')
    assert read_file(quoted, decimal=",")["a"].to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize("text", ["1,000", "1'000", "1 000", "1_000", "5 €"])
def test_decorated_numbers_are_texts(write, text):
    table = read_file(write(f'a,b\n"{text}",1\n"2,000",2\n'))
    assert table["a"].to_pylist() == [text, "2,000"]


@pytest.mark.parametrize(
    ("name", "delimiter", "given"),
    [
        ("t.csv", ",", None),
        ("t.txt", ",", None),
        ("t.tsv", "\t", None),
        ("T.TAB", "\t", None),
        ("t.csv", ";", ";"),
        ("t.csv", "|", "|"),
        ("t.csv", "\t", "tab"),
        ("t.csv", "\t", "\\t"),
        ("t.csv", ";", "semicolon"),
        ("t.tsv", ",", "comma"),
        ("t.v1.2.csv", ",", None),
    ],
)
def test_delimiters(write, name, delimiter, given):
    path = write(TEXT.replace(",", delimiter), name)
    assert read_file(path, delimiter=given).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "UTF8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"]
)
def test_encodings(write, encoding):
    path = write("ä,b\nü,1\né,2\n".encode(encoding))
    assert read_file(path, encoding=encoding).to_pydict() == {"ä": ["ü", "é"], "b": [1, 2]}


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_packed_text(write, ending, pack):
    assert read_file(write(pack(TEXT.encode()), f"t.csv.{ending}")).equals(read_file(write(TEXT)))
    tabs = write(pack(TEXT.replace(",", "\t").encode()), f"t.tsv.{ending}")
    assert read_file(tabs).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "t.PARQ"])
def test_parquet(tmp_path, name):
    pa.parquet.write_table(TABLE, tmp_path / name)
    assert read_file(tmp_path / name).equals(TABLE)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
@pytest.mark.parametrize("name", ["t.arrow", "t.feather", "t.ipc"])
def test_arrow(tmp_path, name, compression):
    pa.feather.write_feather(TABLE, str(tmp_path / name), compression=compression)
    assert read_file(tmp_path / name).equals(TABLE)


def test_arrow_of_polars(tmp_path):
    pl.DataFrame(TABLE.to_pydict()).write_ipc(tmp_path / "t.arrow")
    found = read_file(tmp_path / "t.arrow")
    assert found.to_pydict() == TABLE.to_pydict()
    assert found.take([2, 0]).to_pylist() == [TABLE.to_pylist()[2], TABLE.to_pylist()[0]]


def test_a_folder_of_parquet_files(tmp_path):
    folder = tmp_path / "parts.csv"  # a folder is a folder, whatever its name
    folder.mkdir()
    for index in range(2):
        pa.parquet.write_table(TABLE, folder / f"{index}.parquet")
    assert read_file(folder).to_pydict() == pa.concat_tables([TABLE, TABLE]).to_pydict()


@pytest.mark.parametrize("name", [None, "key"])
def test_the_nameless_index_of_pandas_is_no_column(tmp_path, name):
    index = pd.Index(["p", "q", "r"], name=name)
    TABLE.to_pandas().set_index(index).to_parquet(tmp_path / "t.parquet")
    expected = ["a", "b", "y", *([] if name is None else [name])]
    assert read_file(tmp_path / "t.parquet").column_names == expected


def test_paths_may_be_texts_and_begin_at_home(write, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(TEXT)
    assert read_file(str(path)).equals(read_file("~/table.csv"))


def test_nameless_columns_are_left_out_with_a_warning(write):
    with pytest.warns(UserWarning, match=r"table\.csv has no name for column 1, 4, which is left"):
        table = read_file(write(",a,b, \n0,1,2,\n"))
    assert table.to_pydict() == {"a": [1], "b": [2]}


# Whatever is written comes back

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).map(
    lambda text: f"<{text}>"
)
NAMES = st.text(string.ascii_letters + "äß,;\t|\"' \n", max_size=6).map(lambda text: f"<{text}>")
COLUMNS = st.sampled_from(
    [
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        TEXTS,
        st.none(),
    ]
)


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    n_rows = draw(st.integers(1, 6))
    return {
        name: draw(st.lists(st.none() | draw(COLUMNS), min_size=n_rows, max_size=n_rows))
        for name in names
    }


@settings(max_examples=150, deadline=None)
@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-16"]),
)
def test_what_was_written_comes_back(table, delimiter, end, encoding):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_bytes(text.getvalue().encode(encoding))
        found = read_file(path, delimiter=delimiter, encoding=encoding)
    assert found.to_pydict() == table
    for column, values in zip(found.columns, table.values(), strict=True):
        present = {type(value) for value in values} - {type(None)}
        expected = {int: "int64", float: "double", str: "string"}
        assert str(column.type) == (expected[present.pop()] if present else "null")


# What is refused, with one sentence


def refused(path, **settings):
    with pytest.raises((ValueError, OSError)) as caught:
        read_file(path, **settings)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def test_a_file_that_is_not_there(tmp_path, write):
    write(TEXT, "houses.csv")
    assert refused(tmp_path / "house.csv").endswith("does not exist; did you mean houses.csv?")
    assert refused(tmp_path / "zzz").endswith("zzz does not exist: check its name.")
    assert refused(tmp_path / "none" / "a.csv").endswith("does not exist: check its name.")
    assert refused("~nobody-has-this-name/a.csv").endswith("does not exist: check its name.")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty: give"),
        ("\n\n \n", "has no columns|is empty"),
        ("\ufeff", "is empty: give"),
        ("a,b", "has names of columns but no rows"),
        ("a,b\n", "has names of columns but no rows"),
        ("a,b\n\n\n", "has names of columns but no rows"),
        (",,\n1,2,3\n", "has no columns: give a table with named columns"),
        ("a,b,a\n1,2,3\n", "has several columns called 'a': rename them"),
        ("a,b, a\n1,2,3\n", "has several columns called 'a': rename them"),
    ],
)
def test_text_without_a_table(write, content, words):
    path = write(content)
    with pytest.raises(ValueError, match=words):
        read_file(path)
    assert refused(path).startswith("table.csv ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3 of table.csv has 1 columns where the first has 2: mend the"),
        ("a,b\n1,2\n3,4,5\n6\n", "line 3 of table.csv has 3 columns where the first has 2"),
        ("a,b\r\n1,2\r\n3\r\n", "line 3 of table.csv has 1 columns"),
        ("a,b\n\n1,2\n\n3\n", "line 5 of table.csv has 1 columns"),
        ('a,b\n1,"x\n\ny"\n3\n', "line 5 of table.csv has 1 columns"),
        ('a,b\n1,"x\ny",3\n', "line 2 of table.csv has 3 columns"),
    ],
)
def test_lines_of_other_lengths_are_told_by_their_number(write, content, words):
    assert refused(write(content)).startswith(words)
    packed = write(gzip.compress(content.encode(), mtime=0), "table.csv.gz")
    assert refused(packed).startswith(words.replace("table.csv", "table.csv.gz"))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('a,b\n1,"2\n3,4\n', 2),
        ('a,b\n1,2\n3,"4\n', 3),
        ('a,"b\n1,2\n', 1),
        ('a,b\n1,"x\ny"\n2,"z\n3,4\n5,6\n', 4),
        ('a,b\n1,5" pipe\n2,"6" pipe\n3,4\n', None),
        ('a,b\n1,5" pipe\n2,"x\ny"\n', None),
        ('a,b\n1,"' + "3,4\n" * 50_000, 2),
    ],
)
def test_a_quote_that_never_ends_swallows_nothing_unseen(write, content, line):
    path = write(content)
    if line is None:
        assert read_file(path).num_rows == content.count("\n2,") + content.count("\n3,") + 1
    else:
        assert f"line {line} of table.csv, or after it, never ends: close it" in refused(path)


def test_a_line_without_end(write, monkeypatch):
    monkeypatch.setattr("bowtienet.data.files._LONGEST", 1000)
    path = write("a,b\n1," + "x" * 3000 + "\n")
    assert refused(path) == (
        "table.csv has a line of more than 1,000 bytes: does a quote never end?"
    )


@pytest.mark.parametrize(
    ("real", "given", "named"),
    [(";", None, ";"), ("\t", None, "tab"), ("|", None, "|"), (",", ";", ","), (";", ",", ";")],
)
def test_a_wrong_delimiter(write, real, given, named):
    sentence = refused(write("a,b\n1,2\n".replace(",", real)), delimiter=given)
    assert "has a single column" in sentence
    assert f"give the delimiter '{named}'" in sentence


def test_decimal_commas_do_not_hide_a_wrong_delimiter(write):
    sentence = refused(write("a;b;y\n1,5;2,5;3,5\n"))
    assert "they seem to be parted by ';'" in sentence
    assert "the decimal ','" in sentence
    read_file(write("a;b;y\n1,5;2,5;3,5\n"), delimiter=";", decimal=",")


@pytest.mark.parametrize("name", ["delimiter", "decimal"])
@pytest.mark.parametrize("mark", ["", ";;", "é", '"', "\n", "\r"])
def test_characters_that_cannot_part(write, name, mark):
    with pytest.raises(ValueError, match=f"{name} must be one plain character, got"):
        read_file(write(TEXT), **{name: mark})


@pytest.mark.parametrize(
    ("content", "encoding", "where"),
    [
        ("a,b\n1,é\n".encode("latin-1"), "utf-8", r"utf-8 \(byte 0xE9, line 2\)"),
        ("é,b\n1,2\n".encode("latin-1"), "utf-8", r"utf-8 \(byte 0xE9, line 1\)"),
        (b"a,b\n1,2\n3,\xff\n", "utf-8", r"utf-8 \(byte 0xFF, line 3\)"),
        (b"a,b\n1,2\n3,\xc3", "utf-8", r"utf-8 \(byte 0xC3, line 3\)"),
        ("a,b\n1,é\n".encode(), "ascii", r"ascii \(byte 0xC3, line 2\)"),
        (b"a,b\n1,2\n", "utf-16", r"utf-16 \(line 1\)"),
        (b"a,b\n1,\x81\n", "cp1252", r"cp1252 \(byte 0x81, line 2\)"),
    ],
)
def test_bytes_of_another_encoding(write, content, encoding, where):
    match = f"is not text in {where}: save it as UTF-8, or name its encoding"
    with pytest.raises(ValueError, match=match):
        read_file(write(content), encoding=encoding)
    with pytest.raises(ValueError, match=match):
        read_file(write(gzip.compress(content, mtime=0), "table.csv.gz"), encoding=encoding)


@pytest.mark.parametrize(
    "encoding", ["latin-99", "", "rot13", "base64", "hex", "a\0b", "undefined"]
)
def test_encodings_that_are_none(write, encoding):
    with pytest.raises(ValueError, match="is no known encoding: try 'utf-8', 'latin-1'"):
        read_file(write(TEXT), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_that_are_not_named(write, encoding):
    assert "utf-16" in refused(write(TEXT.encode(encoding)))


def parquet(table=TABLE):
    stream = io.BytesIO()
    pa.parquet.write_table(table, stream)
    return stream.getvalue()


def arrow(table=TABLE):
    stream = io.BytesIO()
    pa.feather.write_feather(table, stream, compression="uncompressed")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (parquet(), "t.csv", "t.csv is a Parquet file: let its name end in .parquet."),
        (arrow(), "t.csv", "t.csv is an Arrow file: let its name end in .arrow."),
        (
            gzip.compress(b"a\n1\n", mtime=0),
            "t.csv",
            "t.csv is packed: let its name end in .csv.gz.",
        ),
        (bz2.compress(b"a\n1\n"), "t.tsv", "t.tsv is packed: let its name end in .tsv.bz2."),
        (b"PK\x03\x04aaaa", "t.csv", "t.csv is a spreadsheet or archive, not text: save it"),
        (b"PK\x03\x04aaaa", "t.xlsx", "(its name ends in '.xlsx'): save the sheet as CSV."),
        (b"a\n1\n", "t.dat", "(its name ends in '.dat'): give CSV, TSV, Parquet or Arrow."),
        (b"a\n1\n", "t", "(its name has no ending): give CSV, TSV, Parquet or Arrow."),
        (b"a\n1\n", "t.parquet", "t.parquet is no Parquet or Arrow file"),
        (b"", "t.parquet", "t.parquet is empty: give a file with a table."),
        (parquet()[:200], "t.parquet", "t.parquet cannot be read ("),
        (parquet()[:60] + b"\xff" * 60 + parquet()[120:], "t.parquet", "t.parquet cannot be read"),
        (arrow()[:-50], "t.arrow", "t.arrow cannot be read ("),
        (parquet(TABLE[:0]), "t.parquet", "has names of columns but no rows"),
        (b"a\n1\n", "t.csv.gz", "t.csv.gz cannot be read ("),
        (gzip.compress(TEXT.encode() * 9, mtime=0)[:-20], "t.csv.gz", "t.csv.gz cannot be read ("),
        (gzip.compress(b"", mtime=0), "t.csv.gz", "t.csv.gz is empty: give"),
    ],
)
def test_files_that_are_not_what_their_name_says(write, content, name, words):
    assert words in refused(write(content, name))


@pytest.mark.parametrize("encode", [parquet, arrow])
def test_names_that_occur_twice(write, encode):
    table = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "b", "a"])
    name = f"t.{encode.__name__}"
    assert f"{name} has several columns called 'a': rename" in refused(write(encode(table), name))


def test_folders_without_tables(tmp_path, write):
    (tmp_path / "folder").mkdir()
    assert "folder is an empty folder" in refused(tmp_path / "folder")
    write(TEXT, "folder/table.csv")
    assert "folder has no Parquet or Arrow file" in refused(tmp_path / "folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file: copy its content to one" in refused(tmp_path / "pipe.csv")


def test_infinite_numbers_are_numbers(write):
    assert read_file(write("a,b\ninf,1\n-Infinity,2\n"))["a"].to_pylist() == [math.inf, -math.inf]
