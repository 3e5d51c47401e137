"""Plots with matplotlib, in the manner of scikit-learn's displays."""

from bowtienet.plotting.network import NetworkDisplay

__all__ = ["NetworkDisplay"]
