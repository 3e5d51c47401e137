"""Saved estimators: they come back to the bit, and content that does not fit is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from bowtienet import BowTieRegressor, FitOptions, load, persistence
from tests.estimators.models import answers, assert_same, rows, small, stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KIND = "BowTieRegressor"
X, Y = rows()
FRAME = pd.DataFrame(X, columns=["age", "height", "weight"]).assign(
    city=np.array(["Bonn", "Köln", "Ulm"])[np.arange(60) % 3],
    day=pd.date_range("2024-01-01", periods=60),
)
FRAME.loc[::7, "height"] = np.nan
BOTH = np.column_stack([Y, -Y])


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return stacked().fit(FRAME, Y)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bowtie"


CASES: dict[str, tuple[Callable[[], BowTieRegressor], Any]] = {
    "array": (lambda: small().fit(X, Y), X),
    "table": (lambda: stacked().fit(FRAME, Y), FRAME),
    "column": (lambda: small().fit(X, Y[:, None]), X),
    "two targets": (lambda: small(hidden_layer_sizes=(4, 3)).fit(FRAME, BOTH), FRAME),
    "linear": (lambda: small(hidden_layer_sizes=()).fit(X, Y), X),
    "stream": (lambda: small(solver="svi", max_iter=2).fit([(X, Y)]), X),
    "pruned": (lambda: small(max_iter=30).fit(FRAME, Y).prune(0.3), FRAME),
    "while fitted": (lambda: small(prune_every=3, hidden_layer_sizes=(8,)).fit(X, Y), X),
}


@pytest.mark.parametrize("case", CASES)
def test_a_saved_estimator_comes_back_to_the_bit(case: str, path: Path) -> None:
    make, table = CASES[case]
    model = make()
    model.save(path)
    found = load(path)
    assert_same(found, model)
    assert_array_equal(answers(found, table), answers(model, table))
    assert_array_equal(found.predict_interval(table), model.predict_interval(table))
    assert_array_equal(found.sample_y(table, 2, joint=True), model.sample_y(table, 2, joint=True))
    ignored = ("options", "checkpoint")
    params = {k: v for k, v in model.get_params().items() if k not in ignored}
    assert {k: v for k, v in found.get_params().items() if k not in ignored} == params
    for name in vars(model).keys() - vars(found).keys():
        assert name == "_arrivals"
    for name in ("target_names_", "status_", "converged_", "n_iter_", "solver_", "columns_"):
        assert getattr(found, name) == getattr(model, name)
    assert hasattr(found, "feature_names_in_") == hasattr(model, "feature_names_in_")


def test_a_loaded_estimator_can_be_fitted_again(model: BowTieRegressor, path: Path) -> None:
    model.save(path)
    assert_same(BowTieRegressor.load(path).fit(FRAME, Y), model)
    on = load(path).set_params(warm_start=True).fit(FRAME, Y)
    expected = copy.deepcopy(model).set_params(warm_start=True).fit(FRAME, Y)
    assert_same(on, expected)


def test_what_is_not_written(path: Path, tmp_path: Path) -> None:
    """Paths of this machine and states of generators; default options are none."""
    options = FitOptions(tol=1e-3)
    settings: dict[str, Any] = {"n_estimators": 1, "max_iter": 2}
    kept = {"checkpoint": tmp_path / "c", "random_state": np.random.RandomState(0)}
    BowTieRegressor((), **settings, **kept, options=options).fit(X, Y).save(path)
    found = load(path)
    assert found.checkpoint is None
    assert found.random_state is None
    assert found.options.tol == 1e-3
    BowTieRegressor((), **settings).fit(X, Y).save(path)
    assert load(path).options is None


def test_saving_is_deterministic_and_replaces(model: BowTieRegressor, path: Path) -> None:
    path.write_text("old")
    model.save(path)
    first = path.read_bytes()
    load(path).save(path)
    assert path.read_bytes() == first
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.save(path.parent / "nowhere" / "model")


# Files that hold something else


Content = dict[str, Any]


def forged(model: BowTieRegressor, path: Path, change: Callable[[Content], Any]) -> None:
    """A file with the right digest whose content was changed."""
    model.save(path)
    content = persistence.load(path, KIND)
    change(content)
    persistence.save(path, KIND, content)


def without(name: str) -> Callable[[Content], Any]:
    return lambda content: content.pop(name)


def ensemble(**changes: Any) -> Callable[[Content], Any]:
    """Parts of the ensemble put in its place; functions are given the old part."""

    def change(content: Content) -> None:
        for name, value in changes.items():
            old = content["ensemble"][name]
            content["ensemble"][name] = value(old) if callable(value) else value

    return change


def representation(**changes: Any) -> Callable[[Content], Any]:
    def changed(old: Any) -> Any:
        parts = {k: v(getattr(old, k)) if callable(v) else v for k, v in changes.items()}
        return replace(old, **parts)

    return ensemble(representation=changed)


def column(index: int, **changes: Any) -> Callable[[Content], Any]:
    def changed(columns: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*columns[:index], replace(columns[index], **changes), *columns[index + 1 :])

    return representation(columns=changed)


def member(**changes: Any) -> Callable[[Content], Any]:
    def changed(members: tuple[Any, ...]) -> tuple[Any, ...]:
        return (replace(members[0], **changes), *members[1:])

    return ensemble(members=changed)


FORGERIES: dict[str, Callable[[Content], Any]] = {
    "no settings": without("settings"),
    "no ensemble": without("ensemble"),
    "no options": without("options"),
    "a bad setting": lambda content: content["settings"].update(prior="none"),
    "an unknown setting": lambda content: content["settings"].update(combine="equal"),
    "a bad option": lambda content: content["options"].update(tol=-1.0),
    "an unknown option": lambda content: content["options"].update(trust=1),
    "too few names": lambda content: content["feature_names"].pop(),
    "names that are none": lambda content: content.update(feature_names=[1, 2, 3, 4, 5]),
    "another number of features": lambda content: content.update(n_features=4),
    "two targets": lambda content: content.update(target_names=["y", "z"]),
    "no targets": lambda content: content.update(target_names=[]),
    "targets that are no names": lambda content: content.update(target_names=[None]),
    "no members": ensemble(members=()),
    "members that are none": ensemble(members=(1, 2)),
    "weights of one": ensemble(weights=lambda old: old[:1]),
    "weights that do not add up": ensemble(weights=lambda old: 2.0 * old),
    "an unknown propagation": ensemble(propagation="sampling"),
    "another order of columns": representation(column_order=lambda old: 0 * old),
    "an order beyond the columns": representation(column_order=lambda old: old + 1),
    "a scaling of other columns": representation(
        feature_scaling=lambda old: replace(old, center=old.center[:-1])
    ),
    "a column too few": representation(columns=lambda old: old[:-1]),
    "another kind of column": column(3, kind="colour"),
    "a column without categories": column(3, categories=()),
    "categories that are no texts": column(3, categories=(1, 2, 3)),
    "the same name twice": column(0, name="height"),
    "a typical value that is none": column(0, typical=np.nan),
    "no ratios": member(variance_ratio=np.ones(2)),
    "negative ratios": member(variance_ratio=np.array([-1.0])),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_file_is_refused(case: str, model: BowTieRegressor, path: Path) -> None:
    forged(model, path, FORGERIES[case])
    with pytest.raises(ValueError, match=path.name):
        load(path)


def test_a_forgery_without_change_is_read(model: BowTieRegressor, path: Path) -> None:
    forged(model, path, lambda content: None)
    assert_same(load(path), model)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: {"inputs": p.inputs + 6},
        lambda p: {"inputs": p.inputs - 6},
        lambda p: {"inputs": 0 * p.inputs},
        lambda p: {"inputs": p.inputs[:-1]},
        lambda p: {"inputs": 1.0 * p.inputs},
        lambda p: {"units": ()},
        lambda p: {"architecture": None},
    ],
    ids=["beyond", "negative", "repeated", "too few", "no whole numbers", "no units", "no network"],
)
def test_a_forged_pruning_is_refused(change: Callable[[Any], Any], path: Path) -> None:
    pruned = small(max_iter=30).fit(X, Y).prune(0.3)

    def changed(members: tuple[Any, ...]) -> tuple[Any, ...]:
        first, *others = members
        pruning = replace(first.pruning, **change(first.pruning))
        return (replace(first, pruning=pruning), *others)

    forged(pruned, path, ensemble(members=changed))
    with pytest.raises(ValueError, match=path.name):
        load(path)


def test_other_files_are_refused(model: BowTieRegressor, path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        load(path)
    path.write_bytes(b"years of work")
    with pytest.raises(ValueError, match=path.name):
        load(path)
    model.save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=path.name):
        load(path)
    small(max_iter=2, checkpoint=path.with_name("c")).fit(X, Y)
    with pytest.raises(ValueError, match="checkpoint"):
        load(path.with_name("c"))


def test_a_subclass_is_another_kind(model: BowTieRegressor, path: Path) -> None:
    class Mine(BowTieRegressor):
        pass

    model.save(path)
    with pytest.raises(ValueError, match="Mine"):
        Mine.load(path)
