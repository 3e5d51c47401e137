"""The array namespace of `Traced`: what the code that predicts asks of one, as ONNX operators.

Names and arguments are those of the array API, and `ndtr` and `expit` those of SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from bowtienet._old.onnx_export.graph import ROWS, Graph, Shape, Traced, broadcast, elementwise

float64, int64, finfo = np.float64, np.int64, np.finfo

_TAIL_UNIT, _TAIL_DEGREE = 4.0, 20
"""Of the polynomial for the tail of the normal distribution; see `ndtr`."""


def asarray(value: Any, *, dtype: Any = None, device: Graph) -> Traced:
    """Numbers as a constant."""
    return device.constant(np.asarray(value, dtype=dtype))


def ones(shape: Shape, *, dtype: Any = None, device: Graph) -> Traced:
    """Ones, as many as there will be rows."""
    lengths = [device.n_rows() if length is ROWS else np.array([length]) for length in shape]
    size = device.node("Concat", lengths, (len(shape),), np.int64, axis=0)
    one = device.constant(np.ones((1,) * len(shape)))
    return device.node("Expand", [one, size], shape)


def zeros_like(x: Traced) -> Traced:
    """Zeros of the shape of finite numbers."""
    return x - x


def ones_like(x: Traced) -> Traced:
    """Ones of the shape of finite numbers."""
    return zeros_like(x) + 1.0


def full_like(x: Traced, value: float) -> Traced:
    """A number in the shape of finite numbers."""
    return zeros_like(x) + value


def any(x: Traced) -> bool:
    """Yes: rows are not known yet, and the way that serves all of them is to be traced."""
    return True


def _unary(operator: str) -> Callable[[Traced], Traced]:
    """An operator of single numbers."""
    return lambda x: x.device.node(operator, [x], x.shape)


sqrt, exp, log, abs, sign = map(_unary, ("Sqrt", "Exp", "Log", "Abs", "Sign"))
expit = _unary("Sigmoid")


def expm1(x: Traced) -> Traced:
    """e^x - 1 = tanh(x/2) (e^x + 1), to rounding also where x is small."""
    return x.device.node("Tanh", [0.5 * x], x.shape) * (exp(x) + 1.0)


def log1p(x: Traced) -> Traced:
    """log(1 + x) = log(u) x / (u - 1) with u = 1 + x rounded, and x where u is one."""
    rounded = 1.0 + x
    rest = rounded - 1.0
    vanishes = x.device.node("Equal", [rest, 0.0], x.shape, bool)
    return where(vanishes, x, log(rounded) * (x / where(vanishes, ones_like(x), rest)))


def ndtr(x: Traced) -> Traced:
    """Φ(x), to 1e-14: runtimes have the error function in single precision only.

    With y = |x| / √2 and t = 4 / (4 + y), Φ(-|x|) = ½ e^{-y²} t P(2t - 1), and P a polynomial.
    """
    size = abs(x) * np.sqrt(0.5)
    t = _TAIL_UNIT / (_TAIL_UNIT + size)
    s = 2.0 * t - 1.0
    coefficients = _tail_polynomial()
    value = coefficients[-1] * ones_like(s)
    for coefficient in coefficients[-2::-1]:
        value = value * s + coefficient
    tail = 0.5 * (exp(-(size * size)) * (t * value))
    return where(x > 0.0, 1.0 - tail, tail)


@cache
def _tail_polynomial() -> tuple[float, ...]:
    """P of `ndtr`, the lowest power first: erfcx(y) / t interpolated at Chebyshev's points."""
    points = chebyshev.chebpts1(_TAIL_DEGREE + 1)
    t = 0.5 * (points + 1.0)
    values = erfcx(_TAIL_UNIT / t - _TAIL_UNIT) / t
    found = chebyshev.cheb2poly(chebyshev.chebfit(points, values, _TAIL_DEGREE))
    return tuple(found.tolist())


def minimum(x: Traced, y: Any) -> Traced:
    """The smaller of two, entry by entry."""
    return elementwise("Min", x, y)


def maximum(x: Traced, y: Any) -> Traced:
    """The larger of two, entry by entry."""
    return elementwise("Max", x, y)


def clip(x: Traced, min: float | None = None, max: float | None = None) -> Traced:
    """x within bounds."""
    held = x if min is None else maximum(x, float(min))
    return held if max is None else minimum(held, float(max))


def where(condition: Traced, x: Any, y: Any) -> Traced:
    """x where the condition holds, and y elsewhere."""
    first, second = condition.device.named(x), condition.device.named(y)
    shape = broadcast(condition.shape, first.shape, second.shape)
    return condition.device.node("Where", [condition, first, second], shape, first.dtype)


def astype(x: Traced, dtype: Any, *, copy: bool = True) -> Traced:
    """Truth values as numbers."""
    if x.dtype == np.dtype(dtype):
        return x
    assert np.dtype(dtype) == np.float64
    return x.device.node("Cast", [x], x.shape, to=11)  # TensorProto.DOUBLE


def sum(x: Traced, *, axis: int, keepdims: bool = False) -> Traced:
    """Sum along an axis."""
    return _reduced("ReduceSum", x, axis, keepdims)


def mean(x: Traced, *, axis: int, keepdims: bool = False) -> Traced:
    """Mean along an axis."""
    return _reduced("ReduceMean", x, axis, keepdims)


def min(x: Traced, *, axis: int, keepdims: bool = False) -> Traced:
    """The smallest along an axis."""
    return _reduced("ReduceMin", x, axis, keepdims)


def max(x: Traced, *, axis: int, keepdims: bool = False) -> Traced:
    """The largest along an axis."""
    return _reduced("ReduceMax", x, axis, keepdims)


def concat(arrays: Sequence[Traced], *, axis: int = 0) -> Traced:
    """Arrays one after the other, along an axis that is not that of rows."""
    if len(arrays) == 1:
        return arrays[0]
    first = arrays[0]
    shape = list(first.shape)
    shape[axis] = np.sum([one.shape[axis] for one in arrays]).item()
    return first.device.node("Concat", arrays, tuple(shape), first.dtype, axis=axis)


def stack(arrays: Sequence[Traced], *, axis: int = 0) -> Traced:
    """Arrays one after the other, along a new first axis."""
    assert axis == 0
    return concat([one[None, ...] for one in arrays], axis=0)


def take(x: Traced, indices: Traced, *, axis: int) -> Traced:
    """Entries along an axis."""
    place = axis % x.ndim
    shape = (*x.shape[:place], *indices.shape, *x.shape[place + 1 :])
    return x.device.node("Gather", [x, indices], shape, x.dtype, axis=axis)


def _reduced(operator: str, x: Traced, axis: int, keepdims: bool) -> Traced:
    place = axis % x.ndim
    kept = (1,) if keepdims else ()
    shape = (*x.shape[:place], *kept, *x.shape[place + 1 :])
    return x.device.node(operator, [x, np.array([place])], shape, keepdims=int(keepdims))
