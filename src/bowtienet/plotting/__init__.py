"""Plots with matplotlib, in the manner of scikit-learn's displays."""

from bowtienet.plotting.accuracy import PredictedActualDisplay
from bowtienet.plotting.band import PredictiveBandDisplay
from bowtienet.plotting.calibration import CalibrationDisplay
from bowtienet.plotting.network import NetworkDisplay
from bowtienet.plotting.overview import OverviewDisplay

__all__ = [
    "CalibrationDisplay",
    "NetworkDisplay",
    "OverviewDisplay",
    "PredictedActualDisplay",
    "PredictiveBandDisplay",
]
