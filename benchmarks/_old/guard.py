"""Figures of a run of the benchmarks, their file, and the rule that says which have got worse.

Only ratios are compared, never seconds. All are such that smaller is better. A ratio is worse when

    median now > LIMIT x committed median    and    lower quartile now > committed upper quartile,

so that neither a small change nor a ratio whose repeats scatter widely raises an alarm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

LIMIT = 1.5
AGAIN = "measure them again with `python -m benchmarks._old.bench --accept`"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One ratio: median and quartiles over the repeats, and the median seconds of its two parts."""

    median: float
    low: float
    high: float
    above: float
    """Seconds; for people to read, not compared."""
    below: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All ratios of one run."""

    when: str
    """The day."""
    quick: bool
    """At small sizes, which say whether the program works and no more."""
    machine: dict[str, str]
    versions: dict[str, str]
    ratios: dict[str, Figure]


class Kind(StrEnum):
    """What has become of a ratio."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "as before"
    NEW = "new"
    MISSING = "not measured"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A ratio before and now; either may be absent, not both."""

    name: str
    kind: Kind
    before: Figure | None
    now: Figure | None

    @property
    def change(self) -> float:
        """Median now / committed median; NaN where one is absent."""
        if self.before is None or self.now is None:
            return float("nan")
        return self.now.median / self.before.median


def summarize(above: Iterable[float], below: Iterable[float], scale: float = 1.0) -> Figure:
    """The figure of paired seconds: quartiles of scale x above / below, taken pair by pair."""
    upper, lower = np.array(list(above)), np.array(list(below))
    low, median, high = np.quantile(scale * upper / lower, [0.25, 0.5, 0.75])
    return Figure(
        median=float(median),
        low=float(low),
        high=float(high),
        above=float(np.median(upper)),
        below=float(np.median(lower)),
        repeats=len(upper),
    )


def is_worse(before: Figure, now: Figure) -> bool:
    """The rule at the top of this file."""
    return now.median > LIMIT * before.median and now.low > before.high


def compare(committed: Figures, fresh: Figures) -> list[Verdict]:
    """A verdict on every ratio of either run: those of the fresh one in their order, then the rest.

    Raises
    ------
    ValueError
        If one run was quick and the other was not: their sizes differ.
    """
    if committed.quick != fresh.quick:
        raise ValueError("a quick run cannot be compared with a full one: its sizes differ.")
    return [
        _verdict(name, committed.ratios.get(name), fresh.ratios.get(name))
        for name in {**fresh.ratios, **committed.ratios}
    ]


def worse(verdicts: Iterable[Verdict]) -> list[str]:
    """Names of the ratios that are worse."""
    return [verdict.name for verdict in verdicts if verdict.kind is Kind.WORSE]


def changed_facts(committed: Figures, fresh: Figures) -> list[str]:
    """What differs between the machines and libraries of two runs, one phrase each."""
    before = {**committed.machine, **committed.versions}
    now = {**fresh.machine, **fresh.versions}
    return [
        f"{name}: {now.get(name, 'unknown')}, was {before.get(name, 'unknown')}"
        for name in {**now, **before}
        if now.get(name) != before.get(name)
    ]


def better_of(first: Figures, second: Figures) -> Figures:
    """The first run with those ratios of the second whose median is smaller."""
    ratios = {
        name: min(figure, second.ratios.get(name, figure), key=lambda figure: figure.median)
        for name, figure in first.ratios.items()
    }
    return replace(first, ratios=ratios)


def write(figures: Figures, path: Path) -> None:
    """Write figures as JSON, rounded to the four digits that a noisy machine can give."""
    content = asdict(figures)
    for ratio in content["ratios"].values():
        ratio.update({k: float(f"{v:.4g}") for k, v in ratio.items() if isinstance(v, float)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read(path: Path) -> Figures | None:
    """The figures of a file, or None if there is none."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path.name} is not valid JSON ({error}): {AGAIN}.") from error
    ratios = {name: Figure(**found) for name, found in content["ratios"].items()}
    return Figures(**{**content, "ratios": ratios})


def _verdict(name: str, before: Figure | None, now: Figure | None) -> Verdict:
    if before is None:
        kind = Kind.NEW
    elif now is None:
        kind = Kind.MISSING
    elif is_worse(before, now):
        kind = Kind.WORSE
    elif is_worse(now, before):
        kind = Kind.BETTER
    else:
        kind = Kind.SAME
    return Verdict(name=name, kind=kind, before=before, now=now)
