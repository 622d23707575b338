"""k-Shape: shape-based distances, assignment, centres, on the CPU."""
