"""Deciding from the facts of a table what each of its columns is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.source import Source
from bowtienet.data.tables import Block
from bowtienet.representation.columns import CONSTANT, Column, check_names, examples
from bowtienet.representation.facts import TableFacts, TextFacts, gather_facts, merge_facts
from bowtienet.representation.kinds import (
    CATEGORY,
    DATE,
    KINDS,
    NUMBER,
    is_truth_value,
    spellings,
    spelt,
    text_as_date,
    text_as_number,
)
from bowtienet.representation.written import find_format, reads_as_number

Floats = NDArray[np.float64]

FEWEST_IDENTIFIERS = 10
"""Values from which texts that all differ are no categories."""
_FEW = 10
"""Texts up to which numbers among them may well be names of categories."""
_FOLDED = 32
"""Blocks whose facts are put together at once."""


def learn_columns(source: Source, *, max_categories: int) -> tuple[Column, ...]:
    """What each column of a source is, by one reading of it."""
    return decide(facts_of_blocks(_blocks(source)), max_categories)


def facts_of_blocks(blocks: Iterable[Block]) -> TableFacts:
    """Facts of all rows of positive weight; a ValueError if there are none."""
    gathered: list[TableFacts] = []
    for block in blocks:
        gathered.append(gather_facts(block.table, block.weights))
        if len(gathered) == _FOLDED:
            gathered = [merge_facts(*gathered)]
    if not any(facts.n_rows for facts in gathered):
        raise ValueError("the source has no rows of positive weight: at least one is needed.")
    return merge_facts(*gathered)


def decide(facts: TableFacts, max_categories: int) -> tuple[Column, ...]:
    """What each column is. Constant numbers are kept only where nothing else is left."""
    columns = [
        _decide_one(facts, place, typical, max_categories)
        for place, typical in enumerate(_medians(facts))
    ]
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


def _blocks(source: Source) -> Iterator[Block]:
    if source.in_memory:
        whole: Any = source
        yield whole.block
        return
    for piece in range(source.n_pieces):
        yield from source.read(piece)


def _medians(facts: TableFacts) -> list[float | None]:
    """Weighted medians of the numbers of all columns; None without one."""
    sample, weights = facts.sample, facts.row_weights
    if len(weights) and np.ptp(weights) == 0.0 and not np.isnan(sample).any():
        return [float(median) for median in np.median(sample, axis=0)]
    found: list[float | None] = []
    for values in sample.T:
        present = ~np.isnan(values)
        found.append(_median(values[present], weights[present]))
    return found


def _median(values: Floats, weights: Floats) -> float | None:
    """The value, or the middle of the two, with half of the weight on either side."""
    if len(values) == 0:
        return None
    if np.ptp(weights) == 0.0:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order] / np.max(weights))
    # Sums of weights are rounded: a half is one to twelve digits.
    half = 0.5 * share[-1] * np.array([1.0 - 1e-12, 1.0 + 1e-12])
    low, high = values[order[np.searchsorted(share, half)]]
    return float(0.5 * low + 0.5 * high)


def _decide_one(
    facts: TableFacts, place: int, typical: float | None, max_categories: int
) -> Column:
    name, kinds, texts = facts.names[place], facts.kinds[place], facts.texts[place]
    if len(kinds) > 1:
        _refuse_kinds(name, [KINDS[kind] for kind in sorted(kinds)])
    [kind] = kinds or {NUMBER}
    if texts is None or texts.n_values == 0:
        several = bool(facts.low[place] < facts.high[place])
        return _number_column(facts, place, kind=kind, typical=typical, has_value=several)
    if not texts.declared and kind == NUMBER and all(map(is_truth_value, texts.counts)):
        return _read_column(facts, place, texts, NUMBER, None)
    if not texts.declared and (kind == DATE or not kinds) and _all_dates(texts.counts):
        return _read_column(facts, place, texts, DATE, None)
    if kinds - {NUMBER}:
        _refuse_kinds(name, [KINDS[kind], f"texts such as {examples(texts.counts)}"])
    if kinds:
        texts = _with_numbers(texts, facts, place)
    number_format = None if texts.declared else find_format(texts.counts)
    if number_format is not None:
        return _read_column(facts, place, texts, NUMBER, number_format)
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
    values = np.array(list(found.values()))
    weights = np.array([texts.weights[text] for text in found])
    note = None
    if number_format is None:
        values = np.append(values, _numbers(facts, place))
        weights = np.append(weights, facts.row_weights[~np.isnan(facts.sample[:, place])])
    else:
        note = f"texts read as numbers, written like {number_format}"
        note += f"; {examples(unread)} count as missing" if unread else ""
    return _number_column(
        facts,
        place,
        kind=kind,
        typical=_median(values, weights),
        has_value=bool(values.min() < values.max()),
        n_unread=round(texts.n_values * _share(texts, unread)),
        number_format=number_format,
        note=note,
    )


def _category_column(
    facts: TableFacts, place: int, texts: TextFacts, max_categories: int
) -> Column:
    name, n_missing = facts.names[place], int(facts.n_missing[place])
    strange = [text for text in texts.counts if not reads_as_number(text)]
    categories: tuple[str, ...] = ()
    note: str | None = None
    if _are_identifiers(texts, strange):
        note = f"identifiers: {texts.n_values:,} texts, all different"
    elif len(texts.counts) > max_categories or not texts.complete:
        _refuse_categories(name, texts, strange, max_categories)
    else:
        categories = tuple(sorted(texts.counts))
        if len(categories) == 1:
            note = CONSTANT
        elif len(categories) > _FEW and 2 * len(strange) <= len(categories):
            note = f"texts that look like numbers, such as {examples(categories)}"
    return Column(
        name=name,
        kind=CATEGORY,
        n_missing=n_missing,
        typical=None,
        has_value=len(categories) > 1,
        has_indicator=0 < n_missing < facts.n_rows,
        categories=categories,
        note=note,
    )


def _are_identifiers(texts: TextFacts, strange: Sequence[str]) -> bool:
    """Whether no text occurs twice. Numbers differ by nature: half of the texts must be none."""
    if texts.repeated or texts.n_values < FEWEST_IDENTIFIERS:
        return False
    return 2 * len(strange) > len(texts.counts)


def _numbers(facts: TableFacts, place: int) -> Floats:
    """Numbers of a column in the sample of rows."""
    values = facts.sample[:, place]
    return values[~np.isnan(values)]


def _all_dates(texts: Mapping[str, Any]) -> bool:
    return all(text_as_date(text) is not None for text in texts)


def _share(texts: TextFacts, some: Iterable[str]) -> float:
    """Share of the values that are one of some texts; estimated if texts were dropped."""
    return sum(texts.counts[text] for text in some) / sum(texts.counts.values())


def _with_numbers(texts: TextFacts, facts: TableFacts, place: int) -> TextFacts:
    """Texts and the numbers of blocks that were read as such, each spelt like a text that is known.

    Of more rows than the sample holds, a number may go unseen: it is then none of the categories.
    """
    numbers, counts = np.unique(_numbers(facts, place), return_counts=True)
    n_numbers = facts.n_rows - int(facts.n_missing[place]) - texts.n_values
    scale = n_numbers / max(1, counts.sum())
    known = spellings(list(texts.counts))
    all_counts, all_weights = dict(texts.counts), dict(texts.weights)
    for value, count in zip(numbers.tolist(), (scale * counts).tolist(), strict=True):
        text = spelt(value)
        text = known.get(text, text)
        all_counts[text] = all_counts.get(text, 0) + max(1, round(count))
        all_weights[text] = all_weights.get(text, 0.0) + count
    n_values = texts.n_values + n_numbers
    return replace(
        texts,
        n_values=n_values,
        counts=all_counts,
        weights=all_weights,
        repeated=texts.repeated or len(all_counts) < n_values,
    )


def _refuse_kinds(name: str, held: Sequence[str]) -> NoReturn:
    raise ValueError(
        f"column {name!r} holds {held[0]} in some blocks of rows and {held[1]} in others: convert "
        "it to one of them."
    )


def _refuse_categories(
    name: str, texts: TextFacts, strange: Sequence[str], max_categories: int
) -> NoReturn:
    """Say which of three faults a column of too many texts has; rows are counted, not texts."""
    n_values, share = texts.n_values, _share(texts, strange)
    if not strange:
        raise ValueError(
            f"column {name!r} holds {n_values:,} numbers as text, such as "
            f"{examples(texts.counts)}: convert them to numbers."
        )
    if share <= 0.5:
        raise ValueError(
            f"column {name!r} holds text where numbers are expected, {round(share * n_values):,} "
            f"of {n_values:,} values are not numbers, such as {examples(strange)}: mend them, mark "
            "them as missing, or leave the column out."
        )
    size = f"{len(texts.counts):,}" if texts.complete else f"more than {len(texts.counts):,}"
    raise ValueError(
        f"column {name!r} holds {size} different texts, such as {examples(texts.counts)}, more "
        f"than max_categories={max_categories}: leave the column out, or raise max_categories."
    )
