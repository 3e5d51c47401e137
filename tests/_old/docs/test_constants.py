"""Constants and efforts that pages name are those of the code."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Sequence

import pytest

from bowtienet._old.ensemble.settings import EFFORTS
from tests._old.docs.pages import DOCS

CONSTANT = re.compile(r"^\| `(\w+(?:\.\w+)+)\.([A-Z_]+)` \| `([^`]+)` \|", flags=re.MULTILINE)
PAGE = (DOCS / "theory" / "ensembles.md").read_text()
OUTCOMES = (DOCS / "theory" / "outcomes.md").read_text()


@pytest.mark.parametrize(("module", "name", "value"), CONSTANT.findall(PAGE + OUTCOMES))
def test_constants_are_those_of_the_code(module, name, value):
    found = getattr(importlib.import_module(f"bowtienet._old.{module}"), name)
    assert found == ast.literal_eval(value)


def test_constants_are_found():
    table = PAGE[PAGE.index("## Constants") : PAGE.index("## What is guaranteed")]
    assert len(CONSTANT.findall(PAGE)) == table.count("\n|") - 2 > 20
    table = OUTCOMES[OUTCOMES.index("## Constants") :]
    assert len(CONSTANT.findall(OUTCOMES)) == table.count("\n|") - 2 > 10


def some(values: Sequence[float]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values)


@pytest.mark.parametrize("name", EFFORTS)
def test_efforts_are_those_of_the_code(name):
    effort = EFFORTS[name]
    cells = [
        f'`"{name}"`',
        some(effort.penalties),
        some(effort.parts),
        some(effort.lengths),
        str(effort.n_recipes),
        some(effort.sweeps),
        str(effort.members),
    ]
    assert f"| {' | '.join(cells)} |" in (DOCS / "guide" / "choosing.md").read_text()
