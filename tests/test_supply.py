"""What is installed and imported, offline: pins cover it, and nothing that users give is run."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = ABOUT["project"]["optional-dependencies"]
PINS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
}
SOURCES = sorted((ROOT / "src").rglob("*.py"))
RUN_CODE = {"eval", "exec", "compile", "__import__"}
RUN_FILES = {"pickle", "marshal", "shelve", "subprocess", "ctypes", "code", "runpy", "pty"}


def stated() -> Iterator[Requirement]:
    """All requirements of the library, its extras and its groups."""
    groups = ABOUT["dependency-groups"].values()
    for lines in (ABOUT["project"]["dependencies"], *EXTRAS.values(), *groups):
        for line in lines:
            if isinstance(line, str) and not line.startswith("bowtienet"):
                yield Requirement(line)


def needed(requirement: Requirement, seen: set[tuple[str, str]]) -> None:
    """The packages that a requirement brings along, as far as they are installed here."""
    name = canonicalize_name(requirement.name)
    for extra in ("", *requirement.extras):
        if (name, extra) in seen:
            continue
        try:
            lines = requires(name) or ()
        except PackageNotFoundError:
            continue
        seen.add((name, extra))
        for line in lines:
            further = Requirement(line)
            if further.marker is None or further.marker.evaluate({"extra": extra}):
                needed(further, seen)


def test_pins_cover_everything_that_is_installed() -> None:
    seen: set[tuple[str, str]] = set()
    for requirement in stated():
        assert PINS[canonicalize_name(requirement.name)] in requirement.specifier, requirement
        needed(requirement, seen)
    assert len(seen) > 50
    brought_by_venv = {"pip", "setuptools"}
    assert {name for name, _ in seen} - set(PINS) <= brought_by_venv


def test_bounds_are_lower_ones() -> None:
    """An upper one needs a reason, and its exception here."""
    for requirement in stated():
        assert [each.operator for each in requirement.specifier] == [">="], requirement


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules by their first names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def test_nothing_is_imported_that_is_not_required() -> None:
    known = {canonicalize_name(each.name) for each in stated()} | {"bowtienet"}
    of_module: Any = packages_distributions()
    for path in SOURCES:
        for module in set(imported(ast.parse(path.read_text(encoding="utf-8")))):
            if module in sys.stdlib_module_names:
                continue
            packages = {canonicalize_name(name) for name in of_module.get(module, [module])}
            assert packages & known, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_nothing_that_is_read_is_run(path: Path) -> None:
    """No module can run texts, unpickle, or start programs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not RUN_FILES & set(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", None))
            is_method = isinstance(node.func, ast.Attribute)
            assert is_method or name not in RUN_CODE, name
            assert name not in ("system", "popen", "fork", "execv", "Markup"), name
            assert not any(each.arg == "allow_pickle" for each in node.keywords)


def test_templates_escape_what_they_show() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.html")]
    assert pages
    assert not any(re.search(r"\|\s*safe\b|autoescape", page) for page in pages)
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Environment":
                options = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert options["autoescape"] == "True"
