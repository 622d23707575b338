"""Benchmarks of a family: Subsequence search."""
