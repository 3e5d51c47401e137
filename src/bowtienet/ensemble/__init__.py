"""Recipes of the practical wing, their held-out forecasts, and how they are combined."""
