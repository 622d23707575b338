// Times self-joins of SCAMP on device 0, from a host array to a host array with indices:
//
//     scamp SERIES WINDOW OUT REPEATS PATIENCE PRECISION-TILE...
//
// SERIES holds the points as doubles. Each PRECISION-TILE, such as double-131072, is run REPEATS times,
// fewer once they have taken PATIENCE seconds; a line of its name and the seconds of each run is
// printed, and OUT.PRECISION-TILE gets SCAMP's profile: for each window the correlation (float) and the
// index (unsigned int) of its nearest neighbour.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "common/scamp_args.h"
#include "common/scamp_exception.h"
#include "common/scamp_interface.h"
#include "core/cpu_kernel/kernel_dispatcher.h"

// SCAMP's kernels for a CPU want Eigen; no CPU works here.
namespace SCAMP {
SCAMPError_t cpu_kernel_self_join_upper(Tile*) { return SCAMP_FUNCTIONALITY_UNIMPLEMENTED; }
SCAMPError_t cpu_kernel_self_join_lower(Tile*) { return SCAMP_FUNCTIONALITY_UNIMPLEMENTED; }
SCAMPError_t cpu_kernel_ab_join_upper(Tile*) { return SCAMP_FUNCTIONALITY_UNIMPLEMENTED; }
SCAMPError_t cpu_kernel_ab_join_lower(Tile*) { return SCAMP_FUNCTIONALITY_UNIMPLEMENTED; }
}  // namespace SCAMP

using Profile = std::vector<uint64_t>;

// Points of the joins that come before the first one that is timed.
constexpr size_t WARM_UP = 1 << 16;

static std::vector<double> read_series(const char* path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw SCAMPException(std::string("cannot read ") + path);
    std::vector<double> values(static_cast<size_t>(file.tellg()) / sizeof(double));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(values.data()), values.size() * sizeof(double));
    return values;
}

// One join: its seconds; the profile goes to `profile`.
static double join(const std::vector<double>& series, uint64_t window, SCAMP::SCAMPPrecisionType precision,
                   uint64_t tile, Profile& profile) {
    SCAMP::SCAMPArgs args;
    args.timeseries_a = series;
    args.has_b = false;
    args.window = window;
    args.max_tile_size = tile;
    args.distributed_start_row = args.distributed_start_col = -1;
    args.distance_threshold = 0;
    args.precision_type = precision;
    args.profile_type = args.profile_a.type = args.profile_b.type = SCAMP::PROFILE_TYPE_1NN_INDEX;
    args.computing_rows = args.computing_columns = true;
    args.keep_rows_separate = args.is_aligned = false;
    args.silent_mode = true;
    args.max_matches_per_column = 5;
    args.matrix_height = args.matrix_width = 50;
    const auto start = std::chrono::steady_clock::now();
    SCAMP::do_SCAMP(&args, {0}, 0);
    const auto stop = std::chrono::steady_clock::now();
    profile = std::move(args.profile_a.data.at(0).uint64_value);
    return std::chrono::duration<double>(stop - start).count();
}

static void run(int n_words, char** words) {
    const std::map<std::string, SCAMP::SCAMPPrecisionType> precisions = {
        {"double", SCAMP::PRECISION_DOUBLE},
        {"mixed", SCAMP::PRECISION_MIXED},
        {"single", SCAMP::PRECISION_SINGLE},
    };
    const std::vector<double> series = read_series(words[1]);
    const uint64_t window = std::strtoull(words[2], nullptr, 10);
    const std::string out = words[3];
    const int repeats = std::atoi(words[4]);
    const double patience = std::atof(words[5]);
    const size_t few = std::min(series.size(), std::max(WARM_UP, static_cast<size_t>(4 * window)));
    const std::vector<double> head(series.begin(), series.begin() + few);
    Profile profile;
    for (int i = 6; i < n_words; ++i) {
        const std::string name = words[i];
        const size_t dash = name.find('-');
        const SCAMP::SCAMPPrecisionType precision = precisions.at(name.substr(0, dash));
        const uint64_t tile = std::stoull(name.substr(dash + 1));
        join(head, window, precision, head.size(), profile);
        std::printf("%s", name.c_str());
        double total = 0;
        for (int run = 0; run < repeats && (run == 0 || total < patience); ++run) {
            const double seconds = join(series, window, precision, tile, profile);
            total += seconds;
            std::printf(" %.6f", seconds);
        }
        std::printf("\n");
        std::fflush(stdout);
        std::ofstream file(out + "." + name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(profile.data()), profile.size() * sizeof(uint64_t));
        if (!file) throw SCAMPException("cannot write " + out + "." + name);
    }
}

int main(int n_words, char** words) {
    if (n_words < 7) {
        std::fprintf(stderr, "scamp SERIES WINDOW OUT REPEATS PATIENCE PRECISION-TILE...\n");
        return 2;
    }
    try {
        run(n_words, words);
    } catch (const SCAMPException& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
