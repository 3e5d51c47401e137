"""Files in which a long fit keeps its state, and what tells whether it is the same fit.

A checkpoint is a file of `bowtienet.persistence` of the kind "checkpoint". The one before it stays
beside it as `<name>.previous`: whenever the process ends, one of the two is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np

from bowtienet import persistence
from bowtienet._arrays import Array, slices, to_numpy
from bowtienet._validation import non_negative

KIND = "checkpoint"
_PIECE = 2**24
"""Bytes that are copied at a time for a digest: rows may be a map of a file larger than memory."""


class Checkpoint:
    """The file in which a fit keeps its state, and the one before it.

    Parameters
    ----------
    path : str or path
        File to keep the state in; `<path>.previous` is the one before it. Links are followed.
    seconds : float
        Time between two files, so that writing costs little; with 0 one is always due.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float = 60.0) -> None:
        self.path = Path(path)
        self.seconds = non_negative(seconds, "seconds")
        self._last = time.monotonic()
        self._known: dict[Path, tuple[int, ...]] = {}
        """Signatures of files that were found complete: those are not read again."""

    @property
    def previous(self) -> Path:
        """The file before the last one, beside the file that a link points to."""
        return Path(f"{os.path.realpath(self.path)}.previous")

    def prepare(self) -> None:
        """Refuse a path that cannot be written, or whose file is not a checkpoint, before a fit."""
        target, _ = self._targets()
        try:
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        except OSError as error:
            raise _failure(self.path, error) from error

    def is_due(self) -> bool:
        """Whether `seconds` have passed since the last file, or since the beginning."""
        return time.monotonic() - self._last >= self.seconds

    def write(self, content: dict[str, Any]) -> None:
        """Keep `content`; the complete checkpoint that was there becomes the previous one.

        An OSError leaves the last checkpoint where it was.
        """
        target, previous = self._targets()
        try:
            # A torn file must not take the place of a complete one.
            if self._is_complete(target):
                _duplicate(target, previous)
                self._note(previous)
            persistence.save(target, KIND, content)
            self._note(target)
        except OSError as error:
            raise _failure(self.path, error) from error
        finally:
            self._last = time.monotonic()

    def read(self) -> dict[str, Any]:
        """What was kept last; a file that is missing, torn, altered or foreign is refused.

        Nothing is changed on disk, also where the message names the previous one as a way out.
        """
        target = Path(os.path.realpath(self.path))
        signature = _signature(target)
        try:
            content = persistence.load(self.path, KIND)
            if not isinstance(content, dict):
                raise ValueError(f"{self.path} does not hold the state of a fit: call fit first.")
        except FileNotFoundError:
            message = f"{self.path} does not exist: call fit first.{self._way_out()}"
            raise FileNotFoundError(message) from None
        except ValueError as error:
            raise ValueError(f"{error}{self._way_out()}") from None
        if signature is not None:
            self._known[target] = signature
        return content

    def _targets(self) -> tuple[Path, Path]:
        """The two files to write; neither is a folder or anything but a checkpoint."""
        target = persistence.check_writable(self.path)
        previous = persistence.check_writable(self.previous)
        for path in (target, previous):
            self._is_complete(path)
        return target, previous

    def _is_complete(self, path: Path) -> bool:
        """Whether a complete checkpoint is there: not a torn one, and an error for other files."""
        signature = _signature(path)
        if signature is None or signature == self._known.get(path):
            return signature is not None
        try:
            persistence.load(path, KIND)
        except ValueError:
            # An empty file has nothing to lose; of another torn one the first bytes must be ours.
            if os.path.getsize(path) > 0 and persistence.claimed_kind(path) != KIND:
                raise ValueError(
                    f"{path} is not a checkpoint and is not overwritten: choose another name, or "
                    "move it away."
                ) from None
            return False
        self._known[path] = signature
        return True

    def _note(self, path: Path) -> None:
        signature = _signature(path)
        if signature is not None:
            self._known[path] = signature

    def _way_out(self) -> str:
        """A sentence on the previous checkpoint if it can be read."""
        try:
            persistence.load(self.previous, KIND)
        except (OSError, ValueError):
            return ""
        return (
            f" The checkpoint before it is complete: copy {self.previous} to {self.path} to go on "
            "from there."
        )


def identity_difference(saved: dict[str, Any], now: dict[str, Any]) -> str | None:
    """The first setting or fact in which two fits differ, in words; None if they agree.

    Lists equal tuples, NumPy's numbers equal Python's, and NaN equals NaN.

    Examples
    --------
    >>> identity_difference({"n_rows": 50, "sizes": (50,)}, {"n_rows": 50, "sizes": [20]})
    'sizes was (50,) and is (20,) now'
    """
    for name in (*now, *(name for name in saved if name not in now)):
        if name not in saved:
            return f"{name} was not set and is {_shown(now[name])} now"
        if name not in now:
            return f"{name} was {_shown(saved[name])} and is not set now"
        if not _same(_plain(saved[name]), _plain(now[name])):
            return f"{name} was {_shown(saved[name])} and is {_shown(now[name])} now"
    return None


def digest(arrays: Iterable[Array | None]) -> str:
    """SHA-256 of the types, shapes and numbers of arrays: the same only for the same rows.

    None may stand for an array that is not there. Byte order and layout in memory do not count.
    """
    found = hashlib.sha256()
    for item in arrays:
        if item is None:
            found.update(b"None;")
            continue
        array = to_numpy(item)
        if array.dtype.kind not in "biufcmMSU":
            raise TypeError(
                f"an array of dtype {array.dtype} has no digest: convert it to numbers."
            )
        dtype = array.dtype.newbyteorder("<")
        found.update(f"{dtype.str} {array.shape};".encode())
        rows = np.atleast_1d(array)
        size = max(1, _PIECE * len(rows) // max(1, rows.nbytes))
        for piece in slices(len(rows), size):
            found.update(rows[piece].astype(dtype, copy=False).tobytes())
    return found.hexdigest()


def _duplicate(source: Path, target: Path) -> None:
    """`target` is the file `source` too, from one moment to the next, and complete before that."""
    with persistence.replacing(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:  # not every file system has second names for a file
            with open(source, "rb") as old, open(temporary, "xb") as new:
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())


def _signature(path: Path) -> tuple[int, ...] | None:
    """What changes whenever a file is written; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _failure(path: Path, error: OSError) -> OSError:
    """The same error as a sentence."""
    failure = type(error)(
        f"the checkpoint {path} cannot be written ({error.strerror or error}): make room or choose "
        "another folder; the checkpoint before it is kept."
    )
    failure.errno = error.errno
    return failure


def _plain(value: Any) -> Any:
    """Value of Python's own types, with tuples for all that has parts."""
    if array_api_compat.is_array_api_obj(value):
        value = to_numpy(value).tolist()
    if is_dataclass(value):
        parts = (_plain(getattr(value, field.name)) for field in fields(value))
        return (type(value).__name__, *parts)
    if isinstance(value, dict):
        return tuple((key, _plain(value[key])) for key in sorted(value))
    return tuple(_plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second or (first != first and second != second))


def _shown(value: Any) -> str:
    """A value as it is compared, where that is how it would be written."""
    return repr(value) if is_dataclass(value) or isinstance(value, dict) else repr(_plain(value))
