"""Tables of files, and which of their columns are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import count, shorten
from bowtienet.cli.options import Reading
from bowtienet.cli.refusals import Problems

if TYPE_CHECKING:  # slow to import, and not needed for --help
    import pandas as pd

FEW_VALUES = 10
"""Whole numbers with at most so many different values may be classes or counts."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows with known targets."""

    features: pd.DataFrame
    target: pd.Series
    """Numbers, or labels of classes."""
    outcome: str
    weights: pd.Series | None
    exposure: pd.Series | None
    notes: tuple[str, ...]
    """What was done to the file, and doubts."""


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
    outcome: str,
    exclude: Sequence[str] = (),
    weight: str | None = None,
    exposure: str | None = None,
) -> Rows | None:
    """The rows of a file by the roles of its columns; None if there are problems."""
    from bowtienet.tables.door import notes_of

    frame = None
    with problems.gather():
        frame = read(source, how)
    if frame is None:
        return None
    known = [str(name) for name in frame.columns]
    named = {"--target": target, "--weight": weight, "--exposure": exposure}
    roles = {option: name for option, name in named.items() if name is not None}
    for option, name in roles.items():
        problems.columns(option, [name], known)
    problems.columns("--exclude", exclude, known)
    if any(name not in known for name in roles.values()):
        return None
    values = None
    with problems.gather(f"--target '{shorten(target)}': "):
        outcome, values, notes = target_values(frame, target, outcome)
    if values is None:
        return None
    features = frame.drop(columns=[*{*roles.values(), *(set(exclude) & set(known))}])
    present = values.notna()
    n_rows = int(present.sum())
    if n_rows < 2 or not features.shape[1]:
        problems.add(
            f"{shorten(source, 60)}: {count(n_rows, 'row')} with a target and "
            f"{count(features.shape[1], 'column')} to predict from are too few."
        )
        return None
    if n_rows < len(frame):
        notes = [*notes, f"{count(len(frame) - n_rows, 'row')} without a target left out."]
    columns = {
        option: positive(frame, roles[option], option, problems)[present]
        if option in roles
        else None
        for option in ("--weight", "--exposure")
    }
    return Rows(
        features=features[present],
        target=values[present],
        outcome=outcome,
        weights=columns.get("--weight"),
        exposure=columns.get("--exposure"),
        notes=(*notes_of(frame), *notes),
    )


def numbers_of(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """A column as numbers; where its texts leave doubts the other columns decide."""
    from sklearn.base import BaseEstimator

    from bowtienet.tables.door import numeric_targets, open_features

    others = open_features(BaseEstimator(), frame.drop(columns=name), reset=True)
    return numeric_targets(frame[name], others)


def target_values(frame: pd.DataFrame, name: str, outcome: str) -> tuple[str, pd.Series, list[str]]:
    """What a target is, its numbers or labels, and a note where it is in doubt."""
    import pandas as pd

    column, numbers = frame[name], None
    if outcome != "classes":
        try:
            numbers = pd.Series(numbers_of(frame, name), column.index, name=name)
        except ValueError:
            if outcome != "auto":
                raise
    if numbers is None:
        return "classes", column, []
    values = numbers.dropna().unique()
    if outcome == "auto" and len(values) <= 2:
        return "classes", column, []
    if outcome == "auto" and len(values) <= FEW_VALUES and np.all(values == np.round(values)):
        doubt = (
            f"target '{shorten(name)}' has {len(values)} different whole numbers and counts "
            "as numbers: --outcome classes or --outcome counts if it is that."
        )
        return "numbers", numbers, [doubt]
    return ("numbers" if outcome == "auto" else outcome), numbers, []


def positive(frame: pd.DataFrame, name: str, option: str, problems: Problems) -> pd.Series:
    """Numbers of weights or exposures."""
    import pandas as pd

    numbers = np.full(len(frame), np.nan)
    with problems.gather(f"{option}: "):
        numbers = numbers_of(frame, name)
    wrong = int((~(np.isfinite(numbers) & (numbers >= 0.0))).sum())
    if wrong:
        problems.add(
            f"{option}: column '{shorten(name)}' has {count(wrong, 'row')} without a number "
            "of at least 0: fill or leave them out."
        )
    return pd.Series(numbers, frame.index)


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
