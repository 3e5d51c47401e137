"""Small rows, settings and a watch that remembers, for tests of fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.door import open_source
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.checkpoint import Checkpoint
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.fit_ensemble import EnsembleFit, fit_ensemble, prepare
from bowtienet._old.ensemble.member import Task, run_task
from bowtienet._old.ensemble.settings import Recipe, Settings
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.representation.representation import PLAIN, View

SETTINGS = Settings(hidden_layer_sizes=(5,), max_iter=40, tol=0.0)
RECIPE = Recipe(gate_temperature=0.05, init_penalty=1.0, start_iterations=200, seed=3)


def bent_table(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A target that no straight line comes near to."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n, 2))
    return X, 2.0 * np.abs(X[:, 0]) - 1.7 + 0.1 * rng.normal(size=n)


def bent_rows(n: int = 60, seed: int = 0) -> Rows:
    return build_rows(*bent_table(n, seed))


def task(**changes: Any) -> Task:
    given: dict[str, Any] = {"recipe": RECIPE, "rows": bent_rows(), "n_threads": 1}
    return Task(**(given | changes))


def small(**changes: Any) -> Settings:
    """Two members of one recipe, a few sweeps each."""
    given: dict[str, Any] = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 4}
    given |= {"gate_temperature": 0.05, "init_penalty": 1.0, "batch_size": 25}
    given |= {"features": "standard", "target_transform": "none"}
    return Settings(**(given | changes))


class Watching:
    """A watch of a fit, and of its members, that remembers what it was told."""

    def __init__(self, on_sweep: Callable[[Watching, Progress], bool] | None = None) -> None:
        self.on_sweep = on_sweep
        self.stopped = False
        self.begun: list[tuple[Ensemble, str]] = []
        self.said: list[str] = []
        self.expected: list[int] = []
        self.bounds: list[float | None] = []
        self.n_members = self.n_closed = self.n_sweeps = 0

    def begin(self, ensemble: Ensemble, solver: str) -> None:
        self.begun.append((ensemble, solver))

    def say(self, text: str, share: float | None = None, left: float | None = None) -> None:
        self.said.append(text)

    def expect(self, n_fits: int) -> None:
        self.expected.append(n_fits)

    def begin_fit(self, view: View) -> None:
        self.n_members += 1

    def finished(self, elbo: float | None) -> None:
        self.bounds.append(elbo)

    def end_fit(self) -> None:
        self.n_closed += 1

    def __call__(self, progress: Progress) -> bool:
        self.n_sweeps += 1
        return self.on_sweep is not None and self.on_sweep(self, progress)


class PowerCutError(Exception):
    """The end of a fit that nobody wanted."""


def cut_in(member: int, sweep: int, error: type[BaseException] = PowerCutError) -> Watching:
    """A watch that ends the fit in a sweep of the fit of a number, counted from 1."""

    def on_sweep(watch: Watching, progress: Progress) -> bool:
        if watch.n_members == member and progress.sweep >= sweep:
            raise error
        return False

    return Watching(on_sweep)


def fit(
    source: Any,
    settings: Settings,
    watch: Watching | None = None,
    *,
    path: Any = None,
    resume: bool = False,
    **changes: Any,
) -> EnsembleFit:
    """Fit (X, y) or a source."""
    opened = source if isinstance(source, Source) else open_source(*source)
    checkpoint = Checkpoint(path, 7, resume=resume)
    return fit_ensemble(opened, settings, checkpoint, watch or Watching(), **changes)


def viewed_ensemble(source: Any, **changes: Any) -> Ensemble:
    """Members that see the rows plain, in bins, warped, and both; short fits, unequal weights."""
    opened = source if isinstance(source, Source) else open_source(*source)
    settings = small(**({"features": 4, "target_transform": "yeo-johnson"} | changes))
    prepared = prepare(opened, settings, None, 7, Watching())
    [both] = prepared.representation.views
    assert both.pieces is not None
    views = (PLAIN, View(pieces=both.pieces), View(warp=both.warp), both)
    members = tuple(
        run_task(replace(prepared.task, view=view, recipe=RECIPE, n_threads=1), settings).result
        for view in views
    )
    return Ensemble(
        members=members,
        weights=np.array([0.1, 0.2, 0.3, 0.4]),
        representation=replace(prepared.representation, views=views),
        views=(0, 1, 2, 3),
        groups=(0, 1, 2, 3),
        propagation=settings.propagation,
    )


def only(ensemble: Ensemble, place: int) -> Ensemble:
    """One of the members, alone."""
    return replace(
        ensemble,
        members=(ensemble.members[place],),
        views=(ensemble.views[place],),
        groups=(0,),
        weights=np.ones(1),
    )


def assert_same_fit(first: FitResult, second: FitResult) -> None:
    """To the bit."""
    map_arrays(np.testing.assert_array_equal, first.factors, second.factors)
    assert first.elbo_history == second.elbo_history
    np.testing.assert_array_equal(first.variance_ratio, second.variance_ratio)


def assert_same_ensemble(first: Ensemble, second: Ensemble) -> None:
    """To the bit."""
    for one, other in zip(first.members, second.members, strict=True):
        assert_same_fit(one, other)
        assert one.status is other.status
    np.testing.assert_array_equal(first.weights, second.weights)
