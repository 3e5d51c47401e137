"""Which columns of a table matter, at a stated false discovery rate."""
