"""Parts that all work shares: reductions, plans, executor. Knows no family and no engine."""
