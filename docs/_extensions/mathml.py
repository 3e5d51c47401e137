"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)

_TILDE = "<mi>&#x0007E;</mi>"
_PRIME = "<mi>&#x02032;</mi>"
_FUNCTION = re.compile(
    r"<m([io])>(log|exp|max|min|Var|Cov|diag)</m\1>(?P<open><mo[^>]*>&#x00028;)?"
)


def to_mathml(node: nodes.Element, display: str) -> str:
    """MathML of a formula; one that cannot be converted is a warning, and so fails the build."""
    latex = node.astext()
    try:
        return with_spaces(convert(latex, display=display))
    except Exception as error:  # the converter has no base class of its own
        logger.warning("cannot convert the formula %r: %r", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def with_spaces(mathml: str) -> str:
    """The converter's symbols where it takes operators for letters, which have no space around."""
    mathml = mathml.replace(_TILDE, "<mo>&#x0223C;</mo>").replace(_PRIME, "<mo>&#x02032;</mo>")
    return _FUNCTION.sub(_spaced_function, mathml)


def _spaced_function(found: re.Match[str]) -> str:
    after = "0" if found["open"] else "0.167em"
    name = f'<mo form="prefix" lspace="0.167em" rspace="{after}">{found[2]}</mo>'
    return name + (found["open"] or "")


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(to_mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number at the right if it has one."""
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    names = "".join(f' id="{name}"' for name in node.get("ids", [])[:1])
    formula = to_mathml(node, "block")
    translator.body.append(f'<div class="math-block"{names}>{formula}{number}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
