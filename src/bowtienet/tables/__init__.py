"""Tables as networks see them."""
