// Runs of possible neighbours, and the lists that they are put on.
#pragma once
#include "include/constants.cuh"
#include "include/walk.cuh"

// A run of possible neighbours: of a row in lanes of a strip, or of a column in rows of a chunk.
struct Run {
    int window;      // to which one they may be near
    int first;       // the first of them
    unsigned which;  // lanes of the strip; rows of the chunk
    int score;       // leading bits of the upper bound of its best score
};

// One side of a join: bounds of the neighbours of its windows, and the list of possible ones.
struct Side {
    int* tops;     // leading bits of the score that the k-th neighbour reaches; or TAKES_NO_PART
    int* slots;    // k of them for each window, where k > 1
    int* skipped;  // the largest bound of a run that has no positive score
    Run* list;
    int* count;
    int capacity;
};

// Raise the bound of the score of the k-th nearest neighbour of a window by the lower bound of a run; k is 0
// where runs come a second time, which must not count twice.
__device__ void raise(int* tops, int* slots, int k, int window, int lower) {
    if (k == 0) return;
    if (k == 1) {
        atomicMax(tops + window, lower);
        return;
    }
    // slots hold the lower bounds of k different runs; their least is the top
    int* mine = slots + (long long)window * k;
    for (;;) {
        int least = TAKES_NO_PART, place = 0, second = TAKES_NO_PART;
        for (int slot = 0; slot < k; ++slot) {
            const int value = *(volatile int*)(mine + slot);
            if (value < least) {
                second = least;
                least = value;
                place = slot;
            } else {
                second = min(second, value);
            }
        }
        if (lower <= least) return;
        if (atomicCAS(mine + place, least, lower) == least) {
            atomicMax(tops + window, min(second, lower));
            return;
        }
    }
}

// Put the runs of those lanes that have one on the list, its places taken at once, and raise the bounds of
// their windows. Rarely called: kept out of the walk, whose instructions must stay in the cache.
__device__ __noinline__ void enlist(
    const Side* side, bool mine, Run run, int lower, int known, int n_neighbors
) {
    const unsigned lanes = __ballot_sync(ALL, mine);
    const int lane = threadIdx.x & 31, leader = __ffs(lanes) - 1;
    int place = 0;
    // a list that is too short by far is not counted on: where all windows are equal, as those of a
    // periodic series are, there are more runs than an int holds
    if (lane == leader)
        place = *(volatile int*)side->count <= side->capacity ? atomicAdd(side->count, __popc(lanes))
                                                              : side->capacity;
    place = __shfl_sync(ALL, place, leader) + lanes_before(lanes, lane);
    if (!mine) return;
    if (place < side->capacity) side->list[place] = run;
    if (lower > known) raise(side->tops, side->slots, n_neighbors, run.window, lower);
}

