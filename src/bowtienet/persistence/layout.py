"""Bytes of a file: where its header and its arrays lie, believed only where it is checked.

A safetensors file is the length of its header in eight bytes, the header in JSON, and the arrays.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import numpy as np

FORMAT = "bowtienet"
DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{kind.upper()}8": np.dtype(f"{kind}1") for kind in "iu"},
    **{f"{kind.upper()}{8 * n}": np.dtype(f"<{kind}{n}") for kind in "iuf" for n in (2, 4, 8)},
}
"""Names of safetensors for the dtypes that both it and NumPy have; files are little-endian."""
LARGEST_HEADER = 100_000_000  # bytes; readers of safetensors agree on it

FOREIGN = f"is not a {FORMAT} file: give one that {FORMAT} has saved."


class FileError(Exception):
    """What is wrong with a file and what to do: a sentence that lacks only the file's name."""


def damaged(reason: str) -> FileError:
    """What is said of a file that cannot have been saved as it is."""
    return FileError(f"is damaged or not a {FORMAT} file: {reason}; save or copy it again.")


def header_length(start: bytes, size: int) -> int:
    """Length of the JSON header from the first eight bytes of a file of `size` bytes."""
    if size < 8 or len(start) < 8:
        raise damaged(f"it has only {size} bytes")
    length = int.from_bytes(start, "little")
    if length > LARGEST_HEADER:
        raise FileError(FOREIGN)
    if 8 + length > size:
        raise FileError(
            f"is truncated or not a {FORMAT} file: it should have at least {8 + length} bytes but "
            f"has {size}; save or copy it again."
        )
    return length


def parse_header(head: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the arrays lie, and our own header."""
    layout = _strict_json(head)
    metadata = layout.pop("__metadata__", None) if isinstance(layout, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get(FORMAT), str):
        raise FileError(FOREIGN)
    header = _strict_json(metadata[FORMAT])
    if not isinstance(header, dict):
        raise damaged("its header is not an object")
    return layout, header


def check_layout(layout: dict[str, Any], start: int, size: int) -> None:
    """The arrays are numbered from 0 and fill the file from `start` to `size` without gaps."""
    if set(layout) != {str(i) for i in range(len(layout))}:
        raise damaged("its arrays are not numbered from 0")
    for name, entry in layout.items():
        if not _is_array_entry(entry):
            raise damaged(f"the type, shape and place of its array {name} do not agree")
    end = 0
    for begin, following in sorted(tuple(entry["data_offsets"]) for entry in layout.values()):
        if begin != end:
            raise damaged("its arrays overlap or leave gaps")
        end = following
    if size != start + end:
        fault = "truncated" if size < start + end else "too long"
        raise FileError(
            f"is {fault}: it should have {start + end} bytes but has {size}; copy it again."
        )


def read_array(entry: dict[str, Any], body: bytes) -> np.ndarray:
    """A writable array of its own memory in native byte order."""
    dtype = DTYPES[entry["dtype"]]
    try:
        view = np.ndarray(entry["shape"], dtype, buffer=body, offset=entry["data_offsets"][0])
    except (OverflowError, TypeError, ValueError):
        raise damaged("an array has more or longer axes than NumPy allows") from None
    return view.astype(dtype.newbyteorder("="))


def _strict_json(text: str | bytes) -> Any:
    """JSON without NaN, infinities and repeated keys."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        raise damaged("its header is not strict JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("repeated key")
    return found


def _is_array_entry(entry: Any) -> bool:
    """Whether `entry` is {"dtype": ..., "shape": [...], "data_offsets": [begin, end]} and sound."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return False
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        return False
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
        return False
    return offsets[1] - offsets[0] == math.prod(shape) * DTYPES[entry["dtype"]].itemsize


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and n >= 0 for n in values)
