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

from bowtienet.data.limits import check_memory
from bowtienet.persistence import schema, tree
from bowtienet.persistence.temporary import remove_abandoned, temporary_name

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


class FileError(Exception):
    """What is wrong with a file and what to do: a sentence that lacks only the file's name."""


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


def write(target: Path, parts: tuple[bytes, ...]) -> None:
    """Write beside the target, then rename: at no time is there half a file under its name."""
    # Opened by name, unlike a file of `tempfile`, it gets the permissions of any new file.
    with replacing(target) as temporary, open(temporary, "xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


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


def read(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a regular file."""
    header, data = _read_whole(path)
    if header["schema"] != tree.SCHEMA:
        raise FileError(
            f"was written by {FORMAT} {header['version']}, whose files have another schema: "
            "load it with that version, or fit and save again."
        )
    if header["kind"] != kind:
        raise FileError(f"holds a {header['kind']!r}, not a {kind!r}: load it as what it is.")
    try:
        content = tree.from_nodes(header["content"], safetensors.numpy.load(data))
        schema.check_content(content)
        return content
    except (*_UNREADABLE, safetensors.SafetensorError) as error:
        # The digest is right and the content is not: a forged file, or one of another version.
        reason = f"{type(error).__name__}: {error}"
        raise FileError(f"does not hold what {FORMAT} saves ({reason}): save it again.") from error


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """What a file holds; None if it is damaged, or none of ours."""
    try:
        return str(_read_whole(path)[0]["kind"])
    except FileError:
        return None


def version() -> str:
    """Version of the library that writes, for messages of the one that reads."""
    try:
        return importlib.metadata.version(FORMAT)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _read_whole(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Header and bytes of a file whose digest is right."""
    with open(path, "rb") as file:
        opening = file.read(8 + len(_OPENING))
        if opening[8:] != _OPENING:
            raise FileError(f"is not a {FORMAT} file: give one that {FORMAT} has saved.")
        n_header = _header_end(opening)
        if n_header > MOST_HEADER:
            raise FileError(f"has a header of {n_header:,} bytes, which no {FORMAT} file has.")
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
        raise FileError("is damaged, its digest differs: it was cut off or altered; copy it again.")
    return header, data


def _header_end(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")
