"""How a text file is written is found from its content, or remembered."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import pytest

from bowtienet._old.data.dialect import (
    Dialect,
    Given,
    describe_date_format,
    describe_dialect,
    find_decimal,
    find_delimiter,
    find_encoding,
    from_plain,
    to_plain,
)
from bowtienet._old.data.files import read_table, read_with_dialect

ROWS: list[tuple[str, float, str]] = [("Zürich", 1.5, "x"), ("Genève", -2.25, "y"), ("", 1e3, "x")]


def text(delimiter: str, decimal: str) -> str:
    lines = [delimiter.join(("ort", "wert", "art"))]
    for place, value, kind in ROWS:
        lines.append(delimiter.join((place, str(value).replace(".", decimal), kind)))
    return "\n".join(lines) + "\n"


def read(path: Path, content: bytes | str, **given: Any) -> tuple[dict[str, list[Any]], Dialect]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table, dialect = read_with_dialect(path, Given(**given))
    assert dialect is not None
    return table.to_pydict(), dialect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.csv"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(",", "."), (";", ","), (";", "."), ("\t", ","), ("|", ".")]
)
def test_one_table_in_many_dialects(
    path: Path, delimiter: str, decimal: str, encoding: str
) -> None:
    found, dialect = read(path, text(delimiter, decimal).encode(encoding))
    places, values, kinds = (list(column) for column in zip(*ROWS, strict=True))
    assert found == {"ort": [*places[:2], None], "wert": values, "art": kinds}
    assert dialect == Dialect(delimiter=delimiter, decimal=decimal, encoding=encoding)


def test_packed_files_and_marks(tmp_path: Path) -> None:
    packed = gzip.compress(text(";", ",").encode("cp1252"))
    assert read(tmp_path / "t.csv.gz", packed)[1].encoding == "cp1252"
    assert read(tmp_path / "t.csv", b"\xef\xbb\xbf" + text(";", ",").encode())[0]["wert"][0] == 1.5
    assert read(tmp_path / "t.tsv", text(",", "."))[1].delimiter == ","
    assert find_encoding(tmp_path / "t.tsv", "cp1250") == "utf-8"


def test_what_is_given_counts_and_what_is_remembered_helps(path: Path) -> None:
    """A file of whole numbers says nothing of its decimal sign, and of bytes little."""
    past = Dialect(delimiter=";", decimal=",", encoding="cp1250", dates={"d": "%d/%m/%Y"})
    plain = "a;b\n1;2\n"
    assert read(path, plain)[1].decimal == "."
    assert read(path, plain, remembered=past)[1].decimal == ","
    assert read(path, "a,b\n1.5,2\n", remembered=past)[1] == Dialect()
    assert read(path, "a;é\n1;2\n".encode("cp1250"), remembered=past)[1].encoding == "cp1250"
    assert read(path, "a;b\n1.5;2\n", remembered=past, decimal=",")[1].decimal == ","
    assert read(path, "a,b;c\n1,2;3\n")[1].delimiter == ","
    assert read(path, "a,b;c\n1,2;3\n", remembered=past)[1].delimiter == ";"
    assert read(path, "a,b;c\n1,2;3\n", delimiter=";")[0]["a,b"] == [1.2]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1.5", "2"], "."),
        (["1,5", "2"], ","),
        (["1,234"], None),
        (["1.234"], None),
        (["0,234"], ","),
        (["1,234.5"], "."),
        (["1.234,50 €"], ","),
        (["31.12.2023", "a,b"], None),
        (["1,5", "2.5", "2.25"], "."),
        ([], None),
    ],
)
def test_decimal_signs(cells: list[str], expected: str | None) -> None:
    assert find_decimal(cells) == expected


def test_delimiters_that_stand_in_quotes_or_not_at_all() -> None:
    assert find_delimiter(['a;"b,c,d"', '1;"x,y,z"'], ",", ",") == ";"
    assert find_delimiter(["a", "1"], "\t", ",") == "\t"
    assert find_delimiter([], ",", ",") == ","


def test_thousands_beside_a_decimal_comma(path: Path) -> None:
    found, _ = read(path, "a;b;c\n1.234;2,5;1.2.3\n1.234.567,5;3,5;4\n12;4,5;5\n")
    assert found["a"] == [1234.0, 1234567.5, 12.0]
    assert found["c"] == ["1.2.3", "4", "5"]


def days(*texts: str) -> list[datetime.date]:
    return [datetime.date.fromisoformat(text) for text in texts]


@pytest.mark.parametrize(
    ("cells", "form", "expected"),
    [
        (["31.12.2023", "1.2.2024"], "%d.%m.%Y", days("2023-12-31", "2024-02-01")),
        (["31/12/2023", "01/02/2024"], "%d/%m/%Y", days("2023-12-31", "2024-02-01")),
        (["12/31/2023", "01/02/2024"], "%m/%d/%Y", days("2023-12-31", "2024-01-02")),
        (["31-12-2023", ""], "%d-%m-%Y", [*days("2023-12-31"), None]),
        (["2023/12/31", "2024/01/02"], "%Y/%m/%d", days("2023-12-31", "2024-01-02")),
    ],
)
def test_dates(path: Path, cells: list[str], form: str, expected: list[Any]) -> None:
    found, dialect = read(path, "d;y\n" + "".join(f"{cell};1\n" for cell in cells))
    assert found["d"] == expected
    assert dialect.dates == {"d": form}
    assert dialect.unsure == ()


def test_times_of_day(path: Path) -> None:
    found, dialect = read(path, "d;y\n31.12.2023 08:30;1\n1.1.2024 9:05;2\n")
    assert found["d"] == [
        datetime.datetime(2023, 12, 31, 8, 30),
        datetime.datetime(2024, 1, 1, 9, 5),
    ]
    assert describe_date_format(dialect.dates["d"]) == "day.month.year hour:minute"


@pytest.mark.parametrize("cells", [["31.12.2023", "soon"], ["32.12.2023"], ["1.2.3"], ["12.5.23"]])
def test_texts_that_are_no_dates_stay(path: Path, cells: list[str]) -> None:
    found, dialect = read(path, "d;y\n" + "".join(f"{cell};1\n" for cell in cells))
    assert found["d"] == cells
    assert not dialect.dates


def test_day_and_month_may_be_the_other_way_round(path: Path) -> None:
    content = "d,y\n03/04/2023,1\n05/06/2023,2\n"
    found, dialect = read(path, content)
    assert (found["d"], dialect.unsure) == (days("2023-03-04", "2023-05-06"), ("d",))
    given, dialect = read(path, content, date_format="%d/%m/%Y")
    assert (given["d"], dialect.unsure) == (days("2023-04-03", "2023-06-05"), ())
    past = Dialect(dates={"d": "%d/%m/%Y"})
    assert read(path, content, remembered=past)[0] == given
    assert read_table(path, date_format="%d/%m/%Y").to_pydict() == given


def test_columns_that_were_texts_stay_so(path: Path) -> None:
    """Whatever they look like in a few rows, and however they would sway the decimal sign."""
    past = Dialect(delimiter=";", decimal=",")
    content = "a;b;c;d\n1.5;1,5;1.2.2024;1.234\n 2.5 ;007;3.4.2024;2.345\n"
    found, dialect = read(path, content, remembered=past, texts=("a", "b", "c"))
    assert found == {
        "a": ["1.5", "2.5"],
        "b": ["1,5", "007"],
        "c": ["1.2.2024", "3.4.2024"],
        "d": [1234.0, 2345.0],
    }
    assert dialect == past


def test_a_format_that_no_column_has_is_told(path: Path) -> None:
    with pytest.warns(UserWarning, match=r"%d/%m/%Y"):
        read(path, "d,y\n31.12.2023,1\n", date_format="%d/%m/%Y")


def test_a_dialect_can_be_saved() -> None:
    dialect = Dialect(delimiter="\t", dates={"d": "%d.%m.%Y"}, unsure=("d",))
    assert from_plain(to_plain(dialect)) == dialect
    assert from_plain(to_plain(None)) is None
    assert describe_dialect(dialect) == "delimiter tab, decimal point, encoding utf-8"
    for name, value in (
        ("delimiter", 1),
        ("delimiter", ";;"),
        ("dates", {"d": 3}),
        ("unsure", [1]),
        ("encoding", "rot13"),
        ("encoding", "../etc"),
        ("decimal", '"'),
    ):
        with pytest.raises(ValueError, match="dialect"):
            from_plain({**(to_plain(dialect) or {}), name: value})
