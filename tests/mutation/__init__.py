"""Mutation testing: change the engines in one place at a time, and see whether a test notices.

``python -m tests.mutation --sample 300 --seed 1`` draws mutants, runs for each the tests that
concern it, and lists the survivors. See `tests.mutation.__main__`.
"""
