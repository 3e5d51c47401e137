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

from bowtienet._old import BowTieRegressor, FitOptions, load, persistence
from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import identity
from bowtienet._old.inference.pruning import Pruning
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.representation.pieces import fit_pieces
from bowtienet._old.representation.representation import View
from tests._old.ensemble.fits import viewed_ensemble
from tests._old.estimators.models import answers, assert_same, rows, small, stacked

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
    "pruned": (lambda: small(max_iter=30).fit(FRAME, Y).prune(FRAME, Y), FRAME),
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


def test_members_keep_their_views(path: Path) -> None:
    """Bit for bit: bins, warps, and which member has which; predictions are the same."""
    model = small(max_iter=2, target_transform="none", features="standard").fit(X, Y)
    model.ensemble_ = viewed_ensemble((X, Y), max_iter=2)
    model.member_weights_ = model.ensemble_.weights
    model.save(path)
    found = load(path).ensemble_
    assert found.views == (0, 1, 2, 3)
    parts = (
        (found.representation.views, found.weights),
        (model.ensemble_.representation.views, model.ensemble_.weights),
    )
    map_arrays(np.testing.assert_array_equal, *parts)
    for one, other in zip(parts[0][0], parts[1][0], strict=True):
        assert (one.pieces is None, one.warp is None) == (other.pieces is None, other.warp is None)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


# Files that hold something else


Content = dict[str, Any]


def forged(model: BowTieRegressor, path: Path, change: Callable[[Content], Any]) -> None:
    """A file with the right digest whose content was changed."""
    model.save(path)
    content = persistence.load(path, KIND)
    change(content)
    persistence.save(path, KIND, content)


def ensemble(**changes: Any) -> Callable[[Content], Any]:
    """Parts of the ensemble put in its place; functions are given the old part."""

    def change(content: Content) -> None:
        for name, value in changes.items():
            old = content["ensemble"][name]
            content["ensemble"][name] = value(old) if callable(value) else value

    return change


# What the parts of an ensemble refuse is tested where they are.
FORGERIES: dict[str, Callable[[Content], Any]] = {
    "no settings": lambda content: content.pop("settings"),
    "no options": lambda content: content.pop("options"),
    "a bad setting": lambda content: content["settings"].update(prior="none"),
    "an unknown setting": lambda content: content["settings"].update(combine="equal"),
    "a bad option": lambda content: content["options"].update(tol=-1.0),
    "too few names": lambda content: content["feature_names"].pop(),
    "names that are none": lambda content: content.update(feature_names=[1, 2, 3, 4, 5]),
    "another number of features": lambda content: content.update(n_features=4),
    "two targets": lambda content: content.update(target_names=["y", "z"]),
    "targets that are no names": lambda content: content.update(target_names=[None]),
    "importances of other columns": lambda content: content.update(importances=np.ones(4)),
    "negative importances": lambda content: content.update(importances=-np.ones(5)),
    "members that are none": ensemble(members=(1, 2)),
    "weights that do not add up": ensemble(weights=lambda old: 2.0 * old),
    "a column too few": ensemble(
        representation=lambda old: replace(old, columns=old.columns[:-1]),
    ),
    "a view too few": ensemble(views=lambda old: old[1:]),
    "views that there are not": ensemble(views=(0, 7)),
    "views that are none": ensemble(
        representation=lambda old: replace(old, views=(1, 2)),
    ),
    "a view of other inputs": ensemble(
        representation=lambda old: replace(old, views=(View(pieces=PIECES),)),
    ),
    "a warp without inverse": ensemble(
        representation=lambda old: replace(old, views=(View(warp=BAD_WARP),)),
    ),
    "a pruning of another network": ensemble(
        members=lambda old: tuple(replace(m, pruning=PRUNING) for m in old),
    ),
}
PRUNING = Pruning(
    architecture=build_architecture(2, (4,), 1),
    inputs=np.arange(2),
    units=(np.arange(4),),
)


PIECES = fit_pieces(np.random.default_rng(0).normal(size=(40, 2)), np.ones(40), 4)
BAD_WARP = replace(identity(1), scale=np.zeros(1))


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_file_is_refused(case: str, model: BowTieRegressor, path: Path) -> None:
    forged(model, path, FORGERIES[case])
    with pytest.raises(ValueError, match=path.name) as caught:
        load(path)
    assert "\n" not in str(caught.value)


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
