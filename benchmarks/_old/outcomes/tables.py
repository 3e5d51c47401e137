"""Tables of the study of outcomes in Markdown, and the page that holds them.

A method is within noise of the best one of a set if the mean difference of their scores, paired by
repeats, is less than two standard errors of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._old.outcomes.records import Record, to_frame

OURS = "bowtienet"
LARGE = 1000
"""Test rows from which on a calibration error counts: with fewer, chance alone makes it large."""
MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A method's score minus that of the best one on a set, paired by repeats."""

    mean: float
    error: float
    """Standard error; NaN of a single repeat, 0 of the best itself."""

    @property
    def within_noise(self) -> bool:
        """Whether it is none, or less than two standard errors."""
        return self.mean <= 0.0 or self.mean < 2.0 * self.error


def write_page(path: Path, tables: Mapping[str, str]) -> None:
    """Put tables between their marks; those that there are no records for stay as they are."""

    def renewed(mark: re.Match[str]) -> str:
        text = tables.get(mark[2])
        return mark[0] if text is None else f"{mark[1]}\n{text}\n\n{mark[3]}"

    path.write_text(MARKED.sub(renewed, path.read_text(encoding="utf-8")), encoding="utf-8")


def all_tables(records: Sequence[Record]) -> dict[str, str]:
    """Tables by name."""
    classes = to_frame(records, "classification")
    counts, outliers = to_frame(records, "counts"), to_frame(records, "outliers")
    tables = {}
    if len(classes):
        tables["verdict"] = verdict(classes)
        tables["summary"] = class_summary(classes)
        tables["log_loss"] = score_table(classes, "log_loss")
        tables["brier_score"] = mean_table(classes, "brier_score")
        tables["calibration"] = mean_table(classes, "calibration_error")
        tables["accuracy"] = mean_table(classes, "accuracy")
        tables["seconds"] = mean_table(classes, "seconds", digits=1)
    if len(counts):
        tables["counts"] = count_table(counts)
    if len(outliers):
        tables["outliers"] = score_table(outliers, "rmse")
        tables["outlier_seconds"] = mean_table(outliers, "seconds", digits=1)
    return tables


def by_set(frame: pd.DataFrame, score: str) -> dict[str, pd.DataFrame]:
    """Scores (repeats, methods) of every set, in the order of the records."""
    return {
        str(name): part.pivot(index="seed", columns="method", values=score)
        for name, part in frame.groupby("set", sort=False)
    }


def best_of(values: pd.DataFrame) -> str:
    """The column of `values` (repeats, methods) with the lowest mean, of those with most repeats.

    A tie goes to the first in the alphabet.
    """
    counts = values.count()
    return str(values.loc[:, counts == counts.max()].mean().idxmin())


def difference(values: pd.DataFrame, method: str) -> Difference:
    """Of a column of `values` (repeats, methods) to the best one."""
    paired = (values[method] - values[best_of(values)]).dropna()
    error = paired.std(ddof=1) / np.sqrt(len(paired)) if len(paired) > 1 else np.nan
    return Difference(mean=float(paired.mean()), error=float(error))


def score_table(frame: pd.DataFrame, score: str) -> str:
    """Mean score by set and method; the lowest is bold, others have the error of the difference."""
    methods = _methods(frame)
    lines = _head(["set", "rows", *methods])
    for name, values in by_set(frame, score).items():
        own = frame[frame["set"] == name].iloc[0]
        cells = [name, f"{own['n_train']:,} / {own['n_test']:,}"]
        for method in methods:
            if method not in values:
                cells.append("")
            elif method == best_of(values):
                cells.append(f"**{values[method].mean():.4f}**")
            else:
                error = difference(values, method).error
                cells.append(f"{values[method].mean():.4f} ± {error:.4f}")
        lines.append(_line(cells))
    return "\n".join(lines)


def mean_table(frame: pd.DataFrame, score: str, digits: int = 3) -> str:
    """Mean score by set and method."""
    methods = _methods(frame)
    lines = _head(["set", *methods])
    for name, values in by_set(frame, score).items():
        means = values.mean()
        lines.append(
            _line([name, *(f"{means[m]:.{digits}f}" if m in means else "" for m in methods)])
        )
    return "\n".join(lines)


def class_summary(frame: pd.DataFrame) -> str:
    """By method: sets where it is best or within noise of the best, and means over its sets."""
    lines = _head(
        [
            *("method", "sets", "best", "best or within noise", "log loss above the best"),
            *("Brier score", "accuracy", "largest calibration error", "seconds"),
        ]
    )
    scores = by_set(frame, "log_loss")
    for method in _methods(frame):
        there = {name: values for name, values in scores.items() if method in values}
        found = [difference(values, method) for values in there.values()]
        own = frame[frame["method"] == method].groupby("set")
        means = own[["brier_score", "accuracy", "seconds"]].mean().mean()
        lines.append(
            _line(
                [
                    *(method, str(len(there))),
                    str(sum(best_of(values) == method for values in there.values())),
                    str(sum(one.within_noise for one in found)),
                    f"{np.mean([one.mean for one in found]):.4f}",
                    *(f"{means['brier_score']:.4f}", f"{means['accuracy']:.4f}"),
                    *(_largest_error(frame, method), f"{means['seconds']:.1f}"),
                ]
            )
        )
    return "\n".join(lines)


def verdict(frame: pd.DataFrame) -> str:
    """What the records say of our classifier, in a sentence or two."""
    there = {name: v for name, v in by_set(frame, "log_loss").items() if OURS in v}
    if not there:
        return f"There are no records of {OURS} yet."
    found = {name: difference(values, OURS) for name, values in there.items()}
    good = [name for name, one in found.items() if one.within_noise]
    worse = [name for name in found if name not in good]
    seeds = frame[frame["method"] == OURS]["seed"]
    n_best = sum(best_of(values) == OURS for values in there.values())
    own = frame[(frame["method"] == OURS) & (frame["n_test"] >= LARGE)]
    text = (
        f"Of {len(there)} sets, `{OURS}` has the lowest mean log loss on {n_best}, and is best or"
        f" within noise on {len(good)} (seeds {seeds.min()} to {seeds.max()})."
    )
    if worse:
        text += f" It is worse on {', '.join(worse)}."
    if len(own):
        text += (
            f" Where {LARGE:,} rows or more are scored, its largest calibration error is"
            f" {_largest_error(frame, OURS)} as a mean of a set's repeats, and"
            f" {own['calibration_error'].max():.3f} in a single one."
        )
    return text


def published_classes(records: Sequence[Record]) -> str:
    """The verdict, and the scores that matter most, of records of classifiers."""
    frame = to_frame(records, "classification")
    parts = {
        "Log loss": score_table(frame, "log_loss"),
        "Brier score": mean_table(frame, "brier_score"),
        "Expected calibration error": mean_table(frame, "calibration_error"),
        "Accuracy": mean_table(frame, "accuracy"),
        "CPU seconds of fit and prediction": mean_table(frame, "seconds", digits=1),
    }
    texts = (f"### {heading}\n\n{table}" for heading, table in parts.items())
    return "\n\n".join([verdict(frame), *texts])


def count_table(frame: pd.DataFrame) -> str:
    """By set and method: log score with the error of the difference to the best, and the rest."""
    lines = _head(["set", "method", "mean log score", "RMSE", "90 % intervals cover", "seconds"])
    for name, part in frame.groupby("set", sort=False):
        others = part[part["method"] != "truth"]
        losses = -others.pivot(index="seed", columns="method", values="log_score")
        for method in _methods(part):
            means = part[part["method"] == method][
                ["log_score", "rmse", "coverage", "seconds"]
            ].mean()
            score = f"{means['log_score']:.4f}"
            if method in losses:
                score = (
                    f"**{score}**"
                    if method == best_of(losses)
                    else f"{score} ± {difference(losses, method).error:.4f}"
                )
            rest = (f"{means['rmse']:.3f}", f"{means['coverage']:.3f}", f"{means['seconds']:.1f}")
            lines.append(_line([str(name), method, score, *rest]))
    return "\n".join(lines)


def _methods(frame: pd.DataFrame) -> list[str]:
    """Methods in the order of the records, ours first."""
    found = [str(name) for name in dict.fromkeys(frame["method"])]
    return sorted(found, key=lambda name: not name.startswith(OURS))


def _largest_error(frame: pd.DataFrame, method: str) -> str:
    own = frame[(frame["method"] == method) & (frame["n_test"] >= LARGE)]
    if own.empty:
        return ""
    means = own.groupby("set")["calibration_error"].mean()
    return f"{means.max():.3f} ({means.idxmax()})"


def _head(names: Sequence[str]) -> list[str]:
    return [_line(names), "|---" * len(names) + "|"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
