"""Likelihoods of the targets given the network's outputs z, one file each.

An outcome knows its parabola in z for the variational posterior, its own updates, and its loss for
ordinary networks; nothing else in the library knows which outcome it is.
"""

from __future__ import annotations

from bowtienet.outcomes.classes import Binary, Classes, Softmax
from bowtienet.outcomes.counts import Counts
from bowtienet.outcomes.gaussian import GAUSSIAN, Gaussian
from bowtienet.outcomes.outcome import Outcome, RowTerms
from bowtienet.outcomes.student_t import StudentT

__all__ = [
    "GAUSSIAN",
    "Binary",
    "Classes",
    "Counts",
    "Gaussian",
    "Outcome",
    "RowTerms",
    "Softmax",
    "StudentT",
]
