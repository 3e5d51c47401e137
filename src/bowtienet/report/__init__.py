"""One page about a fitted model: how good, how sure, which columns, and where not to trust it."""
