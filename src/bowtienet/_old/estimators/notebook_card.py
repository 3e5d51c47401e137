"""A fitted model as a card in a notebook: scores of held-out rows, size, calibration.

All names come from users' tables and are escaped. Colours are those of the notebook's own text, so
that the card can be read on light and dark pages; nothing is loaded from elsewhere.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from bowtienet._old._validation import listed, printable, shorten
from bowtienet._old.ensemble.cross_fitted_scores import target_scores
from bowtienet._old.estimators.summary import SCORE_WORDS, score_text, scores_note, sizes_text

_SIDE, _EDGE = 132, 16
"""Of the thumbnail, and of the room beside its axes, in pixels."""
_MOST_TARGETS = 3
_MOST_COLUMNS = 6
_LONGEST = 32
_LINE = "#0072B2"
_CARD = (
    "border:1px solid rgba(128,128,128,.45);border-radius:6px;padding:10px 14px;margin:4px 0;"
    "display:inline-flex;flex-wrap:wrap;gap:6px 26px;align-items:flex-start;max-width:100%"
)
_CELL = "padding:1px 10px 1px 0;text-align:{};border:none;background:none"


def model_card(estimator: Any) -> str:
    """The card of a fitted estimator."""
    targets = listed([_name(target) for target in estimator.target_names_], _MOST_TARGETS)
    head = f"{type(estimator).__name__} of {targets}"
    text = f"<div><b>{head}</b>{_scores_table(estimator)}{_facts(estimator)}</div>"
    return f'<div style="{_CARD}">{text}{_thumbnail(estimator)}</div>'


def _name(value: object) -> str:
    """A name from a table, cut and escaped."""
    return escape(shorten(printable(str(value)), _LONGEST))


def _scores_table(estimator: Any) -> str:
    found = target_scores(estimator.ensemble_)[:_MOST_TARGETS]
    if not found:
        return ""
    rows = []
    if len(found) > 1:
        rows.append(["held out", *map(_name, estimator.target_names_[: len(found)])])
    rows += [
        [escape(SCORE_WORDS[name]), *(escape(score_text(name, one[name])) for one in found)]
        for name in found[0]
    ]
    left, right = _CELL.format("left"), _CELL.format("right")
    lines = [
        f'<tr style="background:none"><td style="{left}">{first}</td>'
        + "".join(f'<td style="{right}">{value}</td>' for value in rest)
        + "</tr>"
        for first, *rest in rows
    ]
    table = "border-collapse:collapse;margin:4px 0;border:none;color:inherit;font:inherit"
    return f'<table style="{table}"><tbody>{"".join(lines)}</tbody></table>'


def _facts(estimator: Any) -> str:
    relevance = estimator.feature_relevance_.strongest()
    order = np.argsort(-relevance.strength, kind="stable")
    strong = [_name(relevance.name[i]) for i in order if relevance.strength[i] > 0.0]
    lines = [escape(scores_note(estimator)), escape(sizes_text(estimator)) + "."]
    if strong:
        lines.append(f"Strongest columns: {listed(strong, _MOST_COLUMNS)}.")
    return f'<div style="opacity:.8;max-width:32em">{"<br>".join(lines)}</div>'


def _thumbnail(estimator: Any) -> str:
    """The calibration of the first target as SVG: observed over nominal, and what chance allows."""
    found = estimator.ensemble_.cross_fitted
    if found is None:
        return ""
    classes = hasattr(estimator, "classes_")
    nominal, observed = found.nominal[0], found.observed[0]
    chances = np.clip(nominal * (1.0 - nominal), 0.0, None) / found.counts[0]
    half = 2.0 * np.sqrt(chances)
    upper = [(c, min(c + h, 1.0)) for c, h in zip(nominal, half, strict=True)]
    lower = [(c, max(c - h, 0.0)) for c, h in zip(nominal, half, strict=True)]
    band = [*upper, *reversed(lower)] if classes else [(0, 0), *upper, (1, 1), *reversed(lower)]
    curve = list(zip(nominal, observed, strict=True))
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="1.8" fill="{_LINE}"/>' for x, y in map(_place, curve)
    )
    end = _EDGE + _SIDE
    axes = "predicted probability" if classes else "nominal coverage"
    words = "observed share" if classes else "observed coverage"
    frame = f"M{_EDGE} 2V{_SIDE + 2}H{end}"
    text = 'font-size="10" fill="currentColor" text-anchor="middle"'
    middle = _SIDE / 2
    return (
        f'<svg width="{end + 4}" height="{end + 4}" viewBox="0 0 {end + 4} {end + 4}" role="img" '
        f'aria-label="Calibration of held-out rows: {words} over {axes}">'
        f'<polygon points="{_points(band)}" fill="currentColor" opacity=".16"/>'
        f'<path d="{frame}" fill="none" stroke="currentColor" opacity=".7"/>'
        f'<path d="M{_EDGE} {_SIDE + 2}L{end} 2" stroke="currentColor" stroke-dasharray="4 3" '
        'opacity=".6"/>'
        f'<polyline points="{_points(curve)}" fill="none" stroke="{_LINE}" stroke-width="1.6"/>'
        f"{dots}"
        f'<text x="{_EDGE + middle}" y="{end}" {text}>{axes}</text>'
        f'<text x="11" y="{middle}" {text} transform="rotate(-90 11 {middle})">{words}</text>'
        "</svg>"
    )


def _points(places: Any) -> str:
    return " ".join(f"{x},{y}" for x, y in map(_place, places))


def _place(point: tuple[float, float]) -> tuple[float, float]:
    """A point of the unit square in pixels."""
    x, y = point
    return round(_EDGE + _SIDE * float(x), 1), round(2 + _SIDE * (1.0 - float(y)), 1)
