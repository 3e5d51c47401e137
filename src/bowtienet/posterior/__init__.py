"""The variational posterior: factors, moments, where they start, selection, pruning."""
