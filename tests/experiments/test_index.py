"""The page of a folder says of which versions its records are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bowtienet.experiments.index import write_index
from bowtienet.experiments.records import Run
from tests.experiments.made_up import made_up

FIRST = Run(
    id="first",
    started="before",
    command="try",
    commit="aaa",
    versions={"numpy": "1.0", "scipy": "1.0"},
    machine={},
)
LAST = Run(
    id="last",
    started="now",
    command="try",
    commit="bbb",
    versions={"numpy": "2.0", "scipy": "1.0", "jax": "0.1"},
    machine={},
)
RECORDS = [
    made_up(seed=0, run="first"),
    made_up(seed=1, run="first"),
    made_up(seed=2, run="last"),
]


def page(runs: list[Run], folder: Path) -> str:
    return write_index(folder, iter(runs), RECORDS).read_text()


def test_records_of_other_versions_are_counted_and_named(tmp_path: Path) -> None:
    assert (
        "2 of 3 records come from other versions or commits than the last run: "
        "commit aaa instead of bbb, numpy 1.0 instead of 2.0.\n"
    ) in page([FIRST, LAST], tmp_path)
    unknown = replace(FIRST, commit=None, versions=LAST.versions)
    assert "last run: commit unknown instead of bbb.\n" in page([unknown, LAST], tmp_path)


def test_nothing_is_said_of_runs_with_the_same(tmp_path: Path) -> None:
    """A library that was installed in between changed no result before."""
    before = replace(FIRST, commit="bbb", versions={"numpy": "2.0"})
    text = page([before, LAST], tmp_path)
    assert "3 cases are done" in text
    assert "other versions" not in text
    assert "other versions" not in page([], tmp_path)
