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
from typing import Any, NoReturn, TypedDict

import numpy as np

from bowtienet._old import persistence
from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.data.rows import take_rows
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.member import Task, TaskResult
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.inference.network_checks import check_result, check_state
from bowtienet._old.inference.stochastic import PassSnapshot
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.representation.representation import network_rows

KIND = "checkpoint"
DIGESTS = {
    "rows": "it has other rows",
    "scaling": "it has rows with other means or deviations",
    "members before": "it went on from other members",
}
"""Parts of the identity of a fit that are digests, which tell a user nothing."""

Content = TypedDict(
    "Content",
    {
        "seed": int,
        "identity": dict[str, Any],
        "outcomes": list[dict[str, Any]],
        "under way": PassSnapshot | None,
    },
)
"""What a file holds of a fit."""


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
        self._is_own = resume
        """Whether this fit has written the file, or goes on from it."""
        self._has_warned = False
        if path is None:
            return
        if resume:
            self._saved = persistence.load(path, KIND)
            self._read()
            self.seed = self._saved["seed"]
        else:
            _refuse_other_files(path)

    @property
    def goes_on(self) -> bool:
        """Whether the fit to resume had gone on from the members of an earlier one."""
        return self._saved is not None and self._saved["identity"]["members before"] is not None

    @property
    def can_resume(self) -> bool:
        """Whether there is a file that this fit can be resumed from."""
        return self.path is not None and self._is_own and os.path.isfile(self.path)

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
            # Of another type, or an array in its place, it is not the same either.
            if type(then) is not type(now) or then != now:
                changed = DIGESTS.get(name, f"{name} was {then!r:.60} and is {now!r:.60} now")
                raise ValueError(
                    f"{os.fspath(self.path)} is of another fit: {changed}. Resume with the "
                    f"settings and rows of that fit ({name}), or call fit to start anew."
                )

    def next_recorded(self, task: Task) -> TaskResult | None:
        """The outcome of the next task, if it is known already."""
        if not self._recorded:
            return None
        found = self._recorded.pop(0)
        held_out = task.held_out
        n_held_out = None if held_out is None else held_out.inputs.shape[0]
        n_forecast = None if found.forecasts is None else found.forecasts.shape[1]
        if n_forecast != n_held_out:
            self._refuse("its forecasts are of other rows")
        self._check_of_task(task, found.result.model)
        self.outcomes.append(found)
        return found

    def take_under_way(self, task: Task) -> PassSnapshot | None:
        """Where the task that was under way stood; for the first one that runs again."""
        found, self._under_way = self._under_way, None
        if found is not None:
            self._check_of_task(task, found.position.state.model)
        return found

    def _read(self) -> None:
        """What the file holds of finished tasks; a ValueError if it is not what was written."""
        try:
            persistence.check_type(self._saved, Content, "content")
            assert self._saved is not None
            self._recorded = [TaskResult(**outcome) for outcome in self._saved["outcomes"]]
            self._under_way = self._saved["under way"]
            for index, found in enumerate(self._recorded):
                persistence.check_fields(found, f"outcomes[{index}]")
                check_result(found.result)
                _check_forecasts(found)
            if self._under_way is not None:
                check_state(self._under_way.position.state)
            if not {"members before", "outcome"} <= self._saved["identity"].keys():
                raise ValueError("the identity of the fit is not complete")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._refuse(str(error) or type(error).__name__)

    def _check_of_task(self, task: Task, model: BowTieModel) -> None:
        """The network is that of the task: it sees as many inputs, and has as many outputs."""
        rows = network_rows(task.view, take_rows(task.rows, np.arange(1)))
        n_inputs = rows.inputs.shape[1]
        if task.start is not None and task.start.pruning is not None:
            n_inputs = len(task.start.pruning.inputs)
        n_outputs = model.outcome.n_outputs(rows.targets.shape[1])
        if (model.architecture.n_inputs, model.architecture.n_outputs) != (n_inputs, n_outputs):
            self._refuse("its networks are of other inputs or outputs")

    def _refuse(self, reason: str) -> NoReturn:
        assert self.path is not None
        raise ValueError(
            f"{os.fspath(self.path)} does not hold a complete checkpoint ({reason:.200}): call fit "
            "to start anew."
        )

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
        except (OSError, ValueError, MemoryError) as error:
            self._warn(self.path, error)
        else:
            self._is_own = True

    def _warn(self, path: str | os.PathLike[str], error: Exception) -> None:
        """Say once that a checkpoint could not be written: a fit is worth more than its file."""
        if self._has_warned:
            return
        self._has_warned = True
        if self.can_resume:
            left = "an earlier checkpoint of this fit is there and can be resumed from"
        elif os.path.isfile(path):
            left = "the file that is there is not of this fit, which cannot be resumed"
        else:
            left = "there is no earlier one, so that this fit cannot be resumed"
        warnings.warn(
            f"the checkpoint {os.fspath(path)} could not be written "
            f"({error or type(error).__name__}); the fit goes on and keeps its model. Now {left}: "
            "make room, or mend the folder.",
            UserWarning,
            stacklevel=3,
        )


def digest(arrays: Iterable[Array]) -> str:
    """SHA-256 of the types, shapes and numbers of arrays: the same only for the same rows."""
    found = hashlib.sha256()
    for item in arrays:
        array = np.ascontiguousarray(to_numpy(item))
        found.update(f"{array.dtype.str} {array.shape};".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _check_forecasts(found: TaskResult) -> None:
    """Means and variances (2, n, D_out)."""
    forecasts, n_outputs = found.forecasts, found.result.model.architecture.n_outputs
    if forecasts is not None and (
        forecasts.ndim != 3
        or (forecasts.shape[0], forecasts.shape[2]) != (2, n_outputs)
        or np.any(forecasts[1] <= 0.0)
    ):
        raise ValueError("forecasts are not means and variances of each target")


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
