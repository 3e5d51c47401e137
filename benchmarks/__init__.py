"""Benchmarks of the library: `python -m benchmarks NAME`."""
