"""What becomes of a table before a fit: every decision with the option that changes it.

`look` reads nothing and fits nothing. What would stop a fit is collected, so that a user learns of
all of it at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bowtienet._old.cli.console import Output, number
from bowtienet._old.cli.identifiers import why_identifier
from bowtienet._old.cli.input_tables import (
    NamedTable,
    check_names,
    known_rows,
    with_written_numbers,
    without_infinities,
)
from bowtienet._old.cli.model_facts import column_uses
from bowtienet._old.cli.scores import hold_out
from bowtienet._old.cli.tasks import Task, describe_task, find_task
from bowtienet._old.data.arrow_files import pyarrow
from bowtienet._old.data.dialect import Dialect, describe_date_format, describe_dialect
from bowtienet._old.data.door import open_source
from bowtienet._old.data.labels import check_classes
from bowtienet._old.representation.columns import CONSTANT, Column
from bowtienet._old.representation.kinds import CATEGORY, NUMBER
from bowtienet._old.representation.learning import learn_columns

_SHOWN = 40
"""Columns of numbers without any decision that are listed."""
_PLACE = "\0place"
"""Name of a column beside those of a table."""
FILE, ROWS = "(file)", "(rows)"
"""Subjects of decisions that are about no column."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of a column, the rows or the file."""

    subject: str
    what: str
    option: str = ""
    """What to type for something else; empty where nothing else can be done."""
    is_plain: bool = False
    """Whether it is about a column of numbers that is used as it is."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the options say of the columns and rows of a table."""

    targets: list[str]
    task: Task | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    weight: str | None = None
    exposure: str | None = None
    drop_duplicates: bool = False
    max_categories: int = 100
    test_size: float | None = None
    seed: int = 0

    @property
    def others(self) -> list[str]:
        """Columns beside the features and targets."""
        return [name for name in (self.weight, self.exposure) if name]


@dataclass(frozen=True, kw_only=True)
class Looked:
    """A table that was looked at."""

    decisions: list[Decision]
    problems: list[Decision]
    """What stops a fit, in sentences; without any the rest is there."""
    sentence: str = ""
    """What the target is."""
    columns: tuple[dict[str, str], ...] = ()
    rows: NamedTable | None = None
    train: NamedTable | None = None
    test: NamedTable | None = None


def look(table: Any, dialect: Dialect | None, label: str, asked: Asked) -> Looked:
    """Decide on the file, the rows, the target and every column of a table."""
    decisions, problems = [_file(table, dialect, label)], list[Decision]()
    named = [*asked.targets, *asked.others, *asked.drop, *asked.keep]
    for name in dict.fromkeys(named):
        _collect(problems, name, partial(check_names, table, label, [name] * named.count(name)))
    if problems:
        return Looked(decisions=decisions, problems=problems)
    table, infinite = without_infinities(table, label)
    problems += [
        Decision(subject=name, what=what)
        for name, what in infinite.items()
        if name not in asked.drop
    ]
    table, numbers, left_out = _first_steps(table, asked, decisions)
    formats: dict[str, str] = {}
    if asked.task != Task.CLASSES:
        table, formats = with_written_numbers(table, asked.targets)
    first = asked.targets[0]
    task = _collect(
        problems, first, lambda: find_task(table, label, asked.targets, asked.task, asked.exposure)
    )
    rows = train = test = None
    if task is not None:
        rows = _collect(problems, first, lambda: _rows(table, label, asked, task))
    if rows is not None:
        n_missing = table.num_rows - rows.n_rows
        if n_missing and not infinite.keys() & set(asked.targets):  # those are problems above
            what = f"{n_missing:,} without a target: left out"
            decisions.append(Decision(subject=ROWS, what=what))
        rows = replace(rows, numbers=numbers[rows.numbers - 1])
        parts = _collect(problems, ROWS, lambda: hold_out(rows, asked.test_size, asked.seed))
        train, test = (None, None) if parts is None else parts
    if test is not None and rows is not None:
        what = f"{test.n_rows:,} of {rows.n_rows:,} are held out and scored"
        decisions.append(Decision(subject=ROWS, what=what, option="--test-size"))
    features = table.drop_columns([*asked.targets, *asked.others, *asked.drop])
    columns = _columns(features, train, asked, problems)
    problems += _kept_texts(columns, asked)
    target, sentence = _target(rows, asked, formats)
    decisions += _column_decisions(table, columns, asked, dialect, train) + left_out + target
    decisions += [Decision(subject=name, what="left out", option="--drop") for name in asked.drop]
    return Looked(
        decisions=decisions,
        problems=problems,
        sentence=sentence,
        columns=tuple(column_uses(columns)),
        rows=rows,
        train=train,
        test=test,
    )


def show(found: Looked, output: Output) -> None:
    """The table of decisions and problems; of very many columns without any, the first."""
    plain = [one for one in found.decisions if one.is_plain]
    more = {one.subject for one in plain[_SHOWN:]}
    rows = [
        (one.subject, one.what, one.option) for one in found.decisions if one.subject not in more
    ]
    if more:
        rows.append(("(columns)", f"{len(more):,} more numbers: --json has them all", ""))
    rows += [(one.subject, f"PROBLEM: {one.what}", one.option) for one in found.problems]
    output.table(("column", "what becomes of it", "to change it"), rows, n_texts=3)


def refuse(problems: Sequence[Decision]) -> None:
    """Raise if there are problems, with all of them in the sentence."""
    texts = [one.what for one in problems]
    if len(texts) == 1:
        raise ValueError(texts[0])
    if texts:
        listed = " ".join(f"({place}) {text}" for place, text in enumerate(texts, start=1))
        raise ValueError(f"{len(texts)} problems stop the fit: {listed}")


def without_identifiers(
    table: Any, asked: Asked, firsts: np.ndarray | None = None
) -> tuple[Any, list[Decision]]:
    """The table without columns that count or name its rows, and what is said of them.

    Rows that equal an earlier one repeat its identifier: only the first ones are looked at.
    """
    used = {*asked.targets, *asked.others, *asked.drop, *asked.keep}
    firsts = first_places(table) if firsts is None else firsts
    different = table if len(firsts) == table.num_rows else table.take(firsts)
    reasons = {
        name: why
        for name in table.column_names
        if name not in used and (why := why_identifier(different, name, asked.max_categories))
    }
    if set(table.column_names) <= {*used, *reasons}:
        return table, []  # nothing else is left
    decisions = [
        Decision(
            subject=name,
            what=f"left out (identifiers: {why})",
            option=_flag("predict --id" if "texts" in why else "--keep", name),
        )
        for name, why in reasons.items()
    ]
    return table.drop_columns(list(reasons)), decisions


def _first_steps(
    table: Any, asked: Asked, decisions: list[Decision]
) -> tuple[Any, np.ndarray, list[Decision]]:
    """The table without identifiers and perhaps duplicates, the numbers of its rows, and why."""
    firsts = first_places(table)
    numbers = 1 + np.arange(table.num_rows)
    n_equal = table.num_rows - len(firsts)
    table, left_out = without_identifiers(table, asked, firsts)
    if n_equal:
        what = f"{n_equal:,} equal to an earlier one: "
        what += "left out" if asked.drop_duplicates else "kept"
        decisions.append(Decision(subject=ROWS, what=what, option="--drop-duplicates"))
    if n_equal and asked.drop_duplicates:
        table, numbers = table.take(firsts), numbers[firsts]
    return table, numbers, left_out


def first_places(table: Any) -> np.ndarray:
    """Places of the rows that equal no earlier one, in their order."""
    arrow = pyarrow()
    places = np.arange(table.num_rows)
    try:
        groups = (
            table.append_column(_PLACE, arrow.array(places))
            .group_by(table.column_names)
            .aggregate([(_PLACE, "min")])
        )
    except (arrow.ArrowNotImplementedError, arrow.ArrowInvalid):
        return places  # columns of lists and the like, which the reader refuses
    return np.sort(groups.column(f"{_PLACE}_min").to_numpy())


def _collect(problems: list[Decision], subject: str, work: Callable[[], Any]) -> Any:
    """What some work gives; None, and a problem more, if it is refused."""
    try:
        return work()
    except ValueError as error:
        text = str(error).replace("raise max_categories", "raise --max-categories")
        option = _flag("--drop", subject) if "max_categories" in text else ""
        problems.append(Decision(subject=subject, what=text, option=option))
        return None


def _file(table: Any, dialect: Dialect | None, label: str) -> Decision:
    size = f"{label}: {table.num_rows:,} rows, {table.num_columns:,} columns"
    if dialect is None:
        return Decision(subject=FILE, what=size)
    marks = "--delimiter, --decimal, --encoding"
    return Decision(subject=FILE, what=f"{size}; {describe_dialect(dialect)}", option=marks)


def _rows(table: Any, label: str, asked: Asked, task: Task) -> NamedTable:
    """The rows that have targets."""
    return known_rows(
        table,
        label,
        targets=asked.targets,
        drop=asked.drop,
        weight=asked.weight,
        task=task,
        exposure=asked.exposure,
        says_missing=False,
    )


def _target(
    rows: NamedTable | None, asked: Asked, formats: Mapping[str, str]
) -> tuple[list[Decision], str]:
    """What is said of the targets and of what stands beside them."""
    if rows is None:
        return [], ""
    sentence = describe_task(rows.table, rows.names, rows.task, asked.task)
    found = []
    for name in rows.names:
        what = f"target: {rows.task}"
        what += _range(rows.table, name) if rows.task != Task.CLASSES else ""
        what += f"; written like {formats[name]}" if name in formats else ""
        found.append(Decision(subject=name, what=what, option="--task"))
    if rows.weight is not None:
        found.append(Decision(subject=rows.weight, what="weight", option="--weight"))
    if rows.exposure is not None:
        found.append(Decision(subject=rows.exposure, what="exposure", option="--exposure"))
    return found, sentence


def _kept_texts(columns: Sequence[Column], asked: Asked) -> list[Decision]:
    """What is wrong with columns of texts that shall be kept though they all differ."""
    return [
        Decision(
            subject=column.name,
            what=f"column {column.name!r} holds texts that all differ, from which nothing can be "
            "learnt: leave --keep out, and give predict --id to carry them along.",
        )
        for column in columns
        if column.name in asked.keep and (column.note or "").startswith("identifiers")
    ]


def _columns(
    features: Any, train: NamedTable | None, asked: Asked, problems: list[Decision]
) -> tuple[Column, ...]:
    """What each feature is; one by one where all together are refused."""
    before = len(problems)
    if train is not None:
        found = _collect(problems, ROWS, lambda: _learn_all(train, asked.max_categories))
        if found is not None:
            return tuple(found)
    alone = list[Decision]()
    columns = [
        column
        for name in features.column_names
        if (column := _collect(alone, name, partial(_learn_one, features, name, asked))) is not None
    ]
    if alone:  # they say more than the first of them, which stopped the rest
        problems[before:] = alone
    return tuple(columns)


def _learn_all(train: NamedTable, max_categories: int) -> tuple[Column, ...]:
    source = train.source()
    if source.classes is not None:
        check_classes(source.classes)
    return learn_columns(source, max_categories=max_categories)


def _learn_one(features: Any, name: str, asked: Asked) -> Column:
    """A column beside one that says something, so that it may say nothing."""
    rows = pyarrow().array(np.arange(features.num_rows))
    source = open_source(features.select([name]).append_column(_PLACE, rows), np.zeros(len(rows)))
    return learn_columns(source, max_categories=asked.max_categories)[0]


def _column_decisions(
    table: Any,
    columns: Sequence[Column],
    asked: Asked,
    dialect: Dialect | None,
    train: NamedTable | None,
) -> list[Decision]:
    uses = column_uses(columns)
    dates = {} if dialect is None else dialect.dates
    found = []
    for column, use in zip(columns, uses, strict=True):
        what = use["use"]
        if column.has_value and column.kind != CATEGORY and column.number_format is None:
            what = re.sub(r"^(number|date)", rf"\1{_range(table, column.name)}", what, count=1)
            if pyarrow().types.is_boolean(table.column(column.name).type):
                what = what.replace("number", "true or false, as 1 and 0", 1)
        if column.name in dates:
            unsure = dialect is not None and column.name in dialect.unsure
            what += f"; written {describe_date_format(dates[column.name])}"
            what += ", or the other way round" if unsure else ""
        option = _option(column, column.name in dates)
        what = re.sub(r"(?<=median )-?\d+(\.\d+)?(?= and)", _for_people, what)
        plain = column.kind == NUMBER and column.has_value and not option
        found.append(Decision(subject=column.name, what=what, option=option, is_plain=plain))
    return found


def _for_people(found: re.Match[str]) -> str:
    return number(float(found[0]))


def _option(column: Column, is_written_date: bool) -> str:
    if column.note is not None and column.note.startswith("identifiers"):
        return _flag("predict --id", column.name)
    if column.note == CONSTANT or not (column.has_value or column.has_indicator):
        return ""
    if is_written_date:
        return "--date-format"
    decided = column.kind == CATEGORY or column.has_indicator or column.note
    return _flag("--drop", column.name) if decided else ""


def _range(table: Any, name: str) -> str:
    """Such as " from 1 to 9", of a column of numbers or dates."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    column = table.column(name)
    kind = column.type
    if arrow.types.is_temporal(kind) and not arrow.types.is_duration(kind):
        ends = compute.min_max(column).as_py()
        return "" if ends["min"] is None else f" from {ends['min']!s:.10} to {ends['max']!s:.10}"
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
        return ""
    ends = compute.min_max(column).as_py()
    return "" if ends["min"] is None else f" from {number(ends['min'])} to {number(ends['max'])}"


def _flag(option: str, name: str) -> str:
    quoted = f"'{name}'" if re.search(r"[^\w.-]", name) else name
    return f"{option} {quoted}"


def as_plain(decision: Decision) -> dict[str, Any]:
    """A decision for machines."""
    return {"subject": decision.subject, "what": decision.what, "option": decision.option or None}
