"""Forged files with a right digest: refused in a sentence when they are read, or they work."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bowtienet._old import BowTieClassifier, BowTieRegressor, load
from tests._old.estimators.models import rows, small
from tests._old.fuzz.forged_files import all_forgeries, fault_of
from tests._old.fuzz.forged_models import CASES

SAMPLED = ("table", "pruned", "two classes", "checkpoint of a stream")


def faults(name: str, folder: Path, first: int, step: int) -> list[str]:
    """What is wrong with how every so many of the forgeries of a file are treated."""
    case = CASES[name](folder)
    tried = list(islice(all_forgeries(case.saved), first, None, step))
    assert len(tried) > 10
    found = (fault_of(forgery, folder / "forged", case.read, case.use) for forgery in tried)
    return [fault for fault in found if fault is not None]


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_of_forgeries(name: str, tmp_path: Path) -> None:
    """A share of 1 in 211; `python -m tests._old.fuzz.forged_files` tries all of all cases."""
    assert faults(name, tmp_path, 11, 211) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_more_forgeries(name: str, tmp_path: Path) -> None:
    assert faults(name, tmp_path, 3, 29) == []


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    """Taken apart and put together: otherwise all would be refused for a wrong digest."""
    case = CASES["table"](tmp_path)
    case.saved.write(tmp_path / "forged")
    case.use(case.read(tmp_path / "forged"))


@pytest.mark.parametrize("path", [None, 3, 0, True, 2.5, [], {}, object(), Path])
@pytest.mark.parametrize("read", [load, BowTieRegressor.load, BowTieClassifier.load])
def test_arguments_that_are_no_path(path: Any, read: Any) -> None:
    """A whole number above all: `open` would read, and close, the file of that descriptor."""
    with pytest.raises(TypeError, match="path must be the name of a file"):
        read(path)


@pytest.mark.parametrize("read", [load, BowTieRegressor.load, BowTieClassifier.load])
def test_places_that_hold_no_model(read: Any, tmp_path: Path) -> None:
    text, empty = tmp_path / "notes.txt", tmp_path / "empty"
    text.write_text("a,b\n1,2\n")
    empty.touch()
    for path in (text, empty, str(text), bytes(text)):
        with pytest.raises(ValueError, match="is not a bowtienet file"):
            read(path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read("")


def test_a_checkpoint_that_is_no_path() -> None:
    X, Y = rows()
    with pytest.raises((TypeError, ValueError), match="checkpoint"):
        small(checkpoint=3).fit(X, Y)
