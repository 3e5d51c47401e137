"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """A temporary neighbour to write, which becomes `path` when the block ends well."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    neighbour = Path(name)
    try:
        yield neighbour
        neighbour.chmod(0o666 & ~_mask())  # as other new files; a temporary one is private
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
