"""Data sets by name: those of the paper's experiments, the same rows on every machine.

A published table is looked for in the folder that the variable BOWTIENET_DATA names, then in a
cache, then on OpenML; whatever is found must have the values of `bowtienet.data.published`.
"""

from __future__ import annotations

import csv
import http.client
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._validation import suggestion
from bowtienet.data.published import TABLES, PublishedTable, checksum, rounded
from bowtienet.data.toy import simulate_toy

Floats = NDArray[np.float64]

FOLDER = "BOWTIENET_DATA"
"""Variable that names a folder with the tables as CSV files: slump.csv, yacht.csv, ..."""
CACHE = "BOWTIENET_CACHE"
"""Variable that names the folder for downloads."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Rows for regression on one target.

    Attributes
    ----------
    name : str
        As in `SETS`.
    inputs : ndarray of shape (n, p)
        In their own units.
    targets : ndarray of shape (n,)
        In their own unit.
    input_names : tuple of str
        One for each column.
    target_name : str
        Name of the target.
    origin : str
        Where the rows were found.
    """

    name: str
    inputs: Floats
    targets: Floats
    input_names: tuple[str, ...]
    target_name: str
    origin: str

    @property
    def table(self) -> Floats:
        """Inputs and target side by side, (n, p + 1)."""
        return np.column_stack([self.inputs, self.targets])


def load_set(name: str) -> DataSet:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of `SETS`. "diabetes" comes with scikit-learn and "toy" is simulated; the others are
        files such as ``slump.csv``: a line of names, then numbers, the target last. They are
        looked for in the folder that the environment variable BOWTIENET_DATA names, then in the
        cache (BOWTIENET_CACHE, by default ``~/.cache/bowtienet/data``), then on OpenML.

    Returns
    -------
    DataSet
        The same values in the same order on every machine.

    Raises
    ------
    ValueError
        If there is no set of that name, or a file holds other values than were published.
    FileNotFoundError
        If the set is nowhere to be found.

    Examples
    --------
    >>> toy = load_set("toy")
    >>> toy.inputs.shape, toy.targets.shape, toy.input_names
    ((300, 2), (300,), ('x1', 'x2'))
    """
    if name in _MADE:
        return _MADE[name]()
    if name not in TABLES:
        raise ValueError(f"there is no data set {name!r}{suggestion(str(name), SETS)}")
    table, origin = _find(name, TABLES[name])
    *input_names, target_name = TABLES[name].names
    return DataSet(
        name=name,
        inputs=np.ascontiguousarray(table[:, :-1]),
        targets=table[:, -1].copy(),
        input_names=tuple(input_names),
        target_name=target_name,
        origin=origin,
    )


def cache_folder() -> Path:
    """Folder of downloads: BOWTIENET_CACHE, or a part of the user's cache."""
    chosen = os.environ.get(CACHE)
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "bowtienet" / "data"


def _diabetes() -> DataSet:
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    return DataSet(
        name="diabetes",
        inputs=np.asarray(found.data, dtype=np.float64),
        targets=np.asarray(found.target, dtype=np.float64),
        input_names=tuple(found.feature_names),
        target_name="progression",
        origin="scikit-learn, load_diabetes(scaled=False)",
    )


def _toy() -> DataSet:
    inputs, targets = simulate_toy(300, np.random.default_rng(0))
    return DataSet(
        name="toy",
        inputs=inputs,
        targets=targets,
        input_names=("x1", "x2"),
        target_name="y",
        origin="simulated, seed 0",
    )


_MADE: Mapping[str, Callable[[], DataSet]] = {"diabetes": _diabetes, "toy": _toy}
SETS = (*TABLES, *_MADE)
"""Names that `load_set` knows."""


def _find(name: str, known: PublishedTable) -> tuple[Floats, str]:
    """A published table and where it was found."""
    own, kept = _own_file(name), cache_folder() / f"{name}.csv"
    if own is not None:
        return _read_own(own, known), str(own)
    table = _read_kept(kept, known)
    if table is None:
        table = _download(name, known)
        _keep(kept, known.names, table)
    return table, f"OpenML, kept as {kept}"


def _own_file(name: str) -> Path | None:
    """The user's own copy, if there is one."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise ValueError(
            f"{FOLDER} is {folder!r}, which is no folder: set it to the folder that holds "
            f"{name}.csv, or unset it."
        )
    path = Path(folder) / f"{name}.csv"
    return path if path.is_file() else None


def _read_own(path: Path, known: PublishedTable) -> Floats:
    try:
        table = _read(path, known)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be used, {error}: {_remedy(path.name, known)}") from error
    if checksum(table) != known.checksum:
        raise ValueError(
            f"{path} holds other values or another order of rows than the published table, so "
            f"results would not be comparable: {_remedy(path.name, known)}"
        )
    return table


def _read_kept(path: Path, known: PublishedTable) -> Floats | None:
    """A table of the cache; None, so that it is fetched again, if it is absent or damaged."""
    if not path.is_file():
        return None
    try:
        table = _read(path, known)
    except (ValueError, csv.Error):
        return None
    return table if checksum(table) == known.checksum else None


def _read(path: Path, known: PublishedTable) -> Floats:
    """Numbers below one line of names; what these are does not matter, the values tell."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        _, *rows = [row for row in csv.reader(file) if row] or [[]]
    width = len(known.names)
    for place, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"its row {place} has {len(row)} values instead of {width}")
    table = np.array([[float(text) for text in row] for row in rows]).reshape(-1, width)
    return rounded(table, known.decimals)


def _download(name: str, known: PublishedTable) -> Floats:
    """The table from OpenML, with our columns in our order."""
    if not known.request:
        raise _absent(name, known, "it cannot be downloaded from OpenML")
    from sklearn.datasets import fetch_openml

    try:
        # As arrays, since frames would need pandas; without a target, all columns are data.
        found = fetch_openml(
            **known.request,
            target_column=None,
            as_frame=False,
            parser="liac-arff",
            cache=False,
            n_retries=1,
        )
        table = _our_columns(found, known)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _absent(name, known, f"OpenML did not give it ({error})") from error
    if checksum(table) != known.checksum:
        raise _absent(name, known, "the table of OpenML holds other values than were published")
    return table


def _our_columns(found: Any, known: PublishedTable) -> Floats:
    """Columns found by how they begin, else by their places; the checksum has the last word."""
    names = [str(text).replace("_", " ").replace(".", " ").lower() for text in found.feature_names]
    places = [_place(alias, names) for alias in known.aliases]
    if not places or None in places:
        places = list(range(len(known.names)))
    if len(names) < len(known.names):
        raise ValueError(f"it has {len(names)} columns instead of {len(known.names)}")
    columns = [_decoded(found, place) for place in places if place is not None]
    return rounded(np.column_stack(columns), known.decimals)


def _place(alias: str, names: Sequence[str]) -> int | None:
    if alias in names:
        return names.index(alias)
    near = [place for place, text in enumerate(names) if text.startswith(alias)]
    return near[0] if len(near) == 1 else None


def _decoded(found: Any, place: int) -> Floats:
    """A column of numbers, also if OpenML takes it for classes and gives their positions."""
    column = np.asarray(found.data[:, place], dtype=np.float64)
    classes = (found.categories or {}).get(found.feature_names[place])
    if classes is None:
        return column
    return np.array([float(text) for text in classes])[column.astype(int)]


def _keep(path: Path, names: Sequence[str], table: Floats) -> None:
    """Write beside the place, then rename: other processes never see half a table."""
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *table.tolist()])
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise OSError(
            f"{path} cannot be written ({error.strerror}): set {CACHE} to a folder for downloads."
        ) from error


def _absent(name: str, known: PublishedTable, reason: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"the data set {name!r} is not on this machine, and {reason}: "
        f"{_remedy(f'{name}.csv', known)}"
    )


def _remedy(file_name: str, known: PublishedTable) -> str:
    return (
        f"save the table of {known.page} as {file_name} with the columns "
        f"{', '.join(known.names)} and its rows in their order, and set {FOLDER} to its folder."
    )
