"""Links resolve, every public name has its place in the reference, and every example is a page."""

from __future__ import annotations

import ast
import importlib
import re
from inspect import ismodule
from pathlib import Path

import pytest

from tests._old.docs.pages import DOCS, GENERATED, ROOT, blocks, pages, prose

WRITTEN = sorted([*pages(), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
PACKAGES = (
    "bowtienet",
    "bowtienet._old.engine",
    "bowtienet._old.evaluation",
    "bowtienet._old.plotting",
    "bowtienet._old.report",
)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose_with_code(path), flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        slug, number = words.replace(" ", "-"), 0
        while slug in found:
            number += 1
            slug = f"{words.replace(' ', '-')}-{number}"
        found.add(slug)
    return found


def prose_with_code(path: Path) -> str:
    """A page without its fenced blocks, whose comments look like headings."""
    return re.sub(r"^(`{3,}).*?^\1 *$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def broken_links(path: Path) -> list[str]:
    found = []
    for link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if any(target.is_relative_to(folder) for folder in GENERATED):
            continue  # Sphinx itself says so if it is not there
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_links_resolve(path):
    assert not broken_links(path)


def test_a_broken_link_is_noticed(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# One `two`\n\n```sh\n# no heading\n```\n")
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#one-two) [c](#here) `[no](link)` [d](https://x.y)\n"
        "[e](gone.md) [f](other.md#no-heading)\n![g](gone.png)\n"
    )
    assert broken_links(page) == ["gone.md", "other.md#no-heading", "gone.png"]


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for path in pages():
        for block in blocks(path):
            if block.language == "{toctree}":
                names = [line for line in block.text.split() if not line.startswith(":")]
                listed |= {(path.parent / f"{name}.md").resolve() for name in names}
    assert set(pages()) - listed == set()


def test_index_pages_say_a_sentence_about_each_page():
    for path in (DOCS / "guide", DOCS / "theory", DOCS / "measurements", DOCS / "developer"):
        [toctree] = [block for block in blocks(path / "index.md") if block.language == "{toctree}"]
        names = [line for line in toctree.text.split() if re.fullmatch(r"[a-z_]+", line)]
        listed = re.findall(
            r"^\| \[.+\]\((\w+)\.md\) \| .{15,} \|$", (path / "index.md").read_text(), re.MULTILINE
        )
        assert sorted(listed) == sorted(names), path.name


def documented() -> dict[str, list[str]]:
    """The names in the autosummaries of the reference, and data beside them, by package."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS / "api").glob("*.md")):
        for block in blocks(path):
            if block.language == "{eval-rst}" and "autosummary::" in block.text:
                module = re.search(r"currentmodule:: (\S+)", block.text)[1]
                entry = r"^(?:   |\.\. py:data:: )([A-Za-z_]\w*)$"
                names = re.findall(entry, block.text, flags=re.MULTILINE)
                found.setdefault(module, []).extend(names)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference_once(package):
    found = importlib.import_module(package)
    names = [name for name in found.__all__ if not ismodule(getattr(found, name))]
    assert sorted(documented().get(package, [])) == sorted(names)


def test_names_of_the_reference_exist():
    for module, names in documented().items():
        for name in names:
            assert getattr(importlib.import_module(module), name).__doc__


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_is_a_page_of_the_gallery(path):
    """`make docs` runs it; here it has a title, text between its code, and no private name."""
    text = path.read_text()
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring is not None
    title, rule, *_ = docstring.splitlines()
    assert rule == "=" * len(title)
    assert text.count("\n# %%\n") >= 3
    assert not re.findall(r"(?:from|import) bowtienet\S*\._(?!old)", text)


def test_the_gallery_has_all_examples_in_order():
    assert [path.stem.split("_")[1] for path in EXAMPLES] == list("0123456789")
    header = (ROOT / "examples" / "GALLERY_HEADER.rst").read_text()
    assert header.startswith("Gallery\n=======\n")
