"""Files: what is saved comes back bit for bit, and whatever else a file holds is refused."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import pickle
import re
import struct
import sys
import zipfile
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy

from bowtienet._old import engine, persistence
from bowtienet._old.data.door import open_source
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.distributions.yeo_johnson import fit_warp
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.stochastic import PassSnapshot, Position, StochasticState
from bowtienet._old.model.outcomes import Binary, Classes, Counts, Outcome, StudentT
from bowtienet._old.persistence import load, save
from bowtienet._old.prediction.calibration import Calibration
from bowtienet._old.prediction.conformal import HeldOut
from bowtienet._old.prediction.cross_fitted import CrossFitted
from bowtienet._old.prediction.levels import Levels
from bowtienet._old.prediction.outside import Outside
from bowtienet._old.representation.learning import learn_columns
from bowtienet._old.representation.pieces import fit_pieces
from bowtienet._old.representation.principal import fit_principal
from bowtienet._old.representation.representation import PLAIN, Representation, View
from tests._old.builders import OUTCOMES, bound_of, random_point, statistics_of

KIND = "example"
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
CONTENT: dict[str, Any] = {
    "factors": GaussianRows(mean=np.arange(6.0).reshape(2, 3), covariance=np.ones((2, 3, 3))),
    "noise": (InverseGamma(concentration=2.0, scale=np.float32(0.5)), math.inf, None),
    "names": ["a", "é"],
    "seen": np.array([True, False, True]),
    "status": Status.CONVERGED,
}


def assert_same(found: Any, expected: Any) -> None:
    """Equal to the last bit, types and order of keys included."""
    assert type(found) is type(expected)
    if is_dataclass(expected):
        for field in fields(expected):
            assert_same(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_same(list(found.values()), list(expected.values()))
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()
    elif type(expected) is float and math.isfinite(expected):
        assert struct.pack("d", found) == struct.pack("d", expected)
    else:
        assert found == expected or (math.isnan(found) and math.isnan(expected))


def through_file(path: Path, content: Any) -> Any:
    save(path, KIND, content)
    return load(path, KIND)


def assert_refused(path: Path, words: str = "", kind: str = KIND) -> None:
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))} .*{words}"):
        load(path, kind)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bowtie"


@pytest.fixture
def saved(path: Path) -> Path:
    save(path, KIND, CONTENT)
    return path


# ------------------------------------------------------------------------------------------------
# Round trips
# ------------------------------------------------------------------------------------------------


def fitted(prior: str, hidden: tuple[int, ...]) -> engine.FitResult:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(30, 3))
    targets = np.column_stack([np.sin(inputs[:, 0]), inputs[:, 1]])
    rows = engine.build_rows(inputs, targets)
    model = engine.default_model(
        engine.build_architecture(3, hidden, 2), inputs, targets, prior=prior
    )
    return engine.fit(model, rows, engine.initialize(model, rows, rng), max_iter=5, n_threads=1)


def fitted_outcome(outcome: Outcome) -> engine.FitResult:
    """After a few sweeps, in which EM has moved what the outcome has of its own."""
    rng = np.random.default_rng(4)
    inputs = rng.normal(size=(30, 3))
    n_outputs = 3 if isinstance(outcome, Classes) else 1
    targets = rng.integers(2, size=(30, outcome.n_columns(n_outputs))).astype(float)
    rows = engine.build_rows(inputs, targets)
    architecture = engine.build_architecture(3, (4,), n_outputs)
    model = engine.default_model(architecture, inputs, targets, outcome=outcome)
    return engine.fit(model, rows, engine.initialize(model, rows, rng), max_iter=5, n_threads=1)


def pruned(result: engine.FitResult) -> engine.FitResult:
    model, factors, pruning = engine.prune(result.model, result.factors, false_sign_rate=0.1)
    return replace(result, model=model, factors=factors, pruning=pruning)


def representation() -> Representation:
    """Of a table with a column of each kind, one of them left out."""
    table = pd.DataFrame(
        {
            "number": [1.0, None, 3.0, 4.0],
            "text": ["a", "b", "a", "é"],
            "date": pd.date_range("2020-01-01", periods=4),
            "price": ["1.234,5", "2,0", "3,5", "7,1"],
            "constant": 5,
        }
    )
    columns = learn_columns(open_source(table, np.arange(4.0)), max_categories=100)
    rng = np.random.default_rng(2)
    pieces = fit_pieces(rng.normal(size=(40, 2)), np.ones(40), 4)
    warp = fit_warp(rng.gamma(2.0, size=(40, 1)), np.ones(40))
    principal = fit_principal(rng.normal(size=(40, 2)), np.ones(40), 2)
    return Representation(
        columns=columns,
        feature_scaling=engine.fit_scaling(np.arange(8.0).reshape(4, 2)),
        target_scaling=engine.fit_scaling(np.arange(4.0)[:, None]),
        column_order=np.array([1, 0]),
        views=(
            PLAIN,
            View(pieces=pieces),
            View(pieces=pieces, warp=warp),
            View(warp=warp),
            View(principal=principal),
        ),
    )


def held_out_rows() -> list[Any]:
    """What held-out rows tell of the noise, and how they were predicted."""
    rng = np.random.default_rng(3)
    levels = Levels(
        scale=rng.gamma(1.0, size=(3, 2)),
        gates=rng.normal(size=(2, 3, 2)),
        columns=np.array([0, 2]),
    )
    held_out = HeldOut(values=rng.random(size=(9, 2)), weights=np.ones(9))
    outside = Outside(
        low=np.array([-1.0, -2.0]),
        high=np.ones(2),
        slope_variances=rng.random(size=(2, 2, 2)),
        bounded=np.array([True, False]),
    )
    calibration = Calibration(slope=rng.gamma(1.0, size=2), dispersion=np.array([1.0, 3.5]))
    cross_fitted = CrossFitted(
        scores=rng.random(size=(2, 5)),
        nominal=rng.random(size=(2, 3)),
        observed=rng.random(size=(2, 3)),
        counts=np.full((2, 3), 9.0),
        n_rows=9,
    )
    return [levels, held_out, outside, calibration, cross_fitted]


def snapshots(hidden: tuple[int, ...]) -> list[Any]:
    """A stochastic fit after a pass, and one that is about to begin."""
    point = random_point(np.random.default_rng(1), hidden)
    state = StochasticState(
        model=point.model, factors=point.factors, statistics=statistics_of(point), step=7
    )
    position = Position(
        state=state, elbo_terms=bound_of(point), n_passes=2, full_batch=9.5, turned=3
    )
    started = replace(state, statistics=None, step=0, ahead=point.factors)
    return [PassSnapshot(position=position, elbo_history=(-7.5, -7.25)), started]


def outcomes(hidden: tuple[int, ...]) -> list[Any]:
    """Models and sums of rows of every likelihood."""
    points = [
        random_point(np.random.default_rng(2), hidden, outcome=outcome, n_outputs=n_outputs)
        for outcome, n_outputs in OUTCOMES.values()
    ]
    return [(point.model, point.factors, statistics_of(point)) for point in points]


def test_every_container_comes_back(path: Path) -> None:
    seen: set[type] = set()

    def note(value: Any) -> None:
        if is_dataclass(value):
            seen.add(type(value))
            value = vars(value)
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for part in value:
                note(part)

    priors = ("student_t", "normal_inverse_gaussian", "regularized_horseshoe", "gaussian")
    for prior, hidden in zip(priors, ((4,), (5, 3), (4,), ()), strict=True):
        result = fitted(prior, hidden)
        stretched = replace(result, variance_ratio=np.array([1.7, 0.3]))
        content = [result, stretched, pruned(result), representation(), snapshots(hidden)]
        content += [*held_out_rows(), *outcomes(hidden)]
        assert_same(through_file(path, content), content)
        note(content)
    for outcome in (Binary(), Classes(n_classes=3), Counts(offset=0.25), StudentT()):
        result = fitted_outcome(outcome)
        assert_same(through_file(path, result), result)
        note(result)
    assert seen == set(persistence.CONTAINERS)


def test_a_loaded_fit_predicts_and_goes_on(path: Path, rng: np.random.Generator) -> None:
    """Loaded arrays can be written to and work as those that were saved."""
    result = fitted("student_t", (4,))
    rows = engine.build_rows(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)))
    loaded = through_file(path, result)
    assert_same(
        engine.fit(loaded.model, rows, loaded.factors, max_iter=3, n_threads=1),
        engine.fit(result.model, rows, result.factors, max_iter=3, n_threads=1),
    )
    for found, expected in zip(
        vars(engine.predict(loaded.model, loaded.factors, rows.inputs)).values(),
        vars(engine.predict(result.model, result.factors, rows.inputs)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "content",
    [
        *(None, True, False, 0, 1, -1, 2**64, -(2**2047), "", "text", "é\n\0\U0001f600", "\ud800"),
        *(0.0, -0.0, 1.0, 1e16, 0.1, 5e-324, sys.float_info.max, math.inf, -math.inf, math.nan),
        *([], (), {}, [()], ([],), {"": {}}, {"b": 1, "a": 2}),
        *({"tuple": [1]}, {"array": 0}, {"dict": {"float": "x"}}, {"Status": "converged"}),
        *("0" * 64, ["0" * 64, np.zeros(3)], {'"sha256":"': "0" * 64}),
        *Status,
        *(np.dtype(dtype).type(1) for dtype in DTYPES),
        *(np.float64(math.nan), np.float32(-0.0), np.int64(-(2**63)), np.uint64(2**64 - 1)),
        *(np.arange(6).reshape(2, 3).astype(dtype) for dtype in DTYPES),
        *(np.zeros(()), np.zeros(0), np.zeros((0, 3)), np.zeros((2, 0), "?"), np.zeros((1,) * 20)),
        [np.ones(1, "f4"), np.zeros(0), np.array(True), np.arange(3, dtype="i1"), np.ones(2)],
    ],
)
def test_every_leaf(content: Any, path: Path) -> None:
    assert_same(through_file(path, content), content)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4)[::-2, 1::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
        np.broadcast_to(np.float32(3.0), (2, 2)),
        np.arange(6, dtype=">f8").reshape(2, 3).T,
        np.array(2.5, dtype=">f2"),
    ],
)
def test_layout_in_memory_does_not_matter(array: np.ndarray, path: Path) -> None:
    found = through_file(path, array)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.dtype.isnative


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_symmetric_matrices_take_half_the_room(
    dtype: str, path: Path, rng: np.random.Generator
) -> None:
    half = rng.normal(size=(3, 40, 40)).astype(dtype)
    symmetric = half + np.swapaxes(half, -1, -2)
    symmetric[0, 2, 1] = symmetric[0, 1, 2] = np.nan
    save(path, KIND, symmetric)
    assert path.stat().st_size < 0.6 * symmetric.nbytes + 1000
    assert load(path, KIND).tobytes() == symmetric.tobytes()
    symmetric[1, 2, 3] = -0.0
    symmetric[1, 3, 2] = 0.0  # equal to it, and not the same
    save(path, KIND, symmetric)
    assert load(path, KIND).tobytes() == symmetric.tobytes()


def test_loaded_arrays_are_writable_and_independent(path: Path) -> None:
    shared = np.zeros(3)
    first, second = through_file(path, [shared, shared])
    first += 1.0
    np.testing.assert_array_equal(second, 0.0)
    np.testing.assert_array_equal(load(path, KIND)[0], 0.0)


def test_arrays_of_other_libraries_become_numpy(tmp_path: Path, path: Path) -> None:
    expected = np.array([[1.0, 2.0]], dtype=np.float32)
    for library in (jnp, array_api_strict):
        given = {"x": library.asarray([[1.0, 2.0]], dtype=library.float32)}
        assert_same(through_file(path, given), {"x": expected})
    np.save(tmp_path / "table.npy", expected)
    assert_same(through_file(path, np.load(tmp_path / "table.npy", mmap_mode="r")), expected)


def test_the_same_content_is_the_same_file(saved: Path) -> None:
    before = saved.read_bytes()
    for _ in range(10):
        save(saved, KIND, load(saved, KIND))
        assert saved.read_bytes() == before


def test_others_can_read_the_arrays(saved: Path) -> None:
    found = safetensors.numpy.load_file(saved)
    np.testing.assert_array_equal(found["0"], CONTENT["factors"].mean)
    with safetensors.safe_open(saved, framework="np") as file:
        assert list(file.metadata()) == ["bowtienet"]


# ------------------------------------------------------------------------------------------------
# What cannot be saved
# ------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "a b")


class Text(str):
    """A subclass of a type that can be saved."""


@dataclass(frozen=True, kw_only=True)
class Stranger:
    value: float


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"a": [0, {1.0}]}, r"^content\['a'\]\[1\] .* set"),
        ((GaussianRows(mean=1j, covariance=0),), r"^content\[0\]\.mean .* complex"),
        (b"bytes", "bytes"),
        (Stranger(value=1.0), "Stranger"),
        (Pair(1, 2), "Pair"),
        (Text("x"), "Text"),
        (OrderedDict(a=1), "OrderedDict"),
        (len, "builtin_function"),
        (np.random.default_rng(0), "Generator"),
        ({"x": {1: 2}}, r"^content\['x'\] .* key 1"),
        ({Text("x"): 1}, "key 'x'"),
        ([np.array(["a", None])], r"^content\[0\] .* object"),
        ([np.array(["a"])], r"^content\[0\] .* <U1"),
        (np.zeros(2, complex), "complex128"),
        (np.zeros(2, np.longdouble), "float128|longdouble"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (jnp.zeros(2, jnp.bfloat16), "bfloat16"),
        (np.ma.array([1.0], mask=[True]), "MaskedArray"),
    ],
)
def test_what_cannot_be_saved(content: Any, words: str, saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError, match=words):
        save(saved, KIND, content)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


# ------------------------------------------------------------------------------------------------
# Places that files can be in
# ------------------------------------------------------------------------------------------------


def test_places_that_are_none(tmp_path: Path, path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        load(path, KIND)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        load(tmp_path, KIND)
    for write in (persistence.check_writable, lambda place: save(place, KIND, 1)):
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            write(tmp_path)
        with pytest.raises(FileNotFoundError, match="no"):
            write(tmp_path / "no" / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written_to(saved: Path) -> None:
    saved.parent.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=saved.parent.name):
            save(saved, KIND, 1)
        assert_same(load(saved, KIND), CONTENT)
    finally:
        saved.parent.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_a_pipe_is_neither_read_nor_replaced(path: Path) -> None:
    os.mkfifo(path)
    for use in (lambda: load(path, KIND), lambda: save(path, KIND, 1)):
        with pytest.raises(ValueError, match=path.name):
            use()
    assert path.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_links_are_followed_and_permissions_are_those_of_new_files(tmp_path: Path) -> None:
    target, link, plain = (tmp_path / name for name in ("target", "link", "plain"))
    plain.touch()
    link.symlink_to(target)
    assert persistence.check_writable(str(link)) == Path(os.path.realpath(target))
    assert through_file(link, 1) == 1
    assert link.is_symlink()
    assert load(str(target), KIND) == 1
    assert target.stat().st_mode == plain.stat().st_mode


# ------------------------------------------------------------------------------------------------
# Nothing half-written
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_all_as_it_was(
    failing: str, error: type[BaseException], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    seen = []

    def fail(*_: Any) -> None:
        seen.extend(os.listdir(saved.parent))
        raise error(28, "disk full")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(error) as caught:
        save(saved, KIND, "other")
    assert len(seen) == 2  # the old file and the new one beside it
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]
    if isinstance(caught.value, OSError):
        assert caught.value.filename == os.path.realpath(saved)


def test_the_file_is_complete_before_it_has_its_name(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fsync, rename = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        fsync(descriptor)
        calls.append(("fsync", os.fstat(descriptor).st_size))

    def watched_replace(source: Path, target: Path) -> None:
        assert Path(source).parent == saved.parent
        calls.append(("replace", os.path.getsize(source)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    save(saved, KIND, list(range(100)))
    size = saved.stat().st_size
    assert calls == [("fsync", size), ("replace", size)]


# ------------------------------------------------------------------------------------------------
# Damaged and foreign files
# ------------------------------------------------------------------------------------------------


def test_a_file_that_was_cut_off_or_extended(saved: Path) -> None:
    data = saved.read_bytes()
    for length in (*range(0, len(data), 7), len(data) - 1):
        saved.write_bytes(data[:length])
        assert_refused(saved)
        assert persistence.kind_of(saved) is None
    for more in (b"\0", b" ", b"\n", data):
        saved.write_bytes(data + more)
        assert_refused(saved, "digest")


def test_no_byte_can_change_unnoticed(saved: Path) -> None:
    """Among the flips: digits to other digits, letters to capitals, quotes and braces to text."""
    data = saved.read_bytes()
    for position in range(0, len(data), 2):
        damaged = bytearray(data)
        damaged[position] ^= (0x01, 0x20, 0x80, 0xFF, 0x08)[position % 5]
        saved.write_bytes(damaged)
        assert_refused(saved)
    saved.write_bytes(data)
    assert_same(load(saved, KIND), CONTENT)


@pytest.mark.parametrize(("old", "new"), [(b"2.0", b"2e0"), (b"u00e9", b"u00E9")])
def test_changes_that_mean_the_same_are_noticed_too(old: bytes, new: bytes, saved: Path) -> None:
    data = saved.read_bytes()
    assert data.count(old) == 1
    saved.write_bytes(data.replace(old, new))
    assert_refused(saved, "digest")


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.json", "{}" * 100)
    return buffer.getvalue()


OURS = b'{"__metadata__":{"bowtienet":'
FOREIGN = {
    "empty": b"",
    "short": b"short",
    "zeros": bytes(1000),
    "text": b"inputs,targets\n" * 20,
    "pickle": pickle.dumps({"weights": np.arange(50.0)}),
    "zip": zipped(),
    "safetensors": safetensors.numpy.save({"weight": np.ones(3)}),
    "safetensors with metadata": safetensors.numpy.save({"w": np.ones(3)}, {"format": "pt"}),
    "only the beginning": bytes(8) + OURS,
    "a huge claim": b"\xff" * 8 + OURS + b'"{}"}}',
    "metadata of another type": (100).to_bytes(8, "little") + OURS + b'["a"]}}',
    "nested too deeply": (10**6).to_bytes(8, "little") + OURS + b"[" * 10**6,
    "not UTF-8": (33).to_bytes(8, "little") + OURS + b'"\xff\xff"}}',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, path: Path) -> None:
    path.write_bytes(FOREIGN[name])
    assert_refused(path)
    assert persistence.kind_of(path) is None


def test_another_kind(saved: Path) -> None:
    assert persistence.kind_of(saved) == KIND
    assert_refused(saved, "'example'.*'BowTieRegressor'", "BowTieRegressor")


# ------------------------------------------------------------------------------------------------
# Forged files: the digest is right
# ------------------------------------------------------------------------------------------------


@dataclass
class Forgery:
    """The parts of a file, to be changed at will and written with a digest that is right."""

    header: dict[str, Any]
    layout: dict[str, Any]
    body: bytes

    def write(self, path: Path, text: Callable[[str], str] = str) -> None:
        header = {**self.header, "sha256": "0" * 64} if "sha256" in self.header else self.header
        metadata = {"bowtienet": text(json.dumps(header))}
        layout = {"__metadata__": metadata, **self.layout}
        head = json.dumps(layout, separators=(",", ":")).encode()
        data = len(head).to_bytes(8, "little") + head + self.body
        digest = hashlib.sha256(data).hexdigest().encode()
        path.write_bytes(data.replace(b"0" * 64, digest, 1))


def forgery(path: Path, content: Any = CONTENT) -> Forgery:
    """The parts of a file that was really saved."""
    save(path, KIND, content)
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    layout = json.loads(data[8:start])
    header = json.loads(layout.pop("__metadata__")["bowtienet"])
    return Forgery(header, layout, data[start:])


def test_a_forgery_without_change_is_read(path: Path) -> None:
    """Otherwise the tests below could pass for a wrong digest."""
    forgery(path).write(path)
    assert_same(load(path, KIND), CONTENT)


PRIOR = {"order": 1.0, "scale": 2.0, "rate": 3.0}


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"Stranger": {"value": 1.0}}, "Stranger"),
        ({"os.system": {"command": "true"}}, "os.system"),
        ({"builtins.eval": ["1"]}, ""),
        ({"Rows": {"inputs": 1, "targets": 2, "weights": 3}}, "Rows"),
        ({"__class__": {}}, "__class__"),
        ({"GeneralizedInverseGaussian": {"order": 1.0, "scale": 2.0}}, "rate"),
        ({"GeneralizedInverseGaussian": {**PRIOR, "more": 1}}, "more"),
        ({"PointMass": None}, ""),
        ({"PointMass": {"value": {"eval": {}}}}, "eval"),
        ({}, ""),
        ({"tuple": [], "dict": {}}, ""),
        ({"tuple": 1}, ""),
        ({"dict": []}, ""),
        ({"Status": "well"}, "well"),
        ({"float": "x"}, "x"),
        ({"array": 1}, "1"),
        ({"array": [0]}, "0"),
        ({"symmetric": 1}, "1"),
    ],
)
def test_forged_content(tree: Any, words: str, path: Path) -> None:
    forged = forgery(path, np.arange(3.0))
    forged.header["content"] = tree
    forged.write(path)
    assert_refused(path, words)


def test_a_forged_triangle(path: Path) -> None:
    forged = forgery(path, np.arange(4.0))
    forged.header["content"] = {"symmetric": 0}
    forged.write(path)
    assert_refused(path, "triangle")


def test_content_nested_too_deeply(path: Path) -> None:
    nest = "[" * 10**5 + "]" * 10**5
    forgery(path, 12345).write(path, lambda text: text.replace("12345", nest))
    assert_refused(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2, "version": "9.1"}, "9.1"),
        ({"schema": 0, "version": "0.0.1"}, "0.0.1"),
        ({"kind": "other"}, "'other'.*'example'"),
        ({"kind": [KIND]}, "'example'"),
    ],
)
def test_forged_headers(change: dict[str, Any], words: str, path: Path) -> None:
    forged = forgery(path)
    forged.header.update(change)
    forged.write(path)
    assert_refused(path, words)


def test_no_two_containers_have_one_name() -> None:
    names = [container.__name__ for container in persistence.CONTAINERS]
    assert len(set(names)) == len(names)
