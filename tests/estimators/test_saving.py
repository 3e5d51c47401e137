"""Copies and files of fitted estimators say the same, to the bit."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bowtienet import BowTieNetwork, BowTieNetworkClassifier, load, persistence
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.model import Prior
from bowtienet.persistence import read_header

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the false"
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 2))
Y = np.abs(X[:, 0]) + 0.1 * RNG.normal(size=70)
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(
    city=RNG.choice(["Oslo", "Rome", "Lima"], size=70),
    day=np.datetime64("2025-01-01") + RNG.integers(0, 500, size=70),
    y=Y,
)
TABLE.loc[::9, "a"] = np.nan
SMALL: dict[str, Any] = {
    "hidden_layer_sizes": (4,),
    "n_members": 2,
    "init": "laplace",
    "max_iter": 5,
    "random_state": 0,
}
LABELS = np.array(["x", "yy", "zzz"])[np.arange(70) % 3]

FITS: dict[str, Callable[[], Any]] = {
    "mixed frame": lambda: BowTieNetwork(**SMALL).fit(TABLE, "y"),
    "two targets": lambda: BowTieNetwork(**SMALL).fit(X, np.column_stack([Y, -Y])),
    "horseshoe": lambda: BowTieNetwork(**SMALL, prior="regularized_horseshoe").fit(X, Y),
    "prior": lambda: BowTieNetwork(
        **SMALL, prior=Prior("gaussian", delta_local=0.5), noise="student_t"
    ).fit(X, Y),
    "svi": lambda: BowTieNetwork(**SMALL, solver="svi", batch_size=20).fit(X, Y),
    "batches": lambda: BowTieNetwork(**SMALL).partial_fit(X, Y),
    "pruned": lambda: BowTieNetwork(**SMALL).fit(TABLE, "y").prune(0.3),
    "two classes": lambda: BowTieNetworkClassifier(**SMALL).fit(X, Y > 0.5),
    "classes": lambda: BowTieNetworkClassifier(**SMALL).fit(X, LABELS),
}


FAST: dict[str, Any] = {"hidden_layer_sizes": (3,), "effort": "fast", "random_state": 0}
PRACTICAL: dict[str, Callable[[], Any]] = {
    "numbers": lambda: BowTieRegressor((4, 3), effort="fast", random_state=0).fit(TABLE, "y"),
    "labels": lambda: BowTieClassifier(**FAST).fit(TABLE, LABELS),
    "counts": lambda: BowTieCountRegressor(**FAST).fit(X, np.arange(70) % 4),
}


CLASSES = ("two classes", "classes", "labels")


def from_file(model: Any, folder: Path) -> Any:
    model.save(folder / "model.btn")
    return load(folder / "model.btn")


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "file": from_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


@pytest.fixture(scope="module", params=FITS)
def model(request: pytest.FixtureRequest) -> Any:
    return FITS[request.param]()


def everything(model: Any) -> list[Any]:
    table = TABLE if hasattr(model, "feature_names_in_") else X
    if hasattr(model, "classes_"):
        return [model.predict(table), model.predict_proba(table), model.classes_]
    return [
        *model.predict(table, return_std=True),
        model.sample_y(table, 2),
        model.sample_y(table, 2, joint=True),
        model.predict_interval(table),
    ]


@pytest.mark.parametrize("way", WAYS)
def test_they_come_back_to_the_bit(model: Any, way: str, tmp_path: Path) -> None:
    back = WAYS[way](model, tmp_path)
    assert type(back) is type(model)
    assert repr(back.get_params()) == repr(model.get_params())
    for a, b in zip(everything(back), everything(model), strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)
    for name in [name for name in vars(model) if name.endswith("_")]:
        assert_array_equal(getattr(back, name), getattr(model, name), err_msg=name)
    assert back.summary() == model.summary()
    assert back.selection() == model.selection()
    assert set(vars(back)) == set(vars(model))


def test_they_go_on(tmp_path: Path) -> None:
    """What a stochastic fit needs to go on is in the file; what one of all rows needs is not."""
    for name in ("svi", "batches"):
        model = FITS[name]()
        back = from_file(model, tmp_path)
        assert_array_equal(
            back.partial_fit(X, Y).predict(X), model.partial_fit(X, Y).predict(X), err_msg=name
        )
    with pytest.raises(ValueError, match="rows of that fit"):
        from_file(FITS["horseshoe"](), tmp_path).partial_fit(X, Y)


def test_copies_without_the_fit() -> None:
    model = FITS["prior"]()
    bare = clone(model)
    with pytest.raises(NotFittedError):
        bare.predict(X)
    assert_array_equal(bare.fit(X, Y).predict(X), model.predict(X))
    assert_array_equal(FITS["prior"]().predict(X), model.predict(X))


def test_rows_are_in_no_file(tmp_path: Path) -> None:
    """A file is as large after many rows as after few."""
    model = BowTieNetwork(**{**SMALL, "random_state": np.random.RandomState(0)}).fit(X, Y)
    assert from_file(model, tmp_path).random_state is None  # nor are generators
    sizes = []
    for times in (1, 50):
        model = BowTieNetwork(**SMALL).fit(np.tile(X, (times, 1)), np.tile(Y, times))
        model.save(tmp_path / "model")
        sizes.append(((tmp_path / "model").stat().st_size, len(pickle.dumps(model))))
    assert np.ptp(sizes, axis=0).max() < 1000


def nodes_of(tree: Any) -> list[dict[str, Any]]:
    """All parts of the tree of a file that hold a leaf."""
    if isinstance(tree, list):
        return [node for each in tree for node in nodes_of(each)]
    if not isinstance(tree, dict):
        return []
    leaves = any(not isinstance(each, (dict, list)) for each in tree.values())
    return [tree] * leaves + [node for each in tree.values() for node in nodes_of(each)]


@pytest.mark.filterwarnings("ignore:the fit had exposures")
@pytest.mark.parametrize("name", ["pruned", "batches", "classes", *PRACTICAL])
def test_forged_files(name: str, tmp_path: Path) -> None:
    """Wrong types, shapes and values with a right digest: refused, or they predict numbers."""
    path, rng, refused = tmp_path / "model.btn", np.random.default_rng(0), 0
    (FITS | PRACTICAL)[name]().save(path)
    header = read_header(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    for _ in range(150):
        about, tensors = copy.deepcopy(header), dict(arrays)
        if rng.random() < 0.5:
            node = rng.choice(np.array(nodes_of(about["content"]), dtype=object))
            key = rng.choice([k for k, v in node.items() if not isinstance(v, (dict, list))])
            node[key] = [None, "other", -7, 1.5, True, {"tuple": []}][rng.integers(6)]
        else:
            key = rng.choice(list(tensors))
            array = tensors[key]
            changes = [array[..., None], array[:-1] if array.ndim else array[None], array > 0]
            changes += [np.concatenate([array, array], axis=-1) if array.ndim else array * np.nan]
            tensors[key] = np.ascontiguousarray(changes[rng.integers(4)])
        del about["digest"]
        about["digest"] = persistence._digest(about, tensors)
        metadata = {"bowtienet": json.dumps(about)}
        path.write_bytes(safetensors.numpy.save(tensors, metadata=metadata))
        try:
            back = load(path)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error)  # noqa: PT017 (either is right)
        else:
            table = TABLE if hasattr(back, "feature_names_in_") else X
            answer = back.predict_proba(table) if name in CLASSES else back.predict(table)
            assert len(answer) == 70
            assert np.all(np.isfinite(answer))
    assert refused > 50


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    persistence.save(tmp_path / "foreign.btn", "compare", {"parameters": {}, "fitted": {}})
    with pytest.raises(ValueError, match="holds a compare"):
        load(tmp_path / "foreign.btn")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere.btn")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        persistence.save(tmp_path / "absent" / "model.btn", "compare", {})
    with pytest.raises(NotFittedError):
        BowTieNetwork().save(tmp_path / "unfitted")
    assert not (tmp_path / "unfitted").exists()
