"""Matrix profiles: joins, the closest pair, exact distances of windows."""
