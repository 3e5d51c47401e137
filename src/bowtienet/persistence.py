"""Saving and loading without running code: arrays in safetensors, everything else as plain JSON.

A file is one safetensors file. Its metadata have the single key "bowtienet", whose text is

    {"sha256": ..., "schema": 1, "kind": ..., "version": ..., "content": tree}

and the tree is strict JSON. None, booleans, strings, whole numbers, finite floats and lists stand
for themselves; all else is an object with one key, which says what it is:

    {"dict": {...}}   {"tuple": [...]}   {"float": "7ff0000000000000"}   {"Status": "converged"}
    {"array": 3}   {"scalar": 3}   {"InverseGamma": {"concentration": ..., "scale": ...}}

Arrays are named by their number. The digest is that of the whole file with zeros in its own place,
so that no byte can change unnoticed; it finds accidents, not forgers, who can compute it too. A
forged file can hold wrong numbers, but nothing besides the classes named here is ever built.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import re
import stat
import struct
import uuid
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import array_api_compat
import numpy as np
import safetensors.numpy

from bowtienet._arrays import to_numpy
from bowtienet.data.scaling import Scaling
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import FitResult
from bowtienet.inference.elbo import ElboTerms
from bowtienet.inference.pruning import Pruning
from bowtienet.model.architecture import Architecture
from bowtienet.model.priors import BowTieModel, Prior, RemovedWeights
from bowtienet.posterior.factors import GlobalFactors, LayerFactors
from bowtienet.prediction.ensemble import Ensemble

FORMAT = "bowtienet"
SCHEMA = 1
"""Raised, with a migration, when the tree or a class in it changes after the first release."""
CONTAINERS: tuple[type, ...] = (
    Architecture,
    BowTieModel,
    ElboTerms,
    Ensemble,
    FitResult,
    GaussianRows,
    GeneralizedInverseGaussian,
    GlobalFactors,
    InverseGamma,
    LayerFactors,
    PointMass,
    Prior,
    Pruning,
    RemovedWeights,
    Scaling,
)
"""The dataclasses that a file may hold, by their names; no other class is ever built."""

_MIGRATIONS: dict[int, Callable[[Any], Any]] = {}
"""From the tree of a schema to that of the next one, without trust in what is found there."""
_DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{kind.upper()}8": np.dtype(f"{kind}1") for kind in "iu"},
    **{f"{kind.upper()}{8 * n}": np.dtype(f"<{kind}{n}") for kind in "iuf" for n in (2, 4, 8)},
}
"""Names of safetensors for the dtypes that both it and NumPy have; files are little-endian."""
_LARGEST_HEADER = 100_000_000  # bytes; readers of safetensors agree on it
_DEEPEST = 100  # levels of nesting: more than any model has, far below Python's own limit
_LONGEST_WHOLE_NUMBER = 2048
"""Bits, 617 digits: Python's own limit for text can be set as low as 640 digits."""
_NO_DIGEST = b"0" * 64
_FOREIGN = f"is not a {FORMAT} file: give one that {FORMAT} has saved."


class _FileError(Exception):
    """What is wrong with a file and what to do: a sentence that lacks only the file's name."""


def save(path: str | os.PathLike[str], kind: str, content: Any) -> None:
    """Write `content` to one file, completely or not at all.

    Parameters
    ----------
    path : str or path
        File to write; one that exists is replaced only when the new one is complete.
    kind : str
        What the content is; `load` asks for the same word.
    content : dict, list, tuple, str, number, bool, None, array, Status or a class of `CONTAINERS`
        Nested in any way. Arrays of other libraries become NumPy arrays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/example", "pair", (1.5, np.arange(3)))
    ...     load(f"{folder}/example", "pair")
    (1.5, array([0, 1, 2]))
    """
    if not isinstance(kind, str):
        raise TypeError(f"kind must be a string, got {kind!r}.")
    # Links are followed: the file they point to is replaced, not the link.
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: add the name of a file.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file: choose another name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it first.")
    _write(target, _to_bytes(kind, content))


def load(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a file that `save` wrote with the same `kind`, bit for bit.

    Nothing that the file names is run, whoever wrote it; a file that is damaged, foreign, of
    another kind or too new is refused with a ValueError that says which.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: check its name.") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder: add the name of a file.")
    try:
        if not stat.S_ISREG(mode):
            raise _FileError("is not a regular file: copy its content to one.")
        return _read(path, kind)
    except _FileError as error:
        raise ValueError(f"{path} {error}") from None


def _write(target: Path, parts: tuple[bytes, ...]) -> None:
    """Write beside the target, then rename: at no time is there half a file under its name."""
    # Opened by name, unlike a file of `tempfile`, it gets the permissions of any new file.
    temporary = target.parent / f".{FORMAT}-{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _to_bytes(kind: str, content: Any) -> tuple[bytes, bytes]:
    """Header, with the digest in its place, and arrays."""
    arrays: list[np.ndarray] = []
    tree = _encode(content, (), arrays)
    header = {
        "sha256": _NO_DIGEST.decode(),
        "schema": SCHEMA,
        "kind": kind,
        "version": _version(),
        "content": tree,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    # One key only: safetensors writes several in an order that differs from run to run.
    data = safetensors.numpy.save({str(i): a for i, a in enumerate(arrays)}, {FORMAT: text})
    start = 8 + int.from_bytes(data[:8], "little")
    if start - 8 > _LARGEST_HEADER:
        raise ValueError(
            f"content has {start - 8} bytes besides its arrays, but a file can hold only "
            f"{_LARGEST_HEADER}: turn long lists of numbers into arrays."
        )
    digest = hashlib.sha256(data).hexdigest().encode()
    # The first 64 zeros are the digest's: nothing before it in the header is as long.
    return data[:start].replace(_NO_DIGEST, digest, 1), data[start:]


def _version() -> str:
    try:
        return importlib.metadata.version(FORMAT)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _encode(value: Any, place: tuple[str, ...], arrays: list[np.ndarray]) -> Any:
    """Tree of `value`, which stands at `place`; its arrays are added to `arrays`.

    Types are compared, not instances: a subclass would come back as something else.
    """
    if len(place) > _DEEPEST:
        _refuse(place, f"lies deeper than {_DEEPEST} levels, or holds itself")
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        if value.bit_length() > _LONGEST_WHOLE_NUMBER:
            _refuse(place, f"is a whole number of more than {_LONGEST_WHOLE_NUMBER} bits")
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if type(value) is Status:
        return {"Status": value.value}
    if type(value) in (list, tuple):
        items = [_encode(v, (*place, f"[{i}]"), arrays) for i, v in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if type(value) is dict:
        return {"dict": {k: _encode(v, (*place, _key(k, place)), arrays) for k, v in value.items()}}
    if type(value) in CONTAINERS:
        names = [field.name for field in fields(value)]
        parts = {n: _encode(getattr(value, n), (*place, f".{n}"), arrays) for n in names}
        return {type(value).__name__: parts}
    arrays.append(_plain_array(value, place))
    return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}


def _key(key: Any, place: tuple[str, ...]) -> str:
    if type(key) is not str:
        _refuse(place, f"is a dict with the key {key!r}; keys must be strings")
    return f"[{key!r}]"


def _plain_array(value: Any, place: tuple[str, ...]) -> np.ndarray:
    """`value` as an array in C order with a native dtype that a file can hold."""
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        _refuse(place, f"is a {type(value).__name__}; convert it to a plain array")
    if not array_api_compat.is_array_api_obj(value) and not isinstance(value, np.generic):
        kind = type(value).__qualname__
        _refuse(place, f"is a {kind}; convert it to lists, dicts, strings, numbers or arrays")
    try:
        array = to_numpy(value)
    except (TypeError, ValueError, RuntimeError) as error:
        _refuse(place, f"cannot be converted to a NumPy array ({error})")
    if array.dtype.name not in {dtype.name for dtype in _DTYPES.values()}:
        _refuse(place, f"has dtype {array.dtype}; convert it to real numbers, or text to lists")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _refuse(place: tuple[str, ...], reason: str) -> NoReturn:
    # The end of a deep place says nothing: it repeats the loop.
    name = "content" + "".join(place[:10]) + ("..." if len(place) > 10 else "")
    raise TypeError(f"{name} cannot be saved: it {reason}.")


def _read(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a regular file, every claim of which is checked before it is believed."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        head = file.read(_header_length(start, size))
        layout, header = _parse_header(head)
        _check_header(header, kind)
        _check_layout(layout, 8 + len(head), size)
        body = file.read()
    digest = header["sha256"]
    found = hashlib.sha256(start + head.replace(digest.encode(), _NO_DIGEST, 1))
    found.update(body)
    if found.hexdigest() != digest:
        raise _FileError("was altered after it was saved, its digest differs: copy it again.")
    tree = header["content"]
    for schema in range(header["schema"], SCHEMA):
        tree = _MIGRATIONS[schema](tree)
    arrays = {int(name): _array(entry, body) for name, entry in layout.items()}
    try:
        content = _decode(tree, arrays)
    except RecursionError:
        raise _damaged("it is nested too deeply") from None
    if arrays:
        raise _damaged(f"{len(arrays)} of its arrays are not part of its content")
    return content


def _damaged(reason: str) -> _FileError:
    return _FileError(f"is damaged or not a {FORMAT} file: {reason}; save or copy it again.")


def _header_length(start: bytes, size: int) -> int:
    """Length of the JSON header from the first eight bytes of a file of `size` bytes."""
    if size < 8 or len(start) < 8:
        raise _damaged(f"it has only {size} bytes")
    length = int.from_bytes(start, "little")
    if length > _LARGEST_HEADER:
        raise _FileError(_FOREIGN)
    if 8 + length > size:
        raise _FileError(
            f"is truncated or not a {FORMAT} file: it should have at least {8 + length} bytes but "
            f"has {size}; save or copy it again."
        )
    return length


def _parse_header(head: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the arrays lie, and our own header."""
    layout = _strict_json(head)
    metadata = layout.pop("__metadata__", None) if isinstance(layout, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get(FORMAT), str):
        raise _FileError(_FOREIGN)
    header = _strict_json(metadata[FORMAT])
    if not isinstance(header, dict):
        raise _damaged("its header is not an object")
    return layout, header


def _strict_json(text: str | bytes) -> Any:
    """JSON without NaN, infinities and repeated keys."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        raise _damaged("its header is not strict JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("repeated key")
    return found


def _check_header(header: dict[str, Any], kind: str) -> None:
    """Schema first: what a later one means by the rest is not known here."""
    schema, version = header.get("schema"), header.get("version")
    if type(schema) is not int or type(version) is not str:
        raise _damaged("its header names no schema or version")
    if schema > SCHEMA:
        raise _FileError(
            f"was written by a newer {FORMAT} (version {version!r}): upgrade {FORMAT}."
        )
    if not all(older in _MIGRATIONS for older in range(schema, SCHEMA)):
        raise _FileError(
            f"was written by an older {FORMAT} (version {version!r}, schema {schema}), which this "
            "one cannot read any more: fit again, or load and save it with a release in between."
        )
    if set(header) != {"sha256", "schema", "kind", "version", "content"}:
        raise _damaged("its header has other entries than it should")
    digest = header["sha256"]
    if type(digest) is not str or re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise _damaged("it has no SHA-256 digest")
    if header["kind"] != kind:
        raise _FileError(f"holds a {header['kind']!r}, not a {kind!r}: load it as what it is.")


def _check_layout(layout: dict[str, Any], start: int, size: int) -> None:
    """The arrays are numbered from 0 and fill the file from `start` to `size` without gaps."""
    if set(layout) != {str(i) for i in range(len(layout))}:
        raise _damaged("its arrays are not numbered from 0")
    for name, entry in layout.items():
        if not _is_array_entry(entry):
            raise _damaged(f"the type, shape and place of its array {name} do not agree")
    end = 0
    for begin, following in sorted(tuple(entry["data_offsets"]) for entry in layout.values()):
        if begin != end:
            raise _damaged("its arrays overlap or leave gaps")
        end = following
    if size != start + end:
        fault = "truncated" if size < start + end else "too long"
        raise _FileError(
            f"is {fault}: it should have {start + end} bytes but has {size}; copy it again."
        )


def _is_array_entry(entry: Any) -> bool:
    """Whether `entry` is {"dtype": ..., "shape": [...], "data_offsets": [begin, end]} and sound."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return False
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        return False
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
        return False
    return offsets[1] - offsets[0] == math.prod(shape) * _DTYPES[entry["dtype"]].itemsize


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and n >= 0 for n in values)


def _array(entry: dict[str, Any], body: bytes) -> np.ndarray:
    """A writable array of its own memory in native byte order."""
    dtype = _DTYPES[entry["dtype"]]
    try:
        view = np.ndarray(entry["shape"], dtype, buffer=body, offset=entry["data_offsets"][0])
    except (OverflowError, TypeError, ValueError):
        raise _damaged("an array has more or longer axes than NumPy allows") from None
    return view.astype(dtype.newbyteorder("="))


def _decode(node: Any, arrays: dict[int, np.ndarray]) -> Any:
    """Content of a tree; every array is taken out of `arrays` once."""
    if isinstance(node, list):
        return [_decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise _damaged(f"an object has {len(node)} keys in place of 1")
    [(tag, value)] = node.items()
    if tag == "dict" and isinstance(value, dict):
        return {key: _decode(item, arrays) for key, item in value.items()}
    if tag == "tuple" and isinstance(value, list):
        return tuple(_decode(item, arrays) for item in value)
    if tag == "float" and isinstance(value, str):
        return _float(value)
    if tag == "Status" and value in list(Status):
        return Status(value)
    if tag in ("array", "scalar"):
        return _take_array(tag, value, arrays)
    for container in CONTAINERS:
        if tag == container.__name__:
            return _build(container, value, arrays)
    raise _damaged(f"it names {tag!r}, which {FORMAT} does not know")


def _float(text: str) -> float:
    try:
        return float(struct.unpack(">d", bytes.fromhex(text))[0])
    except (ValueError, struct.error):
        raise _damaged("a number is not readable") from None


def _take_array(tag: str, index: Any, arrays: dict[int, np.ndarray]) -> Any:
    if type(index) is not int or index not in arrays:
        raise _damaged(f"its content names the array {index!r}, which is missing or used twice")
    array = arrays.pop(index)
    if tag == "array":
        return array
    if array.ndim > 0:
        raise _damaged(f"its array {index} is no scalar")
    return array[()]


def _build(container: type, parts: Any, arrays: dict[int, np.ndarray]) -> Any:
    """A dataclass from exactly its fields."""
    names = {field.name for field in fields(container)}
    if not isinstance(parts, dict) or set(parts) != names:
        wrong = sorted(names ^ set(parts)) if isinstance(parts, dict) else sorted(names)
        raise _damaged(f"its {container.__name__} lacks, or should not have, the fields {wrong}")
    return container(**{name: _decode(part, arrays) for name, part in parts.items()})
