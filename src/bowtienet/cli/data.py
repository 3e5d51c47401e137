"""Tables of files, and the roles of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bowtienet._format import count, shorten
from bowtienet.cli.console import say
from bowtienet.cli.refusals import Problems

if TYPE_CHECKING:  # slow to import, and not needed for --help
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows with known targets."""

    features: pd.DataFrame
    target: pd.Series
    """Numbers, or labels of classes."""
    outcome: str
    extra: dict[str, pd.Series]
    """Sample weights and exposure, as `fit` calls them."""
    notes: Sequence[str]
    """What was done to the file, and doubts."""


def read_rows(
    source: str,
    how: dict[str, Any],
    *,
    target: str,
    outcome: str = "auto",
    exclude: Sequence[str] = (),
    weight: str | None = None,
    exposure: str | None = None,
) -> Rows:
    """The rows of a file, read as options say, by the roles of its columns."""
    from bowtienet.tables.door import notes_of
    from bowtienet.tables.files import read_table

    frame, problems, extra = read_table(source, **how), Problems(), {}
    known = [str(name) for name in frame.columns]
    named = {"--target": target, "--weight": weight, "--exposure": exposure}
    roles = {option: name for option, name in named.items() if name is not None}
    for option, name in roles.items():
        problems.columns(option, [name], known)
    problems.columns("--exclude", exclude, known)
    problems.refuse_if_any()
    features = frame.drop(columns=[*{*roles.values(), *exclude}])
    with problems.gather(f"--target '{shorten(target)}': "):
        outcome, values, doubts = target_values(frame, target, outcome)
    for option, keyword in (("--weight", "sample_weight"), ("--exposure", "exposure")):
        if option in roles:
            with problems.gather(f"{option}: "):
                extra[keyword] = numbers_of(frame, roles[option])
    problems.refuse_if_any()
    present = values.notna()
    n_rows, n_columns = int(present.sum()), features.shape[1]
    if n_rows < 2 or not n_columns:
        raise ValueError(
            f"{shorten(source, 60)}: {count(n_rows, 'row')} with a target and "
            f"{count(n_columns, 'column')} to predict from are too few."
        )
    notes = [*notes_of(frame), *doubts]
    if n_rows < len(frame):
        notes.append(f"{count(len(frame) - n_rows, 'row')} without a target left out.")
    return Rows(
        features=features[present],
        target=values[present],
        outcome=outcome,
        extra={keyword: numbers[present] for keyword, numbers in extra.items()},
        notes=notes,
    )


def numbers_of(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column as numbers; where its texts leave doubts the other columns decide."""
    import pandas as pd
    from sklearn.base import BaseEstimator

    from bowtienet.tables.door import numeric_targets, open_features

    others = open_features(BaseEstimator(), frame.drop(columns=name), reset=True)
    return pd.Series(numeric_targets(frame[name], others), frame.index, name=name)


def target_values(frame: pd.DataFrame, name: str, outcome: str) -> tuple[str, pd.Series, list[str]]:
    """What a target is, its numbers or labels, and a note where it is in doubt."""
    if outcome == "classes":
        return outcome, frame[name], []
    try:
        numbers = numbers_of(frame, name)
    except ValueError:
        if outcome != "auto":
            raise
        return "classes", frame[name], []
    if outcome != "auto":
        return outcome, numbers, []
    values = numbers.dropna().unique()
    if len(values) <= 2:
        return "classes", frame[name], []
    if len(values) > 10 or np.any(values != np.round(values)):
        return "numbers", numbers, []
    doubt = (
        f"target '{shorten(name)}' has {len(values)} distinct whole numbers and is read as "
        "numbers: add --outcome classes or --outcome counts if it is one of these."
    )
    return "numbers", numbers, [doubt]


def announce(source: str, rows: Rows) -> None:
    """Say what was read."""
    say(
        f"{shorten(source, 60)}: {count(len(rows.target), 'row')}, "
        f"{count(rows.features.shape[1], 'column')}; target '{shorten(rows.target.name)}' "
        f"({rows.outcome})"
    )


def hold_out(rows: Rows, share: float, *, last: bool, seed: int) -> tuple[Rows, Rows | None]:
    """Training rows, and held-out rows: the last ones, or random ones with classes in proportion.

    Equal rows are held out together, or some would be seen in training. A share of zero holds no
    row out.
    """
    from sklearn.model_selection import train_test_split

    if not share:
        return rows, None
    group = np.arange(len(rows.target)) if last else _equal_rows(rows)
    _, first = np.unique(group, return_index=True)
    labels = rows.target.iloc[first]
    is_class = rows.outcome == "classes" and not last
    frequent = is_class and labels.value_counts().min() * share >= 1.0
    train, test = train_test_split(
        np.arange(len(first)),
        test_size=share,
        shuffle=not last,
        random_state=None if last else seed,
        stratify=labels if frequent else None,
    )
    return _take(rows, np.isin(group, train)), _take(rows, np.isin(group, test))


def _take(rows: Rows, chosen: np.ndarray) -> Rows:
    index = np.flatnonzero(chosen)
    return replace(
        rows,
        features=rows.features.iloc[index],
        target=rows.target.iloc[index],
        extra={name: values.iloc[index] for name, values in rows.extra.items()},
    )


def _equal_rows(rows: Rows) -> np.ndarray:
    """(n,): numbers of different rows, in their order; each row's own if few differ."""
    import pandas as pd

    whole = pd.concat([rows.features, rows.target], axis=1)
    texts = [name for name, dtype in whole.dtypes.items() if dtype.kind == "O"]
    keys = pd.util.hash_pandas_object(whole.astype(dict.fromkeys(texts, str)), index=False)
    group = pd.factorize(keys)[0]
    return group if group.max() >= 10 else np.arange(len(group))


def features_for(model: Any, frame: pd.DataFrame, problems: Problems) -> pd.DataFrame:
    """The columns that a model knows, in its order."""
    wanted = [str(name) for name in getattr(model, "feature_names_in_", frame.columns)]
    problems.columns("the model needs its columns", wanted, [str(n) for n in frame.columns])
    problems.refuse_if_any()
    return frame[wanted]
