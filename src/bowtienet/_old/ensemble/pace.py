"""How far a fit is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

from bowtienet._old.ensemble.fold_networks import further_steps
from bowtienet._old.ensemble.settings import EFFORTS, Settings, sweep_lengths

SWEEP_STEPS = 1.2
"""Steps of L-BFGS, for each input, in the time of a sweep: benchmarks/speed/promise.py."""
LIKELY_STEPS = 0.4
"""Steps of L-BFGS for each row that are mostly worth their time."""
WORTH_SAYING = 5.0
"""Seconds to come from which on users are told."""


class Pace:
    """Says how a fit comes along, and of a long one how many seconds are to come.

    A step of a network is work of the order of its inputs + 10, for each row; a sweep is as much as
    `SWEEP_STEPS` (inputs + 10) steps. Rounds so far tell the seconds of a unit of work.
    """

    def __init__(
        self, say: Callable[..., None], settings: Settings, n_rows: int, n_folds: int
    ) -> None:
        self.say, self.settings, self.n_folds = say, settings, n_folds
        self.longest = LIKELY_STEPS * n_rows
        self.work = 0.0
        """Of rounds that have begun."""
        self.began = time.monotonic()
        self.reached = 0
        """Steps of networks that are in all folds already."""

    def round(self, n_networks: int, length: int, n_inputs: float) -> None:
        """Networks of so many inputs, on average, are trained to a length.

        They go on from the round before, or are new ones if it was as long.
        """
        goes_on = length > self.reached
        steps = length - self.reached if goes_on else length
        work = n_networks * steps * (n_inputs + 10.0)
        text = f"comparing recipes: {n_networks} networks, {length} steps"
        if length in EFFORTS[self.settings.effort].lengths:
            self._promise(text, work + self._to_come(length if goes_on else None, n_inputs))
            self.reached = max(length, self.reached)
        else:
            self.say(text)
        self.work += work

    def posteriors(self, n_inputs: float) -> None:
        """All rounds are over."""
        self._promise("posteriors out of fold", self._to_come(None, n_inputs))

    def _to_come(self, length: int | None, n_inputs: float) -> float:
        """Work after a round to this length: of the rounds that are likely, and of all sweeps."""
        effort, size = EFFORTS[self.settings.effort], n_inputs + 10.0
        found, before = 0.0, length
        for later, n_kept in zip(effort.lengths, effort.kept, strict=True):
            if before is not None and before < later <= self.longest:
                found += n_kept * (later - before) * size
                before = later
        sweeps = 2.0 * sweep_lengths(self.settings)[-1] * SWEEP_STEPS * size
        found += effort.n_recipes * (sweeps + further_steps(length or self.reached)) * size
        return found * self.n_folds

    def _promise(self, text: str, work: float) -> None:
        """Say a text, the share of the work that is done, and of a long fit the seconds to come."""
        seconds = work * (time.monotonic() - self.began) / self.work if self.work else 0.0
        share = self.work / (self.work + work)
        self.say(text, share=share, left=seconds if seconds > WORTH_SAYING else None)
