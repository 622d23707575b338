"""Shapelets: matches of subsequences, the best split of a node, on the CPU."""
