"""Families of distributions: parameters to moments, entropies and log-normalisers.

One module per family, each a frozen container and pure functions of it; none knows a network.
"""
