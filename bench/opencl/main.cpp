// SPDX-License-Identifier: Apache-2.0
// The emulator, with all of its checks, beside PoCL, which compiles OpenCL C for the CPU: the same algorithms, in one
// process by turns, on the same number of threads.
//
//     build/release/bench/bench_opencl [--threads N] [--rounds N] [--small] [KERNEL]
// Results are compared first. PoCL runs each kernel in the form of ours, and in the fastest of those listed here.
// Seconds are CPU time of all threads, the best of all rounds; ratios are the medians of the rounds'. --small is for
// tests: results only.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include "bench/code_quality/kernels.hpp"
#include "bench/opencl/peer.hpp"
#include "codegen/pipeline/compile.hpp"
#include "runtime/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::bench;

struct Case {
    const char *name, *title;  // of one of the kernels that are compared with nvcc's
    unsigned n;
    std::vector<std::size_t> floats;  // in each buffer; the last one has the results
    runtime::Grid grid;
    std::vector<Form> forms;  // the first is that of ours
    bool has_factor = false;
    double tolerance = 0;  // of the largest result
};

std::vector<Case> cases(bool small) {
    const unsigned elements = small ? 1 << 12 : 1 << 24, n = small ? 128 : 1024, bodies = small ? 1024 : 16384;
    const std::size_t square = std::size_t{n} * n, blocks = elements / 1024;
    std::vector<Form> gemm = {{"gemm", {n / 4, n / 4}, {16, 16}}}, matmul = {{"matmul", {n, n}, {16, 16}}};
    std::vector<Form> saxpy = {{"saxpy", {elements, 1}, {256, 1}}},
                      nbody = {{"nbody", {bodies, 1}, {128, 1}, true, true}};
    for (const std::size_t group : {0, 1, 4, 8}) gemm.push_back({"gemm_registers", {n / 16, n / 4}, {group, 1}});
    for (const auto& group : std::vector<std::array<std::size_t, 2>>{{0, 0}, {64, 1}, {64, 4}, {128, 1}})
        matmul.push_back({"matmul", {n, n}, group});
    for (const std::size_t group : {0, 64, 256, 1024}) {
        saxpy.push_back({"saxpy", {elements, 1}, {group, 1}});
        if (group <= elements / 16) saxpy.push_back({"saxpy_vectors", {elements / 16, 1}, {group, 1}});
        for (const bool is_native : {false, true}) {
            if (group) nbody.push_back({"nbody", {bodies, 1}, {group, 1}, true, is_native});
            nbody.push_back({"nbody_plain", {bodies, 1}, {group, 1}, false, is_native});
        }
    }
    return {
        {"gemm", "tiled matmul", n, {square, square, square}, {{n / 64, n / 64}, {256}}, gemm},
        {"matmul", "naive matmul", n, {square, square, square}, {{n / 16, n / 16}, {16, 16}}, matmul},
        {"saxpy", "saxpy", elements, {elements, elements}, {{std::uint32_t(blocks)}, {256}}, saxpy, true},
        {"nbody", "n-body", bodies, {4 * bodies, 4 * bodies}, {{bodies / 128}, {128}}, nbody, false, 1e-5},
    };
}

/// Small numbers, whose sums are exact.
std::vector<float> numbers(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(int(i * 2654435761u >> 20 & 31) - 16) / 8;
    return out;
}

constexpr float factor = 2;

/// A kernel on the emulator, with its buffers.
class Ours {
public:
    Ours(const runtime::Device& device, const Case& c) : device_(device), case_(c) {
        const std::vector<Row> all = rows();
        const auto row = std::ranges::find(all, std::string_view(c.name), &Row::name);
        module_ = device.load(compile(row->ours.ast(), {.target = "sm_90"}).ptx, c.name);
        for (const std::size_t count : c.floats) append(buffers_.emplace_back(device.upload(numbers(count))).address());
        if (c.has_factor) append(factor);
        append(c.n);
    }
    void run() const { device_.launch(*module_, case_.name, case_.grid, parameters_); }
    std::vector<float> result() const { return buffers_.back().download(); }

private:
    void append(auto number) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
        parameters_.insert(parameters_.end(), bytes, bytes + sizeof number);
    }

    const runtime::Device& device_;
    const Case& case_;
    std::optional<runtime::Module> module_;
    std::vector<runtime::Buffer<float>> buffers_;
    std::vector<std::byte> parameters_;
};

/// CPU time of all threads, so that a busy machine does not matter: while one side works, the other one sleeps.
double seconds(const std::function<void()>& work) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
    };
    const double begin = now();
    work();
    return now() - begin;
}

double median_ratio(const std::vector<double>& of, const std::vector<double>& to) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i] / to[i]);
    std::ranges::sort(ratios);
    return ratios[ratios.size() / 2];
}

void compare(const Case& c, const std::vector<float>& ours, const std::vector<float>& theirs, const Form& form) {
    double largest = 0;
    for (const float x : ours) largest = std::max(largest, std::abs(double(x)));
    for (std::size_t i = 0; i < ours.size(); ++i)
        if (!(std::abs(double(ours[i]) - theirs[i]) <= c.tolerance * largest))
            throw Error(fmt::format("{} differs at {}: {}, and {} by {}", c.title, i, ours[i], theirs[i], form.name()),
                        "they are not the same kernel");
}

void measure(const runtime::Device& device, Peer& peer, const Case& c, unsigned rounds) {
    const Ours ours(device, c);
    ours.run();
    const std::vector<float> expected = ours.result();
    std::vector<std::vector<float>> buffers;
    for (const std::size_t count : c.floats) buffers.push_back(numbers(count));
    const float* const given = c.has_factor ? &factor : nullptr;

    const Form* chosen = nullptr;
    double shortest = std::numeric_limits<double>::infinity();
    for (const Form& form : c.forms) {
        peer.upload(buffers);
        peer.run(form, given, c.n);
        compare(c, expected, peer.download(buffers.size() - 1), form);
        if (rounds == 0) continue;
        const auto again = [&] { return seconds([&] { peer.run(form, given, c.n); }); };
        const double time = std::min(again(), again());
        if (time < shortest) shortest = time, chosen = &form;
    }
    if (rounds == 0) return fmt::print("{}: the same results, forms: {}\n", c.title, c.forms.size());

    std::vector<double> own, same, best;
    for (unsigned round = 0; round < rounds; ++round) {
        own.push_back(seconds([&] { ours.run(); }));
        same.push_back(seconds([&] { peer.run(c.forms[0], given, c.n); }));
        best.push_back(seconds([&] { peer.run(*chosen, given, c.n); }));
    }
    fmt::print("| {} | {:.3f} | {:.3f} | {:.2f} | {:.3f} | {:.2f} | {} |\n", c.title, std::ranges::min(own),
               std::ranges::min(same), median_ratio(same, own), std::ranges::min(best), median_ratio(best, own),
               chosen->name());
    std::fflush(stdout);
}

int run(int argc, char** argv) {
    unsigned threads = 2, rounds = 5;
    bool small = false;
    std::string_view only;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--small")
            small = true;
        else if (word == "--threads" && i + 1 < argc)
            threads = unsigned(std::atoi(argv[++i]));
        else if (word == "--rounds" && i + 1 < argc)
            rounds = unsigned(std::atoi(argv[++i]));
        else
            only = word;
    }
    std::optional<Peer> peer;
    try {
        peer.emplace(threads);
    } catch (const Error& error) { return fmt::print("skipped: {}\n", error.what()), 77; }
    const runtime::Device device = runtime::Device::open({.device = "emulator", .threads = threads});
    fmt::print("{}\n{}\n", device.properties().name, peer->name());
    if (!small)
        fmt::print(
            "| kernel | ikat, s | PoCL, s | ratio | PoCL's best form, s | ratio | which |\n"
            "|---|---|---|---|---|---|---|\n");
    for (const Case& c : cases(small))
        if (only.empty() || only == c.name) measure(device, *peer, c, small ? 0 : rounds);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
