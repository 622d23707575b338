// Survivors of a radius search.

#include "include/warp.cuh"

// within: the pairs of a block of estimates that may lie within a distance, in any order.
//
// One thread: pairs with a stride of the grid. One warp: neighbouring pairs, and one atomic for all of them that
// are listed. Without lists (null pointers) pairs are only counted. float: estimates are accumulated costs in
// scaled units (`squared`: their roots are distances), an interval around each. double: estimates are
// certified distances. `n_found`, 0 before, counts the pairs, fewer than 2^31 (`_dtw_bytes` sees to it).
template <typename T>
__global__ void within(
    const T* __restrict__ estimates, long long n_pairs, int n_cols, const long long* __restrict__ excluded,
    double radius, double scale, int squared, double shrink, double slack, int* __restrict__ n_found,
    int* __restrict__ found_row, int* __restrict__ found_col, T* __restrict__ found_value) {
    const int lane = threadIdx.x % 32;
    const long long step = (long long)gridDim.x * blockDim.x;
    // all lanes of a warp stay together
    for (long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane; first < n_pairs; first += step) {
        const long long pair = first + lane;
        const int row = (int)(pair / n_cols), col = (int)(pair - (long long)row * n_cols);
        T value = 0;
        bool near = pair < n_pairs && !(excluded && excluded[row] == col);
        if (near) {
            value = estimates[pair];
            if (sizeof(T) == 8) {
                near = value <= radius;
            } else {
                const double estimate = (squared ? sqrt((double)value) : (double)value) / scale;
                near = !isfinite(estimate) || fmax(estimate * shrink - slack, 0.0) <= radius;
            }
        }
        const unsigned ballot = __ballot_sync(ALL, near);
        int base = 0;
        if (lane == 0 && ballot) base = atomicAdd(n_found, __popc(ballot));
        base = __shfl_sync(ALL, base, 0);
        if (near && found_row) {
            const int place = base + lanes_before(ballot, lane);
            found_row[place] = row;
            found_col[place] = col;
            found_value[place] = value;
        }
    }
}
