"""k-Shape: shape-based distances, assignment to centres, centres of clusters.

``shapes``
    `Shapes`: series of one scale and width.
``distances``
    `SBDMatrix` and `SBDAssign`: distances and shifts of all pairs, the nearest centre of each.
``certified``
    Distances with the same bits on every engine, for choices that roundings leave open.
``centers``
    `SBDCenters`: centres of clusters, and how far they are from the certified ones.
``moments``
    `ShapeMoments`: sums over members, from which centres follow batch by batch.
``eigenvectors``
    The solver of the CPU's centres, which are the certified ones.

Conventions, the same for all engines. The correlation of a series x with a centre c at shift s is
the sum over channels and time points t of ``x[t - s] c[t]``: x moves to the right by s. Divided by
both norms it is NCC, and SBD is 1 - max NCC over ``|s| < n_timepoints``. Shifts whose NCC lies
within `TIE` of the maximum tie; the smallest ``|s|`` wins, then the negative one. Centres whose
SBD lies within `TIE` of the smallest tie, and the lowest index wins. Where a norm is 0, NCC is 0.

Series that are not z-normalised are scaled by a power of two each, so that nothing leaves the range
of float64; a series whose centred points are constant (`CONSTANT`) adds nothing to a centre.

*Filter and certify.* Engines compute in float64, and their roundings differ. A choice that holds
for every value within the rounding (`SBDReduction.doubts`) is taken from them; any other is marked
`UNCLEAR` and made again from certified values, which have the same bits everywhere
(`certified`). The centres of the CPU engine are the certified ones. Another
engine's come with a bound on how far they are from those (`Shapes.errors`); whoever finds a choice
unclear for that reason asks the CPU engine for the centres. So labels and shifts, all that an
iteration hands to the next, are the same on every engine.
"""
