"""Fitted estimators in one file that loads without running code.

A file is one safetensors file. Its metadata have the single key "bowtienet", whose text is JSON
with the schema, the kind, the version, the digest, and the content as a tree: plain Python stays,
a dataclass is ``{"Name": {field: ...}}`` and an array ``{"array": number}``. Only the dataclasses
that the reader names are ever built, and only with fields of the types that they state.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from inspect import isabstract
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import IO, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

SCHEMA = 1
"""Raised when the tree or a class in it changes after a release."""
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError, SafetensorError)


def save(path: str | os.PathLike[str], kind: str, content: Any) -> None:
    """Write content to one file, completely or not at all."""
    arrays: list[np.ndarray] = []
    tree = _to_tree(content, arrays)
    tensors = {str(index): np.asarray(array, order="C") for index, array in enumerate(arrays)}
    about = {"schema": SCHEMA, "kind": kind, "version": version("bowtienet"), "content": tree}
    about["digest"] = _digest(about, tensors)
    data = safetensors.numpy.save(tensors, metadata={"bowtienet": json.dumps(about)})
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], **text: Any) -> Iterator[IO[Any]]:
    """A new file to write, which becomes `path` when it is complete; else nothing changes.

    It takes bytes, or text if `encoding` and `newline` of `open` are given.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "x" if text else "xb", **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def containers(roots: Sequence[type]) -> dict[str, type]:
    """Dataclasses that the roots may hold by the types of their fields, and the roots.

    For an abstract type these are its concrete subclasses in this library.
    """
    found: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        kind: Any = waiting.pop()
        waiting += get_args(kind)
        if not isinstance(kind, type) or kind.__name__ in found:
            continue
        if isabstract(kind):
            subclasses: list[type] = kind.__subclasses__()
            waiting += [each for each in subclasses if each.__module__.startswith("bowtienet.")]
        elif is_dataclass(kind):
            found[kind.__name__] = kind
            waiting += _types(kind).values()
    return found


def load(path: str | os.PathLike[str], roots: Sequence[type]) -> tuple[str, Any]:
    """Kind and content of a file; a ValueError with one sentence for any other file.

    No other class is ever built than the dataclasses `roots` and what their fields may hold.
    """
    about = read_header(path)
    if about["schema"] > SCHEMA:
        raise ValueError(
            f"{path} was written by bowtienet {about.get('version')}, which is newer than this "
            "one: load it with that version, or fit and save again."
        )
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about.pop("digest") != _digest(about, tensors):
            raise ValueError("its digest is that of another content")
        return str(about["kind"]), _from_tree(about["content"], tensors, containers(roots))
    except _UNREADABLE as error:
        raise ValueError(f"{path} is damaged: {error}. Fit and save again.") from error


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says about itself: schema, kind, version, digest and the tree."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {})["bowtienet"])
        if not isinstance(about["schema"], int):
            raise TypeError("schema")
        return about
    except _UNREADABLE as error:
        raise ValueError(
            f"{path} is no bowtienet model file, or it is damaged: give a file that `save` wrote."
        ) from error


def _to_tree(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, str):
        return str(value)
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (tuple, list)):
        tag = "tuple" if isinstance(value, tuple) else "list"
        return {tag: [_to_tree(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": {str(key): _to_tree(item, arrays) for key, item in value.items()}}
    if is_dataclass(value):
        parts = {f.name: _to_tree(getattr(value, f.name), arrays) for f in fields(value)}
        return {type(value).__name__: parts}
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        if not all(isinstance(item, (str, type(None))) for item in array.ravel()):
            raise TypeError(f"cannot save values of type {type(value).__name__}.")
        tag = "texts" if array.dtype.kind == "U" else "objects"
        return {tag: [array.shape, [None if v is None else str(v) for v in array.ravel()]]}
    if array.dtype.kind not in "fiub":
        raise TypeError(f"cannot save values of type {type(value).__name__}.")
    arrays.append(array.astype(array.dtype.newbyteorder("="), copy=False))
    return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}


def _from_tree(node: Any, tensors: Mapping[str, np.ndarray], known: Mapping[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    [(tag, value)] = node.items()
    if tag in ("tuple", "list"):
        items = [_from_tree(item, tensors, known) for item in value]
        return tuple(items) if tag == "tuple" else items
    if tag == "dict":
        return {key: _from_tree(item, tensors, known) for key, item in value.items()}
    if tag == "float":
        return float(value)
    if tag in ("texts", "objects"):
        shape, texts = value
        return np.array(texts, dtype=str if tag == "texts" else object).reshape(shape)
    if tag == "array":
        return tensors[str(value)]
    if tag == "scalar":
        return tensors[str(value)][()]
    parts = {name: _from_tree(item, tensors, known) for name, item in value.items()}
    types = _types(known[tag])
    for name, part in parts.items():
        if not _is_of(part, types[name]):
            raise TypeError(f"{name} of {tag} is of another type")
    return known[tag](**parts)


@cache
def _types(container: type) -> dict[str, Any]:
    return get_type_hints(container)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of the type of a field; Any stands for numbers and arrays of them."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(value, each) for each in inside)
    if origin is tuple and isinstance(value, tuple):
        each = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        return len(each) == len(value) and all(map(_is_of, value, each))
    if origin is dict and isinstance(value, dict):
        return all(_is_of(each, inside[1]) for each in value.values())
    if origin is np.ndarray:
        same = np.dtype(get_args(inside[1])[0]).kind
        return isinstance(value, np.ndarray) and value.dtype.kind == same
    if kind is Any:
        return isinstance(value, (np.ndarray, Real)) and np.asarray(value).dtype.kind in "fiub"
    if isinstance(value, (bool, np.bool_)) or kind is bool:
        return kind is bool and isinstance(value, (bool, np.bool_))
    wide = {int: Integral, float: Real}.get(kind, kind)
    return isinstance(wide, type) and isinstance(value, wide)


def _digest(about: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> str:
    """The hash of the header without its digest and of the arrays."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
