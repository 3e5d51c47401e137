"""What a network sees of a table, and the way back: columns, encodings, scaling."""
