"""The code of all pages runs and prints what they say, links resolve, settings are as stated."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import bowtienet

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "gallery"} & set(page.parts)
)
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)?(#[^)\s]+)?\)")
ANCHOR = re.compile(r"[^\w\- ]")
CODE = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", flags=re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| `(.*?)` \| .* \| (.*) \|$", flags=re.MULTILINE)
SAME = 0.3
"""Relative difference of printed numbers that other machines may have."""


def name_of(page: Path) -> str:
    """A page below the root."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[tuple[str, str | None]]:
    """Code, and what the page says that it prints."""
    for block in CODE.finditer(text):
        yield block[1], block[2]


def assert_printed(printed: str, expected: str) -> None:
    """The same words, and numbers that are near."""
    number = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
    assert number.sub("#", printed).split() == number.sub("#", expected).split()
    pairs = zip(number.findall(printed), number.findall(expected), strict=True)
    for ours, stated in pairs:
        assert float(ours) == pytest.approx(float(stated), rel=SAME, abs=1.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, with plots that go to no screen."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_of_a_page(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    for code, expected in blocks(page.read_text(encoding="utf-8")):
        if "import shap" in code and find_spec("shap") is None:
            continue
        exec(compile(code, name_of(page), "exec"), scope)
        printed = capsys.readouterr().out
        if expected is not None:
            assert_printed(printed, expected)


def anchors(page: Path) -> set[str]:
    """What links may name of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r" +", "-", ANCHOR.sub("", title.lower())) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if {"generated", "gallery"} & set(target.parts):  # pages that the build makes
            continue
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            assert anchor[1:] in anchors(target), f"{path}{anchor}"


def settings() -> list[tuple[str, str, Any, str]]:
    """Wing, parameter, default and meaning of each row of the tables of settings."""
    text = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    rows = []
    for wing in ("The paper's networks", "The practical estimators"):
        section = text.partition(f"## {wing}")[2].partition("\n## ")[0]
        for name, default, meaning in ROW.findall(section):
            rows.append((wing, name, ast.literal_eval(default), meaning))
    return rows


@pytest.mark.parametrize(
    ("estimator", "wing", "marks"),
    [
        ("BowTieNetwork", "The paper's networks", ("numbers",)),
        ("BowTieNetworkClassifier", "The paper's networks", ()),
        ("BowTieRegressor", "The practical estimators", ("BowTieRegressor",)),
        ("BowTieClassifier", "The practical estimators", ("BowTieClassifier",)),
        ("BowTieCountRegressor", "The practical estimators", ()),
    ],
)
def test_settings_are_those_of_the_signatures(
    estimator: str, wing: str, marks: tuple[str, ...]
) -> None:
    stated = {}
    for of, name, default, meaning in settings():
        marked = re.match(r"\*(\w+)\*: ", meaning)
        if of == wing and (marked is None or marked[1] in marks):
            stated[name] = default
    signature = inspect.signature(getattr(bowtienet, estimator))
    assert stated == {name: each.default for name, each in signature.parameters.items()}
