// Measures the runs that the walk of a join has listed: `choose` leaves out those that windows have surpassed since,
// `spread` numbers the cells of the others, `refine` computes their scores in double precision, `keep` picks the few that
// are still near, `certify` computes their certified distances, and `first_of_equals` breaks ties.
#include "profile/certified.cuh"
#include "profile/refined.cuh"
#include "profile/runs.cuh"

// choose: of a list of runs those whose best score may still be one of the nearest of its window, in any order.
// totals[0] grows by how many, totals[1] by their cells, `lanes` for each bit of `which`. One thread, one run.
extern "C" __global__ void choose(
    const Run* __restrict__ list, int count, const int* __restrict__ tops, int lanes, Run* __restrict__ chosen,
    unsigned long long* __restrict__ totals
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    Run run{};
    if (i < count) run = list[i];
    const bool kept = i < count && run.score >= tops[run.window];
    const unsigned votes = __ballot_sync(ALL, kept);
    if (votes == 0) return;
    const int cells = warp_sum(kept ? __popc(run.which) * lanes : 0);
    unsigned long long first = 0;
    if (lane == 0) {
        first = atomicAdd(totals, (unsigned long long)__popc(votes));
        atomicAdd(totals + 1, (unsigned long long)cells);
    }
    first = __shfl_sync(ALL, first, 0);
    if (kept) chosen[first + lanes_before(votes, lane)] = run;
}

// spread: where the cells of each run begin, in any order, and whose each cell is; *n_cells grows by all of them.
// One thread, one run; the lanes of a warp write the cells of one after the other.
extern "C" __global__ void spread(
    const Run* __restrict__ runs, int count, int lanes, long long* __restrict__ offsets, int* __restrict__ owners,
    unsigned long long* __restrict__ n_cells
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    const int cells = i < count ? __popc(runs[i].which) * lanes : 0, upto = scan_sum(cells, lane);
    unsigned long long first = 0;
    if (lane == 31) first = atomicAdd(n_cells, (unsigned long long)upto);
    const long long mine = (long long)__shfl_sync(ALL, first, 31) + upto - cells;
    if (i < count) offsets[i] = mine;
    for (int other = 0; other < 32; ++other) {
        const int size = __shfl_sync(ALL, cells, other);
        const long long begin = __shfl_sync(ALL, mine, other);
        for (int cell = lane; cell < size; cell += 32) owners[begin + cell] = i - lane + other;
    }
}

// least_scores: the least scores with these leading bits, or zeros if a search must not be believed (`exact` is 0).
// One thread, one window.
extern "C" __global__ void least_scores(
    const int* __restrict__ tops, int count, int single, int exact, double* __restrict__ reached
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int bits = tops[i];
    reached[i] = !exact ? 0.0 : single ? least_of<float>(bits) : least_of<double>(bits);
}

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
    double error;
    if (normalize) {
        sum /= theirs;
        error = refined_error(norm, theirs, center, other_mean, lines[0].slip[run.window], lines[1].slip[other], length);
    } else {
        // see "refined scores" in docs/developer/numerics.rst
        error = FLOAT64_UNIT * (2 * length + 16) * norm * theirs;
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

// Certified distances of pairs, *n_pairs of them. Where `distances` is not null, that of a window falls to the least of
// its own, and its neighbour is forgotten if that is nearer. Threads take pairs in turns.
extern "C" __global__ void certify(
    const int* __restrict__ windows, const int* __restrict__ places, const int* __restrict__ n_pairs,
    const Line* __restrict__ lines, int length, int normalize, double* __restrict__ distances,
    int* __restrict__ indices, double* __restrict__ found
) {
    const int count = *n_pairs;
    for (int pair = blockIdx.x * blockDim.x + threadIdx.x; pair < count; pair += gridDim.x * blockDim.x) {
        const int window = windows[pair];
        const Window a(lines[0], window, normalize), b(lines[1], places[pair], normalize);
        const double d = certified_distance(a, b, length);
        found[pair] = d;
        // numbers that are not negative are in the order of their bits
        if (distances && d < __longlong_as_double(
                                 atomicMin((long long*)(distances + window), __double_as_longlong(d))))
            indices[window] = TAKES_NO_PART;
    }
}

// Of equally near neighbours keep the first. Threads take pairs in turns.
extern "C" __global__ void first_of_equals(
    const int* __restrict__ windows, const int* __restrict__ places, const int* __restrict__ n_pairs,
    const double* __restrict__ distances, const double* __restrict__ found, int* __restrict__ indices
) {
    const int count = *n_pairs;
    for (int pair = blockIdx.x * blockDim.x + threadIdx.x; pair < count; pair += gridDim.x * blockDim.x) {
        const int window = windows[pair];
        if (found[pair] == distances[window]) atomicMin(indices + window, places[pair]);
    }
}

// answer: the neighbours of `count` windows from `first` on, with -1 for none, and distances that neighbours on no list do
// not fall below. Of two sides, where `other_distances` is not null, the nearer one, equal ones by their place; of one
// neighbour each. Squared distances are alpha - beta score: 2 length and as much over the norm of windows that are
// z-normalised, `most` at most, else the square of the norm and `level`, and 2. One thread, one window.
extern "C" __global__ void answer(
    const double* __restrict__ distances, const int* __restrict__ indices, const int* __restrict__ skipped,
    const double* __restrict__ other_distances, const int* __restrict__ other_indices,
    const int* __restrict__ other_skipped, const double* __restrict__ norm, const bool* __restrict__ searched,
    const bool* __restrict__ regular, int first, int count, int n_neighbors, int single, int normalize, int length,
    double level, double most, double unit, double* __restrict__ nearest, long long* __restrict__ places,
    double* __restrict__ floors
) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x, window = first + at;
    if (at >= count) return;
    int bits = skipped[window];
    for (long long k = 0; k < n_neighbors; ++k) {
        const long long from = (long long)window * n_neighbors + k, to = (long long)at * n_neighbors + k;
        double distance = distances[from];
        int place = indices[from];
        if (other_distances) {
            const double other = other_distances[from];
            const int its = other_indices[from];
            if (other < distance || (other == distance && its < place)) distance = other, place = its;
            bits = max(bits, other_skipped[window]);
        }
        nearest[to] = distance;
        places[to] = place == TAKES_NO_PART ? -1 : place;
    }
    const double score = single ? least_of<float>(bits) : least_of<double>(bits);
    double alpha, beta;
    if (normalize) {
        alpha = 2.0 * length;
        beta = searched[window] ? __dmul_rn(alpha, 1.0 / norm[window]) : 0.0;
    } else {
        alpha = __dadd_rn(__dmul_rn(norm[window], norm[window]), level);
        beta = 2.0;
    }
    double square = __dsub_rn(alpha, __dmul_rn(beta, score));
    if (normalize) square = fmin(square, most);
    floors[at] = regular[window] ? sqrt(fmax(square, 0.0)) / unit : Arithmetic<double>::infinity();
}
