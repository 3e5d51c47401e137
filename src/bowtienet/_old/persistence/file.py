"""One file: written at once, and read only if its digest agrees with it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from bowtienet._old.data.limits import check_memory
from bowtienet._old.persistence import schema, tree
from bowtienet._old.persistence.temporary import remove_abandoned, temporary_name

FORMAT = "bowtienet"
_OPENING = f'{{"__metadata__":{{"{FORMAT}":'.encode()
"""What every file begins with, after the eight bytes of the length of its header."""
MOST_HEADER = 100_000_000
"""Bytes of a header, as for safetensors: numbers are not in it, but names and categories are."""
_OBJECTS = 10
"""Bytes of Python's objects for a byte of JSON, or more of nested empty lists."""
_NO_DIGEST = b"0" * 64
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What comes of reading a header, or its tree, that is none."""


def save(path: str | os.PathLike[str], kind: str, content: Any) -> None:
    """Write `content` to one file, completely or not at all.

    It may hold dicts, lists, tuples, texts, numbers, None, arrays, statuses and `CONTAINERS`,
    nested in any way; arrays of other libraries become NumPy arrays. `kind` says what it is, and
    `load` asks for the same word.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/example", "pair", (1.5, np.arange(3)))
    ...     load(f"{folder}/example", "pair")
    (1.5, array([0, 1, 2]))
    """
    target, parts = check_writable(path), to_bytes(kind, content)
    # Opened by name, unlike a file of `tempfile`, it gets the permissions of any new file.
    with replacing(target) as temporary, open(temporary, "xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def load(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a file that `save` wrote with the same `kind`, bit for bit.

    Nothing that the file names is run, whoever wrote it; a file that is damaged, foreign, of
    another kind or too new is refused with a ValueError that says which.
    """
    header, data = _read_whole(path)
    if header["schema"] != tree.SCHEMA:
        raise ValueError(
            f"{path} was written by {FORMAT} {header['version']}, whose files have another schema: "
            "load it with that version, or fit and save again."
        )
    if header["kind"] != kind:
        raise ValueError(
            f"{path} holds a {header['kind']!r}, not a {kind!r}: load it as what it is."
        )
    try:
        content = tree.from_nodes(header["content"], safetensors.numpy.load(data))
        schema.check_content(content)
        return content
    except (*_UNREADABLE, safetensors.SafetensorError) as error:
        # The digest is right and the content is not: a forged file, or one of another version.
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{path} does not hold what {FORMAT} saves ({reason}): save it again."
        ) from error


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """What a file holds; None if it is damaged, or none of ours."""
    try:
        return str(_read_whole(path)[0]["kind"])
    except ValueError:
        return None


def size(kind: str, content: Any) -> int:
    """Bytes of the file that `save` would write."""
    return sum(map(len, to_bytes(kind, content)))


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The file that `save` would write; an error if it cannot be one. Nothing is written."""
    # Links are followed: the file they point to is replaced, not the link.
    target = Path(os.path.realpath(_place(path)))
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


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A name beside the target for a new file, which gets the target's name when it is complete.

    Incomplete files of processes that were killed are removed from the folder.
    """
    remove_abandoned(target.parent)
    temporary = target.parent / temporary_name()
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(target)  # the user knows no other name
        raise
    finally:
        with suppress(OSError):  # the folder may be gone as well
            temporary.unlink(missing_ok=True)


def to_bytes(kind: str, content: Any) -> tuple[bytes, bytes]:
    """Header, with the digest in its place, and arrays."""
    arrays: list[np.ndarray] = []
    nodes = tree.to_nodes(content, (), arrays)
    header = {
        "sha256": _NO_DIGEST.decode(),
        "schema": tree.SCHEMA,
        "kind": kind,
        "version": version(),
        "content": nodes,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    # One key only: safetensors writes several in an order that differs from run to run.
    data = safetensors.numpy.save({str(i): a for i, a in enumerate(arrays)}, {FORMAT: text})
    start = _header_end(data)
    digest = hashlib.sha256(data).hexdigest().encode()
    # The first 64 zeros are the digest's: nothing before it in the header is as long.
    return data[:start].replace(_NO_DIGEST, digest, 1), data[start:]


def version() -> str:
    """Version of the library that writes, for messages of the one that reads."""
    try:
        return importlib.metadata.version(FORMAT)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _place(path: Any) -> str:
    """The name of a file. A number is none: `open` would read, and close, that open file."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(
            f"path must be the name of a file, got {path!r:.60}: give a text or a pathlib.Path."
        ) from None


def _read_whole(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Header and bytes of a file whose digest is right."""
    path = _place(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist: check its name.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: add the name of a file.")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file: copy its content to one.")
    with open(path, "rb") as file:
        opening = file.read(8 + len(_OPENING))
        if opening[8:] != _OPENING:
            raise ValueError(f"{path} is not a {FORMAT} file: give one that {FORMAT} has saved.")
        n_header = _header_end(opening)
        if n_header > MOST_HEADER:
            raise ValueError(
                f"{path} has a header of {n_header:,} bytes, which no {FORMAT} file has."
            )
        # The bytes, the arrays that they become, and the objects of the header.
        n_bytes = 2 * os.fstat(file.fileno()).st_size + _OBJECTS * n_header
        check_memory(n_bytes, f"the model in {path}", "load it where there is more")
        data = opening + file.read()
    head = data[: _header_end(data)]
    try:
        header = json.loads(json.loads(head[8:])["__metadata__"][FORMAT])
        digest = header["sha256"]
        found = hashlib.sha256(head.replace(digest.encode(), _NO_DIGEST, 1))
        found.update(memoryview(data)[len(head) :])
        is_whole = found.hexdigest() == digest and {"schema", "version", "kind"} <= set(header)
    except _UNREADABLE:
        is_whole = False
    if not is_whole:
        raise ValueError(
            f"{path} is damaged, its digest differs: it was cut off or altered; copy it again."
        )
    return header, data


def _header_end(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")
