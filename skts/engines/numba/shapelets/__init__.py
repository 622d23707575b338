"""Shapelets: matches of subsequences, the best split of a node.

``tiles``
    The engine's methods: what is prepared and kept, which kernel runs.
``matches``
    Certified best matches of queries.
``joins``, ``walk``
    Distances of all windows of some series to all series; the inner loop.
``scan``
    Which candidates could be the best, by their distances.
``order_lines``
    What a cut of the distances of one candidate gains at most.
"""
