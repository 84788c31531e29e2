"""Benchmarks: what they are, running a model on them, and what is written down about it."""
