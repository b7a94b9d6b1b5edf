#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

/// What the benchmarks share. Each measures CPU time, verifies its own result, and compares rivals in interleaved
/// rounds of one run: absolute figures of a shared machine mean little, ratios mean more.
namespace bench {

/// CPU time of this process in nanoseconds.
inline double cpu_now() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Nanoseconds since some start.
inline double wall_now() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Resident memory of this process in bytes.
inline double resident_bytes() {
    long pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Ends the program if a benchmark did not do what it claims to measure.
inline void verify(bool true_or_worthless, std::string_view claim) {
    if (true_or_worthless) return;
    std::fprintf(stderr, "verification failed: %.*s\n", static_cast<int>(claim.size()), claim.data());
    std::exit(1);
}

/// `--name value`, or the default; unknown arguments end the program with a usage line.
class Arguments {
   public:
    Arguments(int argc, char** argv) : argv_(argv + 1, argv + argc) {}

    long get(std::string_view name, long otherwise) {
        usage_ += " [" + std::string(name) + " " + std::to_string(otherwise) + "]";
        for (std::size_t index = 0; index + 1 < argv_.size(); index += 2) {
            if (argv_[index] != name) continue;
            ++used_;
            return std::max(1L, std::atol(argv_[index + 1].data()));
        }
        return otherwise;
    }
    /// Whether `--name` is there, without a value. To be asked before get().
    bool flag(std::string_view name) {
        usage_ += " [" + std::string(name) + "]";
        return std::erase(argv_, name) > 0;
    }
    void done() const {
        if (used_ * 2 == argv_.size()) return;
        std::fprintf(stderr, "usage:%s\n", usage_.c_str());
        std::exit(2);
    }

   private:
    std::vector<std::string_view> argv_;
    std::string usage_;
    std::size_t used_ = 0;
};

}  // namespace bench
