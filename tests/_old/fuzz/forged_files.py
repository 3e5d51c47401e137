"""Files with a right digest whose content was changed: every leaf, in every way that types allow.

`python -m tests._old.fuzz.forged_files` tries all of them on small models of every kind and prints those
that load and then fail; the tests try a sample.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

FORMAT = "bowtienet"
Place = tuple[Any, ...]

STAND_INS: dict[str, Any] = {
    "None": None,
    "True": True,
    "3": 3,
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "1e9": 10**9,
    "text": "x",
    "list": [],
    "tuple": {"tuple": []},
    "dict": {"dict": {}},
    "nan": {"float": "nan"},
    "inf": {"float": "inf"},
    "nested": [[["x"]]],
}
"""What a node of the tree is replaced by."""
BENT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "flat": lambda a: a.reshape(-1),
    "an axis more": lambda a: a[None],
    "a part less": lambda a: a[:-1] if a.ndim else a.reshape(1)[:0],
    "a part more": lambda a: np.concatenate([a, a[-1:]]) if a.ndim and len(a) else a[None],
    "the last axis less": lambda a: a[..., :-1] if a.ndim else a[None, None],
    "transposed": lambda a: a.T,
    "empty": lambda a: a.reshape(-1)[:0],
    "integers": lambda a: np.nan_to_num(a).astype(np.int64),
    "half": lambda a: a.astype(np.float16),
    "single": lambda a: a.astype(np.float32),
    "booleans": lambda a: a.astype(bool),
    "bytes": lambda a: np.nan_to_num(a).astype(np.uint8),
    "a NaN": lambda a: _with(a, np.nan),
    "an infinity": lambda a: _with(a, np.inf),
    "a large number": lambda a: _with(a, 10**6),
    "negative": lambda a: -a if a.dtype.kind == "f" else a[::-1] if a.ndim else a,
    "zeros": np.zeros_like,
    "alike": lambda a: np.full_like(a, a.reshape(-1)[0]) if a.size else a,
}
"""What an array is replaced by."""


def _with(array: np.ndarray, value: float) -> np.ndarray:
    """The array with a value in its first place."""
    if not array.size or (array.dtype.kind != "f" and not np.isfinite(value)):
        return array.astype(np.float64) if array.size else array
    changed = array.copy()
    changed.reshape(-1)[0] = value
    return changed


@dataclass
class SavedFile:
    """A file that was really saved, taken apart."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, path: Path) -> SavedFile:
        """Parts of a file."""
        data = path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(json.loads(data[8:start])["__metadata__"][FORMAT])
        return cls(header, safetensors.numpy.load(data))

    def write(self, path: Path) -> None:
        """Put together again, with a digest that is right."""
        text = json.dumps({**self.header, "sha256": "0" * 64}, separators=(",", ":"))
        arrays = {name: np.asarray(array, order="C") for name, array in self.arrays.items()}
        data = safetensors.numpy.save(arrays, {FORMAT: text})
        digest = hashlib.sha256(data).hexdigest().encode()
        path.write_bytes(data.replace(b"0" * 64, digest, 1))

    def at(self, place: Place) -> Any:
        """The node at a place."""
        node = self.header["content"]
        for step in place:
            node = node[step]
        return node

    def changed(self, place: Place, change: Callable[[Any, Any], None]) -> SavedFile:
        """A copy in which `change` was given the parent of a node, and its key there."""
        header = copy.deepcopy(self.header)
        parent: Any = header
        for step in ("content", *place)[:-1]:
            parent = parent[step]
        change(parent, ("content", *place)[-1])
        return SavedFile(header, dict(self.arrays))


@dataclass
class Forgery:
    """One change, and how the file that has it is made."""

    name: str
    build: Callable[[], SavedFile] = field(repr=False)


def places(node: Any, place: Place = ()) -> Iterator[Place]:
    """Places of all values of a tree: plain ones, arrays, containers and what these hold."""
    yield place
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from places(item, (*place, index))
    elif isinstance(node, dict):
        [(tag, value)] = node.items()
        if tag == "tuple":
            for index, item in enumerate(value):
                yield from places(item, (*place, tag, index))
        elif isinstance(value, dict):
            for name, part in value.items():
                yield from places(part, (*place, tag, name))


def forgeries(saved: SavedFile, place: Place) -> Iterator[Forgery]:
    """All changes of the value at one place."""
    where = ".".join(map(str, place))
    node = saved.at(place)
    tag = next(iter(node), None) if isinstance(node, dict) else None
    for name, value in STAND_INS.items():
        if value != node or type(value) is not type(node):
            yield Forgery(f"{where} = {name}", partial(saved.changed, place, _put(value)))
    if place:
        yield Forgery(f"{where} deleted", partial(saved.changed, place, _delete))
    if tag in ("array", "scalar"):
        yield from _bent(saved, place, where, node[tag])
    elif tag is not None and isinstance(node[tag], dict):
        more = {tag: {**node[tag], "more": 1}}
        yield Forgery(f"{where} with more", partial(saved.changed, place, _put(more)))
    elif tag == "tuple" or isinstance(node, list):
        items = node if isinstance(node, list) else node[tag]
        for name, changed in (("repeated", [*items, *items[-1:]]), ("reversed", items[::-1])):
            value = changed if isinstance(node, list) else {tag: changed}
            if value != node:
                yield Forgery(f"{where} {name}", partial(saved.changed, place, _put(value)))


def _bent(saved: SavedFile, place: Place, where: str, number: int) -> Iterator[Forgery]:
    """Changes of an array."""
    array = saved.arrays[str(number)]
    for name, bend in BENT.items():
        with np.errstate(all="ignore"):
            bent = np.asarray(bend(array), order="C")
        same = bent.dtype == array.dtype and bent.shape == array.shape
        if not same or bent.tobytes() != array.tobytes():
            yield Forgery(f"{where} {name}", partial(_with_array, saved, place, bent))


def _with_array(saved: SavedFile, place: Place, array: np.ndarray) -> SavedFile:
    forged = saved.changed(place, _put({"array": len(saved.arrays)}))
    forged.arrays[str(len(saved.arrays))] = array
    return forged


def _put(value: Any) -> Callable[[Any, Any], None]:
    def change(parent: Any, key: Any) -> None:
        parent[key] = copy.deepcopy(value)

    return change


def _delete(parent: Any, key: Any) -> None:
    del parent[key]


def all_forgeries(saved: SavedFile) -> Iterator[Forgery]:
    """Every change of every value of a file."""
    for place in places(saved.header["content"]):
        yield from forgeries(saved, place)


def fault_of(
    forgery: Forgery, path: Path, read: Callable[[Path], Any], use: Callable[[Any], Any]
) -> str | None:
    """What is wrong with how a forgery is treated; None if it is refused in a sentence, or works.

    `use` raises where what was read does not do what it must.
    """
    forgery.build().write(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = read(path)
        except ValueError as error:
            clear = str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 500
            return None if clear else f"{forgery.name}: refused by {error}"
        except Exception as error:
            return f"{forgery.name}: load raised {type(error).__name__}: {error}"
        try:
            use(found)
        except Exception as error:
            return f"{forgery.name}: loaded, then {type(error).__name__}: {error}"
    return None


def main() -> int:
    """Try all forgeries of all models and checkpoints; print what is found."""
    from tests._old.fuzz.forged_models import CASES

    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CASES:
            case = CASES[name](Path(folder))
            count = 0
            for forgery in all_forgeries(case.saved):
                count += 1
                fault = fault_of(forgery, Path(folder) / "forged", case.read, case.use)
                if fault is not None:
                    found += 1
                    print(f"{name}: {fault:.300}", flush=True)
            print(f"{name}: {count} forgeries", flush=True)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
