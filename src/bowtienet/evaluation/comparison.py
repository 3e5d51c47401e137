"""Forecasters side by side: every one fitted to the same rows and scored on the same others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from bowtienet._arrays import to_numpy
from bowtienet._validation import whole
from bowtienet.data.door import open_source
from bowtienet.data.in_memory import InMemory
from bowtienet.evaluation.checks import single_coverage
from bowtienet.evaluation.methods import Method, default_methods
from bowtienet.evaluation.metrics import Scores, evaluate, load_scoringrules
from bowtienet.representation.columns import encode
from bowtienet.representation.learning import learn_columns

MAX_CATEGORIES = 100
"""Most values of a column of texts that methods which need numbers are given."""
_MEASURED = sorted({field.name for field in fields(Scores)} - {"n_rows", "nominal_coverage"})
"""What is found out about a forecast, unlike what was asked for."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How one method did."""

    method: str
    scores: tuple[Scores, ...]
    """One for each split; NaN where the method failed."""
    seconds: tuple[float, ...]
    """Time of each fit, without prediction; NaN where the method failed."""
    note: str | None
    """What a reader of the scores must know, and why a fit failed."""


class _Part(NamedTuple):
    """Rows of a split: as they are, as numbers (n, encoded), and their targets (n,)."""

    source: InMemory
    numbers: np.ndarray
    targets: np.ndarray


class _Run(NamedTuple):
    """One method on one split."""

    scores: Scores
    seconds: float
    note: str | None


def compare(
    X: Any,
    y: Any = None,
    *,
    regressor: Any = None,
    methods: Sequence[Method | str] | None = None,
    n_splits: int = 3,
    test_size: float = 0.1,
    random_state: int = 0,
    coverage: float = 0.9,
    max_categories: int = MAX_CATEGORIES,
    callback: Callable[[str, int], None] | None = None,
) -> list[Comparison]:
    """Fit and score methods on random splits of the rows, the same for all methods.

    Parameters
    ----------
    X : table (n, columns)
        Features of any kind, in memory. Methods that need numbers get one-hot encoded categories,
        dates in days, and medians beside indicators for missing values, learnt from the training
        rows of each split.
    y : array (n,) or name, optional
        One target for each row, or the column of X that holds it; nothing if X is a source.
    regressor : estimator with predict_dist, optional
        Ours, cloned for every fit; `BowTieRegressor` with its defaults without it.
    methods : sequence of Method or names, optional
        What to compare, with names for those of `default_methods`; all of those by default.
    n_splits : int
        Number of splits.
    test_size : float or int
        Share or number of rows to score on, as for scikit-learn's `train_test_split`.
    random_state : int
        Split i, and the methods on it, have the seed `random_state + i`.
    coverage : float
        Probability that intervals are meant to hold.
    max_categories : int
        Most values of a column of texts that methods which need numbers are given.
    callback : callable, optional
        Called with the method's name and the number of the split, from 0, after each fit.

    Returns
    -------
    list of Comparison
        In the order of the methods. A method that raises is there, with the reason in its note.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = X[:, 0] + rng.normal(0.0, 0.1, size=80)
    >>> (found,) = compare(X, y, methods=["BayesianRidge"], n_splits=2)
    >>> [scores.n_rows for scores in found.scores]
    [8, 8]
    """
    chosen = _choose(methods, regressor)
    source, share = _open(X, y), single_coverage(coverage)
    load_scoringrules()  # without it every method would fail, and for no fault of its own
    runs: list[list[_Run]] = [[] for _ in chosen]
    for split in range(whole(n_splits, "n_splits")):
        seed = random_state + split
        train, test = _split(source, test_size, seed, max_categories)
        for method, done in zip(chosen, runs, strict=True):
            done.append(_run(method, train, test, seed, share))
            if callback is not None:
                callback(method.name, split)
    return [_summary(m.name, done) for m, done in zip(chosen, runs, strict=True)]


def average_scores(scores: Sequence[Scores]) -> Scores:
    """mean_i s_i over splits, field by field; `n_rows` is the sum.

    A failed split makes the means NaN: a method is not better for failing where it is hard.
    """
    means = {name: float(np.mean([getattr(each, name) for each in scores])) for name in _MEASURED}
    n_rows = sum(each.n_rows for each in scores)
    return Scores(n_rows=n_rows, nominal_coverage=scores[0].nominal_coverage, **means)


def _choose(methods: Sequence[Method | str] | None, regressor: Any) -> list[Method]:
    known = {method.name: method for method in default_methods(regressor)}
    chosen = []
    for method in known if methods is None else methods:
        if not isinstance(method, Method) and method not in known:
            raise ValueError(
                f"unknown method {method!r}: choose among {', '.join(map(repr, known))}, or give "
                "a Method."
            )
        chosen.append(method if isinstance(method, Method) else known[method])
    return chosen


def _open(X: Any, y: Any) -> InMemory:
    source = open_source(X, y)
    if not isinstance(source, InMemory):
        raise ValueError("X must be in memory to be split: read it into a table first.")
    if source.n_targets != 1:
        raise ValueError(f"y has {source.n_targets} targets: compare one at a time.")
    return source


def _split(source: InMemory, test_size: Any, seed: int, max_categories: int) -> list[_Part]:
    """Training and test rows; how columns become numbers is learnt from the former."""
    everything = np.arange(source.block.table.n_rows)
    parts = [
        source.take(rows)
        for rows in train_test_split(everything, test_size=test_size, random_state=seed)
    ]
    columns = learn_columns(parts[0], max_categories=max_categories)
    return [
        _Part(
            source=part,
            numbers=to_numpy(encode(columns, part.block.table)[0]),
            targets=to_numpy(part.block.targets)[:, 0].astype(float),
        )
        for part in parts
    ]


def _run(method: Method, train: _Part, test: _Part, seed: int, coverage: float) -> _Run:
    """Fit, forecast and score; whatever goes wrong on the way is a result, too."""
    begin = time.perf_counter()
    try:
        fitted, new = (p.source if method.takes_tables else p.numbers for p in (train, test))
        forecaster = method.fit(fitted, train.targets, seed, coverage)
        seconds = time.perf_counter() - begin
        found = forecaster(new)
        scores = evaluate(
            test.targets, found.distribution, coverage=coverage, intervals=found.intervals
        )
    except Exception as error:
        reason = f"failed with seed {seed}: {type(error).__name__}: {error}"
        return _Run(_no_scores(len(test.targets), coverage), math.nan, reason)
    return _Run(scores, seconds, found.note)


def _no_scores(n_rows: int, coverage: float) -> Scores:
    return Scores(n_rows=n_rows, nominal_coverage=coverage, **dict.fromkeys(_MEASURED, math.nan))


def _summary(name: str, runs: Sequence[_Run]) -> Comparison:
    notes = dict.fromkeys(run.note for run in runs if run.note)
    return Comparison(
        method=name,
        scores=tuple(run.scores for run in runs),
        seconds=tuple(run.seconds for run in runs),
        note="; ".join(notes) or None,
    )
