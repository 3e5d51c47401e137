"""Scores of forecasts, scorers for scikit-learn, and comparisons on the same splits.

CRPS needs scoringrules (``pip install 'bowtienet[cli]'``); the rest needs nothing more.
"""

from bowtienet.evaluation.comparison import Comparison, average_scores, compare
from bowtienet.evaluation.methods import (
    Forecast,
    Method,
    bayesian_ridge,
    boosted_quantiles,
    bow_tie,
    default_methods,
    gaussian_process,
)
from bowtienet.evaluation.metrics import (
    LEVELS,
    Scores,
    binomial_band,
    calibration_curve,
    calibration_error,
    crps,
    evaluate,
    interval_coverage,
    interval_score,
    negative_log_density,
    pit,
    rmse,
)
from bowtienet.evaluation.scorers import (
    coverage_scorer,
    log_density_scorer,
    make_coverage_scorer,
    make_interval_scorer,
    neg_calibration_error_scorer,
    neg_crps_scorer,
    neg_interval_score_scorer,
)

__all__ = [
    "LEVELS",
    "Comparison",
    "Forecast",
    "Method",
    "Scores",
    "average_scores",
    "bayesian_ridge",
    "binomial_band",
    "boosted_quantiles",
    "bow_tie",
    "calibration_curve",
    "calibration_error",
    "compare",
    "coverage_scorer",
    "crps",
    "default_methods",
    "evaluate",
    "gaussian_process",
    "interval_coverage",
    "interval_score",
    "log_density_scorer",
    "make_coverage_scorer",
    "make_interval_scorer",
    "neg_calibration_error_scorer",
    "neg_crps_scorer",
    "neg_interval_score_scorer",
    "negative_log_density",
    "pit",
    "rmse",
]
