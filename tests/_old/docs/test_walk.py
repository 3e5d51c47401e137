"""The walks of `docs/developer/design.md` are those that a fit and a prediction take."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bowtienet._old import BowTieRegressor
from bowtienet._old.inference import execution
from tests._old.docs.pages import DOCS

DEEPEST = 11
"""Calls from `fit` to the sums over rows."""
Walk = list[tuple[str, str]]


def written(name: str) -> Walk:
    page = (DOCS / "developer" / "design.md").read_text()
    [block] = re.findall(rf"<!-- walk {name} -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)
    return [(line.split()[0], line.split()[1]) for line in block.splitlines() if line.strip()]


def taken(action: Callable[[], Any], destination: str) -> Walk:
    """Calls of the package on the stack when `destination` is first called."""
    stack: Walk = []
    found: Walk = []

    def follow(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("bowtienet._old.") or event not in ("call", "return"):
            return
        if event == "return":
            del stack[-1:]
            return
        stack.append((module.removeprefix("bowtienet._old."), frame.f_code.co_qualname))
        if frame.f_code.co_name == destination and not found:
            found.extend(call for call in stack if "<" not in call[1])

    sys.setprofile(follow)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_walks_are_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "usable_cores", lambda: 1)  # other threads are not followed
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = BowTieRegressor((4,), n_estimators=1, max_iter=3, random_state=0)
    assert taken(lambda: model.fit(X, X[:, 0]), "block_statistics") == written("fit")
    assert taken(lambda: model.predict(X), "push_forward") == written("predict")
    assert len(written("fit")) <= DEEPEST
