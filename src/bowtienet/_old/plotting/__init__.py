"""Plots with matplotlib (``pip install 'bowtienet[plot]'``).

Displays take a fitted estimator or predictions, as in scikit-learn: ``from_estimator`` and
``from_predictions`` draw, the display keeps what it drew and can ``plot`` it again elsewhere.
"""

from bowtienet._old.plotting.activation import ActivationDisplay
from bowtienet._old.plotting.calibration import CalibrationCurveDisplay
from bowtienet._old.plotting.class_curves import PrecisionRecallCurvesDisplay, RocCurvesDisplay
from bowtienet._old.plotting.confusion import ConfusionDisplay
from bowtienet._old.plotting.elbo import ElboDisplay
from bowtienet._old.plotting.importance import ImportanceDisplay
from bowtienet._old.plotting.network import NetworkDisplay
from bowtienet._old.plotting.overview import OverviewDisplay
from bowtienet._old.plotting.pit import PitHistogramDisplay
from bowtienet._old.plotting.predicted_actual import PredictedActualDisplay
from bowtienet._old.plotting.predictive_band import PredictiveBandDisplay
from bowtienet._old.plotting.relevance import RelevanceDisplay
from bowtienet._old.plotting.reliability import ReliabilityDisplay
from bowtienet._old.plotting.shrinkage import ShrinkageDisplay
from bowtienet._old.plotting.weights import WeightsDisplay

__all__ = [
    "ActivationDisplay",
    "CalibrationCurveDisplay",
    "ConfusionDisplay",
    "ElboDisplay",
    "ImportanceDisplay",
    "NetworkDisplay",
    "OverviewDisplay",
    "PitHistogramDisplay",
    "PrecisionRecallCurvesDisplay",
    "PredictedActualDisplay",
    "PredictiveBandDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "RocCurvesDisplay",
    "ShrinkageDisplay",
    "WeightsDisplay",
]
