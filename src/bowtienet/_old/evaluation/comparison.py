"""Forecasters side by side: every one fitted to the same rows and scored on the same others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import whole
from bowtienet._old.data.door import open_source
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.labels import check_classes
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.data.source import Source
from bowtienet._old.estimators.text_tables import readable, text_table
from bowtienet._old.evaluation.checks import single_coverage
from bowtienet._old.evaluation.class_methods import ClassMethod, default_class_methods
from bowtienet._old.evaluation.class_metrics import ClassScores, evaluate_classes
from bowtienet._old.evaluation.methods import Method, default_methods
from bowtienet._old.evaluation.metrics import Scores, evaluate, load_scoringrules, score_values
from bowtienet._old.evaluation.splits import split_rows
from bowtienet._old.representation.columns import encode
from bowtienet._old.representation.learning import learn_columns

MAX_CATEGORIES = 100
"""Most values of a column of texts that methods which need numbers are given."""
TASKS = ("numbers", "classes")
"""What can be compared."""
_GIVEN = ("n_rows", "nominal_coverage")
"""Fields of scores that say what was asked for, not what was found out."""

AnyScores = TypeVar("AnyScores", Scores, ClassScores)
AnyMethod = Method | ClassMethod


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How one method did."""

    method: str
    scores: tuple[Any, ...]
    """`Scores`, or of classes `ClassScores`: one for each split; NaN where the method failed."""
    seconds: tuple[float, ...]
    """Time of each fit, without prediction; NaN where the method failed."""
    note: str | None
    """What a reader of the scores must know, and why a fit failed."""


class ComparisonTable(list[Comparison]):
    """What `compare` finds: a list with one `Comparison` for each method, and a table of them."""

    def to_frame(self, library: str = "pandas", *, by_split: bool = False) -> Any:
        """A row for each method, or for each method and split; scores and seconds are columns.

        Scores and seconds are means over splits, NaN if one failed, and `n_rows` is a sum. The
        names of methods are the index of a pandas frame, `method` in others.
        """
        rows: list[dict[str, Any]] = []
        for one in self:
            if by_split:
                for split, (scores, seconds) in enumerate(
                    zip(one.scores, one.seconds, strict=True)
                ):
                    rows.append({"method": one.method, "split": split, **score_values(scores)})
                    rows[-1]["seconds"] = seconds
            else:
                found = score_values(average_scores(one.scores))
                seconds = float(np.mean(one.seconds))
                rows.append({"method": one.method, **found, "seconds": seconds, "note": one.note})
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row[name] for row in rows] for name in names}
        return new_frame(columns, library, index="method")

    def __repr__(self) -> str:
        """Means over splits, and notes below."""
        if not self:
            return "ComparisonTable([])"
        names = _measured(type(self[0].scores[0]))
        lines = []
        for one in self:
            found = average_scores(one.scores)
            values = [*(getattr(found, name) for name in names), float(np.mean(one.seconds))]
            lines.append([one.method, *(readable(value) for value in values)])
        text = text_table(["method", *names, "seconds"], lines)
        notes = [f"{one.method}: {one.note}" for one in self if one.note]
        return "\n".join([text, *notes])


class _Part(NamedTuple):
    """Rows of a split: as they are, as numbers (n, encoded), and targets or codes (n,)."""

    source: InMemory
    numbers: np.ndarray
    targets: np.ndarray


class _Run(NamedTuple):
    """One method on one split."""

    scores: Scores | ClassScores
    seconds: float
    note: str | None


def compare(
    X: Any,
    y: Any = None,
    *,
    regressor: Any = None,
    classifier: Any = None,
    task: str | None = None,
    methods: Sequence[AnyMethod | str] | None = None,
    n_splits: int = 3,
    test_size: float = 0.1,
    random_state: int = 0,
    coverage: float = 0.9,
    max_categories: int = MAX_CATEGORIES,
    callback: Callable[[str, int], None] | None = None,
) -> ComparisonTable:
    """Fit and score methods on random splits of the rows, the same for all methods.

    Parameters
    ----------
    X : table (n, columns)
        Features of any kind, in memory. Methods that need numbers get one-hot encoded categories,
        dates in days, and medians beside indicators for missing values, learnt from the training
        rows of each split.
    y : array (n,) or name, optional
        One target or label for each row, or the column of X that holds it; nothing if X is a
        source.
    regressor : estimator with predict_dist, optional
        Ours, cloned for every fit; `BowTieRegressor` with its defaults without it.
    classifier : estimator with predict_proba, optional
        The same for classes; `BowTieClassifier` with its defaults without it.
    task : {"numbers", "classes"}, optional
        What the targets are. By default classes if a classifier is given, or if they are texts or
        booleans.
    methods : sequence of Method, ClassMethod or names, optional
        What to compare, with names for those of `default_methods`, or `default_class_methods`; all
        of those by default.
    n_splits : int
        Number of splits.
    test_size : float or int
        Share or number of rows to score on, as for scikit-learn's `train_test_split`.
    random_state : int
        Split i, and the methods on it, have the seed `random_state + i`.
    coverage : float
        Probability that intervals are meant to hold; classes have none.
    max_categories : int
        Most values of a column of texts that methods which need numbers are given.
    callback : callable, optional
        Called with the method's name and the number of the split, from 0, after each fit.

    Returns
    -------
    ComparisonTable
        A list of `Comparison`, in the order of the methods; a method that raises is there, with
        the reason in its note. It prints as a table, and `to_frame` makes a data frame of it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = X[:, 0] + rng.normal(0.0, 0.1, size=80)
    >>> (found,) = compare(X, y, methods=["BayesianRidge"], n_splits=2)
    >>> [scores.n_rows for scores in found.scores]
    [8, 8]
    """
    kind = _read_task(task, X, y, regressor, classifier)
    chosen = _choose(methods, kind, classifier if kind == "classes" else regressor)
    source, share = _open(X, y, kind), single_coverage(coverage)
    if kind == "numbers":
        load_scoringrules()  # without it every method would fail, and for no fault of its own
    runs: list[list[_Run]] = [[] for _ in chosen]
    for split in range(whole(n_splits, "n_splits")):
        seed = random_state + split
        train, test = _split(source, test_size, seed, max_categories)
        for method, done in zip(chosen, runs, strict=True):
            done.append(_run(method, train, test, seed, share))
            if callback is not None:
                callback(method.name, split)
    return ComparisonTable(_summary(m.name, done) for m, done in zip(chosen, runs, strict=True))


def average_scores(scores: Sequence[AnyScores]) -> AnyScores:
    """mean_i s_i over splits, field by field; `n_rows` is the sum.

    A failed split makes the means NaN: a method is not better for failing where it is hard.
    """
    kind = type(scores[0])
    means = {name: float(np.mean([getattr(s, name) for s in scores])) for name in _measured(kind)}
    return replace(scores[0], n_rows=sum(each.n_rows for each in scores), **means)


def _measured(kind: type) -> list[str]:
    """What is found out about a forecast."""
    return [field.name for field in fields(kind) if field.name not in _GIVEN]


def _read_task(task: str | None, X: Any, y: Any, regressor: Any, classifier: Any) -> str:
    """The task that is asked for, or else that of the estimators and the targets."""
    if task is None:
        task = "classes" if classifier is not None or _holds_labels(X, y) else "numbers"
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {task!r}.")
    if task == "numbers" and classifier is not None:
        raise ValueError("classifier is for task='classes': give a regressor, or none.")
    if task == "classes" and regressor is not None:
        raise ValueError("regressor is for task='numbers', and y has classes: give a classifier.")
    return task


def _holds_labels(X: Any, y: Any) -> bool:
    """Whether targets are texts or booleans, or were opened as labels."""
    if isinstance(X, Source):
        return X.reading.target == "label"
    try:
        classes = open_source(X, y, target="label").classes
    except ValueError:
        return False  # and the door for numbers says what is wrong, if anything is
    return classes is not None and classes.dtype.kind not in "iuf"


def _choose(
    methods: Sequence[AnyMethod | str] | None, task: str, estimator: Any
) -> list[AnyMethod]:
    kind, defaults = _METHODS[task]
    known: dict[str, AnyMethod] = {method.name: method for method in defaults(estimator)}
    chosen: list[AnyMethod] = []
    for given in known if methods is None else methods:
        method = known.get(given) if isinstance(given, str) else given
        if method is None or not isinstance(method, kind):
            raise ValueError(
                f"unknown method {given!r}: choose among {', '.join(map(repr, known))}, or give "
                f"a {kind.__name__}."
            )
        chosen.append(method)
    return chosen


_METHODS: dict[str, tuple[type, Callable[[Any], Sequence[AnyMethod]]]] = {
    "numbers": (Method, default_methods),
    "classes": (ClassMethod, default_class_methods),
}


def _open(X: Any, y: Any, task: str) -> InMemory:
    source = open_source(X, y, target="label" if task == "classes" else "number")
    if not isinstance(source, InMemory):
        raise ValueError("X must be in memory to be split: read it into a table first.")
    if source.n_targets != 1:
        raise ValueError(f"y has {source.n_targets} targets: compare one at a time.")
    if source.classes is not None:
        check_classes(source.classes)
    return source


def _split(source: InMemory, test_size: Any, seed: int, max_categories: int) -> list[_Part]:
    """Training and test rows; how columns become numbers is learnt from the former."""
    codes = None if source.classes is None else to_numpy(source.block.targets)[:, 0]
    places = split_rows(source.block.table.n_rows, test_size, seed, codes)
    parts = [source.take(rows) for rows in places]
    columns = learn_columns(parts[0], max_categories=max_categories)
    return [
        _Part(
            source=part,
            numbers=to_numpy(encode(columns, part.block.table)[0]),
            targets=to_numpy(part.block.targets)[:, 0].astype(float),
        )
        for part in parts
    ]


def _run(method: AnyMethod, train: _Part, test: _Part, seed: int, coverage: float) -> _Run:
    """Fit, forecast and score; whatever goes wrong on the way is a result, too."""
    try:
        if isinstance(method, ClassMethod):
            return _run_classes(method, train, test, seed)
        return _run_numbers(method, train, test, seed, coverage)
    except Exception as error:
        reason = f"failed with seed {seed}: {type(error).__name__}: {error}"
        return _Run(_no_scores(method, len(test.targets), coverage), math.nan, reason)


def _run_numbers(method: Method, train: _Part, test: _Part, seed: int, coverage: float) -> _Run:
    begin = time.perf_counter()
    fitted, new = (p.source if method.takes_tables else p.numbers for p in (train, test))
    forecaster = method.fit(fitted, train.targets, seed, coverage)
    seconds = time.perf_counter() - begin
    found = forecaster(new)
    scores = evaluate(
        test.targets, found.distribution, coverage=coverage, intervals=found.intervals
    )
    return _Run(scores, seconds, found.note)


def _run_classes(method: ClassMethod, train: _Part, test: _Part, seed: int) -> _Run:
    begin, n_classes = time.perf_counter(), len(to_numpy(train.source.classes))
    fitted, new = (p.source if method.takes_tables else p.numbers for p in (train, test))
    classifier = method.fit(fitted, train.targets.astype(int), n_classes, seed)
    seconds = time.perf_counter() - begin
    scores = evaluate_classes(test.targets.astype(int), classifier(new), np.arange(n_classes))
    return _Run(scores, seconds, None)


def _no_scores(method: AnyMethod, n_rows: int, coverage: float) -> Scores | ClassScores:
    if isinstance(method, ClassMethod):
        return ClassScores(n_rows=n_rows, **dict.fromkeys(_measured(ClassScores), math.nan))
    nothing = dict.fromkeys(_measured(Scores), math.nan)
    return Scores(n_rows=n_rows, nominal_coverage=coverage, **nothing)


def _summary(name: str, runs: Sequence[_Run]) -> Comparison:
    notes = dict.fromkeys(run.note for run in runs if run.note)
    return Comparison(
        method=name,
        scores=tuple(run.scores for run in runs),
        seconds=tuple(run.seconds for run in runs),
        note="; ".join(notes) or None,
    )
