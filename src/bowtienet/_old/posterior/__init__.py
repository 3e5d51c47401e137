"""The variational family: factors, their moments, where they start."""
