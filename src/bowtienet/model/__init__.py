"""The model of the paper, section 2: architecture, shrinkage priors, simulation."""

from bowtienet.model.model import Prior

__all__ = ["Prior"]
