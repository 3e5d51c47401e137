"""What of a fit is done, so that it can go on after it was cut short.

A fit is a fixed list of tasks that follows from its seed, its settings and the rows. A journal
holds the outcomes so far: when the fit is run again, tasks that are in the journal are not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bowtienet._arrays import map_arrays
from bowtienet.estimators.checkpoint import Checkpoint, digest, identity_difference
from bowtienet.estimators.tasks import Outcome
from bowtienet.inference.iterate import FitResult

INDIFFERENT = ("checkpoint", "checkpoint_every", "n_jobs", "random_state", "verbose", "warm_start")
"""Settings that have no part in the result of a fit with a given seed."""


class Journal:
    """Outcomes; in a file too if the estimator has a checkpoint."""

    def __init__(self, estimator: Any, resume: bool) -> None:
        path = estimator.checkpoint
        if resume and path is None:
            raise ValueError("resume needs the checkpoint to go on from: set checkpoint=path.")
        self.path = path
        self.file = None if path is None else Checkpoint(path, estimator.checkpoint_every)
        self.settings = {
            name: value
            for name, value in estimator.get_params(deep=False).items()
            if name not in INDIFFERENT
        }
        self.saved: dict[str, Any] | None = None
        self.outcomes: list[Outcome] = []
        self.recorded: list[Outcome] = []
        if resume:
            assert self.file is not None
            self.saved = self.file.read()
            self.seed = int(self.saved["seed"])
        else:
            if self.file is not None:
                self.file.prepare()
            random_state = check_random_state(estimator.random_state)
            self.seed = int(random_state.randint(np.iinfo(np.int32).max))

    @property
    def went_on(self) -> bool:
        """Whether the fit to resume had gone on from members of an earlier one."""
        return (
            self.saved is not None and self.saved["identity"]["members to go on from"] is not None
        )

    def begin(
        self, rows: Callable[[], dict[str, Any]], members: Sequence[FitResult] | None
    ) -> None:
        """The fit is one of these rows: refuse a checkpoint of other rows or settings."""
        if self.file is None:
            return
        self.identity = {
            **self.settings,
            **rows(),
            "members to go on from": None if members is None else _digest(members),
        }
        if self.saved is None:
            return
        difference = identity_difference(self.saved["identity"], self.identity)
        if difference is not None:
            raise ValueError(
                f"{os.fspath(self.path)} is of another fit: {difference}. Resume with the settings "
                "and rows of that fit, or call fit to start anew."
            )
        self.recorded = [Outcome(**outcome) for outcome in self.saved["outcomes"]]

    def next_recorded(self) -> Outcome | None:
        """The outcome of the next task, if it is known already."""
        if not self.recorded:
            return None
        outcome = self.recorded.pop(0)
        self.outcomes.append(outcome)
        return outcome

    def finished(self, outcome: Outcome) -> None:
        """A task has come to its end."""
        self.outcomes.append(outcome)
        if self.file is not None and self.file.is_due():
            self._write()

    def close(self) -> None:
        """Write down what is done: after the last task, or after Ctrl-C between two of them."""
        if self.file is not None:
            self._write()

    def _write(self) -> None:
        assert self.file is not None
        self.file.write(
            {
                "seed": self.seed,
                "identity": self.identity,
                "outcomes": [vars(outcome) for outcome in self.outcomes],
            }
        )


def _digest(members: Sequence[FitResult]) -> str:
    arrays: list[np.ndarray] = []
    map_arrays(arrays.append, tuple(member.factors for member in members))
    return digest(arrays)
