"""What fits and combines the members of an ensemble: recipes, stacking, streams, checkpoints."""
