"""Files: what is saved comes back to the bit, whatever else a file holds is refused."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy
from sklearn.base import BaseEstimator

import bowtienet
from bowtienet import persistence
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.estimators._ensemble import FittedEnsemble
from bowtienet.estimators._start import FittedNetwork
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.inference.stochastic import StochasticState
from bowtienet.model import Prior
from bowtienet.persistence import SCHEMA, load, read_header, save
from bowtienet.tables.door import open_rows
from bowtienet.tables.representation import learn_representation
from tests import builders

KIND = "example"
ROOTS = (FittedEnsemble, FittedNetwork, Prior)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
CONTENT: dict[str, Any] = {
    "factors": GaussianRows(mean=np.arange(6.0).reshape(2, 3), covariance=np.ones((2, 3, 3))),
    "noise": (InverseGamma(concentration=2.0, scale=np.float32(0.5)), math.inf, None),
    "names": ["a", "é", np.array(["Rome", "Oslo"])],
    "seen": np.array([True, False, True]),
}


def assert_same(result: Any, expected: Any) -> None:
    """Equal to the last bit, types and order of keys included."""
    assert type(result) is type(expected)
    if is_dataclass(expected):
        for field in fields(expected):
            assert_same(getattr(result, field.name), getattr(expected, field.name))
    elif isinstance(expected, dict):
        assert list(result) == list(expected)
        assert_same(list(result.values()), list(expected.values()))
    elif isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "O":
            assert result.tolist() == expected.tolist()
        else:
            assert result.tobytes() == expected.tobytes()
    elif type(expected) is float:
        assert struct.pack("d", result) == struct.pack("d", expected)
    else:
        assert result == expected


def through_file(path: Path, content: Any) -> Any:
    save(path, KIND, content)
    kind, result = load(path, ROOTS)
    assert kind == KIND
    return result


def assert_refused(path: Path, words: str = "") -> None:
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))} .*{words}"):
        load(path, ROOTS)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.bowtie"


@pytest.fixture
def saved(path) -> Path:
    save(path, KIND, CONTENT)
    return path


# Round trips


def fitted_ensembles() -> list[Any]:
    """Of numbers with warps and all views, of classes, and of counts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.exp(X[:, 0] + 0.1 * rng.normal(size=120))
    fast: dict[str, Any] = {"hidden_layer_sizes": 2, "effort": "fast", "random_state": 0}
    return [
        BowTieRegressor(**fast).fit(X, y),
        BowTieRegressor(**fast, encoding="principal", noise="student_t").fit(X, y),
        BowTieClassifier(**fast).fit(X, y > 1.0),
        BowTieCountRegressor(**fast).fit(X, np.floor(y)),
    ]


def containers() -> list[Any]:
    """Every class that a file may hold, somewhere."""
    rng = np.random.default_rng(0)
    points = [
        builders.random_point(rng, (4,), family)
        for family in ("student_t", "regularized_horseshoe", "horseshoe", "gaussian")
    ]
    points += [
        builders.random_point(rng, (4, 3), outcome=outcome, n_outputs=n_outputs)
        for outcome, n_outputs in builders.OUTCOMES.values()
    ]
    table = pd.DataFrame(
        {
            "number": [1.0, None, 3.0, 4.0] * 30,
            "text": ["a", "b", "a", "é"] * 30,
            "date": pd.date_range("2020-01-01", periods=120),
            "constant": 5,
            "levels": [f"level {i % 40}" for i in range(120)],
        }
    )
    training = open_rows(BaseEstimator(), table, np.arange(120) % 40)
    representation = learn_representation(training, 30)[0]
    point = builders.masked(points[0])
    statistics = builders.statistics_of(point)
    state = StochasticState(
        **{
            **dict.fromkeys((f.name for f in fields(StochasticState)), None),
            "model": point.model,
            "posterior": point.factors,
            "statistics": statistics,
            "step": 7,
        }
    )
    fitted = FittedNetwork(
        representation=representation,
        target_scaling=representation.scaling,
        model=point.model,
        posterior=point.factors,
        member_weights=np.array([0.25, 0.75]),
        inputs=np.array([1, 0]),
        stochastic=state,
    )
    models = [(each.model, each.factors, builders.statistics_of(each)) for each in points]
    practical = [model._content() for model in fitted_ensembles()]
    whole = replace(fitted, inputs=None, stochastic=None)
    return [fitted, whole, Prior("laplace"), *models, *practical]


def test_every_container_comes_back(path):
    seen: set[type] = set()

    def note(value: Any) -> None:
        if is_dataclass(value):
            seen.add(type(value))
            value = vars(value)
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for each in value:
                note(each)

    content = containers()
    assert_same(through_file(path, content), content)
    note(content)
    known = set(persistence.containers(ROOTS).values())
    assert seen == known


@pytest.mark.parametrize(
    "content",
    [
        *(None, True, False, 0, 1, -1, 2**64, -(2**2047), "", "text", "é\n\0\U0001f600", "\ud800"),
        *(0.0, -0.0, 1.0, 1e16, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
        *([], (), {}, [()], ([],), {"": {}}, {"b": 1, "a": 2}),
        *({"tuple": [1]}, {"array": 0}, {"dict": {"float": "x"}}, {"Prior": {}}),
        *(np.dtype(dtype).type(1) for dtype in DTYPES),
        *(np.float64(math.nan), np.float32(-0.0), np.int64(-(2**63)), np.uint64(2**64 - 1)),
        *(np.arange(6).reshape(2, 3).astype(dtype) for dtype in DTYPES),
        *(np.zeros(()), np.zeros(0), np.zeros((0, 3)), np.zeros((2, 0), "?"), np.zeros((1,) * 20)),
        *(np.array(["a", "é"]), np.array([["a", None]], dtype=object), np.array([], dtype="U1")),
        [np.ones(1, "f4"), np.zeros(0), np.array(True), np.arange(3, dtype="i1"), np.ones(2)],
    ],
    ids=lambda content: f"{type(content).__name__}",
)
def test_every_leaf(content, path):
    assert_same(through_file(path, content), content)


@pytest.mark.parametrize(
    "content", [1j, np.ones(2, "c16"), {1, 2}, len, np.array([1, "a"], dtype=object), b"bytes"]
)
def test_what_cannot_be_saved_is_said_before_anything_is_written(content, saved):
    before = saved.read_bytes()
    with pytest.raises(TypeError, match="save"):
        save(saved, KIND, [1, content])
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


# Complete or not at all


def test_an_absent_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*absent: create it"):
        save(tmp_path / "absent" / "model.btn", KIND, 1)


class Stop(BaseException):
    """As Ctrl-C: no Exception."""


@pytest.mark.parametrize("error", [OSError("full"), Stop()], ids=repr)
@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("exists", [True, False])
def test_an_error_leaves_what_there_was(error, step, exists, path, monkeypatch):
    if exists:
        save(path, KIND, 1)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(persistence.os, step, fail)
    with pytest.raises(type(error)):
        save(path, KIND, 2)
    monkeypatch.undo()
    assert os.listdir(path.parent) == [path.name] * exists
    if exists:
        assert load(path, ()) == (KIND, 1)


# Whatever else a file holds


def header(**changes: Any) -> dict[str, Any]:
    """A header that is right, of nothing but None, with changes."""
    about = {"schema": SCHEMA, "kind": KIND, "version": "1", "content": None, **changes}
    return {**about, "digest": persistence._digest(about, {})}


def write(path: Path, about: Any, tensors: dict[str, np.ndarray] | None = None) -> None:
    metadata = {"bowtienet": about if isinstance(about, str) else json.dumps(about)}
    path.write_bytes(safetensors.numpy.save(tensors or {}, metadata=metadata))


def test_a_header_by_hand_is_read(path):
    """So that the refusals below are for what is changed alone."""
    write(path, header())
    assert load(path, ()) == (KIND, None)
    assert read_header(path)["version"] == "1"


def test_damaged_bytes_anywhere(saved):
    """A bit of every byte changed: a refusal that names the file, or nothing that matters."""
    data = saved.read_bytes()
    unharmed = 0
    for at in range(len(data)):
        saved.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        try:
            kind, content = load(saved, ROOTS)
        except ValueError as error:
            assert str(saved) in str(error)  # noqa: PT017 (either is right)
        else:
            unharmed += 1
            assert kind == KIND
            assert_same(content, CONTENT)
    assert unharmed < 0.05 * len(data)


def test_truncated_and_longer(saved):
    data = saved.read_bytes()
    for end in range(0, len(data), 7):
        saved.write_bytes(data[:end])
        assert_refused(saved)
    saved.write_bytes(data + b"\0")
    assert_refused(saved)


FOREIGN: dict[str, bytes] = {
    "empty": b"",
    "text": b"x,y\n1,2\n" * 50,
    "pickle": pickle.dumps({"model": 1}),
    "safetensors": safetensors.numpy.save({"w": np.ones(3)}),
    "with metadata": safetensors.numpy.save({"w": np.ones(3)}, metadata={"format": "pt"}),
    "no json": safetensors.numpy.save({}, metadata={"bowtienet": "{"}),
    "a list": safetensors.numpy.save({}, metadata={"bowtienet": "[1]"}),
    "a number": safetensors.numpy.save({}, metadata={"bowtienet": "2"}),
    "deep": safetensors.numpy.save({}, metadata={"bowtienet": "[" * 100_000}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name, path):
    path.write_bytes(FOREIGN[name])
    assert_refused(path)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        bowtienet.load(path)


@pytest.mark.parametrize("version", ["99.1", None])
def test_a_newer_schema_says_so(version, path):
    about = header(schema=SCHEMA + 1, version=version)
    if version is None:
        del about["version"]
    write(path, about)
    assert_refused(path, rf"{version or ''}.*newer")


@pytest.mark.parametrize("name", ["schema", "kind", "version", "content", "digest"])
def test_a_header_without_one_of_its_entries(name, path):
    write(path, {key: value for key, value in header().items() if key != name})
    assert_refused(path)


@pytest.mark.parametrize("changes", [{"kind": "other"}, {"content": 1}, {"version": "2"}])
def test_the_digest_is_of_everything(changes, path):
    write(path, {**header(), **changes})
    assert_refused(path, "digest")


@dataclass(frozen=True, kw_only=True)
class Loud:
    """Must never be built by a file."""

    command: str

    def __post_init__(self) -> None:
        raise AssertionError("built")


@pytest.mark.parametrize(
    "content",
    [
        {"Loud": {"command": "x"}},
        {"os.system": {"command": "x"}},
        {"eval": {"source": "1"}},
        {"__import__": {"name": "os"}},
        {"GaussianRows": {"mean": 1}},
        {"GaussianRows": {"mean": 1, "covariance": 2, "more": 3}},
        {"GaussianRows": 1},
        {"GaussianRows": {"mean": "a", "covariance": 2}},
        {"Prior": {"family": 1}},
        {"Prior": {"family": "laplace", "nu_local": True}},
        {"Prior": {"family": "laplace", "slab": {"tuple": [1.0]}}},
        {"Architecture": {"n_inputs": 1.5, "hidden": {"tuple": []}, "n_outputs": 1}},
        {"Architecture": {"n_inputs": 1, "hidden": {"tuple": ["a"]}, "n_outputs": 1}},
        {"array": 0},
        {"array": "0"},
        {"texts": [[2], ["a"]]},
        {"texts": 1},
        {"float": "x"},
        {"tuple": 1},
        {"dict": 1},
        {},
        {"tuple": [], "list": []},
    ],
    ids=str,
)
def test_trees_that_save_did_not_write(content, path):
    """With a right digest: nothing is built but the classes that the reader names."""
    write(path, header(content=content))
    assert_refused(path, "damaged")


def test_only_the_classes_that_the_reader_names(path):
    save(path, KIND, InverseGamma(concentration=1.0, scale=2.0))
    with pytest.raises(ValueError, match="InverseGamma"):
        load(path, (GaussianRows,))


def test_nothing_of_a_pickle_runs(path):
    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return os.mkdir, (str(path.parent / "ran"),)

    path.write_bytes(pickle.dumps(Bomb()))
    assert_refused(path)
    assert os.listdir(path.parent) == [path.name]
