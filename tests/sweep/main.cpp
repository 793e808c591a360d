// SPDX-License-Identifier: Apache-2.0
// Measures the errors of the library's elementary functions: for f32 over all 2^32 arguments, for f64 and powers over
// 2^26 and 2^30 samples. Each line that it prints is a row for measured.cpp; a function that exceeds its bound, or
// differs from its row there, is a failure.
//
//     sweep_math                                all functions, on the emulator
//     sweep_math exp f64:exp pow                these
//     sweep_math --stride 4001 exp              every 4001st magnitude; samples reduced accordingly
//     sweep_math --part 0 --parts 8             every eighth function, starting with the first
//     sweep_math --list
//
// IKAT_DEVICE=cuda runs them on the GPU, which must give the same bits: the digests are compared, too.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/device.hpp"
#include "tests/sweep/measured.hpp"
#include "tests/sweep/sweep.hpp"

namespace ikat::test {
namespace {

struct Wish {
    std::vector<std::string> names;
    std::uint32_t stride = 1, part = 0, parts = 1;
    bool list = false;

    bool wants(std::string_view name) const { return names.empty() || std::ranges::count(names, name) > 0; }
};

/// Prints the result as a row of measured.cpp; returns whether it is within the bound and, for a full sweep, equals the
/// row there.
template <class T>
bool report(const auto& row, const Outcome<T>& found, std::uint64_t sample_digest, bool whole) {
    const Measured& before = measured(row.name);
    const std::uint64_t digest = row.unit ? 0 : found.digest, of_sample = row.unit ? 0 : sample_digest;
    const std::string numbers = fmt::format("{:.4f}, {:a}, {:a}, {:.4f}", found.error, double(found.at),
                                            double(found.y), found.misrounded_percent());
    const bool good = found.error <= row.bound;
    const bool as_before = numbers == fmt::format("{:.4f}, {:a}, {:a}, {:.4f}", before.error, before.at, before.y,
                                                  before.misrounded_percent) &&
                           digest == before.digest && of_sample == before.sample_digest;
    fmt::print("    {{\"{}\", {}, {:#x}, {:#x}}},{}{}\n", row.name, numbers, digest, of_sample,
               good ? "" : fmt::format("  // EXCEEDS {}, got {:a}", row.bound, double(found.got)),
               !whole || as_before ? "" : "  // NOT AS BEFORE");
    std::fflush(stdout);
    return good && (!whole || as_before);
}

/// Measures the requested functions, and counts failures.
class Run {
public:
    explicit Run(const Wish& wish) : wish_(wish) {}

    void each(const auto& rows) {
        for (const auto& row : rows) {
            if (!wish_.wants(row.name) || seen_++ % wish_.parts != wish_.part) continue;
            if (wish_.list)
                fmt::print("{}\n", row.name);
            else
                measure(row);
        }
    }

    /// The exit status.
    int finish() const {
        if (seen_ < wish_.names.size()) return fmt::print(stderr, "sweep_math: no such function; see --list\n"), 2;
        return failed_ == 0 ? 0 : 1;
    }

private:
    void measure(const auto& row) {
        const std::uint64_t sample_digest = sweep(row, device_, sample_stride).digest;
        const auto found = sweep(row, device_, wish_.stride);
        failed_ += !report(row, found, sample_digest, wish_.stride == 1);
    }

    const Wish& wish_;
    runtime::Device device_ = open_device();
    std::size_t seen_ = 0, failed_ = 0;
};

int main(const Wish& wish) {
    Run run(wish);
    run.each(f32_functions());
    run.each(power_functions());
    run.each(f64_functions());
    return run.finish();
}

}  // namespace
}  // namespace ikat::test

int main(int argc, char** argv) {
    ikat::test::Wish wish;
    CLI::App app("Errors of the elementary functions");
    app.add_option("functions", wish.names, "their names; none: all");
    app.add_option("--stride", wish.stride, "every n-th magnitude of f32; samples reduced accordingly")
        ->check(CLI::PositiveNumber);
    app.add_option("--part", wish.part, "only every n-th function, from this one on; n is --parts");
    app.add_option("--parts", wish.parts)->check(CLI::PositiveNumber);
    app.add_flag("--list", wish.list, "print their names");
    CLI11_PARSE(app, argc, argv);
    return ikat::test::main(wish);
}
