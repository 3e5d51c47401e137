"""Parquet and Arrow files: found by their names and opened as pyarrow datasets.

pyarrow (``pip install 'bowtienet[bigdata]'``) is imported only when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bowtienet._old._validation import optional

SUFFIXES = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
}
"""Formats of files by the ending of their names."""
_NEEDED = "give a Parquet or Arrow file, or a folder of them"


def pyarrow(module: str = "") -> Any:
    """pyarrow or one of its modules, such as ".dataset"."""
    needed = "Parquet and Arrow files need pyarrow: pip install 'bowtienet[bigdata]'."
    return optional(f"pyarrow{module}", needed)


def open_path(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Any:
    """The pyarrow dataset of a file, of the files of a folder, of several files, or of a URI."""
    if isinstance(path, str) and "://" in path:
        return _dataset(path, path, format="parquet", partitioning="hive")
    hive: dict[str, Any] = {}
    if isinstance(path, (str, os.PathLike)):
        files = [_existing(path)]
        if files[0].is_dir():
            hive = {"partitioning": "hive", "partition_base_dir": str(files[0])}
            files = _files(files[0])
    else:
        files = [_existing(name) for name in path]
    kinds = {_format(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"{path} has both Parquet and Arrow files: give files of one kind.")
    return _dataset([str(file) for file in files], str(path), format=kinds.pop(), **hive)


def _dataset(source: Any, label: str, **settings: Any) -> Any:
    try:
        return pyarrow(".dataset").dataset(source, **settings)
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{label} cannot be read ({error}): {_NEEDED}.") from error


def _existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise FileNotFoundError(f"X is the path {str(path)!r}, which does not exist: {_NEEDED}.")
    return found


def _files(folder: Path) -> list[Path]:
    """Parquet and Arrow files of a folder and those below it; names with _ or . are not data."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise ValueError(f"{folder.name} is a folder without Parquet or Arrow files: {_NEEDED}.")
    return files


def _format(path: Path) -> str:
    if not path.is_file() or path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{path.name} is not called a Parquet or Arrow file: read text with "
            "bowtienet.read_table, or let its name end in .parquet or .arrow."
        )
    return SUFFIXES[path.suffix.lower()]
