"""Plots with matplotlib (``pip install 'bowtienet[plot]'``).

Displays take a fitted estimator or predictions, as in scikit-learn: ``from_estimator`` and
``from_predictions`` draw, the display keeps what it drew and can ``plot`` it again elsewhere.
"""

from bowtienet.plotting.activation import ActivationDisplay
from bowtienet.plotting.calibration import CalibrationCurveDisplay
from bowtienet.plotting.class_curves import PrecisionRecallCurvesDisplay, RocCurvesDisplay
from bowtienet.plotting.confusion import ConfusionDisplay
from bowtienet.plotting.elbo import ElboDisplay
from bowtienet.plotting.importance import ImportanceDisplay
from bowtienet.plotting.network import NetworkDisplay
from bowtienet.plotting.overview import OverviewDisplay
from bowtienet.plotting.pit import PitHistogramDisplay
from bowtienet.plotting.predicted_actual import PredictedActualDisplay
from bowtienet.plotting.predictive_band import PredictiveBandDisplay
from bowtienet.plotting.relevance import RelevanceDisplay
from bowtienet.plotting.reliability import ReliabilityDisplay
from bowtienet.plotting.shrinkage import ShrinkageDisplay
from bowtienet.plotting.weights import WeightsDisplay

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
