"""The experiments of the paper beside competitors: what runs, what is kept, what is written."""
