"""What is written of an estimator, and how it comes back."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bowtienet import persistence
from bowtienet.estimators.columns import CATEGORY, DATE
from bowtienet.estimators.preparing import KINDS, Column, TablePreparer, check_outputs, output_names
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.prediction.ensemble import check_ensemble

Estimator = TypeVar("Estimator", bound=BaseEstimator)

_DAYS = (-719_162.0, 2_932_897.0)
"""From 1970 to the years 1 and 10000, between which Python has dates."""
FITTED = (
    "ensemble_",
    "member_weights_",
    "n_effective_members_",
    "elbo_history_",
    "elbo_",
    "elbo_terms_",
    "solver_",
    "status_",
    "converged_",
    "n_iter_",
    "n_outputs_",
    "n_features_in_",
    "_single_target",
    "_recent_densities",
)


def save_estimator(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Settings, feature names and all fitted attributes in one file."""
    persistence.save(path, type(estimator).__name__, estimator_content(estimator))


def load_estimator(cls: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """The estimator that was saved; its members are checked against one another."""
    content = persistence.load(path, cls.__name__)
    with refusing_incomplete(cls, path):
        return read_estimator(cls, content)


def save_table_pipeline(
    pipeline: Any, preparer: TablePreparer, regressor: BowTieRegressor, path: str | os.PathLike[str]
) -> None:
    """The preparation and the regressor of a fitted pipeline of these two, in one file."""
    content = {
        "steps": [name for name, _ in pipeline.steps],
        "preparation": to_plain(preparer),
        "regressor": estimator_content(regressor),
        "targets": list(pipeline.target_names_),
    }
    persistence.save(path, type(pipeline).__name__, content)


def load_table_pipeline(cls: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """The pipeline that was saved; its parts are checked against one another."""
    content = persistence.load(path, cls.__name__)
    with refusing_incomplete(cls, path):
        names, targets = content["steps"], content["targets"]
        preparer = from_plain(content["preparation"])
        regressor = read_estimator(BowTieRegressor, content["regressor"])
        _check_together(preparer, regressor)
        if not _are_texts(targets) or len(targets) != regressor.n_outputs_:
            raise ValueError(f"its targets are {targets!r}, but it has {regressor.n_outputs_}")
        if not _are_texts(names) or len(names) != 2:
            raise ValueError(f"its steps are {names!r}")
        pipeline = cls(list(zip(names, (preparer, regressor), strict=True)))
        pipeline._validate_steps()
    pipeline.target_names_ = targets
    return pipeline


def estimator_content(estimator: BaseEstimator) -> dict[str, Any]:
    """What a file holds of a fitted estimator."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "settings": {
            name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()
        },
        "feature_names": None if names is None else [str(name) for name in names],
        "fitted": {name: getattr(estimator, name, None) for name in FITTED},
    }


def read_estimator(cls: type[Estimator], content: Any) -> Estimator:
    """The estimator whose `estimator_content` is `content`, inside `refusing_incomplete`."""
    estimator = cls(**content["settings"])
    fitted = {name: content["fitted"][name] for name in FITTED}
    names = content["feature_names"]
    estimator._validate_params()
    check_ensemble(fitted["ensemble_"], fitted["n_features_in_"], fitted["n_outputs_"])
    if names is not None and (not _are_texts(names) or len(names) != fitted["n_features_in_"]):
        raise ValueError(f"{fitted['n_features_in_']} columns have the names {names!r:.80}")
    for name, value in fitted.items():
        setattr(estimator, name, value)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return estimator


@contextmanager
def refusing_incomplete(cls: type, path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is wrong with content whose digest is right is said in one sentence."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} does not hold a complete {cls.__name__} ({error}): save it again."
        ) from error


def to_plain(preparer: TablePreparer) -> dict[str, Any]:
    """All that a fitted preparer knows, in dicts, lists, texts and numbers."""
    return {
        "max_categories": int(preparer.max_categories),
        "named": hasattr(preparer, "feature_names_in_"),
        "columns": [
            {field.name: getattr(column, field.name) for field in fields(Column)}
            | {"categories": list(column.categories)}
            for column in preparer.columns_
        ],
    }


def from_plain(content: Any) -> TablePreparer:
    """The fitted preparer whose `to_plain` is `content`; a ValueError if there can be none."""
    if not isinstance(content, dict) or set(content) != {"max_categories", "named", "columns"}:
        raise ValueError("the preparation has other parts than it should")
    if type(content["max_categories"]) is not int or type(content["named"]) is not bool:
        raise ValueError("the settings of the preparation are not readable")
    if not isinstance(content["columns"], list) or not content["columns"]:
        raise ValueError("the preparation has no columns")
    columns = tuple(_column_from_plain(part) for part in content["columns"])
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ValueError("two columns of the preparation have the same name")
    check_outputs(columns)
    preparer = TablePreparer(max_categories=content["max_categories"])
    preparer._validate_params()
    preparer.columns_ = columns
    preparer.n_features_in_ = len(columns)
    if content["named"]:
        preparer.feature_names_in_ = np.asarray(names, dtype=object)
    return preparer


def _check_together(preparer: TablePreparer, regressor: BowTieRegressor) -> None:
    """The regressor takes the columns that the preparation gives."""
    names = output_names(preparer.columns_)
    expected = getattr(regressor, "feature_names_in_", names)
    if len(names) != regressor.n_features_in_ or list(expected) != names:
        raise ValueError("its regressor has other columns than its preparation gives")


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _plain(name: str, value: Any) -> Any:
    """A setting as it can be written: not the state of a generator, nor a path of this machine."""
    if name == "random_state" and not isinstance(value, (int, np.integer, type(None))):
        return None
    if name == "checkpoint":
        return None
    return value


def _column_from_plain(part: Any) -> Column:
    if not isinstance(part, dict) or set(part) != {field.name for field in fields(Column)}:
        raise ValueError("a column of the preparation has other parts than it should")
    types = {"name": str, "kind": str, "n_missing": int, "has_value": bool, "has_indicator": bool}
    categories, typical = part["categories"], part["typical"]
    sound = all(type(part[name]) is expected for name, expected in types.items())
    sound = sound and part["kind"] in KINDS and part["n_missing"] >= 0
    sound = sound and (typical is None or (type(typical) is float and math.isfinite(typical)))
    if sound and part["kind"] == DATE and typical is not None:
        sound = _DAYS[0] <= typical < _DAYS[1]
    sound = sound and isinstance(categories, list) and all(type(k) is str for k in categories)
    if not sound:
        raise ValueError(f"the column {part['name']!r} of the preparation is not readable")
    if part["kind"] == CATEGORY:
        sound = typical is None and (len(categories) > 1) == part["has_value"]
        sound = sound and sorted(set(categories)) == categories
    else:
        sound = not categories and (typical is not None or not part["has_value"])
    if not sound or part["has_indicator"] > part["n_missing"]:
        raise ValueError(f"the parts of the column {part['name']!r} do not belong together")
    return Column(**{**part, "categories": tuple(categories)})
