"""One file: written at once, and read only if its header and its digest agree with it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from bowtienet.persistence import layout, tree
from bowtienet.persistence.layout import FORMAT, FileError, damaged

_NO_DIGEST = b"0" * 64
_OPENING = re.compile(
    rb'.{8}\{"__metadata__":\{"%b":"\{\\"sha256\\":\\"[0-9a-f]{64}\\",\\"schema\\":\d+,'
    rb'\\"kind\\":\\"([^"\\]*)\\",' % FORMAT.encode(),
    re.DOTALL,
)
"""The first bytes of every file, from the length of its header to its kind."""
_LONGEST_OPENING = 1000  # bytes; without the word for the kind there are about 150


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A name beside the target for a new file, which gets the target's name when it is complete."""
    temporary = target.parent / f".{FORMAT}-{uuid.uuid4().hex}.tmp"
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(target)  # the user knows no other name
        raise
    finally:
        # It is still there after a success if both were names of one file already.
        temporary.unlink(missing_ok=True)


def write(target: Path, parts: tuple[bytes, ...]) -> None:
    """Write beside the target, then rename: at no time is there half a file under its name."""
    # Opened by name, unlike a file of `tempfile`, it gets the permissions of any new file.
    with replacing(target) as temporary, open(temporary, "xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def claimed_kind(path: str | os.PathLike[str]) -> str | None:
    """Kind that the first bytes of a file claim, whole or not; None if they are not ours."""
    with open(path, "rb") as file:
        opening = _OPENING.match(file.read(_LONGEST_OPENING))
    return None if opening is None else opening.group(1).decode(errors="replace")


def to_bytes(kind: str, content: Any) -> tuple[bytes, bytes]:
    """Header, with the digest in its place, and arrays."""
    arrays: list[np.ndarray] = []
    nodes = tree.encode(content, (), arrays)
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
    start = 8 + int.from_bytes(data[:8], "little")
    if start - 8 > layout.LARGEST_HEADER:
        raise ValueError(
            f"content has {start - 8} bytes besides its arrays, but a file can hold only "
            f"{layout.LARGEST_HEADER}: turn long lists of numbers into arrays."
        )
    digest = hashlib.sha256(data).hexdigest().encode()
    # The first 64 zeros are the digest's: nothing before it in the header is as long.
    return data[:start].replace(_NO_DIGEST, digest, 1), data[start:]


def read(path: str | os.PathLike[str], kind: str) -> Any:
    """Content of a regular file, every claim of which is checked before it is believed."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        head = file.read(layout.header_length(start, size))
        places, header = layout.parse_header(head)
        _check_header(header, kind)
        layout.check_layout(places, 8 + len(head), size)
        body = file.read()
    digest = header["sha256"]
    found = hashlib.sha256(start + head.replace(digest.encode(), _NO_DIGEST, 1))
    found.update(body)
    if found.hexdigest() != digest:
        raise FileError("was altered after it was saved, its digest differs: copy it again.")
    nodes = header["content"]
    for schema in range(header["schema"], tree.SCHEMA):
        nodes = tree.MIGRATIONS[schema](nodes)
    arrays = {int(name): layout.read_array(entry, body) for name, entry in places.items()}
    try:
        content = tree.decode(nodes, arrays)
    except RecursionError:
        raise damaged("it is nested too deeply") from None
    if arrays:
        raise damaged(f"{len(arrays)} of its arrays are not part of its content")
    return content


def version() -> str:
    """Version of the library that writes, for messages of the one that reads."""
    try:
        return importlib.metadata.version(FORMAT)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _check_header(header: dict[str, Any], kind: str) -> None:
    """Schema first: what a later one means by the rest is not known here."""
    schema, version = header.get("schema"), header.get("version")
    if type(schema) is not int or type(version) is not str:
        raise damaged("its header names no schema or version")
    if schema > tree.SCHEMA:
        raise FileError(f"was written by a newer {FORMAT} (version {version!r}): upgrade {FORMAT}.")
    if not all(older in tree.MIGRATIONS for older in range(schema, tree.SCHEMA)):
        raise FileError(
            f"was written by an older {FORMAT} (version {version!r}, schema {schema}), which this "
            "one cannot read any more: fit again, or load and save it with a release in between."
        )
    if set(header) != {"sha256", "schema", "kind", "version", "content"}:
        raise damaged("its header has other entries than it should")
    digest = header["sha256"]
    if type(digest) is not str or re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise damaged("it has no SHA-256 digest")
    if header["kind"] != kind:
        raise FileError(f"holds a {header['kind']!r}, not a {kind!r}: load it as what it is.")
