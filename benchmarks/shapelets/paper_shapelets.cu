// The programs of table II of Chang, Deka, Hwu and Roth on a GPU, from the descriptions of its
// sections IV and V: distances of all candidates to all series, in float64.
//
// One block = the candidates of one length of one series, in turns (section V-C); one thread = one
// candidate, or several where a series has more than the block has threads. A thread keeps the
// distances of its candidates to all series in memory of the device, as the paper does, and `sums`
// gets the sum of all.
//
// A distance is sqrt(2 (1 - correlation)) of the best window; a window whose squares about its mean
// sum to 1e-9 or less correlates with none: sums of products do not hold less of it.

struct Task {
    int series, size, starts;
};

__device__ bool next(long long task, int n, int width, const int* sizes, int n_sizes, Task& found) {
    if (task >= (long long)n * n_sizes) return false;
    found.series = (int)(task % n);
    found.size = sizes[task / n];
    found.starts = width - found.size + 1;
    return true;
}

__device__ double correlation(double product, double a, double aa, double b, double bb, int size) {
    double va = aa - a * a / size, vb = bb - b * b / size;
    if (va <= 1e-9 || vb <= 1e-9) return 0.0;
    return (product - a * b / size) / sqrt(va * vb);
}

__device__ void keep(double best, double* distance, double& total) {
    *distance = sqrt(2.0 * fmax(0.0, 1.0 - best));
    total += *distance;
}

// the sum over a block, in the order of its threads' places
__device__ void add_up(double total, double* partial, double* sum) {
    partial[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = 0.0;
        for (int t = 0; t < (int)blockDim.x; t++) all += partial[t];
        *sum = all;
    }
    __syncthreads();
}

// Every window is read and compared anew: O(l) for each pair of windows.
__device__ void brute_force(const double* x, const double* y, int width, Task task, double* distances,
                            double& total) {
    for (int s = threadIdx.x; s < task.starts; s += blockDim.x) {
        double best = -1.0;
        for (int u = 0; u < task.starts; u++) {
            double a = 0, aa = 0, b = 0, bb = 0, product = 0;
            for (int t = 0; t < task.size; t++) {
                double p = x[s + t], q = y[u + t];
                a += p, aa += p * p, b += q, bb += q * q, product += p * q;
            }
            best = fmax(best, correlation(product, a, aa, b, bb, task.size));
        }
        keep(best, distances + s, total);
    }
}

// Section IV: series are read from the memory of the device.
extern "C" __global__ void baseline(const double* X, int n, int width, const int* sizes, int n_sizes,
                                    double* distances, double* sums) {
    extern __shared__ double partial[];
    Task task;
    double* own = distances + (long long)blockIdx.x * n * width;
    for (long long i = blockIdx.x; next(i, n, width, sizes, n_sizes, task); i += gridDim.x) {
        double total = 0.0;
        for (int j = 0; j < n; j++)
            brute_force(X + (long long)task.series * width, X + (long long)j * width, width, task,
                        own + (long long)j * width, total);
        add_up(total, partial, sums + i);
    }
}

// Section V-A, algorithm 3: both series lie in shared memory.
extern "C" __global__ void shared(const double* X, int n, int width, const int* sizes, int n_sizes,
                                  double* distances, double* sums) {
    extern __shared__ double memory[];
    double *x = memory, *y = memory + width, *partial = memory + 2 * width;
    Task task;
    double* own = distances + (long long)blockIdx.x * n * width;
    for (long long i = blockIdx.x; next(i, n, width, sizes, n_sizes, task); i += gridDim.x) {
        double total = 0.0;
        for (int t = threadIdx.x; t < width; t += blockDim.x)
            x[t] = X[(long long)task.series * width + t];
        for (int j = 0; j < n; j++) {
            __syncthreads();
            for (int t = threadIdx.x; t < width; t += blockDim.x)
                y[t] = X[(long long)j * width + t];
            __syncthreads();
            brute_force(x, y, width, task, own + (long long)j * width, total);
        }
        add_up(total, partial, sums + i);
    }
}

// Section V-B, algorithm 4: the product of a pair of windows from that of the pair before both.
extern "C" __global__ void products(const double* X, int n, int width, const int* sizes, int n_sizes,
                                    double* distances, double* sums) {
    extern __shared__ double memory[];
    double *x = memory, *y = x + width, *first = y + width, *before = first + width;
    double *now = before + width, *best = now + width, *a = best + width, *aa = a + width;
    double* partial = aa + width;
    Task task;
    double* own = distances + (long long)blockIdx.x * n * width;
    for (long long i = blockIdx.x; next(i, n, width, sizes, n_sizes, task); i += gridDim.x) {
        double total = 0.0;
        int size = task.size;
        for (int t = threadIdx.x; t < width; t += blockDim.x)
            x[t] = X[(long long)task.series * width + t];
        __syncthreads();
        for (int s = threadIdx.x; s < task.starts; s += blockDim.x) {
            double sum = 0, squares = 0;
            for (int t = s; t < s + size; t++) sum += x[t], squares += x[t] * x[t];
            a[s] = sum, aa[s] = squares;
        }
        for (int j = 0; j < n; j++) {
            __syncthreads();
            for (int t = threadIdx.x; t < width; t += blockDim.x)
                y[t] = X[(long long)j * width + t];
            __syncthreads();
            for (int s = threadIdx.x; s < task.starts; s += blockDim.x) {
                double p = 0, q = 0;
                for (int t = 0; t < size; t++) p += x[s + t] * y[t], q += x[t] * y[s + t];
                before[s] = p, first[s] = q, best[s] = -1.0;
            }
            double b = 0, bb = 0;
            for (int t = 0; t < size; t++) b += y[t], bb += y[t] * y[t];
            __syncthreads();
            for (int u = 0; u < task.starts; u++) {
                if (u > 0) {
                    double in = y[u + size - 1], out = y[u - 1];
                    b += in - out, bb += in * in - out * out;
                }
                for (int s = threadIdx.x; s < task.starts; s += blockDim.x) {
                    double product = before[s];
                    if (u > 0)
                        product = s == 0 ? first[u]
                                         : before[s - 1] + x[s + size - 1] * y[u + size - 1] -
                                               x[s - 1] * y[u - 1];
                    now[s] = product;
                    best[s] = fmax(best[s], correlation(product, a[s], aa[s], b, bb, size));
                }
                __syncthreads();
                double* other = before;
                before = now, now = other;
            }
            for (int s = threadIdx.x; s < task.starts; s += blockDim.x)
                keep(best[s], own + (long long)j * width + s, total);
        }
        add_up(total, partial, sums + i);
    }
}
