"""A fitted ensemble as an ONNX model, which any runtime of ONNX can run without Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.onnx_export.answers import (
    class_probabilities,
    continuous_answers,
    count_answers,
    most_probable,
)
from bowtienet._old.onnx_export.graph import Graph, Traced
from bowtienet._old.onnx_export.table_inputs import standardized_inputs

MOST_BYTES = 2**31 - 1
"""Of a file in ONNX's format without files beside it."""


def export_regressor(
    ensemble: Ensemble,
    path: str | os.PathLike[str],
    *,
    named: bool,
    single_target: bool,
    quantiles: Sequence[float] = (),
) -> None:
    """Write `mean`, `std` and, if levels are given, `quantiles`.

    With `named`, columns are inputs of their own, by their names, and not one matrix; with
    `single_target`, answers have no axis of targets.
    """
    graph, x = _opened(ensemble, named)
    levels = np.asarray(quantiles, dtype=float).ravel()
    if not np.all((levels > 0.0) & (levels < 1.0)):
        raise ValueError(f"quantiles must lie strictly between 0 and 1, got {quantiles!r}.")
    if is_counts(ensemble):
        if levels.size:
            raise ValueError(
                "quantiles of counts cannot be exported, ONNX has no incomplete beta function: "
                "leave quantiles out for mean and standard deviation."
            )
        mean, deviation = count_answers(ensemble, x)
        outputs = {"mean": mean, "std": deviation}
    else:
        found = continuous_answers(ensemble, x, levels.tolist())
        names = ("mean", "std", "quantiles")
        given = {name: one for name, one in zip(names, found, strict=True) if one is not None}
        outputs = {k: _without_targets(v) if single_target else v for k, v in given.items()}
    facts = {"quantiles": " ".join(map(repr, levels.tolist()))} if levels.size else {}
    _write(graph, path, outputs, facts)


def export_classifier(
    ensemble: Ensemble, path: str | os.PathLike[str], *, named: bool, classes: np.ndarray
) -> None:
    """Write `label` and `probabilities`, in the order of the classes."""
    graph, x = _opened(ensemble, named)
    if np.asarray(classes).dtype.kind not in "UOiufb":
        raise ValueError(f"labels of type {classes.dtype} cannot be exported: make them texts.")
    found = class_probabilities(ensemble, x)
    outputs = {"label": most_probable(found, classes), "probabilities": found}
    _write(graph, path, outputs, {"classes": " ".join(map(str, classes.tolist()))})


def _opened(ensemble: Ensemble, named: bool) -> tuple[Graph, Traced]:
    """A graph, and the standardised rows in it."""
    if ensemble.propagation != "push_forward":
        raise ValueError(
            f"propagation={ensemble.propagation!r} iterates until it converges and cannot be "
            "exported: fit with propagation='push_forward'."
        )
    graph = Graph()
    return graph, standardized_inputs(graph, ensemble.representation, named=named)


def _without_targets(value: Traced) -> Traced:
    """(n, 1, ...) as (n, ...)."""
    shape = (value.shape[0], *value.shape[2:])
    return value.device.node("Squeeze", [value, np.array([1])], shape, value.dtype)


def _write(
    graph: Graph,
    path: str | os.PathLike[str],
    outputs: dict[str, Traced],
    facts: dict[str, str],
) -> None:
    about = {"bowtienet": version("bowtienet")}
    model = graph.model(outputs, "An ensemble of Bayesian bow tie networks.", about | facts)
    if model.ByteSize() > MOST_BYTES:
        raise ValueError(
            f"the model has {model.ByteSize():,} bytes and a file of ONNX at most {MOST_BYTES:,}: "
            "fit fewer members or smaller layers, or prune."
        )
    Path(path).write_bytes(model.SerializeToString())
