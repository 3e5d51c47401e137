"""What a target is: numbers, classes or counts, and how that is told."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from bowtienet._old._validation import suggestion
from bowtienet._old.data.arrow_files import pyarrow
from bowtienet._old.data.labels import distinct, read_labels
from bowtienet._old.data.parsing import parse
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.representation.written import reads_as_number

_MOST_CLASSES = 100
"""Different texts that are taken for classes unasked."""
_SHOWN = 5


class Task(StrEnum):
    """What is fitted to a target."""

    NUMBERS = "numbers"
    CLASSES = "classes"
    COUNTS = "counts"


TARGETS = {Task.NUMBERS: "number", Task.CLASSES: "label", Task.COUNTS: "count"}
"""What `open_source` calls them."""


def task_of(model: Any) -> Task:
    """What a fitted estimator predicts."""
    if hasattr(model, "classes_"):
        return Task.CLASSES
    return Task.COUNTS if is_counts(model.ensemble_) else Task.NUMBERS


def read_task(given: str | None) -> Task | None:
    """The task that an option names."""
    if given is not None and given not in tuple(Task):
        near = suggestion(given, list(Task))
        raise ValueError(f"--task must be {', '.join(list(Task)[:-1])} or {Task.COUNTS}{near}")
    return None if given is None else Task(given)


def find_task(
    table: Any,
    label: str,
    targets: Sequence[str],
    given: Task | None = None,
    exposure: str | None = None,
) -> Task:
    """The task that is asked for, or else that of what the target holds.

    Texts and booleans are classes, and so are numbers if they are whole and of two kinds.
    """
    found = given or (Task.COUNTS if exposure else _held_task(table, label, targets))
    if found != Task.NUMBERS and len(targets) > 1:
        raise ValueError(f"{found} have one target: name --target once, or give --task numbers.")
    if exposure and found != Task.COUNTS:
        raise ValueError("--exposure is for counts: leave it out, or give --task counts.")
    return found


def _held_task(table: Any, label: str, targets: Sequence[str]) -> Task:
    column = table.column(targets[0]) if targets[0] in table.column_names else None
    if len(targets) > 1 or column is None:
        return Task.NUMBERS
    types = pyarrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_boolean(kind):
        return Task.CLASSES
    if types.is_string(kind) or types.is_large_string(kind):
        return _text_task([str(one) for one in column.drop_null().to_pylist()], label, targets[0])
    values = _finite(table, targets[0])
    return Task.CLASSES if _two_whole(values) else Task.NUMBERS


def _text_task(entries: list[str], label: str, name: str) -> Task:
    """Classes, unless the texts are numbers with a slip in them, or names of rows."""
    different = set(entries)
    n_numbers = sum(reads_as_number(one.replace(",", ".", 1)) for one in different)
    if not different or 2 * n_numbers > len(different):
        return Task.NUMBERS
    if len(different) > _MOST_CLASSES or 2 * len(different) > len(entries):
        raise ValueError(
            f"the column {name!r} of {label} holds {len(different):,} different texts in "
            f"{len(entries):,} rows, too many for classes: name another column, or give --task "
            "classes to fit them all the same."
        )
    return Task.CLASSES


def _finite(table: Any, name: str) -> np.ndarray:
    """The numbers of a column that are there; none of what is not numbers."""
    found = parse(table.select([name]), "y").array
    values = np.empty(0) if found is None else np.asarray(found[:, 0], dtype=np.float64)
    return values[np.isfinite(values)]


def _two_whole(values: np.ndarray) -> bool:
    kinds = np.unique(values)
    # Two rows are of two kinds whatever they are.
    return kinds.size == 2 < values.size and bool(np.all(kinds == np.rint(kinds)))


def label_texts(classes: Any) -> list[str]:
    """Classes as people read them: whole numbers without a point, booleans as in files."""
    return [_label_text(one) for one in np.asarray(classes).tolist()]


def _label_text(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    return f"{label:.0f}" if isinstance(label, float) else str(label)


def describe_classes(classes: Any) -> str:
    """Such as "2 classes (no, yes)"."""
    texts = label_texts(classes)
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{len(texts)} classes ({', '.join(texts[:_SHOWN])}{more})"


def describe_task(table: Any, targets: Sequence[str], task: Task, given: Task | None) -> str:
    """What the targets were taken for, and how to say that they are something else."""
    several = "s" if len(targets) > 1 else ""
    lead = f"target{several} {', '.join(targets)}: "
    if task == Task.CLASSES:
        labels = read_labels(table.select(list(targets))).values
        hint = "" if given or labels.dtype.kind not in "iuf" else "; --task numbers fits numbers"
        return lead + describe_classes(distinct(labels)) + hint
    if given or task == Task.COUNTS or several:
        return lead + task
    values = _finite(table, targets[0])
    whole = np.all((values >= 0.0) & (values == np.rint(values)))
    return lead + task + (f"; {_COUNTABLE}" if whole else "")


_COUNTABLE = "whole numbers from 0 on: --task counts fits counts"
