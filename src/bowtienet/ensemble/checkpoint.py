"""What of a fit is done, in a file, so that it can go on after it was cut short.

A fit is a fixed list of tasks that follows from its seed, its settings and its rows. The file holds
the seed, the outcomes of finished tasks and, of a stream, the state after the last whole pass. It
is written before the first task and after each of them, and a file that is there is replaced only
when the new one is complete. What is fitted side by side, such as the networks that members start
from and rows in memory that are cross-fitted, is no task: it is done again, from the same seed.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from bowtienet import persistence
from bowtienet._arrays import Array, map_arrays, to_numpy
from bowtienet.ensemble.ensemble import Ensemble
from bowtienet.ensemble.member import TaskResult
from bowtienet.ensemble.settings import Settings
from bowtienet.inference.stochastic import PassSnapshot

KIND = "checkpoint"


class Checkpoint:
    """Finished tasks and the last pass of the one under way; in a file if there is a path.

    Parameters
    ----------
    path : str, path or None
        File to write; None for no file.
    seed : int
        Seed of a new fit; a fit that is resumed has that of its file.
    resume : bool
        Go on with the fit of the file.
    """

    def __init__(self, path: str | os.PathLike[str] | None, seed: int, *, resume: bool) -> None:
        if resume and path is None:
            raise ValueError("resume needs the checkpoint to go on from: set checkpoint=path.")
        self.path, self.seed = path, seed
        self.outcomes: list[TaskResult] = []
        self._saved: dict[str, Any] | None = None
        self._recorded: list[TaskResult] = []
        self._under_way: PassSnapshot | None = None
        if path is None:
            return
        if resume:
            self._saved = persistence.load(path, KIND)
            self.seed = int(self._saved["seed"])
        else:
            _refuse_other_files(path)

    @property
    def goes_on(self) -> bool:
        """Whether the fit to resume had gone on from the members of an earlier one."""
        return self._saved is not None and self._saved["identity"]["members before"] is not None

    def begin(
        self, settings: Settings, before: Ensemble | None, rows: Callable[[], dict[str, Any]]
    ) -> None:
        """The fit is one of these rows: refuse a file of other rows or settings."""
        if self.path is None:
            return
        members = None if before is None else _digest_of_factors(before)
        self._identity = {**asdict(settings), **rows(), "members before": members}
        self._identity.pop("n_jobs")  # it changes no result
        self._identity["outcome"] = repr(settings.outcome)
        if self._saved is None:
            self._write(None)
            return
        for name, now in self._identity.items():
            then = self._saved["identity"].get(name)
            if then != now:
                raise ValueError(
                    f"{os.fspath(self.path)} is of another fit: {name} was {then!r} and is {now!r} "
                    "now. Resume with the settings and rows of that fit, or call fit to start anew."
                )
        self._recorded = [TaskResult(**outcome) for outcome in self._saved["outcomes"]]
        self._under_way = self._saved["under way"]

    def next_recorded(self) -> TaskResult | None:
        """The outcome of the next task, if it is known already."""
        if not self._recorded:
            return None
        self.outcomes.append(self._recorded.pop(0))
        return self.outcomes[-1]

    def take_under_way(self) -> PassSnapshot | None:
        """Where the task that was under way stood; for the first one that runs again."""
        found, self._under_way = self._under_way, None
        return found

    def finished(self, outcome: TaskResult) -> None:
        """A task has come to its end."""
        self.outcomes.append(outcome)
        self._write(None)

    def passed(self, snapshot: PassSnapshot) -> None:
        """A task has read all rows of a stream once more."""
        self._write(snapshot)

    def _write(self, under_way: PassSnapshot | None) -> None:
        if self.path is None:
            return
        content = {
            "seed": self.seed,
            "identity": self._identity,
            "outcomes": [vars(outcome) for outcome in self.outcomes],
            "under way": under_way,
        }
        try:
            persistence.save(self.path, KIND, content)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {os.fspath(self.path)} could not be written ({error}); the fit "
                "goes on without it: make room, or choose another folder.",
                UserWarning,
                stacklevel=2,
            )


def digest(arrays: Iterable[Array]) -> str:
    """SHA-256 of the types, shapes and numbers of arrays: the same only for the same rows."""
    found = hashlib.sha256()
    for item in arrays:
        array = np.ascontiguousarray(to_numpy(item))
        found.update(f"{array.dtype.str} {array.shape};".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _digest_of_factors(ensemble: Ensemble) -> str:
    arrays: list[Array] = []
    map_arrays(arrays.append, tuple(member.factors for member in ensemble.members))
    return digest(arrays)


def _refuse_other_files(path: str | os.PathLike[str]) -> None:
    """A path that cannot be written, or whose file is something else, is refused before the fit."""
    target = persistence.check_writable(path)
    if target.exists() and target.stat().st_size and persistence.kind_of(target) != KIND:
        raise ValueError(
            f"{os.fspath(path)} is not a checkpoint and is not overwritten: choose another name."
        )
