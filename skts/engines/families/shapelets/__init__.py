"""Shapelets: matches of subsequences, the best split of a node.

``matches``
    `SubsequenceMatches`: certified distances of queries to series.
``cuts``
    `SplitCriterion`: the best cut of an order line, by gain and gap.
``criterion``
    `Criterion`: gains by the entropy of classes, and `Tables`, from which engines bound them.
``variance``
    `VarianceCriterion`: gains by the variance of targets, and their `VarianceTables`.
``search``
    `ShapeletSearch`: the best split, with what engines return (`Survivors`).

The search of a split estimates the distances of all candidates to all series of the node, with a
bound of the error of each candidate; from the estimates follow a gain and a gap that no exact
distances exceed. Candidates that could be the best are then measured: a split that leaves this
package rests on certified distances alone, so every engine, split and budget finds the same one.
"""
