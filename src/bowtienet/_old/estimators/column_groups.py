"""Groups of columns, as users give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._validation import suggestion


class ColumnGroups(NamedTuple):
    """Columns that belong together, each in one group."""

    names: tuple[str, ...]
    """In the order of their first columns."""
    places: NDArray[np.intp]
    """The group of each column, counted from 0."""


def read_groups(groups: Any, columns: Sequence[str]) -> ColumnGroups:
    """Groups such as ``{"place": ["lat", "lon"]}``; columns in none are by themselves.

    Examples
    --------
    >>> found = read_groups({"place": ["lat", "lon"]}, ["lat", "size", "lon"])
    >>> found.names, found.places.tolist()
    (('place', 'size'), [0, 1, 0])
    """
    if groups is None:
        groups = {}
    if not isinstance(groups, Mapping):
        raise ValueError(
            f"groups must be a dict of names and their columns, got a {type(groups).__name__}: "
            'give groups={"place": ["lat", "lon"]}.'
        )
    owner: dict[int, str] = {}
    for name, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Sequence | np.ndarray):
            raise ValueError(f"groups[{name!r}] must be a list of columns, got {members!r}.")
        for member in members:
            place = _place(member, columns, f"groups[{name!r}]")
            if place in owner:
                raise ValueError(
                    f"groups have the column {columns[place]!r} twice: a column has one group."
                )
            owner[place] = str(name)
    numbers: dict[tuple[bool, str], int] = {}
    places = [
        numbers.setdefault((place in owner, owner.get(place, column)), len(numbers))
        for place, column in enumerate(columns)
    ]
    return ColumnGroups(tuple(name for _, name in numbers), np.asarray(places, dtype=np.intp))


def _place(member: Any, columns: Sequence[str], group: str) -> int:
    """The place of a column that is given by its name or by its place."""
    if isinstance(member, str):
        if member not in columns:
            raise ValueError(f"{group}: there is no column {member!r}{suggestion(member, columns)}")
        return list(columns).index(member)
    if isinstance(member, bool) or not isinstance(member, int | np.integer):
        raise ValueError(f"{group} must hold names or places of columns, got {member!r}.")
    if not 0 <= member < len(columns):
        raise ValueError(
            f"{group}: there is no column {member}; places count from 0 to {len(columns) - 1}."
        )
    return int(member)
