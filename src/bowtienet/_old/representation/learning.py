"""Deciding from the facts of a table what each of its columns is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.source import Source, in_order
from bowtienet._old.data.tables import Block
from bowtienet._old.representation.columns import CONSTANT, Column, check_names, examples
from bowtienet._old.representation.facts import TableFacts, TextFacts, gather_facts, merge_facts
from bowtienet._old.representation.kinds import (
    CATEGORY,
    DATE,
    KINDS,
    NUMBER,
    canonical,
    is_truth_value,
    spell,
    spellings,
    text_as_date,
    text_as_number,
)
from bowtienet._old.representation.quantiles import weighted_quantiles
from bowtienet._old.representation.written import find_format, reads_as_number

Floats = NDArray[np.float64]

FEWEST_IDENTIFIERS = 10
"""Values from which texts that all differ are no categories."""
_FEW = 10
"""Texts up to which numbers among them may well be names of categories."""
_FOLDED = 32
"""Blocks whose facts are put together at once."""


def learn_columns(source: Source, *, max_categories: int) -> tuple[Column, ...]:
    """What each column of a source is, by one reading of it."""
    return decide(facts_of_source(source), max_categories)


def facts_of_source(source: Source) -> TableFacts:
    """Facts of all rows of a source; a table in memory is one block."""
    return facts_of_blocks([source.block] if isinstance(source, InMemory) else in_order(source))


def facts_of_blocks(blocks: Iterable[Block]) -> TableFacts:
    """Facts of all rows of positive weight; a ValueError if there are none."""
    gathered: list[TableFacts] = []
    start = 0
    for block in blocks:
        gathered.append(gather_facts(block.table, block.weights, start))
        start += block.table.n_rows
        if len(gathered) == _FOLDED:
            gathered = [merge_facts(*gathered)]
    if not any(facts.n_rows for facts in gathered):
        raise ValueError("the source has no rows of positive weight: at least one is needed.")
    return merge_facts(*gathered)


def decide(facts: TableFacts, max_categories: int) -> tuple[Column, ...]:
    """What each column is. Constant numbers are kept only where nothing else is left."""
    columns = [_decide_one(facts, place, max_categories) for place in range(len(facts.names))]
    if not any(column.has_value or column.has_indicator for column in columns):
        columns = [
            replace(column, has_value=column.typical is not None and column.note == CONSTANT)
            for column in columns
        ]
    if not any(column.has_value or column.has_indicator for column in columns):
        reasons = "; ".join(f"{column.name!r}: {column.note}" for column in columns[:3])
        raise ValueError(
            f"nothing is left of X, since no column says anything ({reasons}): give columns that "
            "differ between rows and repeat their texts."
        )
    check_names(columns)
    return tuple(columns)


def _numbers(facts: TableFacts, place: int) -> tuple[Floats, Floats]:
    """Numbers of a column in the sample of rows, and the weights of these."""
    rows = facts.sample.rows
    values = np.asarray(to_numpy(rows.inputs[:, place]), dtype=np.float64)
    present = ~np.isnan(values)
    return values[present], rows.weights[present]


def _median(values: Floats, weights: Floats) -> float | None:
    """With half of the weight on either side; None without values."""
    if len(values) == 0:
        return None
    return float(weighted_quantiles(values, weights, np.array([0.5]))[0])


def _decide_one(facts: TableFacts, place: int, max_categories: int) -> Column:
    name, kinds, texts = facts.names[place], facts.kinds[place], facts.texts[place]
    if len(kinds) > 1:
        _refuse_kinds(name, [KINDS[kind] for kind in sorted(kinds)])
    [kind] = kinds or {NUMBER}
    if texts is None or texts.n_values == 0:
        several = bool(facts.low[place] < facts.high[place])
        typical = _median(*_numbers(facts, place))
        return _number_column(facts, place, kind=kind, typical=typical, has_value=several)
    if not texts.declared and kind == NUMBER and all(map(is_truth_value, texts.counts)):
        return _read_column(facts, place, texts, NUMBER, None)
    if not texts.declared and (kind == DATE or not kinds) and _all_dates(texts.counts):
        return _read_column(facts, place, texts, DATE, None)
    if kinds - {NUMBER}:
        _refuse_kinds(name, [KINDS[kind], f"texts such as {examples(texts.counts)}"])
    number_format = None if texts.declared else find_format(texts.counts)
    if number_format is not None:
        return _read_column(facts, place, texts, NUMBER, number_format)
    if kinds:
        texts = _with_numbers(texts, *_numbers(facts, place))
    return _category_column(facts, place, texts, max_categories)


def _number_column(
    facts: TableFacts,
    place: int,
    *,
    kind: str,
    typical: float | None,
    has_value: bool,
    n_unread: int = 0,
    number_format: str | None = None,
    note: str | None = None,
) -> Column:
    n_missing = int(facts.n_missing[place]) + n_unread
    if not has_value:
        note = "no values" if typical is None else CONSTANT
    return Column(
        name=facts.names[place],
        kind=kind,
        n_missing=n_missing,
        typical=typical,
        has_value=has_value,
        has_indicator=0 < n_missing < facts.n_rows,
        categories=(),
        number_format=number_format,
        note=note,
    )


def _read_column(
    facts: TableFacts, place: int, texts: TextFacts, kind: str, number_format: str | None
) -> Column:
    """A column of numbers of which some or all came as texts."""
    read = {text: text_as_number(text, kind, number_format) for text in texts.counts}
    found = {text: value for text, value in read.items() if value is not None}
    unread = [text for text, value in read.items() if value is None]
    values, weights = _numbers(facts, place)
    values = np.append(values, list(found.values()))
    weights = np.append(weights, [texts.weights[text] for text in found])
    note = None
    if number_format is not None:
        note = f"texts read as numbers, written like {number_format}"
        note += f"; {examples(unread)} count as missing" if unread else ""
    share_unread = sum(texts.counts[text] for text in unread) / texts.counts.total()
    return _number_column(
        facts,
        place,
        kind=kind,
        typical=_median(values, weights),
        has_value=bool(values.min() < values.max()),
        n_unread=round(texts.n_values * share_unread),
        number_format=number_format,
        note=note,
    )


def _category_column(
    facts: TableFacts, place: int, texts: TextFacts, max_categories: int
) -> Column:
    n_missing, n_texts = int(facts.n_missing[place]), len(texts.counts)
    strange = [text for text in texts.counts if not reads_as_number(text)]
    categories: tuple[str, ...] = ()
    note: str | None = None
    if _are_identifiers(texts, strange):
        note = f"identifiers: {texts.n_values:,} texts, all different"
    elif n_texts > max_categories or texts.counts.total() < texts.n_values:
        raise ValueError(
            f"column {facts.names[place]!r} holds {n_texts:,} different texts or more, such as "
            f"{examples(strange or texts.counts)}, but max_categories={max_categories}: convert "
            "them to numbers, leave the column out, or raise max_categories."
        )
    else:
        categories = _told_apart(sorted(texts.counts))
        if len(categories) == 1:
            note = CONSTANT
        elif n_texts > _FEW and 2 * len(strange) <= n_texts:
            numbers = [text for text in categories if reads_as_number(text)]
            note = f"texts that look like numbers, such as {examples(numbers)}"
            if strange:
                note += f", but for {examples(strange)}: empty these cells to have numbers"
    return Column(
        name=facts.names[place],
        kind=CATEGORY,
        n_missing=n_missing,
        typical=None,
        has_value=len(categories) > 1,
        has_indicator=0 < n_missing < facts.n_rows,
        categories=categories,
        note=note,
    )


def _told_apart(categories: Sequence[str]) -> tuple[str, ...]:
    """Categories without a True beside a 1: a row alone is read as numbers, which are the same."""
    known = spellings(categories)
    return tuple(
        text for text in categories if not is_truth_value(text) or text == known[canonical(text)]
    )


def _are_identifiers(texts: TextFacts, strange: Sequence[str]) -> bool:
    """Whether no text occurs twice. Numbers differ by nature: half of the texts must be none."""
    if texts.n_values < FEWEST_IDENTIFIERS or max(texts.counts.values()) > 1:
        return False
    return 2 * len(strange) > len(texts.counts)


def _all_dates(texts: Iterable[str]) -> bool:
    return all(text_as_date(text) is not None for text in texts)


def _with_numbers(texts: TextFacts, values: Floats, weights: Floats) -> TextFacts:
    """Texts and the numbers of blocks that were read as such, each spelt like a text that is known.

    Of more rows than the sample holds, a number may go unseen: it is then none of the categories.
    """
    known = spellings(list(texts.counts))
    counts, sums = texts.counts.copy(), texts.weights.copy()
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        text = spell(value, known)
        counts[text] += 1
        sums[text] += weight
    return replace(texts, n_values=texts.n_values + len(values), counts=counts, weights=sums)


def _refuse_kinds(name: str, held: Sequence[str]) -> NoReturn:
    raise ValueError(
        f"column {name!r} holds {held[0]} in some blocks of rows and {held[1]} in others: convert "
        "it to one of them."
    )
