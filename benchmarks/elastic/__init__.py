"""Benchmarks of a family: DTW, the dog-keeper distance, rotation invariance and condensing."""
