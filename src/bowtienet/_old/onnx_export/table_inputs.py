"""What a graph is given of a table, and the standardised rows that it makes of it.

A model that was fitted to a matrix of numbers takes one, `X` (n, columns). Any other takes every
column that it uses by its name, as (n, 1): numbers as doubles, NaN where missing; dates and
durations as days; categories as texts, empty where missing.
"""

from __future__ import annotations

import numpy as np

from bowtienet._old.onnx_export import operators as xp
from bowtienet._old.onnx_export.graph import Graph, Traced
from bowtienet._old.representation.columns import Column, encoded_names_of
from bowtienet._old.representation.kinds import CATEGORY, DATE, DURATION, NUMBER
from bowtienet._old.representation.representation import Representation
from bowtienet._old.representation.scaling import Scaling

_TEXTS = {
    NUMBER: "number, NaN where missing",
    DATE: "days since 1970-01-01, NaN where missing",
    DURATION: "days, NaN where missing",
    CATEGORY: "text, empty where missing",
}


def standardized_inputs(graph: Graph, representation: Representation, *, named: bool) -> Traced:
    """Standardised features (n, encoded), in their order, from inputs of the graph."""
    columns = representation.columns
    if named or any(column.kind != NUMBER for column in columns):
        encoded = [_encoded(_column_input(graph, one), one) for one in columns if _is_used(one)]
    else:
        matrix = graph.input("X", len(columns), np.float64, "numbers, NaN where missing")
        encoded = [
            _encoded(matrix[:, place : place + 1], column)
            for place, column in enumerate(columns)
            if _is_used(column)
        ]
    standardized = _standardized(representation.feature_scaling, xp.concat(encoded, axis=1))
    order = graph.constant(np.asarray(representation.column_order))
    return xp.take(standardized, order, axis=1)


def _is_used(column: Column) -> bool:
    return bool(encoded_names_of(column))


def _column_input(graph: Graph, column: Column) -> Traced:
    dtype = object if column.kind == CATEGORY else np.float64
    return graph.input(column.name, 1, dtype, _TEXTS[column.kind])


def _encoded(values: Traced, column: Column) -> Traced:
    """`representation.columns.encode` of one column (n, 1): values, then the indicator."""
    if column.kind == CATEGORY:
        return _one_hot(values, column)
    missing = values.device.node("IsNaN", [values], values.shape, bool)
    parts = []
    if column.has_value:
        parts.append(xp.where(missing, np.full((1, 1), column.typical or 0.0), values))
    if column.has_indicator:
        parts.append(xp.astype(missing, np.float64))
    return xp.concat(parts, axis=1)


def _one_hot(texts: Traced, column: Column) -> Traced:
    """Ones where a text is a known category, or is missing; new categories are zero in all."""
    known = list(column.categories) if column.has_value else []
    # An empty text is a missing one, and the indicator stands after the categories.
    places = known + [""] * column.has_indicator
    codes = texts.device.node(
        "LabelEncoder",
        [texts],
        texts.shape,
        np.int64,
        domain="ai.onnx.ml",
        keys_strings=places,
        values_int64s=list(range(len(places))),
        default_int64=-1,
    )
    own = np.arange(len(places))[None, :]
    shape = (texts.shape[0], len(places))
    return xp.astype(texts.device.node("Equal", [codes, own], shape, bool), np.float64)


def _standardized(scaling: Scaling, values: Traced) -> Traced:
    """`representation.scaling.standardize`: halves, because a difference may overflow."""
    center, scale = np.asarray(scaling.center), np.asarray(scaling.scale)
    return (0.5 * values - 0.5 * center) / scale * 2.0
