"""What is written of an estimator, and how it comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bowtienet._old import persistence
from bowtienet._old.data.dialect import from_plain, to_plain
from bowtienet._old.ensemble.ensemble import Ensemble, check_ensemble
from bowtienet._old.ensemble.structure import Structure, check_structure
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.estimators.fit_options import FitOptions
from bowtienet._old.estimators.prune_fit import PruneSummary

Estimator = TypeVar("Estimator", bound=BaseEstimator)
NOT_KEPT = ("checkpoint", "options")
"""A path of this machine, and what is written apart."""


class StructureContent(TypedDict):
    """What a file holds of a structure fit."""

    rows: str
    """Digest of the rows and the seed."""
    found: dict[str, Any]


class Content(TypedDict):
    """What a file holds of an estimator."""

    settings: dict[str, Any]
    options: dict[str, Any]
    feature_names: list[str] | None
    target_names: list[str]
    single_target: bool
    classes: dict[str, Any] | None
    n_features: int
    solver: str
    ensemble: dict[str, Any]
    importances: np.ndarray | None
    structure: StructureContent | None
    pruning: dict[str, Any] | None
    dialect: dict[str, Any] | None


def save_estimator(
    estimator: Any, path: str | os.PathLike[str], updatable: bool | None = None
) -> None:
    """Settings, names and the fitted ensemble in one file, without rows."""
    persistence.save(path, type(estimator).__name__, _content(estimator, updatable))


def file_size(estimator: Any) -> int:
    """Bytes of the file that `save_estimator` would write."""
    return persistence.size(type(estimator).__name__, _content(estimator, None))


def _content(estimator: Any, updatable: bool | None) -> dict[str, Any]:
    """What is written of an estimator."""
    ensemble = estimator.ensemble_
    if not (getattr(estimator, "_updatable", False) if updatable is None else updatable):
        members = (replace(member, statistics=None) for member in ensemble.members)
        ensemble = replace(ensemble, members=tuple(members))
    options = estimator.options or FitOptions()
    names = getattr(estimator, "feature_names_in_", None)
    structure = None
    if hasattr(estimator, "structure_"):
        structure = {"rows": estimator._structure_rows, "found": vars(estimator.structure_)}
    return {
        "settings": {
            name: _plain(name, value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in NOT_KEPT
        },
        "options": options.get_params(deep=False),
        "feature_names": None if names is None else [str(name) for name in names],
        "target_names": list(estimator.target_names_),
        "single_target": estimator._single_target,
        "classes": _labels_content(estimator),
        "n_features": estimator.n_features_in_,
        "solver": estimator.solver_,
        "ensemble": {k: v for k, v in vars(ensemble).items() if k != "background"},
        "importances": getattr(estimator, "feature_importances_", None),
        "structure": structure,
        "pruning": dict(vars(estimator.pruning_)) if hasattr(estimator, "pruning_") else None,
        "dialect": to_plain(getattr(estimator, "dialect_", None)),
    }


def load_estimator(cls: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """The estimator that was saved; its parts are checked against one another."""
    content = persistence.load(path, cls.__name__)
    try:
        return _read(cls, content)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The digest is right and the content is not: a forged file, or one of another version.
        raise ValueError(
            f"{path} does not hold a complete {cls.__name__} "
            f"({str(error) or type(error).__name__:.200}): save it again."
        ) from error


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator that `save` wrote."""
    from bowtienet._old.estimators.classifier import BowTieClassifier
    from bowtienet._old.estimators.regressor import BowTieRegressor

    classifies = persistence.kind_of(path) == BowTieClassifier.__name__
    return load_estimator(BowTieClassifier if classifies else BowTieRegressor, path)


def _read(cls: type[Estimator], content: Any) -> Estimator:
    persistence.check_type(content, Content, "content")
    options = FitOptions(**content["options"])
    options._validate_params()
    standard = options.get_params() == FitOptions().get_params()
    settings = _read_settings(content["settings"])
    estimator = cls(**settings, options=None if standard else options)
    estimator._validate_params()
    ensemble = Ensemble(**content["ensemble"])
    persistence.check_fields(ensemble, "ensemble")
    n_features, targets = content["n_features"], content["target_names"]
    check_ensemble(ensemble, n_features, len(targets))
    names = content["feature_names"]
    learnt = [column.name for column in ensemble.representation.columns]
    if learnt != (names or [f"x{place}" for place in range(n_features)]):
        raise ValueError(f"the columns {learnt!r:.80} have the names {names!r:.80}")
    if content["single_target"] and len(targets) != 1:
        raise ValueError(f"its targets are {targets!r:.80}")
    attributes = ensemble_attributes(ensemble, content["solver"]) | {
        "n_features_in_": n_features,
        "n_outputs_": len(targets),
        "target_names_": targets,
        "_single_target": bool(content["single_target"]),
        "_importances": _read_importances(content["importances"], n_features),
        "_updatable": all(member.statistics is not None for member in ensemble.members),
    }
    if content["structure"] is not None:
        structure = Structure(**content["structure"]["found"])
        persistence.check_fields(structure, "structure")
        check_structure(structure, n_features)
        attributes |= {"structure_": structure, "_structure_rows": content["structure"]["rows"]}
    if content["pruning"] is not None:
        pruning = PruneSummary(**content["pruning"])
        persistence.check_fields(pruning, "pruning")
        if not len(pruning.columns) == len(pruning.kept) == n_features:
            raise ValueError(f"the summary of pruning is not of {n_features} columns")
        attributes["pruning_"] = pruning
    dialect = from_plain(content["dialect"])
    if dialect is not None:
        attributes["dialect_"] = dialect
    if content["classes"] is not None:
        attributes["classes_"] = _read_labels(content["classes"], ensemble)
    if names is not None:
        attributes["feature_names_in_"] = np.asarray(names, dtype=object)
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


def _labels_content(estimator: Any) -> dict[str, Any] | None:
    """Labels of classes as plain values, with what they were."""
    classes: np.ndarray | None = getattr(estimator, "classes_", None)
    if classes is None:
        return None
    return {**_plain_labels(classes.tolist()), "dtype": classes.dtype.str}


def _plain_labels(labels: list[Any]) -> dict[str, Any]:
    """Labels without bytes, which a file cannot hold, and whether they were bytes."""
    is_bytes = isinstance(labels[0], bytes)
    plain = [label.decode("latin-1") for label in labels] if is_bytes else labels
    return {"labels": plain, "bytes": is_bytes}


def _read_plain_labels(content: dict[str, Any]) -> list[Any]:
    labels: list[Any] = content["labels"]
    return [label.encode("latin-1") for label in labels] if content["bytes"] else labels


def _read_labels(content: dict[str, Any], ensemble: Ensemble) -> np.ndarray:
    labels, dtype = content["labels"], content["dtype"]
    plain = isinstance(labels, list) and all(type(x) in (str, int, float, bool) for x in labels)
    if not plain or not isinstance(dtype, str) or np.dtype(dtype).kind not in "OUSbiuf":
        raise ValueError(f"its classes are {labels!r:.80}")
    found = np.asarray(_read_plain_labels(content), dtype=np.dtype(dtype))
    outputs = ensemble.members[0].model.architecture.n_outputs
    if len(set(labels)) != len(labels) or outputs != (1 if len(labels) == 2 else len(labels)):
        raise ValueError(f"its classes are not those of {outputs} outputs")
    return found


def _read_importances(found: Any, n_features: int) -> np.ndarray | None:
    if found is None:
        return None
    shares = np.asarray(found, dtype=np.float64)
    if shares.shape != (n_features,) or not np.all(shares >= 0.0):
        raise ValueError(f"the importances are not those of {n_features} columns")
    return shares


def _plain(name: str, value: Any) -> Any:
    """A setting as it can be written: the state of a random generator cannot."""
    if name == "random_state" and not isinstance(value, (int, np.integer, type(None))):
        return None
    if name == "class_weight" and isinstance(value, Mapping) and value:
        # Keys of a file are texts, and labels need not be.
        labels = [label.item() if isinstance(label, np.generic) else label for label in value]
        return {**_plain_labels(labels), "weights": [float(weight) for weight in value.values()]}
    return value


def _read_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they were before `_plain`."""
    weights = settings.get("class_weight")
    if not weights or isinstance(weights, str):
        return settings
    pairs = zip(_read_plain_labels(weights), map(float, weights["weights"]), strict=True)
    return {**settings, "class_weight": dict(pairs)}
