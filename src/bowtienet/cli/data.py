"""Tables of files, and which of their columns are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bowtienet._format import count, shorten
from bowtienet.cli.options import Reading
from bowtienet.cli.refusals import Problems

FEW_VALUES = 10
"""Whole numbers with at most so many different values may be classes or counts."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows with known targets."""

    features: pd.DataFrame
    target: pd.Series
    weights: pd.Series | None
    exposure: pd.Series | None
    notes: tuple[str, ...]
    """What was done to the file."""


def read(source: str, how: Reading) -> pd.DataFrame:
    """The table of a file, or of standard input."""
    from bowtienet.tables.files import read_table

    return read_table(
        source,
        missing_values=how.missing_values,
        day_first=how.day_first,
        decimal=how.decimal,
    )


def read_rows(
    source: str,
    how: Reading,
    problems: Problems,
    *,
    target: str,
    exclude: Sequence[str] = (),
    weight: str | None = None,
    exposure: str | None = None,
) -> Rows | None:
    """The rows of a file by the roles of its columns; None if there are problems."""
    frame = None
    with problems.gather():
        frame = read(source, how)
    if frame is None:
        return None
    known = [str(name) for name in frame.columns]
    named = {"--target": target, "--weight": weight, "--exposure": exposure}
    for option, name in named.items():
        problems.columns(option, [name] if name is not None else [], known)
    problems.columns("--exclude", exclude, known)
    if any(name is not None and name not in known for name in named.values()):
        return None
    notes = list(frame.attrs.get("notes", ()))
    present = frame[target].notna()
    if not present.all():
        notes.append(f"{count(int((~present).sum()), 'row')} without a target left out.")
        frame = frame[present]
    roles = {name for name in named.values() if name is not None}
    features = frame.drop(columns=[*roles, *(set(exclude) & set(known) - roles)])
    if len(frame) < 2 or not features.shape[1]:
        problems.add(
            f"{shorten(source, 60)}: {count(len(frame), 'row')} with a target and "
            f"{count(features.shape[1], 'column')} to predict from are too few."
        )
        return None
    return Rows(
        features=features,
        target=frame[target],
        weights=None if weight is None else _positive(frame[weight], "--weight", problems),
        exposure=None if exposure is None else _positive(frame[exposure], "--exposure", problems),
        notes=tuple(notes),
    )


def _positive(column: pd.Series, option: str, problems: Problems) -> pd.Series:
    least = 0.0 if option == "--weight" else np.nextafter(0.0, 1.0)
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = int((~(np.isfinite(numbers) & (numbers >= least))).sum())
    if wrong:
        word = "non-negative" if option == "--weight" else "positive"
        problems.add(
            f"{option}: column '{shorten(column.name)}' has {count(wrong, 'row')} without a {word} "
            "number: fill or leave them out."
        )
    return numbers


def outcome_of(target: pd.Series, outcome: str) -> tuple[str, str | None]:
    """What a target is, and a note where that is in doubt."""
    if outcome != "auto":
        return outcome, None
    values = target.unique()
    is_number = pd.api.types.is_numeric_dtype(target) and not pd.api.types.is_bool_dtype(target)
    if not is_number or len(values) <= 2:
        return "classes", None
    if len(values) <= FEW_VALUES and np.all(values == np.round(values)):
        return "numbers", (
            f"the target '{shorten(target.name)}' has {len(values)} different whole numbers and is "
            "fitted as numbers: --outcome classes or --outcome counts if it is that."
        )
    return "numbers", None


def estimator_of(outcome: str, settings: dict[str, Any]) -> Any:
    """The unfitted estimator of an outcome."""
    if outcome == "classes":
        from bowtienet.estimators.classifier import BowTieClassifier

        return BowTieClassifier(**settings)
    if outcome == "counts":
        from bowtienet.estimators.counts import BowTieCountRegressor

        return BowTieCountRegressor(**settings)
    from bowtienet.estimators.regressor import BowTieRegressor

    if outcome == "student_t":
        settings = {"noise": "student_t", **settings}
    return BowTieRegressor(**settings)


def hold_out(
    target: pd.Series, outcome: str, test_size: float, test_last: float | None, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the training rows and of the held-out rows."""
    index = np.arange(len(target), dtype=np.intp)
    n_test = round((test_size if test_last is None else test_last) * len(target))
    if test_last is not None or not n_test:
        return index[: len(target) - n_test], index[len(target) - n_test :]
    from sklearn.model_selection import train_test_split

    frequent = outcome == "classes" and target.value_counts().min() * test_size >= 1.0
    train, test = train_test_split(
        index, test_size=n_test, random_state=seed, stratify=target if frequent else None
    )
    return np.sort(train), np.sort(test)


def take(rows: Rows, index: NDArray[np.intp]) -> Rows:
    """Some of the rows."""
    return replace(
        rows,
        features=rows.features.iloc[index],
        target=rows.target.iloc[index],
        weights=None if rows.weights is None else rows.weights.iloc[index],
        exposure=None if rows.exposure is None else rows.exposure.iloc[index],
    )


def target_of(model: Any) -> str:
    """Name of the column that a model predicts."""
    return str(model._target_names[0])


def features_for(model: Any, frame: pd.DataFrame, problems: Problems) -> pd.DataFrame:
    """The columns that a model knows, in its order."""
    wanted = [str(name) for name in getattr(model, "feature_names_in_", frame.columns)]
    absent = [name for name in wanted if name not in frame.columns]
    problems.columns("the model needs its columns", absent, [str(n) for n in frame.columns])
    return frame if absent else frame[wanted]
