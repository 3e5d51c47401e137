"""Scores of forecasts, scorers for scikit-learn, and a comparison of models on the same rows."""

from bowtienet.evaluation.compare import Comparison, compare
from bowtienet.evaluation.competitors import default_models
from bowtienet.evaluation.scores import (
    calibration_error,
    chance_band,
    coverage,
    crps,
    interval_score,
    log_score,
    neg_crps,
    neg_interval_score,
    pit,
)

__all__ = [
    "Comparison",
    "calibration_error",
    "chance_band",
    "compare",
    "coverage",
    "crps",
    "default_models",
    "interval_score",
    "log_score",
    "neg_crps",
    "neg_interval_score",
    "pit",
]
