"""The model of the paper, section 2: architecture, shrinkage priors, simulation."""

from bowtienet.model.shrinkage import Prior

__all__ = ["Prior"]
