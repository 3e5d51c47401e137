"""Bow tie neural networks."""
