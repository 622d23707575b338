"""The best matches of a query in long series."""
