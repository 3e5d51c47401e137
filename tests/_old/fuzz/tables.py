"""Tables as users have them on a bad day, drawn from a generator: columns, targets, weights.

`draw_table` gives tame tables, which every fit must take, and hostile ones, which a fit takes or
refuses with a sentence. A column, a target or a vector of weights is drawn by a function of the
generator and the number of rows; the dictionaries below name them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

Draw = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows with their targets."""

    frame: pd.DataFrame
    target: Any
    task: str
    """"numbers", "classes" or "counts"."""
    tame: bool
    """Whether every fit must take it."""
    weights: Any = None
    exposure: Any = None
    words: str = ""
    """What it was drawn from, for a report."""


def magnitude(rng: np.random.Generator, limit: int = 300) -> float:
    """10^k, mostly with a moderate k."""
    bound = rng.choice([3, 20, 160, limit], p=[0.5, 0.2, 0.2, 0.1])
    return float(10.0 ** rng.uniform(-bound, bound))


def _with_gaps(values: Any, rng: np.random.Generator, share: float = 0.3) -> Any:
    found = pd.Series(values)
    return found.mask(rng.random(len(found)) < share)


def _levels(rng: np.random.Generator, n: int, count: int) -> list[str]:
    return [f"level {k}" for k in rng.integers(count, size=n)]


def _dates(rng: np.random.Generator, n: int) -> pd.Series:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(-(10**4), 10**4, n), "D")
    return pd.Series(days)


def _mixed(rng: np.random.Generator, n: int) -> pd.Series:
    choices = np.array([1, 2.5, "text", None, True, np.nan, "7", b"x"], dtype=object)
    return pd.Series(choices[rng.integers(len(choices), size=n)], dtype=object)


STRANGE = ("=1+1", "\x00", "a\nb", "é列🎈", " ")
TAME: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(-2.0, 3.0, size=n),
    "integers": lambda rng, n: rng.integers(-5, 50, size=n),
    "booleans": lambda rng, n: rng.random(n) < 0.4,
    "gaps": lambda rng, n: _with_gaps(rng.normal(size=n), rng, 0.2),
    "levels": lambda rng, n: _levels(rng, n, 3),
    "category": lambda rng, n: pd.Categorical(_levels(rng, n, 4)),
    "dates": _dates,
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "constant": lambda rng, n: np.full(n, 3.0),
}
HOSTILE: dict[str, Draw] = {
    "scaled": lambda rng, n: magnitude(rng) * rng.normal(size=n),
    "shifted": lambda rng, n: 1e9 + rng.normal(size=n) * magnitude(rng, 20),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "one present": lambda rng, n: np.where(np.arange(n) == 0, 1.0, np.nan),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n) ** 3,
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf, rng.normal(size=n)),
    "nearly constant": lambda rng, n: 1.0 + 1e-16 * rng.integers(3, size=n),
    "one other": lambda rng, n: np.where(np.arange(n) == 1, magnitude(rng), 0.0),
    "denormal": lambda rng, n: 5e-324 * rng.integers(5, size=n),
    "half": lambda rng, n: rng.normal(size=n).astype(np.float16),
    "bytes": lambda rng, n: rng.integers(255, size=n).astype(np.uint8),
    "large integers": lambda rng, n: rng.integers(-(2**62), 2**62, size=n),
    "unsigned": lambda rng, n: rng.integers(2**63, 2**64, size=n, dtype=np.uint64),
    "nullable": lambda rng, n: _with_gaps(rng.integers(9, size=n), rng).astype("Int64"),
    "nullable booleans": lambda rng, n: _with_gaps(rng.random(n) < 0.5, rng).astype("boolean"),
    "Arrow": lambda rng, n: _with_gaps(rng.normal(size=n), rng).astype(pd.ArrowDtype(pa.float64())),
    "many levels": lambda rng, n: _levels(rng, n, 150),
    "gaps in levels": lambda rng, n: _with_gaps(_levels(rng, n, 3), rng),
    "identifiers": lambda rng, n: [f"{k:08x}" for k in rng.permutation(n)],
    "written numbers": lambda rng, n: [f"{v:,.2f}" for v in 1e4 * rng.normal(size=n)],
    "strange texts": lambda rng, n: [STRANGE[k] for k in rng.integers(5, size=n)],
    "gaps in dates": lambda rng, n: _with_gaps(_dates(rng, n), rng),
    "zoned dates": lambda rng, n: _dates(rng, n).dt.tz_localize("UTC"),
    "durations": lambda rng, n: pd.to_timedelta(rng.integers(10**6, size=n), "s"),
    "periods": lambda rng, n: pd.Series(pd.period_range("2020-01", periods=n, freq="M")),
    "mixed": _mixed,
    "decimals": lambda rng, n: [decimal.Decimal(int(k)) / 7 for k in rng.integers(99, size=n)],
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "lists": lambda rng, n: [[1, 2]] * n,
}  # fmt: skip

NAMES = (
    *("y", "", " ", "a\nb", "=cmd()", "naïve", "列", "\x00", "n" * 300, "<b>x</b>", '"', "'", ","),
    *("../x", "%s", "{x}", "nan", "mean", "x.1", "\x1b[31m", "a\tb", "🎈", "index", "weight"),
)


def _signal(frame: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """A function of the columns of numbers, with noise."""
    found = 0.3 * rng.normal(size=len(frame))
    for name in range(frame.shape[1]):
        values = pd.to_numeric(frame.iloc[:, name].astype(object), errors="coerce")
        values = values.to_numpy(dtype=float)
        scale = np.nanstd(values) if np.isfinite(values).any() else np.nan
        if np.isfinite(scale) and scale > 0.0:
            found += np.tanh(np.nan_to_num(values / scale, posinf=0.0, neginf=0.0))
    return found


NUMBERS: dict[str, Callable[[np.random.Generator, np.ndarray], Any]] = {
    "scaled": lambda rng, s: magnitude(rng) * s,
    "shifted": lambda rng, s: 1e8 + s,
    "constant": lambda rng, s: np.full(len(s), magnitude(rng)),
    "zero": lambda rng, s: np.zeros(len(s)),
    "two values": lambda rng, s: (s > 0.0).astype(int),
    "booleans": lambda rng, s: s > 0.0,
    "Cauchy": lambda rng, s: s * np.abs(rng.standard_cauchy(len(s))) ** 3,
    "one outlier": lambda rng, s: np.where(np.arange(len(s)) == 0, magnitude(rng), s),
    "exponential": lambda rng, s: np.exp(20.0 * s),
    "integers": lambda rng, s: np.round(10.0 * s).astype(int),
    "half": lambda rng, s: s.astype(np.float16),
    "single": lambda rng, s: s.astype(np.float32),
    "two": lambda rng, s: np.column_stack([s, magnitude(rng) * s[::-1]]),
    "column": lambda rng, s: s[:, None],
    "nullable": lambda rng, s: pd.Series(np.round(s)).astype("Int64"),
    "Arrow": lambda rng, s: pd.Series(s).astype(pd.ArrowDtype(pa.float64())),
    "objects": lambda rng, s: s.astype(object),
    "list": lambda rng, s: s.tolist(),
    "decimals": lambda rng, s: [decimal.Decimal(str(round(v, 3))) for v in s],
    "missing": lambda rng, s: np.where(np.arange(len(s)) == 0, np.nan, s),
    "infinite": lambda rng, s: np.where(np.arange(len(s)) == 0, -np.inf, s),
    "texts": lambda rng, s: [f"t{v:.0f}" for v in s],
    "none": lambda rng, s: None,
    "short": lambda rng, s: s[:-1],
}
CLASSES: dict[str, Callable[[np.random.Generator, np.ndarray], Any]] = {
    "texts": lambda rng, s: np.where(s > 0.0, "yes", "no"),
    "three": lambda rng, s: np.digitize(s, [-0.5, 0.5]),
    "booleans": lambda rng, s: s > 0.0,
    "many": lambda rng, s: rng.integers(12, size=len(s)),
    "one": lambda rng, s: np.zeros(len(s), dtype=int),
    "rare": lambda rng, s: np.where(np.arange(len(s)) == 0, "rare", "common"),
    "floats": lambda rng, s: np.sign(s),
    "fractions": lambda rng, s: s,
    "category": lambda rng, s: pd.Categorical(np.where(s > 0.0, "b", "a"), categories=list("cba")),
    "nullable": lambda rng, s: pd.Series(s > 0.0).astype("boolean"),
    "missing": lambda rng, s: pd.Series(s > 0.0).astype("boolean").mask(s > 1.0),
    "bytes": lambda rng, s: np.where(s > 0.0, b"u", b"v"),
    "strange": lambda rng, s: np.where(s > 0.0, "=1\n", "é列"),
    "mixed": lambda rng, s: [["a", 1, None][k] for k in rng.integers(3, size=len(s))],
    "large": lambda rng, s: np.where(s > 0.0, 2**60, -(2**60)),
    "all different": lambda rng, s: np.arange(len(s)),
    "dates": lambda rng, s: pd.Series(pd.Timestamp("2024-01-01")).repeat(len(s)),
}
COUNTS: dict[str, Callable[[np.random.Generator, np.ndarray], Any]] = {
    "Poisson": lambda rng, s: rng.poisson(np.exp(s)),
    "zeros": lambda rng, s: np.zeros(len(s), dtype=int),
    "one": lambda rng, s: (np.arange(len(s)) == 0).astype(int),
    "large": lambda rng, s: rng.poisson(1e9, size=len(s)),
    "spread": lambda rng, s: np.floor(10.0 ** rng.uniform(0.0, 15.0, size=len(s))),
    "floats": lambda rng, s: rng.poisson(5.0, size=len(s)).astype(np.float32),
    "small integers": lambda rng, s: rng.poisson(5.0, size=len(s)).astype(np.uint8),
    "nullable": lambda rng, s: pd.Series(rng.poisson(2.0, size=len(s))).astype("Int64"),
    "negative": lambda rng, s: rng.poisson(2.0, size=len(s)) - 1,
    "fractions": lambda rng, s: rng.poisson(2.0, size=len(s)) + 0.5,
    "infinite": lambda rng, s: np.full(len(s), np.inf),
}
WEIGHTS: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.uniform(0.5, 2.0, size=n),
    "whole": lambda rng, n: rng.integers(3, size=n),
    "survey": lambda rng, n: 10.0 ** rng.uniform(2.0, 6.0, size=n),
    "spread": lambda rng, n: 10.0 ** rng.uniform(-8.0, 8.0, size=n),
    "extreme": lambda rng, n: 10.0 ** rng.uniform(-300.0, 300.0, size=n),
    "one large": lambda rng, n: np.where(np.arange(n) == 0, magnitude(rng), 1.0),
    "tiny": lambda rng, n: np.full(n, 1e-300),
    "single": lambda rng, n: rng.uniform(size=n).astype(np.float32),
    "booleans": lambda rng, n: rng.random(n) < 0.8,
    "nullable": lambda rng, n: pd.Series(rng.integers(1, 4, size=n)).astype("Int64"),
    "zeros": lambda rng, n: np.zeros(n),
    "negative": lambda rng, n: rng.normal(size=n),
    "missing": lambda rng, n: np.where(np.arange(n) == 0, np.nan, 1.0),
    "texts": lambda rng, n: ["1"] * n,
}


def _choose(rng: np.random.Generator, choices: dict[str, Any], first: int = 0) -> str:
    """A name of `choices`; with `first`, half of the time one of the first few."""
    names = list(choices)
    few = names[:first] if first and rng.random() < 0.5 else names
    return few[rng.integers(len(few))]


def _frame(rng: np.random.Generator, n: int, tame: bool) -> tuple[pd.DataFrame, list[str]]:
    wide = not tame and rng.random() < 0.05
    count = int(rng.integers(30, 60)) if wide else int(rng.integers(1, 6))
    kinds = [_choose(rng, TAME if tame or rng.random() < 0.5 else HOSTILE) for _ in range(count)]
    if tame:
        kinds[0] = "normal"
    columns = [pd.Series((TAME | HOSTILE)[kind](rng, n)) for kind in kinds]
    frame = pd.concat([c.reset_index(drop=True) for c in columns], axis=1)
    names: list[Any] = [f"x{i}" for i in range(count)]
    if not tame and rng.random() < 0.3:
        names[: len(NAMES)] = rng.permutation(NAMES)[:count].tolist()
    elif not tame and rng.random() < 0.1:
        names = list(range(count)) if rng.random() < 0.5 else ["twice"] * count
    frame.columns = pd.Index(names, dtype=object)
    return frame, kinds


def _duplicated(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows several times over."""
    places = rng.integers(max(1, len(frame) // 4), size=len(frame))
    return frame.iloc[places].reset_index(drop=True)


def draw_table(rng: np.random.Generator, task: str, *, tame: bool | None = None) -> Table:
    """A table for one of the tasks; tame for two of five if nothing is said."""
    tame = bool(rng.random() < 0.4) if tame is None else tame
    sizes = (12, 25, 40, 80) if tame else (1, 2, 3, 5, 12, 25, 40, 80, 200)
    n = int(rng.choice(sizes))
    frame, kinds = _frame(rng, n, tame)
    if not tame and rng.random() < 0.1:
        frame = _duplicated(rng, frame)
    signal = _signal(frame, rng)
    draws = {"numbers": NUMBERS, "classes": CLASSES, "counts": COUNTS}[task]
    if tame:
        target = {"numbers": signal, "classes": np.where(signal > np.median(signal), "b", "a")}.get(
            task, rng.poisson(np.exp(np.clip(signal, -2.0, 2.0)))
        )
        kind = "tame"
    else:
        kind = _choose(rng, draws, first=4)
        with np.errstate(all="ignore"):
            target = draws[kind](rng, signal)
    words = f"{n} rows of {', '.join(kinds)}; target {kind}"
    table = Table(frame=frame, target=target, task=task, tame=tame, words=words)
    return _exposed(_weighted(table, rng, n), rng, n)


def _weighted(table: Table, rng: np.random.Generator, n: int) -> Table:
    if rng.random() > 0.3:
        return table
    kind = "uniform" if table.tame else _choose(rng, WEIGHTS, first=5)
    return replace(table, weights=WEIGHTS[kind](rng, n), words=f"{table.words}; weights {kind}")


def _exposed(table: Table, rng: np.random.Generator, n: int) -> Table:
    if table.task != "counts" or rng.random() > 0.4:
        return table
    bound = 1.0 if table.tame else rng.choice([1.0, 6.0, 100.0])
    exposure = 10.0 ** rng.uniform(-bound, bound, size=n)
    if not table.tame and rng.random() < 0.1:
        exposure[0] = rng.choice([0.0, -1.0, np.nan, np.inf])
    return replace(table, exposure=exposure, words=f"{table.words}; exposures")
