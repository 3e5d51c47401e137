"""Checks of single settings, with one sentence that names the setting, its value and the remedy."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any

_SHOWN = 5
_UNUSUAL = re.compile(r"[^\n -~]")


def positive(value: Any, name: str) -> float:
    """`value` as a float if it is a positive, finite number."""
    if not _is_number(value) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}.")
    return float(value)


def non_negative(value: Any, name: str) -> float:
    """`value` as a float if it is zero or a positive, finite number."""
    if not _is_number(value) or not 0.0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a non-negative, finite number, got {value!r}.")
    return float(value)


def number(value: Any, name: str) -> float:
    """`value` as a float if it is a real number."""
    if not _is_number(value):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    return float(value)


def whole(value: Any, name: str) -> int:
    """`value` as an int if it is a whole number of at least 1."""
    try:
        found = operator.index(value)
    except TypeError:
        found = 0
    if found < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return found


def chosen(value: Any, count: int, name: str) -> int:
    """`value` if it is a whole number from 0 to `count` - 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Integral)
        or value not in range(count)
    ):
        raise ValueError(f"{name} must be a whole number from 0 to {count - 1}, got {value!r}.")
    return int(value)


def named(names: Iterable[str] | None, count: int, argument: str, letter: str) -> list[str]:
    """`count` names; without `names` the letter, numbered if there are several."""
    if names is None:
        return [letter] if count == 1 else [f"{letter}{i}" for i in range(count)]
    listed = [str(name) for name in names]
    if len(listed) != count:
        raise ValueError(f"{argument} has {len(listed)} names, but {count} are needed.")
    return listed


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three of `known` that look like `name`, the most alike first."""
    lowered = {text.lower(): text for text in known}
    return [lowered[text] for text in difflib.get_close_matches(name.lower(), lowered, cutoff=0.5)]


def suggestion(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about a name that is not there: what could be meant instead."""
    near = nearest(name, known)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; there are {listed([repr(text) for text in known])}."


def listed_with_hints(absent: Sequence[str], others: Sequence[str]) -> str:
    """Names that are not there, each with the one of `others` that may be meant by it."""
    shown = []
    for name in absent[:_SHOWN]:
        near = nearest(name, others)
        shown.append(f"{name!r} (is it {near[0]!r}?)" if near else repr(name))
    return listed([*shown, *absent[_SHOWN:]])


def listed(texts: Sequence[str], most: int = _SHOWN) -> str:
    """The first of some texts, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def shorten(text: str, most: int) -> str:
    """`text`, cut where it is longer than so many letters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def optional(module: str, needed: str) -> Any:
    """A module that not everybody has; without it an ImportError that says what to type."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(needed) from error


def printable(text: str) -> str:
    r"""`text` in which all that a terminal would obey, but for line breaks, is spelt out.

    Examples
    --------
    >>> printable("bell\a")
    'bell\\x07'
    """
    return _UNUSUAL.sub(lambda c: c[0] if c[0].isprintable() else repr(c[0])[1:-1], text)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
