"""The public estimators, one class a file."""
