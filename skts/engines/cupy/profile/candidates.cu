// Measures the runs that the walk of a join has listed: `refine` computes scores of the cells of runs in double
// precision, `keep` picks the few that are still near, `certify` computes their certified distances, and
// `first_of_equals` breaks ties.
#include "profile/certified.cuh"
#include "profile/runs.cuh"

// A line, as the search has it.
struct Searched {
    const double* points;
    const double* mean;
    const double* norm;
    const double* slip;
    const unsigned char* regular;
};

// Scores of runs, from the points in double precision. One thread, one cell: cell c belongs to run
// owners[c], and is its window number c - offsets[run], `lanes` of them for each bit of `which`.
//
// `reached` of a window rises to the best lower bound of its scores, if it may (`raising`). Outputs: who
// looks, the other, and the upper bound of the score, -1 where the other is not admissible.
extern "C" __global__ void refine(
    const Run* __restrict__ list, const long long* __restrict__ offsets, const int* __restrict__ owners,
    int count, int lanes, const Searched* __restrict__ lines, int n_others, int length,
    long long least_apart, int sign, int normalize, double level, int raising,
    double* __restrict__ reached,
    int* __restrict__ windows, int* __restrict__ places, double* __restrict__ uppers
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= count) return;
    const Run run = list[owners[cell]];
    const int rank = (int)(cell - offsets[owners[cell]]);
    unsigned rest = run.which;
    for (int passed = rank / lanes; passed > 0; --passed) rest &= rest - 1;
    const int other = run.first + (__ffs(rest) - 1) * lanes + rank % lanes;
    windows[cell] = run.window;
    places[cell] = other;
    uppers[cell] = -1;
    if (other >= n_others || !lines[1].regular[other]) return;
    if (sign * ((long long)other - run.window) <= least_apart) return;
    const double* __restrict__ x = lines[0].points + run.window;
    const double* __restrict__ y = lines[1].points + other;
    const double norm = lines[0].norm[run.window], theirs = lines[1].norm[other];
    const double center = normalize ? lines[0].mean[run.window] : 0.0;
    const double other_mean = fabs(lines[1].mean[other]), root = sqrt((double)length);
    double sum = 0;
#pragma unroll 8
    for (int t = 0; t < length; ++t) sum = fma(__ldg(x + t) - center, __ldg(y + t), sum);
    // the mean of the other is not taken off
    const double away = normalize ? root * other_mean : 0.0;
    // see "refined scores" in docs/developer/numerics.rst
    double error = FLOAT64_UNIT * (2 * length + 16) * norm * (theirs + away);
    if (normalize) {
        // of the means, and of points and certified distances, as in the walk
        const double own_slip = lines[0].slip[run.window], slip = lines[1].slip[other];
        const double blur = fmax((norm + fabs(center)) / norm, (theirs + other_mean) / theirs);
        const double shift = length * fmax(own_slip / norm, slip / theirs);
        error = (error + length * own_slip * (other_mean + slip)) / theirs;
        error += norm * (CERTIFIED_ROUNDING * length + 4 * shift * shift / length + 4 * FLOAT64_UNIT * root * blur);
        sum /= theirs;
    } else {
        sum += level / 2 - theirs * theirs / 2;
        error += FLOAT64_UNIT * length * (16 + 4 * root) * (norm * norm + theirs * theirs + level);
    }
    uppers[cell] = sum + error;
    if (raising && sum - error > 0) raise(reached + run.window, sum - error);
}

// Keep the cells whose upper bounds their windows have not surpassed, in any order: who looks, and the
// other. One thread, one cell.
extern "C" __global__ void keep(
    const int* __restrict__ windows, const int* __restrict__ places, const double* __restrict__ uppers,
    int count, const double* __restrict__ reached, int* __restrict__ kept_windows,
    int* __restrict__ kept_places, int* __restrict__ n_kept
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= count) return;
    const int window = windows[cell];
    if (!(uppers[cell] >= reached[window])) return;
    const int at = atomicAdd(n_kept, 1);
    kept_windows[at] = window;
    kept_places[at] = places[cell];
}

// Certified distances of pairs. One thread, one pair.
extern "C" __global__ void certify(
    const int* __restrict__ windows, const int* __restrict__ places, int count,
    const Line* __restrict__ lines, int length, int normalize,
    double* __restrict__ distances, double* __restrict__ found
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const Window a(lines[0], windows[pair], normalize), b(lines[1], places[pair], normalize);
    const double d = certified_distance(a, b, length);
    found[pair] = d;
    if (distances) lower(distances + windows[pair], d);
}

// Of equally near neighbours keep the first. One thread, one pair.
extern "C" __global__ void first_of_equals(
    const int* __restrict__ windows, const int* __restrict__ places, int count,
    const double* __restrict__ distances, const double* __restrict__ found,
    int* __restrict__ indices
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const int window = windows[pair];
    if (found[pair] == distances[window]) atomicMin(indices + window, places[pair]);
}
