"""Tables in memory, checked: features as they came, targets and weights as floats.

Every source reads what it holds through `read_block`, so one table is read in one way wherever it
comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, namespace, slices, take, to_numpy
from bowtienet._old._validation import suggestion
from bowtienet._old.data.labels import distinct, names_or_labels, read_labels
from bowtienet._old.data.parsing import (
    Parsed,
    as_frame,
    check_finite,
    check_lengths,
    check_unique,
    parse,
    refuse_texts,
    text_names,
)
from bowtienet._old.data.rows import build_weights
from bowtienet._old.data.targets import NUMBERS, Reading, read_log_exposure, read_targets

_SHOWN = 5
HEAVIEST = 1e100
"""Largest weight of a row: sums over many rows of squares of far values stay in range."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Features of some rows as they came, in the user's units."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None
    """None if the columns have none."""
    matrix: Array | None
    """(n_rows, n_columns) floats where they live, NaN where missing, never infinite."""
    columns: tuple[Any, ...] | None
    """Where `matrix` is None: float64 (n_rows,) of each column of numbers, NaN where missing, and a
    narwhals Series or an array (n_rows,) of any other dtype of the others."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows with targets and weights, checked."""

    table: Table
    targets: Array
    """(n, n_targets) finite floats, labels as numbers of their classes; there may be no targets.
    One more column, the last, has the logs of exposures if there are any."""
    weights: Array
    """(n,) finite and not negative; where `table.matrix` lives, if there is one."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names and numbers of the columns of a block."""

    feature_names: tuple[str, ...] | None
    n_features: int
    target_names: tuple[str, ...] | None
    n_targets: int
    single_target: bool
    """Whether the targets came as one column, not as a table."""
    has_exposure: bool = False
    """Whether blocks have the column of logs of exposures."""
    classes: np.ndarray | None = field(default=None, compare=False)
    """The classes by which the labels of this block were coded."""


def read_block(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Sequence[str] | None = None,
    exposure: Any = None,
    reading: Reading = NUMBERS,
) -> tuple[Block, Layout]:
    """Rows of a table in memory; `y`, the weights and exposures may be names of its columns.

    `features` are the columns of a frame to use, which must come in this order.
    """
    if X is None:
        raise ValueError("X is None: give a table, one row for each observation.")
    X, y, sample_weight, exposure = _take_named(X, y, sample_weight, exposure, features, reading)
    table = _read_features(parse(X, "X"), features)
    targets = read_targets(y, table.n_rows, reading)
    has_exposure = reading.target == "count" or exposure is not None
    layout = Layout(
        feature_names=table.names,
        n_features=table.n_columns,
        target_names=targets.names,
        n_targets=targets.values.shape[1],
        single_target=targets.single,
        has_exposure=has_exposure,
        classes=targets.classes,
    )
    values = targets.values
    if has_exposure:
        values = np.hstack([to_numpy(values), read_log_exposure(exposure, table.n_rows)])
    weights = _read_weights(sample_weight, table)
    return Block(table=table, targets=values, weights=weights), layout


def block_classes(X: Any, y: Any) -> np.ndarray:
    """The classes among the labels of some rows, sorted; `y` may name a column of `X`."""
    labels = _take_named(X, y, None, None, None, Reading(target="label"))[1]
    return distinct(read_labels(labels).values)


def split_block(block: Block, size: int) -> list[Block]:
    """Consecutive blocks of at most `size` rows, views where the library has them."""
    if block.table.n_rows <= size:
        return [block]
    return [slice_block(block, part) for part in slices(block.table.n_rows, size)]


def slice_block(block: Block, part: slice) -> Block:
    """The rows of a block from `part.start` to `part.stop`, a view where the library has them."""
    table = block.table
    return Block(
        table=replace(
            table,
            n_rows=part.stop - part.start,
            matrix=None if table.matrix is None else table.matrix[part, ...],
            columns=table.columns and tuple(column[part] for column in table.columns),
        ),
        targets=block.targets[part, ...],
        weights=block.weights[part],
    )


def take_block(block: Block, rows: np.ndarray) -> Block:
    """Some rows of a block, in the given order."""
    return Block(
        table=take_table(block.table, rows),
        targets=take(block.targets, rows),
        weights=take(block.weights, rows),
    )


def take_table(table: Table, rows: np.ndarray) -> Table:
    """Some rows of a table, in the given order."""
    return replace(
        table,
        n_rows=len(rows),
        matrix=None if table.matrix is None else take(table.matrix, rows),
        columns=table.columns and tuple(column[rows] for column in table.columns),
    )


def is_names(values: Any) -> bool:
    """Whether `values` is the name of a column or a list of names."""
    if isinstance(values, (list, tuple)):
        return len(values) > 0 and all(isinstance(name, str) for name in values)
    return isinstance(values, str)


def names_of(values: Any) -> tuple[str, ...]:
    """The names of columns in `values`; none if it is something else."""
    if not is_names(values):
        return ()
    return (values,) if isinstance(values, str) else tuple(values)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Names of the columns of a table that are read."""

    features: tuple[str, ...]
    y: str | tuple[str, ...] | None
    """The target as it was named: one name, or several."""
    weight: str | None
    exposure: str | None

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets."""
        return names_of(self.y)

    @property
    def all(self) -> tuple[str, ...]:
        """Features, targets, the weight and the exposure."""
        others = (*names_of(self.weight), *names_of(self.exposure))
        return (*self.features, *self.targets, *others)


def choose_columns(
    names: Sequence[str],
    y: Any,
    sample_weight: Any,
    features: Sequence[str] | None,
    exposure: Any = None,
) -> Chosen:
    """The columns to read of a table that is not in memory; each exists and is named once."""
    given = {"y": y, "sample_weight": sample_weight, "exposure": exposure}
    for name, values in given.items():
        if values is not None and not is_names(values):
            raise ValueError(
                f"{name} must name columns of X, which is not in memory; got "
                f"{type(values).__name__}."
            )
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names of columns, got {features!r}.")
    used = {used for values in given.values() for used in names_of(values)}
    if features is None:
        features = [name for name in names if name not in used]
    chosen = Chosen(
        features=tuple(str(name) for name in features),
        y=y if y is None or isinstance(y, str) else tuple(y),
        weight=sample_weight,
        exposure=exposure,
    )
    for name, values in given.items():
        check_known(names_of(values), names, name)
    check_known(chosen.features, names, "features")
    check_unique(chosen.all, f"the choice of features, {', '.join(given)}")
    if not chosen.features:
        raise ValueError("X has 0 feature(s) besides y and sample_weight: give more columns.")
    return chosen


def check_known(names: Sequence[str], known: Sequence[Any], purpose: str) -> None:
    """Raise if `X` has no column of one of the names that `purpose` gives."""
    for name in names:
        if name not in known:
            hint = suggestion(name, [str(column) for column in known])
            raise ValueError(f"X has no column {name!r}, which {purpose} names{hint}")


def check_features(found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise if columns called `found` do not have all those `wanted`, in this order.

    The words are those of scikit-learn, whose contract tests look for them.
    """
    missing = sorted(set(wanted) - set(found))
    unseen = sorted(set(found) - set(wanted))
    if not missing and [name for name in found if name in set(wanted)] == list(wanted):
        return
    message = "The feature names should match those that were passed during fit.\n"
    if missing and unseen:
        message += f"Feature names unseen at fit time:\n{_bullets(unseen)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_bullets(missing)}"
    else:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def _bullets(names: Sequence[str]) -> str:
    shown = [f"- {name}\n" for name in names[:_SHOWN]]
    return "".join(shown) + "- ...\n" * (len(names) > _SHOWN)


def _take_named(
    X: Any,
    y: Any,
    sample_weight: Any,
    exposure: Any,
    features: Sequence[str] | None,
    reading: Reading,
) -> tuple[Any, Any, Any, Any]:
    """Features, targets, weights and exposures, the columns that are named taken out of `X`."""
    frame = as_frame(X, "X")
    if reading.target == "label":
        y = names_or_labels(y, getattr(frame, "columns", ()))
    given = {"y": y, "sample_weight": sample_weight, "exposure": exposure}
    names = {name: names_of(values) for name, values in given.items()}
    if frame is None or not hasattr(frame, "columns"):
        if isinstance(y, str) or names["sample_weight"] or names["exposure"]:
            raise ValueError("names of columns need a table whose columns have names: give arrays.")
        return X, y, sample_weight, exposure
    used = [column for found in names.values() for column in found]
    check_unique(used, f"the choice of {', '.join(names)}")
    for name, found in names.items():
        check_known(found, frame.columns, name)
        if found:
            one = name != "y" or isinstance(y, str)
            given[name] = frame.get_column(found[0]) if one else frame.select(list(found))
    rest = frame.drop(used)
    if features is not None and text_names(rest.columns) is not None:
        check_features(rest.columns, features)
        rest = rest.select(list(features))
    return rest, *given.values()


def _read_features(parsed: Parsed, features: Sequence[str] | None) -> Table:
    n_rows, n_columns = parsed.shape
    names = text_names(parsed.labels)
    if n_rows == 0:
        raise ValueError(f"X has 0 sample(s) (shape={parsed.shape}): give at least one row.")
    if n_columns == 0:
        raise ValueError(
            f"X has 0 feature(s) (shape={parsed.shape}) while a minimum of 1 is required."
        )
    if features is not None and n_columns != len(features):
        raise ValueError(
            f"X has {n_columns} features, but model is expecting {len(features)} features as input."
        )
    check_finite(parsed, "X", allow_nan=True)
    return Table(
        n_rows=n_rows,
        n_columns=n_columns,
        names=names,
        matrix=parsed.array,
        columns=parsed.columns,
    )


def _read_weights(sample_weight: Any, table: Table) -> Array:
    rows = np.empty((table.n_rows, 1)) if table.matrix is None else table.matrix
    if sample_weight is None:
        return namespace(rows).ones_like(rows[:, 0])
    parsed = parse(sample_weight, "sample_weight")
    if parsed.array is None:
        refuse_texts(parsed, "sample_weight")
    check_lengths(parsed.shape[0], table.n_rows, "sample_weight")
    weights = build_weights(parsed.array, rows, name="sample_weight", allow_zero=True)
    largest = float(np.max(to_numpy(weights), initial=0.0))
    if largest > HEAVIEST:
        raise ValueError(
            f"sample_weight holds {largest:.3g}, and sums of squares with such weights overflow: "
            "weights say how many times a row counts; divide them by their mean."
        )
    return weights
