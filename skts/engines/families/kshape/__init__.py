"""k-Shape: shape-based distances, assignment, centres."""
