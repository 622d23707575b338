"""Benchmarks of a family: Shape-based distances and k-Shape."""
