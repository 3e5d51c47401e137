"""Cases of fits: random tables and settings, other containers, new rows, and calls in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from sklearn.base import clone

from bowtienet._old import load
from tests._old.fuzz.attempts import Refusal, attempt, must, require
from tests._old.fuzz.containers import IN_MEMORY, NEW_ROWS, SINGLE, STREAMED
from tests._old.fuzz.properties import (
    assert_close,
    check_predictions,
    check_whole,
    exposed,
    predictions,
    rows_of,
)
from tests._old.fuzz.settings import NONSENSE, bend, draw_estimator, pick
from tests._old.fuzz.tables import Table, draw_table, magnitude

TASKS = ("numbers", "classes", "counts")
SAME_FIT = 1e-8
"""How far, relative to their size, predictions may be apart for the same rows elsewhere."""
Note = Callable[[str], None]


def fit(model: Any, table: Table, note: Note, X: Any = None) -> Any:
    """The fitted model or a `Refusal`, which leaves the model as it was."""
    note(f"{table.words}\n{model!r}")
    before = dict(vars(model))
    found = attempt(
        "fit", lambda: model.fit(table.frame if X is None else X, table.target, **rows_of(table))
    )
    if isinstance(found, Refusal):
        after = vars(model)
        require(
            after.keys() == before.keys() and all(after[k] is before[k] for k in before),
            "a fit that was refused changed the estimator",
        )
        require(not table.tame, "a tame table is refused", found)
    return found


def _drawn(rng: np.random.Generator, task: str) -> tuple[Table, Any]:
    """A table and an estimator; one of five has an extreme option, with which it may refuse."""
    table, extreme = draw_table(rng, task), bool(rng.random() < 0.2)
    model = draw_estimator(rng, task, extreme=extreme)
    return replace(table, tame=table.tame and not extreme), model


def fuzz_fit(task: str) -> Callable[[np.random.Generator, Path, Note], str]:
    """A case for one of the tasks: a random table, random settings, and all properties."""

    def run(rng: np.random.Generator, folder: Path, note: Note) -> str:
        table, model = _drawn(rng, task)
        if isinstance(found := fit(model, table, note), Refusal):
            return "refused"
        more = exposed(table)
        expected = check_whole(rng, folder, found, table.frame, **more)
        again = must("fit again", lambda: _refitted(model, table, pick(rng, None, None, 2)))
        assert_close("the same seed", predictions(again, table.frame, **more), expected, 0.0)
        return "fitted"

    return run


def _refitted(model: Any, table: Table, n_jobs: int | None) -> Any:
    """The same fit anew; on how many threads must not matter."""
    with parallel_config(backend="threading"):
        again = clone(model).set_params(n_jobs=n_jobs)
        return again.fit(table.frame, table.target, **rows_of(table))


def _spoilt(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """New rows as they come: far away, missing, of other types, of other categories."""
    frame = frame.astype(object).copy()
    for place in range(frame.shape[1]):
        numeric = isinstance(frame.iloc[0, place], (int, float)) and rng.random() < 0.9
        for row in range(len(frame)):
            if rng.random() < 0.4:
                sign = pick(rng, -1.0, 1.0)
                value = sign * magnitude(rng) if numeric else f"new {row}"
                frame.iloc[row, place] = pick(rng, value, value, value, None, np.nan)
    return frame


def fuzz_new_rows(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """A tame fit, and rows to predict that are anything but: finite in, finite out."""
    task = pick(rng, *TASKS)
    table, model = draw_table(rng, task, tame=True), draw_estimator(rng, task)
    if rng.random() < 0.5:
        numbers = table.frame.select_dtypes(include=[np.floating])
        table = replace(table, frame=numbers)
    must("fit", lambda: fit(model, table, note))
    rows = table.frame.iloc[:12]
    if (
        rng.random() < 0.5
        and len(rows.select_dtypes(include=[np.floating]).columns) == rows.shape[1]
    ):
        kind = pick(rng, np.float32, np.float64)
        limit = 38 if kind is np.float32 else 300
        far = [[pick(rng, 0.0, 1.0, magnitude(rng, limit)) for _ in row] for row in rows.to_numpy()]
        signs = rng.choice([-1.0, 1.0], size=rows.shape)
        with np.errstate(over="ignore"):
            spoilt = pd.DataFrame(np.nan_to_num((signs * far).astype(kind)), columns=rows.columns)
    else:
        spoilt = _spoilt(rng, rows)
    note(f"new rows:\n{spoilt.to_string()}")
    found = attempt("predict new rows", lambda: predictions(model, spoilt))
    if isinstance(found, Refusal):
        return "refused"
    check_predictions(model, found, len(spoilt))
    return "predicted"


def fuzz_containers(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """The same rows elsewhere: the same fit. And the same new rows elsewhere: the same answers."""
    n, width = int(rng.integers(20, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, width))
    y = np.tanh(X[:, 0]) + 0.2 * rng.normal(size=n)
    task = pick(rng, "numbers", "classes")
    y = y if task == "numbers" else (y > 0.0).astype(int)
    model = draw_estimator(rng, task, solver=pick(rng, "cavi", "auto"))
    where = pick(rng, *IN_MEMORY, *STREAMED)
    if where in SINGLE and rng.random() < 0.3:
        X = X.astype(np.float32)
    note(f"{n} rows of {width} columns, {X.dtype}, as {where}\n{model!r}")
    if where in IN_MEMORY:
        rows, within = IN_MEMORY[where](X, y), 0.0
    else:
        rows, within = STREAMED[where](X, y, folder), SAME_FIT
    expected = predictions(must("fit", lambda: clone(model).fit(X, y)), X)
    other = must(f"fit ({where})", lambda: clone(model).fit(*rows))
    names = getattr(other, "feature_names_in_", None)
    again = X if names is None else pd.DataFrame(X, columns=names)
    assert_close(f"fit ({where})", predictions(other, again), expected, within)
    return "the same"


def fuzz_new_containers(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """Rows to predict in another container."""
    task = pick(rng, *TASKS)
    table, model = draw_table(rng, task, tame=True), draw_estimator(rng, task)
    must("fit", lambda: fit(model, table, note))
    expected = must("predict", lambda: predictions(model, table.frame))
    where = pick(rng, *NEW_ROWS)
    note(f"rows to predict as {where}")
    rows = NEW_ROWS[where](table.frame, folder)
    found = must(f"predict ({where})", lambda: predictions(model, rows))
    assert_close(f"predict ({where})", found, expected)
    return "the same"


def _more(table: Table, rng: np.random.Generator) -> Table:
    """Some of the rows, in any order, as new ones."""
    places = rng.integers(len(table.frame), size=int(rng.integers(1, len(table.frame))))

    def part(values: Any) -> Any:
        return None if values is None else np.asarray(values)[places]

    return replace(
        table,
        frame=table.frame.iloc[places].reset_index(drop=True),
        target=part(table.target),
        weights=part(table.weights),
        exposure=part(table.exposure),
    )


def _steps(table: Table, folder: Path, rng: np.random.Generator) -> dict[str, Callable[[Any], Any]]:
    """What can be done with a fitted model; what a step returns goes on if it is a model."""
    X, y, more = table.frame, table.target, rows_of(table)
    other = _more(table, rng)
    weights = {} if table.weights is None else {"sample_weight": table.weights}

    def reloaded(model: Any) -> Any:
        model.save(folder / "model.btn")
        return load(folder / "model.btn")

    return {
        "partial_fit": lambda model: model.partial_fit(other.frame, other.target, **rows_of(other)),
        "warm start": lambda model: model.set_params(warm_start=True).fit(X, y, **more),
        "reload": reloaded,
        **(
            {} if table.task == "classes" else {"prune": lambda model: model.prune(X, y, **weights)}
        ),
        "structure": lambda model: model.structure(X, y, **more),
        "importance": lambda model: model.importance(X, y, n_repeats=2, **more),
        "explain": lambda model: model.explain(X[:2], background=X[:3], n_permutations=2),
        "score": lambda model: model.score(X, y, **more),
        "log_score": lambda model: model.log_score(X, y, **more),
        "importances": lambda model: model.feature_importances_,
        "relevance": lambda model: model.feature_relevance_,
        "sparsity": lambda model: model.sparsity_,
    }


def fuzz_life(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """A fit and then any calls in any order; after each, predictions are sound."""
    task = pick(rng, *TASKS)
    table, model = _drawn(rng, task)
    if isinstance(fit(model, table, note), Refusal):
        return "refused"
    steps = _steps(table, folder, rng)
    if not table.tame and len(table.frame) < 3:
        return "fitted"
    for name in rng.permutation(list(steps))[: rng.integers(1, 5)]:
        note(f"then {name}")
        found = attempt(name, lambda n=name, m=model: steps[n](m))
        if isinstance(found, type(model)):
            model = found
        elif isinstance(found, (float, np.floating)):
            require(not np.isnan(found), f"{name} is NaN")
        after = must(
            f"predict after {name}",
            lambda m=model: predictions(m, table.frame, **exposed(table)),
        )
        check_predictions(model, after, len(table.frame))
    return "lived"


def fuzz_nonsense(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """One setting or argument that may be nonsense: a sentence, or a fit as any other."""
    task = pick(rng, *TASKS)
    table, model = draw_table(rng, task, tame=True), draw_estimator(rng, task)
    if rng.random() < 0.2:
        value = pick(rng, *NONSENSE)
        note(f"load({value!r})")
        found = attempt("load", lambda: load(value))
        require(isinstance(found, Refusal), "load reads what is no file", value)
        return "refused"
    if rng.random() < 0.3:
        place = pick(rng, "frame", "target", "weights")
        value = pick(rng, *NONSENSE)
        note(f"{place} is {value!r}")
        table = replace(table, tame=False, **{place: value})
    else:
        name, value = bend(rng, model)
        note(f"{name}={value!r}")
        table = replace(table, tame=False)
    if isinstance(fit(model, table, note), Refusal):
        return "refused"
    if isinstance(table.frame, pd.DataFrame):
        found = must("predict", lambda: predictions(model, table.frame))
        check_predictions(model, found, len(table.frame))
    return "fitted"
