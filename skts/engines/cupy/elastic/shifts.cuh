// Runs of shifts that a rotation-invariant search still has to look at.
#pragma once

// Shifts `first` to `first + count` - 1 of a candidate, for a query.
struct alignas(16) Turns {
    int query, candidate, first, count;
};
