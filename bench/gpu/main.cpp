// SPDX-License-Identifier: Apache-2.0
// Times functions of the library on a device, after it has checked their results.
//
//     build/gpu/bench/bench_gpu "gemm_tensor_core bf16 wgmma nt 4096 4096 4096" "softmax bf16 8192 8192"
//     build/gpu/bench/bench_gpu --peer ...      and cuBLASLt beside each product, in turn
//     build/gpu/bench/bench_gpu --serve         takes commands from stdin, for compare.py
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "bench/gpu/cases.hpp"

namespace {

using namespace ikat;
using bench::Case;
using runtime::Device;
using runtime::Stream;

/// A case, and beside it cuBLASLt's choices, of which the fastest is taken once they have been timed.
class Bench {
public:
    Bench(const Device& device, std::string_view line)
        : device_(device), stream_(device.stream()), case_(bench::make_case(device, line)) {
        case_.launch(stream_);
        stream_.synchronize();
        error_ = case_.error();
    }

    double error() const { return error_; }
    /// Also false where the error is NaN.
    bool is_right() const { return error_ <= case_.allowed; }
    const Case& measured() const { return case_; }

    /// Milliseconds of one launch, of that many.
    double time(int launches) {
        return timed(
            launches, [&] { return stream_.record(); }, [&] { case_.launch(stream_); });
    }

    /// The same for cuBLASLt's choice: the one that its heuristic names first, or the fastest. The first call decides
    /// which that is.
    double time_peer(int launches, bool fastest) {
        if (!case_.product) throw Error("this case has no peer in this program", "compare.py knows others");
        if (choices_.empty()) choose(launches);
        return time_choice(fastest ? fastest_ : 0, launches);
    }

private:
    /// Finds cuBLASLt's fastest choice, and checks the result of the first one.
    void choose(int launches) {
        choices_ = bench::cublaslt_choices(case_.product());
        choices_[0]();
        if (const double error = case_.error(); !(error <= case_.allowed))
            throw Error(fmt::format("cuBLASLt's result has an error of {}", error), "the products are not the same");
        double shortest = 0;
        for (std::size_t i = 0; i < choices_.size(); ++i) {
            time_choice(i, 1);
            const double time = time_choice(i, launches);
            if (i == 0 || time < shortest) shortest = time, fastest_ = i;
        }
    }
    double timed(int launches, auto record, auto launch) {
        const runtime::Event start = record();
        for (int i = 0; i < launches; ++i) launch();
        const runtime::Event stop = record();
        return elapsed_milliseconds(start, stop) / launches;
    }
    double time_choice(std::size_t choice, int launches) {
        return timed(
            launches, [&] { return device_.record(); }, choices_[choice]);
    }

    const Device& device_;
    Stream stream_;
    Case case_;
    double error_ = 0;
    std::vector<std::function<void()>> choices_;
    std::size_t fastest_ = 0;
};

/// Launches that take about that many milliseconds.
int launches_for(double milliseconds, double of_one) {
    return int(std::clamp(milliseconds / std::max(of_one, 1e-6), 1.0, 1000.0));
}

double median(std::vector<double> times) {
    std::ranges::nth_element(times, times.begin() + std::ptrdiff_t(times.size() / 2));
    return times[times.size() / 2];
}

std::string rates(const Case& what, double milliseconds) {
    std::string out = fmt::format("{:9.4f} ms", milliseconds);
    if (what.operations > 0) out += fmt::format(" {:8.2f} Tflop/s", what.operations / milliseconds * 1e-9);
    return out + fmt::format(" {:8.1f} GB/s", what.bytes / milliseconds * 1e-6);
}

/// False where the result is wrong.
bool measure(const Device& device, const std::string& line, bool with_peer) {
    Bench bench(device, line);
    fmt::print("{}\n    error {:.2e}, {} than {:.0e}\n", line, bench.error(), bench.is_right() ? "no more" : "MORE",
               bench.measured().allowed);
    if (!bench.is_right()) return false;
    const bool emulated = device.properties().kind == runtime::DeviceKind::Emulator;
    const int launches = emulated ? 1 : launches_for(20, bench.time(1));
    const int rounds = emulated ? 1 : 7;
    std::vector<double> ours, first, fastest;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(bench.time(launches));
        if (!with_peer || !bench.measured().product) continue;
        first.push_back(bench.time_peer(launches, false));
        fastest.push_back(bench.time_peer(launches, true));
    }
    fmt::print("    ikat             {}\n", rates(bench.measured(), median(ours)));
    if (first.empty()) return true;
    fmt::print("    cuBLASLt's first {}\n", rates(bench.measured(), median(first)));
    fmt::print("    cuBLASLt's best  {}\n", rates(bench.measured(), median(fastest)));
    return true;
}

/// Answers each line of stdin with one line, which begins with "error" where it failed:
///     case WORDS       -> error, allowed error, operations, bytes
///     time LAUNCHES, first LAUNCHES, best LAUNCHES      -> milliseconds of one launch: ikat, cuBLASLt
void serve(const Device& device) {
    std::optional<Bench> bench;
    for (std::string line; std::getline(std::cin, line);) {
        try {
            const std::size_t space = std::min(line.find(' '), line.size());
            const std::string command = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
            if (command == "case") {
                bench.reset();
                bench.emplace(device, rest);
                const Case& what = bench->measured();
                fmt::print("{} {} {} {}\n", bench->error(), what.allowed, what.operations, what.bytes);
            } else {
                if (!bench) throw Error("there is no case yet", "name one: case WORDS");
                const int launches = std::max(std::atoi(rest.c_str()), 1);
                if (command != "time" && command != "first" && command != "best")
                    throw Error(fmt::format("there is no command '{}'", command), "case, time, first or best");
                const double time =
                    command == "time" ? bench->time(launches) : bench->time_peer(launches, command == "best");
                fmt::print("{}\n", time);
            }
        } catch (const Error& failure) {
            std::string text = failure.what();
            std::ranges::replace(text, '\n', ' ');
            fmt::print("error {}\n", text);
        }
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto has = [&](std::string_view option) { return std::ranges::find(words, option) != words.end(); };
    if (words.empty() || has("--help")) {
        fmt::print(
            "usage: bench_gpu [--peer] CASE... | --serve\nIKAT_DEVICE names the device. A case is one argument:\n{}",
            bench::forms);
        return words.empty() ? 2 : 0;
    }
    const Device device = Device::open();
    if (has("--serve")) return serve(device), 0;
    bool all_right = true;
    for (const std::string& line : words)
        if (line != "--peer") all_right &= measure(device, line, has("--peer"));
    return all_right ? 0 : 1;
} catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 1;
}
