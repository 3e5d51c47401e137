"""An ONNX graph, and arrays that write a node into it for every operation on them.

The core of the library is written against the array API. Handed a `Traced` array in place of rows,
`push_forward` or `from_warped` leave behind the nodes that compute the same: what is exported is
the code that predicts, not a second version of it. Numbers are doubles, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise ImportError("to_onnx needs onnx: pip install 'bowtienet[onnx]'.") from error

ROWS = None
"""Length of the axis of rows, which differs from call to call."""
OPSET, ML_OPSET, IR_VERSION = 18, 3, 9
"""Of 2023: old enough for the runtimes that people have."""

Shape = tuple[int | None, ...]

_TYPES = {
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(object): TensorProto.STRING,
}


class Graph:
    """Nodes in the order in which they were asked for; equal ones are written once."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._known: dict[Any, Traced] = {}
        self._count = 0

    def input(self, name: str, n_columns: int, dtype: Any, text: str) -> Traced:
        """A table (n, columns) that whoever runs the graph hands over, with a text about it."""
        info = helper.make_tensor_value_info(
            name, _TYPES[np.dtype(dtype)], ["n", n_columns], doc_string=text
        )
        self._inputs.append(info)
        return Traced(self, name, (ROWS, n_columns), np.dtype(dtype))

    def constant(self, value: Any) -> Traced:
        """Numbers, truth values or texts that are part of the graph."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        content = tuple(array.ravel()) if array.dtype == object else array.tobytes()
        key = ("constant", array.dtype.str, array.shape, content)
        if key not in self._known:
            name = self._name()
            self._constants.append(numpy_helper.from_array(array, name))
            self._known[key] = Traced(self, name, array.shape, array.dtype)
        return self._known[key]

    def node(
        self,
        operator: str,
        arguments: Sequence[Any],
        shape: Shape,
        dtype: Any = np.float64,
        domain: str = "",
        **attributes: Any,
    ) -> Traced:
        """The result of an operator, of known shape and type."""
        inputs = [self.named(argument) for argument in arguments]
        key = (operator, *(one.name for one in inputs), repr(sorted(attributes.items())))
        if key not in self._known:
            name = self._name()
            node = helper.make_node(
                operator, [one.name for one in inputs], [name], domain=domain, **attributes
            )
            self._nodes.append(node)
            self._known[key] = Traced(self, name, shape, np.dtype(dtype))
        return self._known[key]

    def named(self, value: Any) -> Traced:
        """A traced array as it is, all else as a constant."""
        return value if isinstance(value, Traced) else self.constant(value)

    def n_rows(self) -> Traced:
        """The number of rows (1,)."""
        first = self._inputs[0]
        table = Traced(self, first.name, (ROWS, 1), np.dtype(np.float64))
        return self.node("Shape", [table], (1,), np.int64, start=0, end=1)

    def loop(
        self, n_steps: int, start: Sequence[Traced], step: Callable[..., Sequence[Traced]]
    ) -> list[Traced]:
        """`step` again and again, from `start`, of states that keep their shapes."""
        nodes, known = self._nodes, dict(self._known)
        self._nodes = []
        states = [Traced(self, self._name(), one.shape, one.dtype) for one in start]
        counter, going = self._name(), self._name()
        found = step(*states)
        stays = self.node("Identity", [Traced(self, going, (), np.dtype(bool))], (), bool)
        body = helper.make_graph(
            self._nodes,
            "step",
            [
                helper.make_tensor_value_info(counter, TensorProto.INT64, []),
                helper.make_tensor_value_info(going, TensorProto.BOOL, []),
                *(_info(one) for one in states),
            ],
            [_info(one) for one in (stays, *found)],
        )
        constants = {key: one for key, one in self._known.items() if key[0] == "constant"}
        self._nodes, self._known = nodes, known | constants
        inputs = [self.constant(np.int64(n_steps)).name, "", *(one.name for one in start)]
        results = [Traced(self, self._name(), one.shape, one.dtype) for one in start]
        self._nodes.append(
            helper.make_node("Loop", inputs, [one.name for one in results], body=body)
        )
        return results

    def model(self, outputs: dict[str, Traced], text: str, facts: dict[str, str]) -> Any:
        """The finished model, with names for its outputs."""
        renamed = [
            helper.make_node("Identity", [value.name], [name]) for name, value in outputs.items()
        ]
        infos = [
            helper.make_tensor_value_info(name, _TYPES[value.dtype], _dimensions(value.shape))
            for name, value in outputs.items()
        ]
        graph = helper.make_graph(
            [*self._nodes, *renamed], "bowtienet", self._inputs, infos, self._constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("ai.onnx.ml", ML_OPSET),
            ],
            ir_version=IR_VERSION,
            producer_name="bowtienet",
            doc_string=text,
        )
        helper.set_model_props(model, facts)
        return model

    def _name(self) -> str:
        self._count += 1
        return f"_{self._count}"


class Traced:
    """An array of the graph: the name, shape and type of what a node will compute."""

    __array_ufunc__ = None  # NumPy arrays leave operators to us

    def __init__(self, graph: Graph, name: str, shape: Shape, dtype: np.dtype) -> None:
        self.device = graph  # where the array lives, as the array API has it
        self.name = name
        self.shape = shape
        self.dtype = dtype

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from bowtienet._old.onnx_export import operators

        return operators

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Traced:
        """Axes in reverse order."""
        order = list(range(self.ndim))[::-1]
        return self.device.node("Transpose", [self], self.shape[::-1], self.dtype, perm=order)

    def __add__(self, other: Any) -> Traced:
        return elementwise("Add", self, other)

    def __radd__(self, other: Any) -> Traced:
        return elementwise("Add", other, self)

    def __sub__(self, other: Any) -> Traced:
        return elementwise("Sub", self, other)

    def __rsub__(self, other: Any) -> Traced:
        return elementwise("Sub", other, self)

    def __mul__(self, other: Any) -> Traced:
        return elementwise("Mul", self, other)

    def __rmul__(self, other: Any) -> Traced:
        return elementwise("Mul", other, self)

    def __truediv__(self, other: Any) -> Traced:
        return elementwise("Div", self, other)

    def __rtruediv__(self, other: Any) -> Traced:
        return elementwise("Div", other, self)

    def __pow__(self, power: int) -> Traced:
        if power != 2:
            raise NotImplementedError(f"power {power}")
        return self * self

    def __neg__(self) -> Traced:
        return self.device.node("Neg", [self], self.shape)

    def __gt__(self, other: Any) -> Traced:
        return elementwise("Greater", self, other, bool)

    def __lt__(self, other: Any) -> Traced:
        return elementwise("Less", self, other, bool)

    def __matmul__(self, other: Any) -> Traced:
        right = self.device.named(other)
        before = broadcast(self.shape[:-2], right.shape[:-2])
        shape = (*before, self.shape[-2], right.shape[-1])
        return self.device.node("MatMul", [self, right], shape)

    def __getitem__(self, key: Any) -> Traced:
        """Slices from the start on or to the end, new axes, and an ellipsis."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            place = keys.index(Ellipsis)
            n_missing = self.ndim - sum(one is not None for one in keys) + 1
            keys[place : place + 1] = [slice(None)] * n_missing
        found = self
        for axis, one in enumerate(keys):
            if one is None:
                found = _with_axis(found, axis)
            elif one != slice(None):
                found = _sliced(found, one, axis)
        return found


def broadcast(*shapes: Shape) -> Shape:
    """The shape of what is combined entry by entry, with `ROWS` as a length of its own."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found: list[int | None] = []
    for lengths in zip(*padded, strict=True):
        different = {length for length in lengths if length != 1} or {1}
        if len(different) > 1:
            raise ValueError(f"shapes {shapes} cannot be combined")
        found += different
    return tuple(found)


def elementwise(operator: str, left: Any, right: Any, dtype: Any = np.float64) -> Traced:
    """The result of an operator of two numbers."""
    graph = left.device if isinstance(left, Traced) else right.device
    first, second = (
        graph.named(float(one) if isinstance(one, int) else one) for one in (left, right)
    )
    return graph.node(operator, [first, second], broadcast(first.shape, second.shape), dtype)


def _with_axis(x: Traced, axis: int) -> Traced:
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return x.device.node("Unsqueeze", [x, np.array([axis])], shape, x.dtype)


def _sliced(x: Traced, part: slice, axis: int) -> Traced:
    length = x.shape[axis]
    assert length is not None, "rows are not parted"
    start, stop, _ = part.indices(length)
    bounds = [np.array([bound]) for bound in (start, stop, axis)]
    shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
    return x.device.node("Slice", [x, *bounds], shape, x.dtype)


def _dimensions(shape: Shape) -> list[int | str]:
    return ["n" if length is ROWS else length for length in shape]


def _info(value: Traced) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(value.name, _TYPES[value.dtype], _dimensions(value.shape))
