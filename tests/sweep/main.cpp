// SPDX-License-Identifier: Apache-2.0
// Measures the errors of the library's elementary functions: of f32 over all 2^32 arguments, of f64 and of powers over
// 2^26 and 2^30 samples. Each line that it prints ends with what the table in functions.cpp should say; a function that
// exceeds its bound, or whose error is not the one recorded there, is a failure.
//
//     sweep_math                                all functions, on the emulator
//     sweep_math exp f64:exp pow                these
//     sweep_math --stride 4001 exp              every 4001st magnitude; of samples as much fewer
//     sweep_math --part 0 --parts 8             every eighth function from the first on
//     sweep_math --list
//
// IKAT_DEVICE=cuda runs them on the GPU, which must give the same bits: the digests are compared, too.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "tests/device.hpp"
#include "tests/sweep/sweep.hpp"

namespace ikat::test {
namespace {

struct Wish {
    std::vector<std::string> names;
    std::uint32_t stride = 1, part = 0, parts = 1;
    bool list = false;

    bool wants(const std::string& name) const { return names.empty() || std::ranges::count(names, name) > 0; }
};

/// Prints what was found, as a row of the table has it; whether it is within the bound and, of a whole sweep, as
/// recorded.
template <class T>
bool report(const std::string& name, const Outcome<T>& found, const auto& row, std::uint32_t stride, double seconds) {
    const auto& recorded = row.recorded;
    const bool same_bits = recorded.digest == 0 || found.digest == recorded.digest;
    const bool good = found.error <= row.bound;
    const bool as_recorded =
        stride != 1 || (fmt::format("{:.4f}", found.error) == fmt::format("{:.4f}", recorded.error) &&
                        found.at == recorded.at && same_bits);
    fmt::print("{:18} {:6.0f} s  {{{:.4f}, {:a}{}, {:.4f}, 0x{:016x}}}, y {:a}, got {:a}{}{}\n", name, seconds,
               found.error, found.at, std::is_same_v<T, float> ? "f" : "", found.misrounded_percent(), found.digest,
               found.y, found.got, good ? "" : fmt::format("  EXCEEDS {}", row.bound),
               as_recorded ? "" : "  NOT AS RECORDED");
    std::fflush(stdout);
    return good && as_recorded;
}

/// Measures the functions that are wished for, and counts.
class Run {
public:
    explicit Run(const Wish& wish) : wish_(wish) {}

    void each(const auto& rows, const char* prefix, std::uint64_t count_or_stride) {
        for (const auto& row : rows) {
            const std::string name = prefix + std::string(row.name);
            if (!wish_.wants(name) || seen_++ % wish_.parts != wish_.part) continue;
            if (wish_.list)
                fmt::print("{}\n", name);
            else
                measure(name, row, count_or_stride);
        }
    }

    /// The exit status.
    int finish() const {
        if (seen_ < wish_.names.size()) return fmt::print(stderr, "sweep_math: no such function; see --list\n"), 2;
        return failed_ == 0 ? 0 : 1;
    }

private:
    void measure(const std::string& name, const auto& row, std::uint64_t count_or_stride) {
        const auto start = std::chrono::steady_clock::now();
        const auto found = sweep(row, device_, count_or_stride);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        failed_ += !report(name, found, row, wish_.stride, seconds);
    }

    const Wish& wish_;
    runtime::Device device_ = open_device();
    std::size_t seen_ = 0, failed_ = 0;
};

int main(const Wish& wish) {
    Run run(wish);
    run.each(f32_functions(), "", wish.stride);
    run.each(power_functions(), "", (std::uint64_t{1} << 30) / wish.stride);
    run.each(f64_functions(), "f64:", (std::uint64_t{1} << 26) / wish.stride);
    return run.finish();
}

}  // namespace
}  // namespace ikat::test

int main(int argc, char** argv) {
    ikat::test::Wish wish;
    CLI::App app("Errors of the elementary functions");
    app.add_option("functions", wish.names, "their names; none: all");
    app.add_option("--stride", wish.stride, "every n-th magnitude of f32; of samples as much fewer")
        ->check(CLI::PositiveNumber);
    app.add_option("--part", wish.part, "only every n-th function, from this one on; n is --parts");
    app.add_option("--parts", wish.parts)->check(CLI::PositiveNumber);
    app.add_flag("--list", wish.list, "print their names");
    CLI11_PARSE(app, argc, argv);
    return ikat::test::main(wish);
}
