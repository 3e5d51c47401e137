"""Small saved models of every kind, and what must still work of what is read from their files."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from bowtienet._old import load
from bowtienet._old.ensemble.ensemble import mean_and_deviation
from bowtienet._old.ensemble.fit_ensemble import EnsembleFit
from tests._old.ensemble import fits
from tests._old.estimators import class_models, models
from tests._old.fuzz.forged_files import SavedFile

X, Y = models.rows(40, seed=500)
TABLE = pd.DataFrame(X, columns=["age", "height", "weight"]).assign(
    city=np.array(["Bonn", "Ulm"])[np.arange(40) % 2],
    day=pd.date_range("2024-01-01", periods=40),
)
TABLE.loc[::7, "height"] = np.nan
COUNTS = np.random.default_rng(500).poisson(np.exp(0.5 * X[:, 0]))
CLASS_X, LABELS = class_models.rows(60)


@dataclass
class Case:
    """A saved file, the way it is read, and what is done with what was read."""

    saved: SavedFile
    read: Callable[[Path], Any]
    use: Callable[[Any], Any]


def _answers(model: Any, table: Any) -> dict[str, np.ndarray]:
    """What a model says of some rows, through every door that needs no fit."""
    parts = model.predict_components(table)
    parts = np.asarray(parts).T if hasattr(parts, "columns") else parts
    if hasattr(model, "predict_proba"):
        found = {
            "predict": model.predict(table),
            "proba": model.predict_proba(table),
            "draws": model.sample_proba(table, 2),
            "components": np.column_stack(list(parts)),
        }
    else:
        found = {
            "predict": np.stack(model.predict(table, return_std=True)),
            "interval": model.predict_interval(table),
            "quantiles": model.predict_quantiles(table, [0.1, 0.9]),
            "draws": model.sample_y(table, 2),
            "components": np.column_stack(list(parts)),
        }
    found["relevance"] = np.asarray(model.feature_relevance_.strength)
    found["sparsity"] = np.asarray(model.sparsity_.weights_after)
    return {name: np.asarray(value) for name, value in found.items()}


def _use(path: Path, expected: dict[str, np.ndarray], table: Any, more: Any = None) -> Any:
    """Something that raises where a model does not answer as the one that was saved."""

    def use(model: Any) -> None:
        for name, value in _answers(model, table).items():
            like = expected[name]
            assert value.shape == like.shape, f"{name} has shape {value.shape}"
            assert value.dtype.kind == like.dtype.kind, f"{name} has dtype {value.dtype}"
            if value.dtype.kind == "f":
                assert np.isfinite(value).all(), f"{name} is not finite"
        repr(model)
        str(model.columns_)
        for name in ("structure_", "pruning_"):
            str(getattr(model, name, None))
        model.save(path.with_name("again"))
        load(path.with_name("again"))
        known = all(member.statistics is not None for member in model.ensemble_.members)
        if more is not None and known:  # without sums partial_fit says so
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.partial_fit(*more)

    return use


def _fitted(make: Callable[[], Any], table: Any, more: Any = None) -> Callable[[Path], Case]:
    def build(folder: Path) -> Case:
        path = folder / "model"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make()
        model.save(path, updatable=True)
        few = table[:4]
        return Case(SavedFile.of(path), load, _use(path, _answers(model, few), few, more))

    return build


def _structured() -> Any:
    model = models.stacked().fit(TABLE, Y)
    model.structure(TABLE, Y)
    return model


def _cut(source: Any, member: int, sweep: int, **settings: Any) -> Callable[[Path], Case]:
    """The checkpoint of a fit that was cut short; to read it is to resume the fit."""

    def build(folder: Path) -> Case:
        path, wanted = folder / "checkpoint", fits.small(**settings)
        with contextlib.suppress(fits.PowerCutError):
            fits.fit(source, wanted, fits.cut_in(member, sweep), path=path)

        def use(found: EnsembleFit) -> None:
            for values in mean_and_deviation(found.ensemble, X):
                assert np.isfinite(values).all()

        return Case(
            SavedFile.of(path), lambda file: fits.fit(source, wanted, path=file, resume=True), use
        )

    return build


CASES: dict[str, Callable[[Path], Case]] = {
    "table": _fitted(_structured, TABLE),
    "pruned": _fitted(lambda: models.small(max_iter=30).fit(X, Y).prune(X, Y), X, (X[:5], Y[:5])),
    "two targets": _fitted(
        lambda: models.small(hidden_layer_sizes=(3, 2)).fit(X, np.column_stack([Y, -Y])), X
    ),
    "stream": _fitted(
        lambda: models.small(solver="svi", max_iter=2).fit([(X, Y)]), X, (X[:5], Y[:5])
    ),
    "linear horseshoe": _fitted(
        lambda: models.small(hidden_layer_sizes=(), prior="regularized_horseshoe").fit(X, Y), X
    ),
    "student_t": _fitted(lambda: models.stacked(outcome="student_t").fit(X, Y), X),
    "counts": _fitted(lambda: models.stacked(outcome="counts").fit(X, COUNTS), X),
    "classes": _fitted(lambda: class_models.stacked().fit(CLASS_X, LABELS), CLASS_X),
    "two classes": _fitted(
        lambda: class_models.small(class_weight={True: 1.0, False: 2.0}).fit(
            CLASS_X, LABELS == "oak"
        ),
        CLASS_X,
    ),
    "checkpoint": _cut((X, Y), 3, 1, weighting="equal", n_estimators=3, max_iter=2),
    "checkpoint of a stream": _cut(
        ([(X[:20], Y[:20]), (X[20:], Y[20:])],), 2, 4, solver="svi", n_estimators=2
    ),
}
