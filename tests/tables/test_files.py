"""Files: dialects, rows that are no data, kinds of files, chunks, and what is refused."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from bowtienet.tables.door import notes_of, open_rows
from bowtienet.tables.files import read_chunks, read_table

FRAME = pd.DataFrame({"name": ["Ä, b", "c", "é"], "size": [1.5, 2.0, np.nan], "rooms": [1, 2, 30]})


def written(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path


def same(frame: pd.DataFrame) -> None:
    frame = frame.assign(name=frame["name"].astype(object))
    pd.testing.assert_frame_equal(frame, FRAME.assign(name=FRAME["name"].astype(object)))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"]
)
def test_dialects(separator: str, encoding: str, tmp_path: Path) -> None:
    text = FRAME.to_csv(sep=separator, index=False, lineterminator="\r\n")
    frame = read_table(written(tmp_path, text, encoding))
    same(frame)
    assert any("cp1252" in note for note in notes_of(frame)) == (encoding == "cp1252")


def test_an_encoding_is_that_of_the_whole_file(tmp_path: Path) -> None:
    rows = "".join(f"{i},plain text of a row\n" for i in range(60_000))
    frame = read_table(written(tmp_path, f"a,b\n{rows}1,Ö\n"))
    assert frame["b"].iloc[-1] == "Ö"


@pytest.mark.parametrize("form", ["parquet", "feather", "xlsx", "xlsx with a preamble"])
def test_other_files(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{form.split()[0]}"
    if form == "parquet":
        FRAME.to_parquet(path)
    elif form == "feather":
        FRAME.to_feather(path)
    else:
        FRAME.to_excel(path, index=False, startrow=2 * ("preamble" in form))
    same(read_table(path))
    chunks = list(read_chunks(path, 2))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert pd.concat(chunks)["rooms"].tolist() == [1, 2, 30]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    for read in (read_table, lambda path: next(read_chunks(path, 9))):
        stream = io.TextIOWrapper(io.BytesIO(FRAME.to_csv(index=False).encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        assert read("-")["name"].tolist() == FRAME["name"].tolist()


JUNK = """Rents of a town
made by hand; see below

city;area;rent
;[m²];EUR
Rome;50,5;1.003,50
Oslo;60;700

city;area;rent
Rome;70;900
Summe;180,5;2603,5
Source: a survey
"""


def test_rows_that_are_no_data(tmp_path: Path) -> None:
    path = written(tmp_path, JUNK)
    frame = read_table(path)
    assert frame["city"].tolist() == ["Rome", "Oslo", "Rome"]
    assert frame["rent"].tolist() == ["1.003,50", "700", "900"]
    expected = ["2 lines above", "units", "blank", "repeated header", "totals", "remark"]
    assert len(notes_of(frame)) == len(expected)
    for words in expected:
        assert sum(words in note for note in notes_of(frame)) == 1
    training = open_rows(BaseEstimator(), frame, "rent")
    assert training.notes == notes_of(frame)
    assert training.targets[:, 0].tolist() == [1003.5, 700.0, 900.0]
    chunks = list(read_chunks(path, 2))
    assert [chunk["area"].tolist() for chunk in chunks] == [["50,5", "60"], ["70"]]
    assert sorted(sum((notes_of(chunk) for chunk in chunks), ())) == sorted(notes_of(frame))


@pytest.mark.parametrize("row", ["Rome,,1", "Total,3,1", "n/a,n/a,n/a", "Oslo,?,-"])
def test_rows_that_look_like_junk_and_are_data(row: str, tmp_path: Path) -> None:
    """Missing values under the header, and a level that is called Total within the table."""
    rows = [row, *["Rome,1,2", "Oslo,2,3"] * 4]
    frame = read_table(written(tmp_path, "\n".join(["city,a,b", *rows])))
    assert len(frame) == len(rows)


def test_names(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, "a,a, b  c ,\n1,2,3,\n4,5,6,\n"))
    assert list(frame) == ["a", "a_2", "b c"]
    assert any("'a_2'" in note for note in notes_of(frame))
    frame = read_table(written(tmp_path, "1,2.5\n3,4\n"))
    assert list(frame) == ["column_1", "column_2"]
    assert frame["column_1"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        (["1", "2", "30"], {}, "int64"),
        (["1.5", "", "3e2"], {}, "float64"),
        (["007", "008", "9"], {}, "object"),
        (["1", "-999", "3"], {"missing_values": ["-999"]}, "object"),
        (["1.234", "2.345", "3.4"], {}, "float64"),
        (["1.234", "2.345", "12.345"], {"decimal": ","}, "object"),
        (["1,5", "2", "3"], {}, "object"),
    ],
)
def test_only_plain_numbers_are_numbers(
    cells: list[str], options: Any, expected: str, tmp_path: Path
) -> None:
    text = "\n".join(["a|b", *(f"{cell}|x" for cell in cells)])
    assert read_table(written(tmp_path, text), **options)["a"].dtype == expected


@pytest.mark.parametrize(
    ("content", "name", "error", "words"),
    [
        ("", "a.csv", ValueError, "empty"),
        ("a,b\n", "a.csv", ValueError, "no rows"),
        ("a,b\n1,2\n1,2,3\n1,2,3,4\n", "a.csv", ValueError, "record '3', '4' more.*quotes"),
        ("<html>\n<p>a, b</p>\n</html>", "a.csv", ValueError, "1 cell .*'2' more.*is a table"),
        ("x", "a.xls", ValueError, "xlsx"),
        (None, "absent.csv", FileNotFoundError, "absent"),
    ],
)
def test_refused(content: Any, name: str, error: Any, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=words):
        read_table(tmp_path / name)


def test_options_refused(tmp_path: Path) -> None:
    for options in ({"decimal": ";"}, {"missing_values": "-"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            read_table(written(tmp_path, "a,b\n1,2\n"), **options)  # type: ignore[arg-type]
