"""Files: what is saved comes back bit for bit, and whatever else a file holds is refused."""

from __future__ import annotations

import contextlib
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import bowtienet as bt
from bowtienet import persistence
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference.convergence import Status
from bowtienet.inference.stochastic import PassSnapshot, Position, StochasticState
from bowtienet.persistence import load, save
from tests.builders import random_point, statistics_of

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
    elif type(expected) is float:
        assert struct.pack("d", found) == struct.pack("d", expected)
    else:
        assert found == expected


def through_file(path: Path, content: Any) -> Any:
    save(path, KIND, content)
    return load(path, KIND)


def refusal(path: Path, kind: str = KIND) -> str:
    """The one sentence with which the file is refused, without its name."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - every caller looks at the message
        load(path, kind)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.startswith(f"{path} ")
    assert message.endswith(".")
    assert "\n" not in message
    return message.removeprefix(f"{path} ")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bowtie"


@pytest.fixture
def saved(path: Path) -> Path:
    save(path, KIND, CONTENT)
    return path


# Round trips


def fitted(family: str, hidden: tuple[int, ...], rng: np.random.Generator) -> bt.FitResult:
    inputs = rng.normal(size=(30, 3))
    targets = np.column_stack([np.sin(inputs[:, 0]), inputs[:, 1]])
    rows = bt.build_rows(inputs, targets)
    architecture = bt.build_architecture(3, hidden, 2)
    model = bt.default_model(architecture, inputs, targets, prior=family)
    return bt.fit(model, rows, bt.initialize(model, rows, rng), max_iter=5, n_threads=1)


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3)])
@pytest.mark.parametrize("family", ["student_t", "normal_inverse_gaussian", "gaussian"])
def test_a_fitted_model(
    family: str, hidden: tuple[int, ...], path: Path, rng: np.random.Generator
) -> None:
    result = fitted(family, hidden, rng)
    inputs = rng.normal(2.0, 3.0, size=(7, 3))
    stretched = replace(result, variance_ratio=np.array([1.7, 0.3]))
    content = {"result": result, "scaling": bt.fit_scaling(inputs), "members": [stretched]}
    loaded = through_file(path, content)
    assert_same(loaded, content)
    again = bt.predict(loaded["result"].model, loaded["result"].factors, inputs)
    expected = bt.predict(result.model, result.factors, inputs)
    np.testing.assert_array_equal(again.mean, expected.mean)
    np.testing.assert_array_equal(again.signal_variance, expected.signal_variance)
    np.testing.assert_array_equal(again.noise_variance, expected.noise_variance)


def test_a_loaded_fit_goes_on(path: Path, rng: np.random.Generator) -> None:
    """Loaded arrays can be written to and work in a fit as those that were saved."""
    result = fitted("student_t", (4,), rng)
    rows = bt.build_rows(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)))
    loaded = through_file(path, result)
    expected = bt.fit(result.model, rows, result.factors, max_iter=3, n_threads=1)
    found = bt.fit(loaded.model, rows, loaded.factors, max_iter=3, n_threads=1)
    assert_same(found, expected)


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)], ids=str)
def test_the_state_of_a_fit(hidden: tuple[int, ...], path: Path, rng: np.random.Generator) -> None:
    point = random_point(rng, hidden)
    state = StochasticState(
        model=point.model, factors=point.factors, statistics=statistics_of(point), step=7
    )
    snapshot = PassSnapshot(
        position=Position(state=state, n_passes=2, full_batch=9.5), elbo_history=(-7.5, -7.25)
    )
    content = [snapshot, replace(state, statistics=None, step=0, ahead=point.factors)]
    assert_same(through_file(path, content), content)


PAYLOAD_NAN = struct.unpack(">d", bytes.fromhex("fff8000000abcdef"))[0]


@pytest.mark.parametrize(
    "content",
    [
        *(None, True, False, 0, 1, -1, 2**64, -(2**2047), "", "text", "é\n\0\U0001f600", "\ud800"),
        *(0.0, -0.0, 1.0, 1e16, 0.1, 5e-324, sys.float_info.max),
        *(math.inf, -math.inf, math.nan, PAYLOAD_NAN),
        *([], (), {}, [()], ([],), {"": {}}, {"b": 1, "a": 2}),
        *({"tuple": [1]}, {"array": 0}, {"dict": {"float": "x"}}, {"Status": "converged"}),
        *("0" * 64, ["0" * 64, np.zeros(3)], {'"sha256":"': "0" * 64}),
        *Status,
        *(np.dtype(dtype).type(1) for dtype in DTYPES),
        *(np.float64(math.nan), np.float32(-0.0), np.int64(-(2**63)), np.uint64(2**64 - 1)),
        *(np.arange(6).reshape(2, 3).astype(dtype) for dtype in DTYPES),
        *(np.zeros(()), np.zeros(0), np.zeros((0, 3)), np.zeros((2, 0), "?"), np.zeros((1,) * 20)),
        [np.ones(1, "f4"), np.zeros(0), np.array(True), np.arange(3, dtype="i1"), np.ones(2)],
        np.frombuffer(bytes.fromhex("efcdab000000f8ff"), "<f8").astype("f8"),
    ],
)
def test_every_leaf(content: Any, path: Path) -> None:
    assert_same(through_file(path, content), content)


def arrays() -> st.SearchStrategy[np.ndarray]:
    shapes = st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    return st.sampled_from(DTYPES).flatmap(
        lambda dtype: st_numpy.arrays(np.dtype(dtype).newbyteorder("="), shapes)
    )


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(),
    st.sampled_from(Status),
    arrays(),
    arrays().filter(lambda array: array.ndim == 0).map(lambda array: array[()]),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
        st.builds(InverseGamma, concentration=inner, scale=inner),
        st.builds(GaussianRows, mean=inner, covariance=inner),
    )


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=st.recursive(LEAVES, nested, max_leaves=15))
def test_nested_content(content: Any, path: Path) -> None:
    assert_same(through_file(path, content), content)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4)[::-2, 1::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
        np.broadcast_to(np.float32(3.0), (2, 2)),
        np.arange(5, dtype=">i4"),
        np.arange(6, dtype=">f8").reshape(2, 3).T,
        np.array(2.5, dtype=">f2"),
        np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype="u1")[1:].view("f8"),
    ],
)
def test_layout_in_memory_does_not_matter(array: np.ndarray, path: Path) -> None:
    found = through_file(path, array)
    np.testing.assert_array_equal(found, array)
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.dtype.isnative


def test_loaded_arrays_are_writable_and_independent(path: Path) -> None:
    shared = np.zeros(3)
    first, second = through_file(path, [shared, shared])
    first += 1.0
    np.testing.assert_array_equal(second, 0.0)
    assert first.flags.owndata
    assert first.flags.c_contiguous
    np.testing.assert_array_equal(load(path, KIND)[0], 0.0)


def test_memory_maps_become_arrays(tmp_path: Path, path: Path) -> None:
    np.save(tmp_path / "table.npy", np.arange(4.0))
    assert_same(through_file(path, np.load(tmp_path / "table.npy", mmap_mode="r")), np.arange(4.0))


@pytest.mark.parametrize("library", [jnp, array_api_strict], ids=["jax", "array_api_strict"])
def test_arrays_of_other_libraries(library: Any, path: Path) -> None:
    content = {"x": library.asarray([[1.0, 2.0]], dtype=library.float32), "n": library.asarray(3)}
    expected = {"x": np.array([[1.0, 2.0]], dtype=np.float32), "n": np.array(3)}
    assert_same(through_file(path, content), expected)


def test_arrays_of_torch(path: Path) -> None:
    torch = pytest.importorskip("torch")
    content = (torch.arange(6).reshape(2, 3).T, torch.ones(2, requires_grad=True))
    expected = (np.arange(6).reshape(2, 3).T.copy(), np.ones(2, dtype=np.float32))
    assert_same(through_file(path, content), expected)
    with pytest.raises(TypeError, match=r"content\[0\] cannot be saved.*BFloat16"):
        save(path, KIND, [torch.ones(2, dtype=torch.bfloat16)])


def test_saving_is_deterministic(path: Path) -> None:
    written = set()
    for _ in range(20):
        save(path, KIND, CONTENT)
        written.add(path.read_bytes())
    assert len(written) == 1


def test_saving_what_was_loaded_gives_the_same_file(saved: Path) -> None:
    before = saved.read_bytes()
    save(saved, KIND, load(saved, KIND))
    assert saved.read_bytes() == before


def test_others_can_read_the_arrays(saved: Path) -> None:
    found = safetensors.numpy.load_file(saved)
    np.testing.assert_array_equal(found["0"], CONTENT["factors"].mean)
    with safetensors.safe_open(saved, framework="np") as file:
        assert list(file.metadata()) == ["bowtienet"]


def test_paths_may_be_strings(tmp_path: Path) -> None:
    save(str(tmp_path / "x"), KIND, 1)
    assert load(str(tmp_path / "x"), KIND) == 1


# What cannot be saved

Pair = namedtuple("Pair", "a b")


class Text(str):
    """A subclass of a type that can be saved."""


@dataclass(frozen=True, kw_only=True)
class Stranger:
    value: float


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": [0, {1.0}]}, r"^content\['a'\]\[1\] cannot be saved: it is a set; convert"),
        ((GaussianRows(mean=1j, covariance=0),), r"^content\[0\]\.mean .* is a complex;"),
        (b"bytes", r"^content cannot be saved: it is a bytes;"),
        (Stranger(value=1.0), "Stranger"),
        (Pair(1, 2), "Pair"),
        (Text("x"), "Text"),
        (OrderedDict(a=1), "OrderedDict"),
        (len, "builtin_function"),
        (int, "is a type"),
        (np.random.default_rng(0), "Generator"),
        ({"x": {1: 2}}, r"^content\['x'\] .* the key 1; keys must be strings"),
        ({Text("x"): 1}, "keys must be strings"),
        ([np.array(["a", None])], r"^content\[0\] .* dtype object; .*text to lists"),
        ([np.array(["a"])], r"^content\[0\] .* dtype <U1; .*text to lists"),
        (np.str_("a"), "dtype <U1"),
        (np.zeros(2, complex), "dtype complex128"),
        (np.datetime64("2020-01-01"), "dtype datetime64"),
        (np.zeros(1, [("a", "f8")]), "dtype"),
        (jnp.zeros(2, jnp.bfloat16), "dtype bfloat16"),
        (np.ma.array([1.0], mask=[True]), "MaskedArray; convert it to a plain array"),
        (2**2048, "whole number of more than 2048 bits"),
        (LOOP, r"\.\.\. cannot be saved: it lies deeper than 100 levels, or holds itself"),
    ],
)
def test_what_cannot_be_saved(content: Any, message: str, saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError, match=message):
        save(saved, KIND, content)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_the_deepest_content_that_can_be_saved(path: Path) -> None:
    content: Any = (1.0,)
    for _ in range(99):
        content = (content,)
    assert_same(through_file(path, content), content)
    with pytest.raises(TypeError, match="deeper"):
        save(path, KIND, (content,))


def test_kind_must_be_text(path: Path) -> None:
    with pytest.raises(TypeError, match="kind must be a string"):
        save(path, None, 1)  # type: ignore[arg-type]


def test_too_much_beside_the_arrays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence.layout, "LARGEST_HEADER", 1000)
    assert_same(through_file(path, np.zeros(500)), np.zeros(500))
    with pytest.raises(ValueError, match="turn long lists of numbers into arrays"):
        save(path, KIND, [0.0] * 500)


# Places that files can be in


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(path))} does not exist"):
        load(path, KIND)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    for call in (lambda: save(tmp_path, KIND, 1), lambda: load(tmp_path, KIND)):
        with pytest.raises(IsADirectoryError, match="is a folder: add the name of a file"):
            call()


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the folder \S+ does not exist: create it first"):
        save(tmp_path / "no" / "model", KIND, 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_a_pipe_is_neither_read_nor_replaced(path: Path) -> None:
    os.mkfifo(path)
    assert "is not a regular file" in refusal(path)
    with pytest.raises(ValueError, match="is not a regular file"):
        save(path, KIND, 1)
    assert path.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_links_are_followed_and_permissions_are_those_of_new_files(tmp_path: Path) -> None:
    target, link, plain = (tmp_path / name for name in ("target", "link", "plain"))
    plain.touch()
    link.symlink_to(target)
    assert through_file(link, 1) == 1
    assert link.is_symlink()
    assert load(target, KIND) == 1
    assert target.stat().st_mode == plain.stat().st_mode


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_places_are_checked_without_writing(saved: Path) -> None:
    folder, before = saved.parent, saved.read_bytes()
    link = folder / "link"
    link.symlink_to(saved)
    assert persistence.check_writable(str(saved)) == Path(os.path.realpath(saved))
    assert persistence.check_writable(link) == Path(os.path.realpath(saved))
    assert persistence.check_writable(folder / "new").name == "new"
    with pytest.raises(IsADirectoryError, match="is a folder"):
        persistence.check_writable(folder)
    with pytest.raises(FileNotFoundError, match="create it first"):
        persistence.check_writable(folder / "no" / "model")
    assert sorted(os.listdir(folder)) == ["link", saved.name]
    assert saved.read_bytes() == before


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_leaves_all_as_it_was(
    failing: str, error: BaseException, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    seen = []

    def fail(*_: Any) -> None:
        seen.extend(os.listdir(saved.parent))
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(type(error)):
        save(saved, KIND, "other")
    assert len(seen) == 2  # the old file and the new one beside it
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_the_file_is_complete_before_it_has_its_name(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        fsync(descriptor)
        calls.append(("fsync", os.fstat(descriptor).st_size))

    def watched_replace(source: Path, target: Path) -> None:
        assert Path(source).parent == saved.parent
        calls.append(("replace", os.path.getsize(source)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    save(saved, KIND, list(range(100)))
    size = saved.stat().st_size
    assert calls == [("fsync", size), ("replace", size)]


# Damaged and foreign files


def test_truncated_anywhere(saved: Path) -> None:
    data = saved.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for length in (*range(0, len(data), 7), start - 1, start, start + 1, len(data) - 1):
        saved.write_bytes(data[:length])
        message = refusal(saved)
        if length < 8:
            assert f"it has only {length} bytes" in message
        elif length < start:
            assert f"should have at least {start} bytes but has {length}; save or copy" in message
        else:
            expected = f"it should have {len(data)} bytes but has {length}; copy it again."
            assert message == f"is truncated: {expected}"


def test_extended(saved: Path) -> None:
    data = saved.read_bytes()
    for more in (b"\0", b" ", b"\n", data):
        saved.write_bytes(data + more)
        message = refusal(saved)
        assert message.startswith(f"is too long: it should have {len(data)} bytes but has ")


def test_no_byte_can_change_unnoticed(saved: Path) -> None:
    """Among the flips: digits to other digits, letters to capitals, quotes and braces to text."""
    data = saved.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= (0x01, 0x20, 0x80, 0xFF, 0x08)[position % 5]
        saved.write_bytes(damaged)
        refusal(saved)
    saved.write_bytes(data)
    assert_same(load(saved, KIND), CONTENT)


@pytest.mark.parametrize(("old", "new"), [(b"2.0", b"2e0"), (b"u00e9", b"u00E9")])
def test_changes_that_mean_the_same_are_noticed_too(old: bytes, new: bytes, saved: Path) -> None:
    data = saved.read_bytes()
    assert data.count(old) == 1
    saved.write_bytes(data.replace(old, new))
    assert "its digest differs" in refusal(saved)


def test_the_padding_of_the_header_is_part_of_the_digest(path: Path) -> None:
    padded = 0
    for length in range(8):
        save(path, KIND, "a" * length)
        data = path.read_bytes()
        if data.endswith(b" "):
            padded += 1
            path.write_bytes(data[:-1] + b"\t")
            assert "its digest differs" in refusal(path)
    assert padded == 7


def test_altered_numbers_are_called_altered(saved: Path) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert refusal(saved) == "was altered after it was saved, its digest differs: copy it again."


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.json", "{}" * 100)
    return buffer.getvalue()


FOREIGN = {
    "empty": b"",
    "short": b"short",
    "zeros": bytes(1000),
    "text": b"inputs,targets\n" * 20,
    "pickle": pickle.dumps({"weights": np.arange(50.0)}),
    "zip": zipped(),
    "safetensors": safetensors.numpy.save({"weight": np.ones(3)}),
    "safetensors with metadata": safetensors.numpy.save({"w": np.ones(3)}, {"format": "pt"}),
    "list": (4).to_bytes(8, "little") + b"[{}]",
    "number": (1).to_bytes(8, "little") + b"1",
    "deep": (10**6).to_bytes(8, "little") + b"[" * 10**6,
    "not UTF-8": (4).to_bytes(8, "little") + b'"\xff\xff"',
    "digits": (10**4).to_bytes(8, "little") + b"1" * 10**4,
    "metadata of another type": (24).to_bytes(8, "little") + b'{"__metadata__":["a"]}  ',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, path: Path) -> None:
    path.write_bytes(FOREIGN[name])
    assert "not a bowtienet file" in refusal(path)


def test_random_bytes(path: Path, rng: np.random.Generator) -> None:
    for size in rng.integers(0, 3000, size=200):
        path.write_bytes(rng.bytes(size))
        assert "not a bowtienet file" in refusal(path)


def test_another_kind(saved: Path) -> None:
    assert refusal(saved, "BowTieRegressor") == (
        "holds a 'example', not a 'BowTieRegressor': load it as what it is."
    )


@pytest.mark.parametrize("kind", [KIND, "", "k" * 100, "with space"])
def test_the_kind_that_a_file_claims(kind: str, path: Path) -> None:
    save(path, kind, CONTENT)
    data = path.read_bytes()
    for damaged in (data, data[:-1], data[:1000], data[:500] + bytes(len(data) - 500)):
        path.write_bytes(damaged)
        assert persistence.claimed_kind(path) == kind
    path.write_bytes(data[:100])
    assert persistence.claimed_kind(path) is None


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_claim_no_kind(name: str, path: Path) -> None:
    path.write_bytes(FOREIGN[name])
    assert persistence.claimed_kind(path) is None


# Forged files: everything fits together, the digest too


@dataclass
class Forgery:
    """The parts of a file, to be changed at will and written with a digest that is right."""

    header: dict[str, Any]
    layout: dict[str, Any]
    body: bytes

    def write(self, path: Path, text: Callable[[str], str] = str) -> None:
        header = {**self.header, "sha256": "0" * 64} if "sha256" in self.header else self.header
        metadata = {"bowtienet": text(json.dumps(header))}
        head = json.dumps({"__metadata__": metadata, **self.layout}).encode()
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
    ("tree", "message"),
    [
        ({"Stranger": {"value": 1.0}}, "it names 'Stranger', which bowtienet does not know"),
        ({"os.system": "true"}, "it names 'os.system'"),
        ({"builtins.eval": ["1"]}, "it names 'builtins.eval'"),
        ({"Rows": {"inputs": 1, "targets": 2, "weights": 3}}, "it names 'Rows'"),
        ({"__class__": {}}, "it names '__class__'"),
        ({"GeneralizedInverseGaussian": {"order": 1.0, "scale": 2.0}}, r"the fields \['rate'\]"),
        ({"GeneralizedInverseGaussian": {**PRIOR, "more": 1}}, r"the fields \['more'\]"),
        ({"GeneralizedInverseGaussian": [1, 2, 3]}, "GeneralizedInverseGaussian lacks"),
        ({"PointMass": None}, r"PointMass lacks, or should not have, the fields \['value'\]"),
        ({"PointMass": {"value": {"eval": 1}}}, "it names 'eval'"),
        ({}, "an object has 0 keys"),
        ({"tuple": [], "dict": {}}, "an object has 2 keys"),
        ({"tuple": {}}, "it names 'tuple'"),
        ({"dict": []}, "it names 'dict'"),
        ({"Status": "well"}, "it names 'Status'"),
        ({"Status": ["converged"]}, "it names 'Status'"),
        ({"float": 1.0}, "it names 'float'"),
        ({"float": "nan"}, "a number is not readable"),
        ({"float": "00"}, "a number is not readable"),
        ({"array": 1}, "names the array 1, which is missing or used twice"),
        ({"array": -1}, "names the array -1"),
        ({"array": "0"}, "names the array '0'"),
        ({"array": False}, "names the array False"),
        ({"array": 0.0}, "names the array 0.0"),
        ({"array": [0]}, r"names the array \[0\]"),
        ([{"array": 0}, {"array": 0}], "names the array 0, which is missing or used twice"),
        ({"scalar": 0}, "its array 0 is no scalar"),
        (None, "1 of its arrays are not part of its content"),
    ],
)
def test_forged_content(tree: Any, message: str, path: Path) -> None:
    forged = forgery(path, np.arange(3.0))
    forged.header["content"] = tree
    forged.write(path)
    with pytest.raises(ValueError, match=message):
        load(path, KIND)
    assert refusal(path).startswith("is damaged or not a bowtienet file: ")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1" * 5000, "01", "'a'"])
def test_content_that_is_not_strict_json(number: str, path: Path) -> None:
    forged = forgery(path, 12345)
    forged.write(path, lambda text: text.replace("12345", number))
    assert "its header is not strict JSON" in refusal(path)


def test_repeated_keys(path: Path) -> None:
    forged = forgery(path, {"a": 1, "b": 2})
    forged.write(path, lambda text: text.replace('"b"', '"a"'))
    assert "its header is not strict JSON" in refusal(path)


@pytest.mark.parametrize("depth", [5000, 10**6])
def test_content_nested_too_deeply(depth: int, path: Path) -> None:
    nest = "[" * depth + "]" * depth
    forgery(path, 12345).write(path, lambda text: text.replace("12345", nest))
    assert "is damaged" in refusal(path)


def test_content_nested_nearly_too_deeply(path: Path) -> None:
    """JSON reads it; how many frames the rest takes depends on the version of Python."""
    forgery(path, 12345).write(path, lambda text: text.replace("12345", "[" * 900 + "]" * 900))
    with contextlib.suppress(ValueError):
        load(path, KIND)


KEYS = (
    *("array", "scalar", "tuple", "dict", "float", "Status", "PointMass", "value"),
    *("dtype", "shape", "data_offsets", "0", "1", "sha256", "schema", "kind"),
)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 5), st.floats(0, 1), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    part=st.sampled_from(["content", "schema", "version", "kind", "header", "layout", "array"]),
    value=JSON_VALUES,
)
def test_no_forgery_raises_anything_else(part: str, value: Any, path: Path) -> None:
    forged = forgery(path, np.arange(2.0))
    if part == "header":
        forged.header = value if isinstance(value, dict) else {**forged.header, "more": value}
    elif part == "layout":
        forged.layout = value if isinstance(value, dict) else {"0": value}
    elif part == "array":
        for key in ("dtype", "shape", "data_offsets"):
            forged.layout["0"][key] = value if not isinstance(value, dict) else value.get(key)
    else:
        forged.header[part] = value
    forged.write(path)
    try:
        load(path, KIND)
    except ValueError as error:
        assert str(error).startswith(f"{path} ")  # noqa: PT017 - it may also be read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2, "version": "9.1"}, r"newer bowtienet \(version '9.1'\): upgrade"),
        ({"schema": 2, "version": "9.1", "kind": 0, "content": 0}, "newer bowtienet"),
        ({"schema": 0, "version": "0.0.1"}, r"older bowtienet \(version '0.0.1', schema 0\)"),
        ({"schema": -(10**50)}, "older bowtienet"),
        ({"schema": "1"}, "names no schema or version"),
        ({"schema": True}, "names no schema or version"),
        ({"schema": 1.0}, "names no schema or version"),
        ({"version": None}, "names no schema or version"),
        ({"more": 1}, "other entries than it should"),
        ({"kind": "other"}, "holds a 'other', not a 'example'"),
        ({"kind": [KIND]}, "not a 'example'"),
    ],
)
def test_forged_headers(change: dict[str, Any], message: str, path: Path) -> None:
    forged = forgery(path)
    forged.header.update(change)
    forged.write(path)
    with pytest.raises(ValueError, match=message):
        load(path, KIND)
    refusal(path)


@pytest.mark.parametrize("name", ["sha256", "schema", "version", "kind", "content"])
def test_headers_that_lack_an_entry(name: str, path: Path) -> None:
    forged = forgery(path)
    del forged.header[name]
    forged.write(path)
    assert "its header" in refusal(path)


@pytest.mark.parametrize("digest", ["", "0", "F" * 64, "é" * 64, int("1" * 64), None, ["0"] * 64])
def test_digests_that_are_none(digest: Any, path: Path) -> None:
    forged = forgery(path)
    forged.header["sha256"] = "placeholder"
    forged.write(path, lambda text: text.replace(json.dumps("0" * 64), json.dumps(digest)))
    assert "it has no SHA-256 digest" in refusal(path)


def test_a_header_that_is_no_object(path: Path) -> None:
    forgery(path).write(path, lambda _: "[1]")
    assert "its header is not an object" in refusal(path)


F8 = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
PLACE = "the type, shape and place of its array 0 do not agree"


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({}, "it should have .* bytes but has"),
        ({"1": F8}, "its arrays are not numbered from 0"),
        ({"00": F8}, "its arrays are not numbered from 0"),
        ({"0": F8, "weights": F8}, "its arrays are not numbered from 0"),
        ({"0": F8, "1": F8}, "its arrays overlap or leave gaps"),
        ({"0": {**F8, "shape": [1], "data_offsets": [8, 16]}}, "overlap or leave gaps"),
        ({"0": {**F8, "shape": [1], "data_offsets": [0, 8]}}, "is too long"),
        ({"0": {**F8, "shape": [3], "data_offsets": [0, 24]}}, "is truncated"),
        ({"0": {**F8, "shape": [2**40], "data_offsets": [0, 2**43]}}, "is truncated"),
        ({"0": {**F8, "shape": [3]}}, PLACE),
        ({"0": {**F8, "shape": [-2]}}, PLACE),
        ({"0": {**F8, "shape": [-1, -2]}}, PLACE),
        ({"0": {**F8, "shape": [2.0]}}, PLACE),
        ({"0": {**F8, "shape": 2}}, PLACE),
        ({"0": {**F8, "shape": [True, 2]}}, PLACE),
        ({"0": {**F8, "dtype": "F32"}}, PLACE),
        ({"0": {**F8, "dtype": "object"}}, PLACE),
        ({"0": {**F8, "dtype": ["F64"]}}, PLACE),
        ({"0": {**F8, "data_offsets": [16, 0]}}, PLACE),
        ({"0": {**F8, "data_offsets": [-16, 0]}}, PLACE),
        ({"0": {**F8, "data_offsets": [0, 16, 16]}}, PLACE),
        ({"0": {**F8, "more": 1}}, PLACE),
        ({"0": {"dtype": "F64", "shape": [2]}}, PLACE),
        ({"0": None}, PLACE),
        ({"0": {**F8, "shape": [1] * 100 + [2]}}, "more or longer axes than NumPy allows"),
        (
            {"0": F8, "1": {"dtype": "F64", "shape": [0, 2**62], "data_offsets": [16, 16]}},
            "more or longer axes than NumPy allows",
        ),
        (
            {"0": F8, "1": {"dtype": "I8", "shape": [0, 2**70], "data_offsets": [16, 16]}},
            "more or longer axes than NumPy allows",
        ),
        ({"0": F8, "1": {**F8, "shape": [0], "data_offsets": [16, 16]}}, "1 of its arrays"),
    ],
)
def test_forged_layouts(layout: dict[str, Any], message: str, path: Path) -> None:
    forged = forgery(path, np.arange(2.0))
    forged.layout = layout
    forged.write(path)
    with pytest.raises(ValueError, match=message):
        load(path, KIND)
    refusal(path)


def test_a_huge_claim_reads_nothing(path: Path) -> None:
    """The length of the header is checked against the file before a byte of it is asked for."""
    for claim in (1000, 10**8, 10**8 + 1, 2**63, 2**64 - 1):
        path.write_bytes(claim.to_bytes(8, "little") + b"{}")
        assert "not a bowtienet file" in refusal(path)


def test_headers_are_read_up_to_a_size_only(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    length = int.from_bytes(saved.read_bytes()[:8], "little")
    monkeypatch.setattr(persistence.layout, "LARGEST_HEADER", length)
    assert_same(load(saved, KIND), CONTENT)
    monkeypatch.setattr(persistence.layout, "LARGEST_HEADER", length - 1)
    assert refusal(saved).startswith("is not a bowtienet file")


# Versions


def test_an_older_schema_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = forgery(path, {"rate": 2.0})
    forged.header["schema"] = -1
    forged.write(path)
    migrations: dict[int, Callable[[Any], Any]] = {
        -1: lambda tree: {"dict": {**tree["dict"], "order": 1.0}},
        0: lambda tree: {"tuple": [tree, "migrated"]},
    }
    monkeypatch.setattr(persistence.tree, "MIGRATIONS", migrations)
    assert_same(load(path, KIND), ({"rate": 2.0, "order": 1.0}, "migrated"))
    del migrations[0]
    assert "was written by an older bowtienet" in refusal(path)


def test_the_version_is_written(path: Path) -> None:
    header = forgery(path).header
    assert header["schema"] == persistence.SCHEMA
    assert header["version"] == persistence.file.version() != ""


def test_a_container_can_be_added(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    containers = (*persistence.CONTAINERS, Stranger)
    monkeypatch.setattr(persistence.tree, "CONTAINERS", containers)
    assert_same(through_file(path, Stranger(value=1.5)), Stranger(value=1.5))
    monkeypatch.undo()
    assert "it names 'Stranger'" in refusal(path)


def described() -> Iterator[str]:
    for container in persistence.CONTAINERS:
        yield f"{container.__name__}: {' '.join(field.name for field in fields(container))}"


def test_containers_are_those_of_the_schema() -> None:
    """Whoever changes a container raises SCHEMA and adds a migration, or old files are lost."""
    assert persistence.SCHEMA == 1
    assert list(described()) == [
        "Architecture: n_inputs hidden n_outputs",
        "BowTieModel: architecture prior gate_temperature connections removed",
        "ElboTerms: likelihood activations gates polya_gamma weights noise_variance"
        " global_shrinkage local_shrinkage",
        "Ensemble: members weights input_scaling target_scaling column_order propagation",
        "FitResult: model factors elbo_terms elbo_history n_sweeps status pruning statistics"
        " variance_ratio",
        "GaussianRows: mean covariance",
        "GeneralizedInverseGaussian: order scale rate",
        "GlobalFactors: layers shared_covariance",
        "HiddenStatistics: polya_gamma_moment gate_moment gate_cross half_gate_mean"
        " activation_square activation_entropy gate_entropy polya_gamma_ratio",
        "InverseGamma: concentration scale",
        "LayerFactors: weights noise_variance global_shrinkage local_shrinkage",
        "OutputStatistics: input_moment target_cross target_square",
        "PassSnapshot: position elbo_history",
        "PointMass: value",
        "Position: state elbo_terms n_passes n_visited visited_weight full_batch still turned moved"
        " status",
        "Prior: global_shrinkage local_shrinkage hidden_noise output_noise bias_variance",
        "Pruning: architecture inputs units keep_threshold false_sign_rate",
        "RemovedWeights: count held",
        "Scaling: center scale",
        "Statistics: hidden output count",
        "StochasticState: model factors statistics step ahead",
    ]
    assert {status.value for status in Status} == {
        "converged",
        "iteration limit",
        "stopped early (validation)",
        "non-finite",
        "decreased",
        "rows arriving",
        "interrupted",
    }
