"""Benchmarks of a family: Matrix profiles and motifs."""
