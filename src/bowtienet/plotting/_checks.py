"""Choices by number, and names where none are given."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any


def chosen(value: Any, count: int, name: str) -> int:
    """`value` if it is a whole number from 0 to `count` - 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value not in range(count):
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
