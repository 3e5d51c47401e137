"""What fits the members of an ensemble and combines them."""
