"""Likelihoods of the targets given the network's outputs z, one file each.

The engine asks an outcome for what q(z) makes of its log likelihood, a parabola in z for every row
and output, for its own updates, and for the loss of ordinary networks; it knows nothing else of it.
"""

from __future__ import annotations

from bowtienet._old.model.outcomes.binary import Binary
from bowtienet._old.model.outcomes.classes import Classes
from bowtienet._old.model.outcomes.counts import Counts
from bowtienet._old.model.outcomes.gaussian import GAUSSIAN, Gaussian
from bowtienet._old.model.outcomes.outcome import Outcome, RowTerms
from bowtienet._old.model.outcomes.student_t import StudentT

__all__ = [
    "GAUSSIAN",
    "Binary",
    "Classes",
    "Counts",
    "Gaussian",
    "Outcome",
    "RowTerms",
    "StudentT",
]
