"""k-Shape: shape-based distances, assignment, centres, on a GPU."""
