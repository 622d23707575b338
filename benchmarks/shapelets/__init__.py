"""Benchmarks of a family: Shapelet distances and trees."""
