"""Coordinate ascent and stochastic variational inference: section 3 of the paper."""
