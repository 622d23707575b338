// Times the kernels of cuDTW++ that compare one query with many series, by events around one launch, on
// device 0:
//
//     cudtw SERIES QUERY LENGTH OUT REPEATS
//
// SERIES and QUERY hold floats, series one after the other; their number must be a multiple of eight.
// For each kernel a line of its name and the seconds of each launch is printed, and OUT.NAME gets the
// distances, which are sums of squares. Kernels are those of one warp a series, and of a part of a warp
// ("subwarp"); each with indices of 64 bits, as the authors' program has them, and of 32 bits.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

// the kernels read the query from a variable of this name
__constant__ float cQuery[1 << 14];

#include "include/kernels/SHFL_FULLDTW_1023.cuh"
#include "include/kernels/SHFL_FULLDTW_127.cuh"
#include "include/kernels/SHFL_FULLDTW_2047.cuh"
#include "include/kernels/SHFL_FULLDTW_255.cuh"
#include "include/kernels/SHFL_FULLDTW_511.cuh"
#include "include/kernels/SUB_WARP.cuh"

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
}

static std::vector<float> read_floats(const char* path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", path);
        std::exit(1);
    }
    std::vector<float> values(static_cast<size_t>(file.tellg()) / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float));
    return values;
}

// A warp for each series. True if there is a kernel for this length.
template <typename index_t>
static bool launch_warp(float* series, float* distances, index_t n, index_t length) {
    const dim3 grid(n), block(32);
    switch (length) {
        case 127: shfl_FullDTW_127<<<grid, block>>>(series, distances, n, length); return true;
        case 255: shfl_FullDTW_255<<<grid, block>>>(series, distances, n, length); return true;
        case 511: shfl_FullDTW_511<<<grid, block>>>(series, distances, n, length); return true;
        case 1023: shfl_FullDTW_1023<<<grid, block>>>(series, distances, n, length); return true;
        case 2047: shfl_FullDTW_2047<<<grid, block>>>(series, distances, n, length); return true;
    }
    return false;
}

// 32 values a thread, and several series a warp. True if there is a kernel for this length.
template <typename index_t>
static bool launch_subwarp(float* series, float* distances, index_t n, index_t length) {
    if (length >= 1024) return false;
    const dim3 grid(n / (1024 / (length + 1))), block(32);
    switch (length) {
        case 127: sub_warp_DTW<4><<<grid, block>>>(series, distances, n, length); return true;
        case 255: sub_warp_DTW<8><<<grid, block>>>(series, distances, n, length); return true;
        case 511: sub_warp_DTW<16><<<grid, block>>>(series, distances, n, length); return true;
        case 1023: sub_warp_DTW<32><<<grid, block>>>(series, distances, n, length); return true;
    }
    return false;
}

// All launches of a kernel, if there is one for this length.
template <typename index_t>
static void measure(const std::string& name, bool (*launch)(float*, float*, index_t, index_t), float* series,
                    float* distances, size_t n, int length, const std::string& out, int repeats) {
    check(cudaMemset(distances, 0xff, n * sizeof(float)));  // NaN
    if (!launch(series, distances, n, length)) return;
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    std::printf("%s", name.c_str());
    for (int run = 0; run < repeats; ++run) {
        check(cudaEventRecord(start));
        launch(series, distances, n, length);
        check(cudaEventRecord(stop));
        check(cudaEventSynchronize(stop));
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start, stop));
        std::printf(" %.9f", milliseconds / 1e3);
    }
    std::printf("\n");
    std::vector<float> found(n);
    check(cudaMemcpy(found.data(), distances, n * sizeof(float), cudaMemcpyDeviceToHost));
    std::ofstream file(out + "." + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(found.data()), n * sizeof(float));
    if (!file) {
        std::fprintf(stderr, "cannot write %s.%s\n", out.c_str(), name.c_str());
        std::exit(1);
    }
}

int main(int n_words, char** words) {
    if (n_words != 6) {
        std::fprintf(stderr, "cudtw SERIES QUERY LENGTH OUT REPEATS\n");
        return 2;
    }
    const std::vector<float> series = read_floats(words[1]), query = read_floats(words[2]);
    const int length = std::atoi(words[3]), repeats = std::atoi(words[5]);
    const std::string out = words[4];
    const size_t n = series.size() / length;
    if (query.size() != static_cast<size_t>(length) || n == 0 || n % 8 != 0) {
        std::fprintf(stderr, "one query of the length, and a multiple of 8 series\n");
        return 2;
    }
    check(cudaMemcpyToSymbol(cQuery, query.data(), length * sizeof(float)));
    float *on_device, *distances;
    check(cudaMalloc(&on_device, series.size() * sizeof(float)));
    check(cudaMalloc(&distances, n * sizeof(float)));
    check(cudaMemcpy(on_device, series.data(), series.size() * sizeof(float), cudaMemcpyHostToDevice));
    measure<uint64_t>("warp-64", launch_warp<uint64_t>, on_device, distances, n, length, out, repeats);
    measure<uint32_t>("warp-32", launch_warp<uint32_t>, on_device, distances, n, length, out, repeats);
    measure<uint64_t>("subwarp-64", launch_subwarp<uint64_t>, on_device, distances, n, length, out, repeats);
    measure<uint32_t>("subwarp-32", launch_subwarp<uint32_t>, on_device, distances, n, length, out, repeats);
}
