"""Saving and loading without running code: arrays in safetensors, everything else as plain JSON.

A file is one safetensors file. Its metadata have the single key "bowtienet", whose text is

    {"sha256": ..., "schema": 1, "kind": ..., "version": ..., "content": tree}

and the tree is JSON. None, booleans, strings, whole numbers, finite floats and lists stand for
themselves; all else is an object with one key, which says what it is:

    {"dict": {...}}   {"tuple": [...]}   {"float": "inf"}   {"Status": "converged"}
    {"array": 3}   {"symmetric": 3}   {"scalar": 3}
    {"InverseGamma": {"concentration": ..., "scale": ...}}

Arrays are named by their number; of symmetric matrices the upper triangles are kept. The digest is
that of the whole file with zeros in its own place, so that no byte can change unnoticed; it finds
accidents, not forgers, who can compute it too. A forged file can hold wrong numbers, but nothing
besides the classes in `CONTAINERS` is ever built.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bowtienet.persistence import file
from bowtienet.persistence.file import FORMAT, FileError, replacing, version
from bowtienet.persistence.schema import check_fields, check_type
from bowtienet.persistence.tree import CONTAINERS, SCHEMA

__all__ = [
    "CONTAINERS",
    "FORMAT",
    "SCHEMA",
    "as_path",
    "check_fields",
    "check_type",
    "check_writable",
    "kind_of",
    "load",
    "replacing",
    "save",
    "size",
    "version",
]


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
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/example", "pair", (1.5, np.arange(3)))
    ...     load(f"{folder}/example", "pair")
    (1.5, array([0, 1, 2]))
    """
    file.write(check_writable(path), file.to_bytes(kind, content))


def size(kind: str, content: Any) -> int:
    """Bytes of the file that `save` would write."""
    return sum(map(len, file.to_bytes(kind, content)))


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The file that `save` would write; an error if it cannot be one. Nothing is written."""
    # Links are followed: the file they point to is replaced, not the link.
    target = Path(os.path.realpath(as_path(path)))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: add the name of a file.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file: choose another name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it first.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"the folder {target.parent} cannot be written to: choose another one, or change its "
            "permissions."
        )
    return target


def load(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a file that `save` wrote with the same `kind`, bit for bit.

    Nothing that the file names is run, whoever wrote it; a file that is damaged, foreign, of
    another kind or too new is refused with a ValueError that says which.
    """
    place = _readable(path)
    try:
        return file.read(place, kind)
    except FileError as error:
        raise ValueError(f"{place} {error}") from None


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """What a file holds; None if it is damaged, or none of ours."""
    return file.kind_of(_readable(path))


def as_path(path: Any) -> Path:
    """A path from what a user gives as one.

    A number is none: `open` would read, and then close, the file of that descriptor.
    """
    if not isinstance(path, (str, bytes, os.PathLike)) or isinstance(path, type):
        raise TypeError(
            f"path must be the name of a file, got {path!r:.60}: give a text or a pathlib.Path."
        )
    name = os.fsdecode(path)
    if not name or "\0" in name:
        raise ValueError(f"path must be the name of a file, got {name!r:.60}.")
    return Path(name)


def _readable(path: Any) -> Path:
    """A regular file that is there."""
    place = as_path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder: add the name of a file.")
    if not place.exists():
        raise FileNotFoundError(f"{place} does not exist: check its name.")
    if not place.is_file():
        raise ValueError(f"{place} is not a regular file: copy its content to one.")
    return place
