"""Tables as people have them: read, fitted and predicted as well as a table cleaned by hand.

A clean table, how people write it down, case by case, and the scores of both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.estimators.saving import load
from bowtienet.tables.door import open_known, open_rows
from bowtienet.tables.files import read_chunks, read_table
from bowtienet.tables.representation import learn_representation, standardize

Cell = Callable[[Any], Any]
Writer = Callable[[pd.DataFrame, Path], Any]
ZONES = [dt.timezone(dt.timedelta(hours=hours)) for hours in (-5, 0, 1, 9)]
WORDS = ["garden", "noisy", "bright", "old", "view", "quiet", "cellar", "lift", "new", "floor"]
NUMBERS = ("area", "share", "balcony")
"""Columns that every case has."""


def clean(rng: np.random.Generator, names: Sequence[str], n: int = 500) -> pd.DataFrame:
    """Flats with these columns and their rents, as somebody would have cleaned them by hand."""
    days = np.datetime64("2021-01-01") + rng.integers(0, 1000, n).astype("timedelta64[D]")
    hours = rng.integers(0, 24, n)
    words = rng.integers(0, 2, (n, len(WORDS)))
    frame = pd.DataFrame(
        {
            "area": np.round(rng.uniform(20.0, 2000.0, n), 2),
            "share": np.round(rng.uniform(0.0, 100.0, n), 1),
            "balcony": rng.integers(0, 2, n).astype(bool),
            "city": rng.choice(["Rome", "Oslo", "Bern, old town"], n),
            "day": days,
            "moment": days + hours.astype("timedelta64[h]"),
            "zip": [f"{i:05d}" for i in rng.integers(0, 60, n) * 171 + 907],
            "street": rng.choice([f"street {chr(97 + i % 26)}{i}" for i in range(80)], n),
            "words": [
                f"{' '.join(np.array(WORDS)[row == 1])} in house {chr(97 + i % 26)}{i}"
                for i, row in enumerate(words)
            ],
        }
    )
    season = np.sin(2.0 * np.pi * frame["day"].dt.dayofyear / 365.25)
    levels = frame["street"].str[7:].str[1:].astype(int)
    effects = {
        "area": frame["area"] / 100.0,
        "share": frame["share"] / 10.0,
        "balcony": 5.0 * frame["balcony"],
        "city": frame["city"].map({"Rome": 0.0, "Oslo": 6.0, "Bern, old town": -6.0}),
        "day": 8.0 * season,
        "moment": 8.0 * season + hours / 2.0,
        "zip": 8.0 * np.sin(frame["zip"].astype(int)),
        "street": 8.0 * np.sin(levels**2),
        "words": 8.0 * words[:, 0] - 8.0 * words[:, 1],
    }
    frame = frame[[*NUMBERS, *names]]
    rent = 20.0 + sum(effects[name] for name in frame.columns) + rng.normal(0.0, 2.0, n)
    return frame.assign(rent=np.round(rent, 3))


def by_hand(frame: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers, of the kinds that a careful person makes; `levels` is of training."""
    X: dict[str, Any] = {}
    for name in frame.columns.drop("rent"):
        column = frame[name]
        if name in ("day", "moment"):
            angle = 2.0 * np.pi * column.dt.dayofyear / 365.25
            X |= {f"{name} day": column.astype("int64") / 1e15, f"{name} sine": np.sin(angle)}
            X |= {f"{name} cosine": np.cos(angle), f"{name} hour": column.dt.hour}
        elif name == "words":
            X |= {word: column.str.contains(word).astype(float) for word in WORDS}
        elif name in ("zip", "street"):
            groups = levels.groupby(name)["rent"]
            means = (groups.sum() + 3.0 * levels["rent"].mean()) / (groups.count() + 3.0)
            X[name] = column.map(means).fillna(levels["rent"].mean())
        elif name == "city":
            X |= {level: column == level for level in ("Rome", "Oslo")}
        else:
            X |= {name: column.fillna(levels[name].median()), f"{name} missing": column.isna()}
    return pd.DataFrame(X).astype(float)


def german(value: float, digits: int = 2) -> str:
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def csv_text(frame: pd.DataFrame, separator: str = ",", **cells: Cell) -> str:
    """A CSV text in which the cells of some columns are written in a way of their own."""
    texts = frame.astype(object).copy()
    for name, cell in cells.items():
        texts[name] = [None if pd.isna(v) else cell(v) for v in frame[name]]
    return texts.to_csv(sep=separator, index=False, na_rep="")


def with_holes(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The same rows with numbers missing here and there."""
    present = rng.uniform(size=(len(frame), 2)) > 0.07
    return frame.assign(**frame[["area", "share"]].where(present))


def coded(text: str, codes: Sequence[str]) -> str:
    """Empty cells of a text as codes, in turn."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        code = codes[i % len(codes)]
        cells = line.split(";")
        lines[i] = ";".join(cell or code for cell in cells)
    return "\n".join(lines)


def zoned(moment: pd.Timestamp) -> str:
    zone = ZONES[moment.day % len(ZONES)]
    return moment.to_pydatetime().replace(tzinfo=dt.UTC).astimezone(zone).isoformat()


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding=encoding)
    return path


def junk(text: str, at: int, line: str) -> str:
    lines = text.splitlines()
    return "\n".join([*lines[:at], line, *lines[at:]])


def excel(frame: pd.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".xlsx")
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="flats", index=False, startrow=2)
    return path


def mixed(value: float) -> Any:
    return [value, str(value), Decimal(str(value)), f" {value} "][int(value) % 4]


def written_as(separator: str = ",", encoding: str = "utf-8", **cells: Cell) -> Writer:
    """A CSV file with cells of its own."""
    return lambda frame, path: written(path, csv_text(frame, separator, **cells), encoding)


def with_codes(*codes: str, **cells: Cell) -> Writer:
    return lambda frame, path: written(path, coded(csv_text(frame, ";", **cells), codes))


def doubled(frame: pd.DataFrame, path: Path) -> Path:
    """With a number and a text for each row, a name that comes twice, and a constant."""
    ids = pd.DataFrame({"id": [f"row{i}" for i in frame.index], "same": "x"}, index=frame.index)
    return written(path, csv_text(pd.concat([frame, frame[["area"]], ids], axis=1)))


def wide(frame: pd.DataFrame, path: Path) -> Path:
    noise = np.random.default_rng(len(frame)).normal(size=(len(frame), 40))
    more = pd.DataFrame(noise, index=frame.index).add_prefix("noise ")
    return written(path, csv_text(pd.concat([frame, more], axis=1), "|"))


def with_totals(frame: pd.DataFrame, path: Path) -> Path:
    end = f"\n\nTotal,{frame['share'].sum()},,,{frame['rent'].sum()}\nSource: a survey\n"
    return written(path, csv_text(frame) + end)


def again(frame: pd.DataFrame, path: Path) -> Path:
    text = csv_text(frame)
    return written(path, junk(junk(text, 90, text.splitlines()[0]), 40, ""))


ANSWERS = cycle(["No", "no"]), cycle(["Yes", "yes", "YES"])
EUROS = {"area": lambda v: german(v) + " EUR", "share": "{} %".format, "rent": german}
GERMAN = {"area": german, "share": german, "rent": lambda v: german(v, 3)}
FIRST_OF_MONTH = "{:%B %d, %Y %I:%M %p}".format
CASES: dict[str, tuple[tuple[str, ...], Writer]] = {
    "german": (("city", "day"), written_as(";", "cp1252", **GERMAN, day="{:%d.%m.%Y}".format)),
    "dollars": ((), written_as(area="${:,.2f}".format)),
    "euros": ((), written_as(";", **EUROS)),
    "german codes": (("holes",), with_codes("-", "k.A.", **GERMAN)),
    "english codes": (("holes",), with_codes("n/a", "NA", "?", ".", "unknown", "--")),
    "iso dates": (("moment",), written_as(moment=str)),
    "us dates": (("day",), written_as(day="{:%m/%d/%Y}".format)),
    "short dates": (("day",), written_as(day="{:%d/%m/%y}".format)),
    "named months": (("day",), written_as(day="{:%d %b %Y}".format)),
    "dates of letters": (("moment",), written_as(moment=FIRST_OF_MONTH)),
    "compact dates": (("day",), written_as(day="{:%Y%m%d}".format)),
    "time zones": (("moment",), written_as(moment=zoned)),
    "zip codes": (("zip",), written_as()),
    "many levels": (("street",), written_as()),
    "free text": (("words",), written_as()),
    "totals": (("city",), with_totals),
    "repeated headers": ((), again),
    "row of units": ((), lambda f, p: written(p, junk(csv_text(f), 1, "m²,%,,EUR"))),
    "preamble": (("city",), lambda f, p: written(p, "Rents\nOf 2024, by hand\n\n" + csv_text(f))),
    "spreadsheet": (("city", "moment"), excel),
    "yes and Yes": ((), written_as(balcony=lambda v: next(ANSWERS[v]))),
    "decimals": ((), lambda f, p: f.assign(area=[Decimal(str(v)) for v in f["area"]])),
    "mixed types": ((), lambda f, p: f.assign(area=[mixed(v) for v in f["area"]])),
    "utf-16 and tabs": (("city",), written_as("\t", "utf-16")),
    "wide": ((), wide),
    "ids and doubles": (("zip",), doubled),
}


def scores(case: str, path: Path) -> tuple[float, float]:
    """R² on fresh rows of a ridge on the messy table, and on that cleaned by hand."""
    rng = np.random.default_rng(7)
    names, write = CASES[case]
    table = clean(rng, [name for name in names if name != "holes"])
    table = with_holes(table, rng) if "holes" in names else table
    train, fresh = table.iloc[:400], table.iloc[400:]
    hand = RidgeCV(np.logspace(-3, 3, 7)).fit(by_hand(train, train), train["rent"])
    reference = r2_score(fresh["rent"], hand.predict(by_hand(fresh, train)))
    rows = write(train, path / "train.csv")
    rows = rows if isinstance(rows, pd.DataFrame) else read_table(rows)
    estimator: Any = BaseEstimator()
    training = open_rows(estimator, rows, "rent")
    representation, inputs = learn_representation(training, 30)
    model = RidgeCV(np.logspace(-3, 3, 7)).fit(inputs, training.targets[:, 0])
    estimator._target_names = ("rent",)
    new = write(fresh, path / "fresh.csv")
    chunks = [new] if isinstance(new, pd.DataFrame) else read_chunks(new, 30)
    predictions = [
        model.predict(standardize(representation, open_known(estimator, chunk))) for chunk in chunks
    ]
    return r2_score(fresh["rent"], np.concatenate(predictions)), reference


@pytest.mark.filterwarnings("ignore:levels that training did not have")
@pytest.mark.parametrize("case", CASES)
def test_a_messy_table_predicts_as_a_clean_one(case: str, tmp_path: Path) -> None:
    score, reference = scores(case, tmp_path)
    assert reference > 0.5
    assert score > reference - 0.05


def test_a_loaded_model_reads_rows_of_a_file_one_at_a_time(tmp_path: Path) -> None:
    """What was learnt of the columns is in the file of a model: codes, styles, levels, notes."""
    rng = np.random.default_rng(3)
    table = with_holes(clean(rng, ["day", "street"], n=400), rng)
    write = with_codes("k.A.", "-", **GERMAN, day="{:%d.%m.%Y}".format)
    rows = read_table(write(table.iloc[:300], tmp_path / "train.csv"))
    model = BowTieRegressor((8,), effort="fast", random_state=0).fit(rows, "rent")
    model.save(tmp_path / "model.btn")
    loaded = load(tmp_path / "model.btn")
    assert "'-', 'k.A.' count as missing" in loaded.summary()
    known = table["street"].isin(table["street"].iloc[:300])
    fresh = write(table[known].iloc[-20:], tmp_path / "fresh.csv")
    together = model.predict(read_table(fresh))
    alone = [loaded.predict(row)[0] for row in read_chunks(fresh, 1)]
    np.testing.assert_allclose(alone, together, rtol=1e-5)
