"""A fitted ensemble as one ONNX graph, built node by node in the order in which `predict` works.

`to_onnx` says what goes in and comes out. Networks are in single precision and all else in double,
whatever comes in and goes out, so that any unit will do.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray
from onnx import TensorProto, checker, helper, numpy_helper
from scipy.special import erfcx, ndtri

from bowtienet._arrays import map_arrays
from bowtienet.ensemble.ensemble import SHARED, Ensemble
from bowtienet.ensemble.portfolio import LINEAR
from bowtienet.networks.networks import count_of
from bowtienet.outcomes import Counts, Softmax
from bowtienet.persistence import replacing
from bowtienet.prediction.components import NODE_WEIGHTS, NODES
from bowtienet.tables.dates import DAYS_OF_YEAR
from bowtienet.tables.dates import PARTS as DATE_PARTS
from bowtienet.tables.representation import FARTHEST, Representation
from bowtienet.tables.texts import Column
from bowtienet.tables.views import FARTHEST_SEEN, View, first_and_last
from bowtienet.tables.warp import Warp, forward


def _node(operator: str) -> Any:
    """The method of a value that adds this node."""
    return lambda value, other: value.graph(operator, value, other)


class _Value:
    """The result of a node; its arithmetic adds nodes."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__, __mul__ = _node("Add"), _node("Sub"), _node("Mul")
    __truediv__, __matmul__ = _node("Div"), _node("MatMul")


class _Graph:
    """Nodes, constants, and what goes in and out; `kind` is the type of its numbers."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._numbers = itertools.count()

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> _Value:
        """The result of a new node; inputs that are no values are constants."""
        names = []
        for x in inputs:
            if not isinstance(x, _Value):
                array = np.asarray(x, order="C")
                x = _Value(self, f"/constant/{next(self._numbers)}")
                self.constants.append(numpy_helper.from_array(array, x.name))
            names.append(x.name)
        name = f"/{operator}/{next(self._numbers)}"
        self.nodes.append(helper.make_node(operator, names, [name], domain=domain, **attributes))
        return _Value(self, name)

    def cast(self, value: _Value, kind: int = TensorProto.DOUBLE) -> _Value:
        return self("Cast", value, to=kind)

    def sum(self, value: _Value, *axes: int, keepdims: int = 0) -> _Value:
        return self("ReduceSum", value, np.array(axes), keepdims=keepdims)

    def clip(self, value: _Value, low: Any, high: Any) -> _Value:
        return self("Min", self("Max", value, low), high)

    def input(self, name: str, width: int = 1, kind: int | None = None) -> _Value:
        """An input (n, width): numbers, in double then, or what is of that kind."""
        kind_of = kind or self.kind
        self.inputs.append(helper.make_tensor_value_info(name, kind_of, ["rows", width]))
        return _Value(self, name) if kind else self.cast(_Value(self, name))

    def output(self, name: str, value: _Value, *shape: int, kind: int | None = None) -> None:
        """An output (n, *shape) in the type of the graph, or of that kind."""
        kind = kind or self.kind
        self.nodes.append(helper.make_node("Cast", [value.name], [name], to=kind))
        self.outputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))


def export(
    path: Any,
    representation: Representation,
    ensemble: Ensemble,
    *,
    dtype: str,
    quantiles: Any = (),
    is_single: bool = True,
    classes: NDArray[Any] | None = None,
    has_exposure: bool = False,
) -> None:
    """Write the graph of an ensemble."""
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be None, 'float32' or 'float64', got {dtype!r}.")
    if levels.ndim > 1 or not np.all((levels > 0.0) & (levels < 1.0)):
        raise ValueError(f"quantiles must lie strictly between 0 and 1, got {quantiles!r}.")
    if levels.size and not ensemble.warps:
        raise ValueError("quantiles are for numbers alone: counts and classes leave them out.")
    graph = _Graph(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    center, scale = representation.scaling
    encoded = _encoded(graph, representation.columns)
    scaled = (encoded * 0.5 - 0.5 * center) / scale * 2.0
    inputs = graph.clip(scaled, -FARTHEST, FARTHEST)
    if isinstance(ensemble.outcome, Softmax):
        _add_classes(graph, ensemble, inputs, np.asarray(classes))
    elif isinstance(ensemble.outcome, Counts):
        _add_counts(graph, ensemble, inputs, has_exposure)
    else:
        _add_numbers(graph, ensemble, inputs, levels, is_single)
    names = [each.name for each in (*graph.inputs, *graph.outputs)]
    if "" in names or len(set(names)) < len(names):
        raise ValueError("a column has no name, or that of an output or exposure: give it another.")
    parts = (graph.nodes, "bowtienet", graph.inputs, graph.outputs, graph.constants)
    # Older programs refuse newer versions, and these have all operators.
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(helper.make_graph(*parts), opset_imports=opsets, ir_version=8)
    checker.check_model(made)
    with replacing(path) as file:
        file.write(made.SerializeToString())


def _encoded(graph: _Graph, columns: tuple[Column, ...]) -> _Value:
    """Encoded columns (n, E), as `tables.columns.encode` makes them."""
    if all(column.kind == "number" for column in columns):
        return _numbers(graph, "X", columns)
    blocks = []
    for column in columns:
        if column.kind == "number":
            blocks.append(_numbers(graph, column.name, (column,)))
        elif column.kind in ("category", "many levels"):
            blocks.append(_category(graph, column))
        elif column.kind == "date":
            blocks.append(_date(graph, column))
        else:
            raise ValueError(f"column {column.name!r} is of texts: fit with numbers in its place.")
    return graph("Concat", *blocks, axis=1)


def _numbers(graph: _Graph, name: str, columns: tuple[Column, ...]) -> _Value:
    """Numbers, the typical ones where they are missing, and where that is."""
    values = graph.input(name, len(columns))
    missing = graph("IsNaN", values)
    filled = graph("Where", missing, np.array([c.typical for c in columns]), values)
    positions: list[int] = []
    for index, column in enumerate(columns):
        positions += [index] * len(column.parts) + [len(columns) + index] * column.has_indicator
    both = graph("Concat", filled, graph.cast(missing), axis=1)
    return graph("Gather", both, np.array(positions, dtype=np.int64), axis=1)


def _category(graph: _Graph, column: Column) -> _Value:
    """The row of each level; the last row is for missing and unknown ones."""
    levels = list(column.parts)
    rows = np.eye(len(levels) + 1, len(levels))
    if column.levels is not None and column.means is not None:
        frequent, levels = levels, column.levels.tolist()
        rows = np.array([[level == each for each in frequent] for level in [*levels, None]], float)
        rows = np.concatenate([rows.reshape(len(levels) + 1, -1), column.means], axis=1)
    size = len(levels)
    number = graph(
        "LabelEncoder",
        graph("Squeeze", graph.input(column.name, kind=TensorProto.STRING), np.array([1])),
        domain="ai.onnx.ml",
        keys_strings=[*levels, ""],
        values_int64s=list(range(size + 1)),
        default_int64=size,
    )
    return graph("Gather", rows, number, axis=0)


def _date(graph: _Graph, column: Column) -> _Value:
    """Days, season, weekday and hour, those of the typical day where missing."""
    given = graph.input(column.name, kind=TensorProto.INT64)
    missing = graph("Equal", given, np.iinfo(np.int64).min)
    days = graph("Where", missing, column.typical, graph.cast(given) / 86_400e6)
    angle, whole = days * (2.0 * np.pi / DAYS_OF_YEAR), graph("Floor", days)
    week = graph("Floor", (whole + 3.0) / 7.0)
    hours = graph("Round", (days - whole) * 24e6) / 1e6
    sine, cosine = graph("Sin", angle), graph("Cos", angle)
    parts = (days, sine, cosine, whole + 3.0 - week * 7.0, hours, graph.cast(missing))
    positions = [DATE_PARTS.index(part) for part in column.parts] + [-1] * column.has_indicator
    return graph("Gather", graph("Concat", *parts, axis=1), np.array(positions, np.int64), axis=1)


def _seen(graph: _Graph, view: View, inputs: _Value) -> _Value:
    """Inputs of networks, as `tables.views.see` makes them."""
    inputs = graph.clip(inputs, -FARTHEST_SEEN, FARTHEST_SEEN)
    first, last = first_and_last(view)
    taken = graph("Gather", inputs, view.column.astype(np.int64), axis=1)
    at = (taken - view.low) / (view.high - view.low)
    held = graph.clip(at, np.where(first, -np.inf, 0.0), np.where(last, np.inf, 1.0))
    inputs = (held - view.center) / view.scale
    if view.principal is not None:
        inputs = inputs @ view.principal
    return graph.cast(inputs, TensorProto.FLOAT)


def _member_outputs(graph: _Graph, ensemble: Ensemble, inputs: _Value) -> list[_Value]:
    """Outputs (F, n, D) of the members of each recipe."""
    seen = {name: _seen(graph, view, inputs) for name, view in ensemble.views.items()}
    outputs = []
    for recipe, networks in zip(ensemble.recipes, ensemble.members, strict=True):
        values = inputs if recipe.view == LINEAR else seen[recipe.view]
        values = graph.cast(values, helper.np_dtype_to_tensor_dtype(networks.layers[-1].dtype))
        for index, layer in enumerate(networks.layers):
            values = graph("Relu", values) if index else values
            values = values @ np.swapaxes(layer[:, :, 1:], 1, 2) + layer[:, None, :, 0]
        outputs.append(graph.cast(values))
    return outputs


def _all_members(graph: _Graph, ensemble: Ensemble, inputs: _Value) -> tuple[_Value, Any, Any]:
    """Outputs (M, n, C) of the members of all recipes, their weights and `spread` (M, 1, 1)."""
    outputs = graph("Concat", *_member_outputs(graph, ensemble, inputs), axis=0)
    counts = [count_of(networks) for networks in ensemble.members]
    each = np.stack([ensemble.stacks[0].weights / counts, ensemble.spread[:, 0]])
    return outputs, *np.repeat(each, counts, axis=1)[:, :, None, None]


def _add_classes(graph: _Graph, ensemble: Ensemble, inputs: _Value, classes: NDArray[Any]) -> None:
    outputs, weights, temperatures = _all_members(graph, ensemble, inputs)
    total = graph.sum(graph("Softmax", outputs / temperatures, axis=-1) * weights, 0)
    labels = classes if classes.dtype.kind in "iufb" else classes.astype(str).astype(object)
    label = graph("Gather", labels, graph("ArgMax", total, axis=1, keepdims=0), axis=0)
    graph.output("probabilities", total, len(classes))
    graph.output("label", label, kind=helper.np_dtype_to_tensor_dtype(labels.dtype))


def _add_counts(graph: _Graph, ensemble: Ensemble, inputs: _Value, has_exposure: bool) -> None:
    """Moments of a mixture of negative binomial distributions."""
    logs = graph("Log", graph.input("exposure")) if has_exposure else 0.0
    outputs, weights, dispersion = _all_members(graph, ensemble, inputs)
    rates = graph("Exp", graph("Min", outputs + logs, np.float64(60.0)))
    mean = graph.sum(rates * weights, 0)
    apart, noise = rates - mean, rates + rates * rates * dispersion
    variance = graph.sum((apart * apart + noise) * weights, 0)
    for name, value in (("mean", mean), ("std", graph("Sqrt", variance))):
        graph.output(name, graph("Squeeze", value, np.array([1])))


def _add_numbers(
    graph: _Graph, ensemble: Ensemble, inputs: _Value, levels: NDArray[Any], is_single: bool
) -> None:
    """Moments and quantiles of R recipes x K levels, of standardised targets u to the end."""
    center, scale = ensemble.warps[0].center, ensemble.warps[0].scale
    chosen = [ensemble.warps[int(recipe.is_warped)] for recipe in ensemble.recipes]
    # Fields (R, 1, 1, D); center and scale are those of all.
    warp: Warp = map_arrays(lambda *each: np.stack(each)[:, None, None], *chosen)
    weights, means, deviations = _components(graph, ensemble, inputs)
    nodes, shares = (x.reshape(-1, 1, 1, 1, 1) for x in (NODES, NODE_WEIGHTS))
    medians = _inverse(graph, warp, means)
    apart = _inverse(graph, warp, deviations * nodes + means) - medians
    shift = graph.sum(apart * (shares / shares.sum()), 0)
    mean = graph.sum((medians + shift) * weights, 0, 1)
    apart, beyond = apart - shift, medians + shift - mean
    variances = graph.sum(apart * apart * (shares / shares.sum()), 0)
    std = graph("Sqrt", graph.sum((beyond * beyond + variances) * weights, 0, 1))
    answers = [("mean", mean * scale + center), ("std", std * scale)]
    if levels.size:
        u = _quantiles(graph, warp, levels, weights, means, deviations)
        answers.append(("quantiles", graph("Transpose", u * scale + center, perm=[1, 2, 0])))
    for name, value in answers:
        shape = [] if is_single else [len(center)]
        value = graph("Squeeze", value, np.array([1])) if is_single else value
        graph.output(name, value, *shape, *[levels.size] * (name == "quantiles"))


def _components(graph: _Graph, ensemble: Ensemble, inputs: _Value) -> tuple[_Value, ...]:
    """Weights (R, K, n, D), means (R, 1, n, D) and deviations (R, K, n, D) of warped targets."""
    means, variances, stacks = [], [], ensemble.stacks
    left_open = _left_open(graph, ensemble, inputs)
    for index, values in enumerate(_member_outputs(graph, ensemble, inputs)):
        means.append(graph("ReduceMean", values, np.array([0]), keepdims=1))
        apart, count = values - means[-1], count_of(ensemble.members[index])
        shared = graph.sum(apart * apart, 0, keepdims=1) * (SHARED / max(count - 1, 1))
        variances.append(shared + left_open[int(ensemble.recipes[index].is_warped)])
    center, epistemic = (
        graph("Unsqueeze", graph("Concat", *each, axis=0), np.array([1]))
        for each in (means, variances)
    )
    noise = ensemble.spread[:, None] * np.stack([stack.levels for stack in stacks], axis=-1)
    gates = np.stack([stack.gates for stack in stacks])
    seen = graph.cast(_seen(graph, ensemble.gates, inputs))
    by_level = graph("Softmax", seen @ gates[:, 1:] + gates[:, :1], axis=-1)
    by_recipe = np.stack([stack.weights for stack in stacks], axis=-1)[:, None, None]
    weights = graph("Transpose", by_level, perm=[2, 1, 0]) * by_recipe
    return weights, center, graph("Sqrt", epistemic + noise[:, :, None])


def _left_open(graph: _Graph, ensemble: Ensemble, inputs: _Value) -> list[_Value]:
    """e² (n, D) for every warp, as `ensemble.hinges.variances` has it."""
    hinges = ensemble.hinges
    assert hinges is not None
    seen = graph.cast(_seen(graph, ensemble.views[hinges.view], inputs))
    # Without any hinge a silent one: ONNX Runtime leaves products over nothing unset.
    silent = int(not len(hinges.weights))
    weights = np.pad(hinges.weights, ((0, silent), (0, 0)))
    hidden = graph("Relu", seen @ weights[:, 1:].T + weights[:, 0])
    variances = []
    for index, roots in enumerate(hinges.roots):
        roots = np.pad(roots, ((0, 0), (0, 0), (0, silent)))
        along = hidden @ np.swapaxes(roots[:, :, 1:], 1, 2) + roots[:, None, :, 0]
        squares = graph("Transpose", graph.sum(along * along, 2), perm=[1, 0])
        variances.append(graph("Min", squares, np.float64(1.0)) if index else squares)
    return variances


def _quantiles(graph: _Graph, warp: Warp, levels: Any, *components: _Value) -> _Value:
    """u (m, n, D): the bracket of all components, and again the eighth that has the quantile."""
    weights, means, deviations = components
    levels = levels.reshape(-1, 1, 1, 1, 1)
    steps = np.arange(1.0, 8.0).reshape(-1, 1, 1, 1, 1, 1)
    ends = _inverse(graph, warp, deviations * ndtri(levels) + means)
    low, high = (graph(each, ends, np.array([1, 2])) for each in ("ReduceMin", "ReduceMax"))
    width = high - low
    for _ in range(10):  # to 1e-9 of the bracket
        width = width / 8.0
        z = (_forward(graph, warp, width * steps + low) - means) / deviations
        reached = graph.sum(_normal_cdf(graph, z) * weights, 2, 3, keepdims=1)
        low = low + width * graph.sum(graph.cast(graph("Less", reached, levels)), 0)
    return graph("Squeeze", low + width * 0.5, np.array([1, 2]))


def _normal_cdf(graph: _Graph, z: _Value) -> _Value:
    """Φ(z), of z < 0 and x = |z| / √2 as ½ e^{-x²} times the scaled error function."""
    x = graph("Abs", z) * np.sqrt(0.5)
    t = (x - 4.0) / (x + 4.0)
    # e^{x²} erfc(x) to ten digits: onnxruntime has no erf of doubles.
    series = Chebyshev.interpolate(lambda t: erfcx(4.0 * (1.0 + t) / (1.0 - t)), 16)
    scaled: Any = 0.0
    for coefficient in series.convert(kind=Polynomial).coef[::-1]:
        scaled = t * scaled + coefficient
    tail = graph("Exp", x * x * -1.0) * scaled * 0.5
    return graph("Where", graph("Less", z, 0.0), tail, tail * -1.0 + 1.0)


def _side(graph: _Graph, exponent: Any, u: _Value) -> tuple[_Value, _Value, _Value]:
    """The sign of u, its size, and λ above zero or 2 - λ below it, as in `tables.warp`."""
    is_upper = graph("GreaterOrEqual", u, 0.0)
    power = graph("Where", is_upper, exponent, 2.0 - exponent)
    sign = graph("Where", is_upper, 1.0, -1.0)
    # Below 1e-8 the transform is exponential to eight digits.
    return sign, graph("Abs", u), graph("Max", power, 1e-8)


def _forward(graph: _Graph, warp: Warp, u: _Value) -> _Value:
    inside = graph.clip(u, warp.low, warp.high)
    sign, size, power = _side(graph, warp.exponent, inside)
    grown = graph("Exp", graph("Log", size + 1.0) * power)
    bent = sign * (grown - 1.0) / power + (u - inside) * grown / (size + 1.0)
    return (bent - warp.shift) / warp.size


def _inverse(graph: _Graph, warp: Warp, z: _Value) -> _Value:
    bent = z * warp.size + warp.shift
    ends = (forward(warp, warp.center + warp.scale * end) for end in (warp.low, warp.high))
    inside = graph.clip(bent, *(end * warp.size + warp.shift for end in ends))
    sign, size, power = _side(graph, warp.exponent, inside)
    inner = size * power + 1.0
    grown = graph("Exp", graph("Log", inner) / power)
    return sign * (grown - 1.0) + (bent - inside) * grown / inner
