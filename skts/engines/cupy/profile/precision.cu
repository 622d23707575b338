// How much a search of a join in float32 would leave to measure, judged by some of its windows.
#include "profile/errors.cuh"

// Rows that the walk looks at together, and columns that are looked at together here: `CHUNK` of join.cu.
constexpr int CHUNK = 32;

// count_near: of each chosen window, the score that its nearest one surely reaches (`counts` is null), then how many
// strips and chunks of columns hold one whose score may reach that: counts[f] is increased by both.
//
// covariances[f, j] is that of window f `apart` with column j. One warp, one block: panel blockIdx.x, chosen window
// blockIdx.y. Errors are those in the middle of a band of `height` rows.
extern "C" __global__ void __launch_bounds__(32) count_near(
    const float* __restrict__ covariances, const Row<float>* __restrict__ rows, const float* __restrict__ weights,
    const Group* __restrict__ groups_a, const Group* __restrict__ groups_b, int n_rows, int n_columns, int apart,
    int height, int panel, int strip, int exclusion, int length, int normalize,
    double* __restrict__ reached, int2* __restrict__ counts
) {
    const int lane = threadIdx.x, row = blockIdx.y * apart;
    const int left = blockIdx.x * panel, right = min(n_columns, left + panel);
    if (!(rows[row].weight > 0)) return;  // looks for no neighbour
    const int top = row / height * height, bottom = min(n_rows, top + height);
    const Extent a(groups_a, top, bottom - 1), b(groups_b, max(0, left - height), right - 1);
    const Slack slack =
        normalize ? bound_errors<float, true>(a, b, length) : bound_errors<float, false>(a, b, length);
    const double off = slack.row_after(height / 2);
    const float* const mine = covariances + (long long)blockIdx.y * n_columns;
    double most = 0;
    int strips = 0, chunks = 0;
    for (int start = left; start < right; start += strip) {
        const int before = chunks;
        for (int chunk = start; chunk < min(start + strip, right); chunk += CHUNK) {
            const int j = chunk + lane;
            double score = 0;
            if (j < right && abs(j - row) > exclusion)
                score = normalize ? mine[j] * weights[j] : mine[j] + weights[j];
            if (counts == nullptr)
                most = fmax(most, score * (1 - SCORE_BELOW32) - off);
            else
                chunks += __any_sync(ALL, score > 0 && score * (1 + SCORE_ABOVE32) + off >= reached[blockIdx.y]);
        }
        strips += chunks > before;
    }
    if (counts == nullptr) {
        most = warp_largest(most);
        if (lane == 0) raise(&reached[blockIdx.y], most);
    } else if (lane == 0) {
        if (strips) atomicAdd(&counts[blockIdx.y].x, strips);
        if (chunks) atomicAdd(&counts[blockIdx.y].y, chunks);
    }
}
