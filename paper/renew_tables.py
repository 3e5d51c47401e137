"""Put the tables of docs/measurements into the paper draft (`make paper`): no number is typed.

A part of the paper that begins with ``<!-- from PAGE: NAME -->`` is what the page has between
``<!-- NAME -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper" / "paper.md"
_PART = re.compile(
    r"<!-- from (?P<page>\S+): (?P<name>[^\n]+?) -->\n.*?<!-- end -->", flags=re.DOTALL
)


def renewed(text: str) -> str:
    """The text of the paper with the parts of pages as they are now."""
    return _PART.sub(_from_page, text)


def _from_page(part: re.Match[str]) -> str:
    page = (ROOT / part["page"]).read_text()
    begin = f"<!-- {part['name']} -->\n"
    if begin not in page:
        raise ValueError(f"{part['page']} has no part {part['name']!r}.")
    content = page.split(begin, 1)[1].split("<!-- end -->", 1)[0]
    return f"<!-- from {part['page']}: {part['name']} -->\n{content}<!-- end -->"


if __name__ == "__main__":
    PAPER.write_text(renewed(PAPER.read_text()))
