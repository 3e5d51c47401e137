"""Cases of files: damaged ones, forged ones with a right digest, full disks, and killed fits."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import clone

from bowtienet._old import load
from tests._old.fuzz.attempts import Refusal, attempt, must, require
from tests._old.fuzz.fits import TASKS, Note, fit
from tests._old.fuzz.properties import (
    assert_close,
    check_left,
    check_predictions,
    exposed,
    predictions,
    rows_of,
)
from tests._old.fuzz.settings import draw_estimator, pick
from tests._old.fuzz.tables import Table, draw_table

FORMAT = "bowtienet"
NO_DIGEST = "0" * 64
STAND_INS: tuple[Any, ...] = (
    *(None, True, 0, -1, 3, 10**9, 10**400, 0.5, "x", "", [], {"tuple": []}, {"dict": {}}),
    *({"float": "nan"}, {"float": "inf"}, {"array": 0}, {"scalar": 0}, {"array": -1}, {"x": 1}),
)
"""What a node of a forged file becomes."""


def _saved(rng: np.random.Generator, folder: Path, note: Note) -> tuple[Table, Any, Path]:
    task = pick(rng, *TASKS)
    table = draw_table(rng, task, tame=True)
    model = draw_estimator(rng, task, effort="fast")
    must("fit", lambda: fit(model, table, note))
    place = folder / "model.btn"
    model.save(place)
    return table, model, place


def _damage(rng: np.random.Generator, data: bytes) -> tuple[str, bytes]:
    """Something that disks, networks and editors do to a file."""
    kind = pick(rng, "bits", "cut", "longer", "zeros", "text", "twice")
    place = int(rng.integers(len(data)))
    if kind == "bits":
        found = bytearray(data)
        for at in rng.integers(len(data), size=int(rng.integers(1, 9))):
            found[at] ^= 1 << int(rng.integers(8))
        return kind, bytes(found)
    if kind == "cut":
        return kind, data[:place]
    if kind == "longer":
        return kind, data + rng.bytes(int(rng.integers(1, 99)))
    if kind == "zeros":
        return kind, data[:place] + bytes(min(512, len(data) - place)) + data[place + 512 :]
    if kind == "text":
        return kind, data.replace(b"\n", b"\r\n")[:-1]
    return kind, data + data


def fuzz_damage(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """A damaged file is refused, and never read as something else."""
    _, _, place = _saved(rng, folder, note)
    data = place.read_bytes()
    for _ in range(40):
        kind, damaged = _damage(rng, data)
        if damaged == data:
            continue
        note(f"damage: {kind}")
        place.write_bytes(damaged)
        found = attempt("load a damaged file", lambda: load(place))
        require(isinstance(found, Refusal), "a damaged file is read", kind)
    return "refused"


def _nodes(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Places of all nodes below the root."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for key, value in inside:
        found.append((*place, key))
        if isinstance(value, (dict, list)):
            found += _nodes(value, (*place, key))
    return found


def _bent(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """An array of another shape, type or content."""
    other = array.astype(float)
    flat = other.reshape(-1).copy()
    if flat.size:
        flat[rng.integers(flat.size)] = pick(rng, np.nan, np.inf, -1.0, 1e300, 0.0)
    return pick(
        rng,
        flat.reshape(array.shape),
        -other,
        other[None],
        flat[: flat.size // 2],
        np.zeros_like(array),
        other.astype(np.float16) if np.abs(other).max(initial=0.0) < 6e4 else flat,
    )


def forge(rng: np.random.Generator, data: bytes) -> tuple[str, bytes]:
    """A file of which one node or array is another, with a right digest."""
    arrays = dict(safetensors.numpy.load(data))
    head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    header = copy.deepcopy(json.loads(head["__metadata__"][FORMAT]))
    if arrays and rng.random() < 0.4:
        name = pick(rng, *sorted(arrays))
        arrays[name] = np.ascontiguousarray(_bent(rng, arrays[name]))
        words = f"array {name}"
    else:
        place = pick(rng, *_nodes(header["content"]))
        parent = header["content"]
        for key in place[:-1]:
            parent = parent[key]
        if rng.random() < 0.2:
            del parent[place[-1]]
            words = f"{place} is gone"
        else:
            parent[place[-1]] = pick(rng, *STAND_INS)
            words = f"{place} is {parent[place[-1]]!r:.50}"
    header["sha256"] = NO_DIGEST
    text = json.dumps(header, separators=(",", ":"))
    forged = safetensors.numpy.save(arrays, {FORMAT: text})
    digest = hashlib.sha256(forged).hexdigest()
    return words, forged.replace(NO_DIGEST.encode(), digest.encode(), 1)


def fuzz_forgery(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """A forged file is refused, or it is a model that predicts, if only nonsense, or refuses to."""
    table, _, place = _saved(rng, folder, note)
    data = place.read_bytes()
    n_read = 0
    for _ in range(25):
        words, forged = forge(rng, data)
        note(f"forged: {words}")
        place.write_bytes(forged)
        found = attempt("load a forged file", lambda: load(place))
        if isinstance(found, Refusal):
            continue
        n_read += 1
        with np.errstate(all="ignore"):  # forged numbers may well overflow
            after = attempt("predict from forged", lambda m=found: predictions(m, table.frame))
        if isinstance(after, Refusal):
            continue
        lengths = {name: len(values) for name, values in after.items()}
        require(set(lengths.values()) == {len(table.frame)}, "predictions of other rows", lengths)
    return "read" if n_read else "refused"


def fuzz_full_disk(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """Files may have no more than a few bytes: a fit is kept, a save says so, nothing is left."""
    task = pick(rng, *TASKS)
    table = draw_table(rng, task, tame=True)
    model = draw_estimator(rng, task, checkpoint=folder / "checkpoint", effort="fast")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = int(10.0 ** rng.uniform(0.0, 5.0))
    note(f"at most {limit} bytes")
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        must("fit", lambda: fit(model, table, note))
        saved = attempt_to_save(model, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    check_left(folder, {"checkpoint", "model.btn"})
    require((folder / "model.btn").exists() == saved, "half a file has the name of a model")
    found = must("predict", lambda: predictions(model, table.frame, **exposed(table)))
    check_predictions(model, found, len(table.frame))
    return "saved" if saved else "kept"


def attempt_to_save(model: Any, folder: Path) -> bool:
    """Whether there was room for the model; an OSError names the file."""
    try:
        model.save(folder / "model.btn")
    except OSError as error:
        require("model.btn" in str(error), "a full disk is told without the file", error)
        return False
    return True


def fuzz_kill(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """A fit with a checkpoint is killed at any moment: resume ends in the same model."""
    task = pick(rng, *TASKS)
    table = draw_table(rng, task, tame=True)
    model = draw_estimator(rng, task, checkpoint=folder / "checkpoint")
    undisturbed = clone(model).set_params(checkpoint=None)
    begin = time.perf_counter()
    expected = must("fit", lambda: fit(undisturbed, table, note))
    seconds = rng.uniform(0.0, 1.1) * (time.perf_counter() - begin)
    note(f"killed after {seconds:.3f} s")
    child = os.fork()
    if child == 0:
        try:
            clone(model).fit(table.frame, table.target, **rows_of(table))
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if (folder / "checkpoint").exists():
        found = must(
            "resume",
            lambda: clone(model).resume(table.frame, table.target, **rows_of(table)),
        )
    else:
        found = must("fit after a kill", lambda: _fitted(model, table))
    X, more = table.frame, exposed(table)
    assert_close("after a kill", predictions(found, X, **more), predictions(expected, X, **more), 0)
    check_left(folder, {"checkpoint"})
    return "resumed"


def _fitted(model: Any, table: Table) -> Any:
    return clone(model).fit(table.frame, table.target, **rows_of(table))
