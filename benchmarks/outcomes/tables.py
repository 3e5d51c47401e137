"""Tables of the study of outcomes in Markdown, and the page that holds them.

A method is within noise of another on a set if the mean difference of their scores, over the
repeats of both, is less than two standard errors of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.outcomes.records import Record, to_frame

OURS = "bowtienet"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A method's score minus that of the best one on a set, paired by repeats."""

    mean: float
    error: float
    """Standard error; NaN of a single repeat, 0 of the best itself."""

    @property
    def within_noise(self) -> bool:
        """Whether it is less than two standard errors, or none."""
        return self.mean <= 0.0 or self.mean < 2.0 * self.error


def best_of(values: pd.DataFrame) -> str:
    """The column with the lowest mean of `values` (repeats, methods), of those with all repeats."""
    return str(values.dropna(axis="columns").mean().idxmin())


def difference(values: pd.DataFrame, method: str, best: str) -> Difference:
    """Of two columns of `values` (repeats, methods)."""
    paired = (values[method] - values[best]).dropna()
    error = paired.std(ddof=1) / np.sqrt(len(paired)) if len(paired) > 1 else np.nan
    return Difference(mean=float(paired.mean()), error=float(error))


def by_set(frame: pd.DataFrame, score: str) -> dict[str, pd.DataFrame]:
    """Scores (repeats, methods) of every set."""
    return {
        str(name): part.pivot(index="seed", columns="method", values=score)
        for name, part in frame.groupby("set", sort=False)
    }


def class_tables(records: Sequence[Record]) -> dict[str, str]:
    """The tables of classification by name."""
    frame = to_frame(records, "classification")
    if frame.empty:
        return {}
    return {
        "classification": score_table(frame, "log_loss", "rows"),
        "calibration": mean_table(frame, "calibration_error"),
        "summary": class_summary(frame),
    }


def score_table(frame: pd.DataFrame, score: str, rows: str = "rows") -> str:
    """Mean score by set and method, with the standard error of the difference to the best."""
    methods = list(dict.fromkeys(frame["method"]))
    lines = _head(["set", rows, *methods])
    for name, values in by_set(frame, score).items():
        best = best_of(values)
        own = frame[frame["set"] == name].iloc[0]
        cells = [name, f"{own['n_train']:,} / {own['n_test']:,}"]
        for method in methods:
            if method not in values or values[method].isna().all():
                cells.append("")
            elif method == best:
                cells.append(f"**{values[method].mean():.4f}**")
            else:
                error = difference(values, method, best).error
                cells.append(f"{values[method].mean():.4f} ± {error:.4f}")
        lines.append(_line(cells))
    return "\n".join(lines)


def mean_table(frame: pd.DataFrame, score: str) -> str:
    """Mean score by set and method."""
    methods = list(dict.fromkeys(frame["method"]))
    lines = _head(["set", *methods])
    for name, values in by_set(frame, score).items():
        means = values.mean()
        cells = [f"{means[m]:.3f}" if m in means else "" for m in methods]
        lines.append(_line([name, *cells]))
    return "\n".join(lines)


def class_summary(frame: pd.DataFrame) -> str:
    """By method: sets where it is best or within noise of the best, and means over the sets."""
    methods = list(dict.fromkeys(frame["method"]))
    scores = by_set(frame, "log_loss")
    lines = _head(
        [
            *("method", "sets", "best", "best or within noise", "log loss over the best's"),
            *("Brier score", "accuracy", "largest calibration error", "seconds"),
        ]
    )
    for method in methods:
        own = frame[frame["method"] == method]
        there = {name: v for name, v in scores.items() if method in v and v[method].notna().any()}
        found = {name: difference(v, method, best_of(v)) for name, v in there.items()}
        n_best = sum(best_of(values) == method for values in there.values())
        n_good = sum(one.within_noise for one in found.values())
        large = own[own["n_test"] >= 1000].groupby("set")["calibration_error"].mean()
        worst = f"{large.max():.3f} ({large.idxmax()})" if len(large) else ""
        means = own.groupby("set")[["brier_score", "accuracy", "seconds"]].mean().mean()
        lines.append(
            _line(
                [
                    *(method, str(len(there)), str(n_best), str(n_good)),
                    f"{np.mean([one.mean for one in found.values()]):+.4f}",
                    *(f"{means['brier_score']:.4f}", f"{means['accuracy']:.4f}"),
                    *(worst, f"{means['seconds']:.1f}"),
                ]
            )
        )
    return "\n".join(lines)


def _head(names: Sequence[str]) -> list[str]:
    return [_line(names), "|---" * len(names) + "|"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
