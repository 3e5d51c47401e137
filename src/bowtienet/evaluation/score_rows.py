"""Scores as rows of a table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from bowtienet.data.named_frames import new_frame


class ScoreRow:
    """Base of frozen dataclasses of scores."""

    def to_frame(self, library: str = "pandas") -> Any:
        """One row, with a column for each score.

        Examples
        --------
        >>> from bowtienet.evaluation import CountScores
        >>> found = CountScores(
        ...     n_rows=9,
        ...     log_score=-1.5,
        ...     rmse=2.0,
        ...     nominal_coverage=0.9,
        ...     coverage=1.0,
        ...     interval_width=4.0,
        ... )
        >>> found.to_frame()[["n_rows", "rmse", "coverage"]]
           n_rows  rmse  coverage
        0       9   2.0       1.0
        """
        return new_frame({name: [value] for name, value in score_values(self).items()}, library)


def score_values(scores: Any) -> dict[str, Any]:
    """Scores by name, in their order."""
    return {field.name: getattr(scores, field.name) for field in fields(scores)}
