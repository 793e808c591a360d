// SPDX-License-Identifier: Apache-2.0
// Kernels of libraries and of Triton on the emulator, compared with host results.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

#include <ikat/cluster.hpp>

using namespace ikat;
using tests::made;

TEST_CASE("kernels from CUDA's headers: sorts, scans, groups, barriers, atomics") {
    const auto text = tests::nvcc_ptx(tests::foreign_source("headers.cu"), "-arch=sm_75 -std=c++17");
    if (!text) {
        std::puts("skipped: no nvcc");
        return;
    }
    tests::Machine machine;
    const auto key = [](int i) { return unsigned(i) * 2654435761u; };
    const auto keys = machine.buffer("keys", made<unsigned>(512, key));
    const auto values = machine.buffer("values", made<float>(512, [](int i) { return float(i); }));
    machine.run(*text, {.entry = "block_sort", .block = {128, 1, 1}}, keys, values);
    std::vector<std::pair<unsigned, float>> expected;
    for (int i = 0; i < 512; ++i) expected.emplace_back(key(i), float(i));
    std::sort(expected.begin(), expected.end());
    const auto sorted = machine.get<unsigned>(keys, 512);
    const auto carried = machine.get<float>(values, 512);
    for (std::size_t i = 0; i < 512; ++i) CHECK(std::pair(sorted[i], carried[i]) == expected[i]);

    const auto x = machine.buffer("x", made<long long>(128, [](int i) { return (long long)i * i - 100; }));
    const auto y = machine.buffer("y", made<double>(128, [](int i) { return i * 37 % 128 - 64.5; }));
    machine.run(*text, {.entry = "block_scan", .block = {128, 1, 1}}, x, y);
    const auto sums = machine.get<long long>(x, 128);
    long long sum = 0;
    for (int i = 0; i < 128; ++i) CHECK(sums[std::size_t(i)] == (sum += (long long)i * i - 100));
    CHECK(machine.get<double>(y, 1)[0] == 62.5);

    const auto p = machine.buffer("p", made<int>(64, [](int i) { return i / 8 % 2 ? 1 + i % 8 : i % 8; }));
    const auto total = machine.buffer("total", std::vector<int>{0});
    machine.run(*text, {.entry = "grouped", .block = {64, 1, 1}}, p, total);
    // tiles of eight have the sums 28 and 36: all even, so nothing is written; the first lane of each warp adds its own
    CHECK(machine.get<int>(p, 64) == made<int>(64, [](int i) { return i / 8 % 2 ? 1 + i % 8 : i % 8; }));
    CHECK(machine.get<int>(total, 1)[0] == 56);

    const auto from = machine.buffer("from", made<float>(512, [](int i) { return float(i); }));
    const auto to = machine.empty<float>("to", 512);
    machine.run(*text, {.entry = "piped", .block = {64, 1, 1}}, from, to);
    CHECK(machine.get<float>(to, 512) == made<float>(512, [](int i) { return float(i); }));

    const auto word = machine.buffer("word", std::vector<std::uint64_t>{1});
    const auto bytes = machine.buffer("bytes", std::vector<unsigned char>(64, 4));
    machine.run(*text, {.entry = "shared_words", .block = {64, 1, 1}}, word, bytes);
    CHECK(machine.get<std::uint64_t>(word, 1)[0] == 63);
    CHECK(machine.get<unsigned char>(bytes, 64) == std::vector<unsigned char>(64, 7));
}

TEST_CASE("groups of several warps and of the whole grid") {
    const auto text = tests::nvcc_ptx(tests::foreign_source("groups.cu"), "-arch=sm_80 -std=c++17");
    if (!text) {
        std::puts("skipped: no nvcc");
        return;
    }
    CHECK(text->find("%reserved_smem_offset_1") != text->npos);
    CHECK(text->find("%envreg2") != text->npos);
    for (const unsigned threads : {1u, 3u}) {
        tests::Machine machine;
        machine.options.threads = threads;
        const auto x = machine.buffer("x", made<int>(512, [](int i) { return i % 7; }));
        machine.run(*text, {.entry = "tiles", .grid = {2, 1, 1}, .block = {256, 1, 1}}, x);
        const auto sums = machine.get<int>(x, 512);
        for (int i = 0; i < 512; ++i) {
            int sum = 0;
            for (int k = i / 64 * 64; k < i / 64 * 64 + 64; ++k) sum += k % 7;
            CHECK(sums[std::size_t(i)] == sum + i % 64);
        }
        const auto a = machine.buffer("a", made<int>(300, [](int i) { return i; })), b = machine.empty<int>("b", 300);
        machine.run(*text, {.entry = "rounds", .grid = {300, 1, 1}, .block = {64, 1, 1}}, a, b);
        CHECK(machine.get<int>(a, 300) == made<int>(300, [](int i) { return (i + 3) % 300 + 3; }));
    }
}

TEST_CASE("distributed shared memory by cooperative groups") {
    for (const char* options : {"-arch=sm_90 -std=c++17", "-arch=sm_90 -std=c++17 -G"}) {
        INFO("nvcc " << options);
        const auto text = tests::nvcc_ptx(tests::foreign_source("clusters.cu"), options);
        if (!text) {
            std::puts("skipped: no nvcc");
            return;
        }
        for (const std::uint32_t seed : {0u, 1u, 2u}) {
            tests::Machine machine;
            machine.options.threads = 2;
            machine.options.seed = seed;
            const auto value = [](int i) { return (i * i + 7 * i) % 256; };
            const auto x = machine.buffer("x", made<int>(5000, value));
            const auto bins = machine.buffer("bins", std::vector<int>(256));
            machine.run(*text,
                        {.entry = "histogram", .grid = {8, 1, 1}, .block = {64, 1, 1}, .dynamic_shared_bytes = 256}, x,
                        5000, bins);
            std::vector<int> counts(256);
            for (int i = 0; i < 5000; ++i) ++counts[std::size_t(value(i))];
            CHECK(machine.get<int>(bins, 256) == counts);

            const auto of = [](int block, int i) { return float(block + 10 * i); };
            const auto y = machine.buffer("y", made<float>(512, [&](int i) { return of(i / 32, i % 32); }));
            const auto sums = machine.empty<float>("sums", 512);
            machine.run(*text, {.entry = "ring", .grid = {4, 4, 1}, .block = {32, 1, 1}}, y, sums);
            CHECK(machine.get<float>(sums, 512) == made<float>(512, [&](int at) {
                      const int block = at / 32, i = at % 32;
                      const int first =
                          block / 8 * 8 + block % 4 / 2 * 2;  // of its cluster of 2 x 2 in a grid of 4 x 4
                      float sum = 0;
                      for (const int each : {first, first + 1, first + 4, first + 5}) sum += of(each, i);
                      return sum + 200 * of(first, 31 - i);
                  }));
        }
    }
}

namespace {

/// What is between an entry's parameters and its body: ".reqnctapercluster 4 1 1".
std::vector<std::string> directives_of(const std::string& text, std::string_view entry) {
    const ptx::Module module = ptx::parse(text, "text");
    std::vector<std::string> out;
    for (const ptx::Function& function : module.functions) {
        if (module.text(function.name) != entry) continue;
        for (const ptx::Directive& directive : function.directives) {
            out.emplace_back(module.text(directive.name));
            for (const ptx::Operand& each : module.operands(directive.operands))
                out.back() += " " + std::to_string(each.value);
        }
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace

TEST_CASE("a kernel of clusters says so as nvcc's do") {
    const auto text = tests::nvcc_ptx(tests::foreign_source("clusters.cu"), "-arch=sm_90 -std=c++17");
    if (!text) {
        std::puts("skipped: no nvcc");
        return;
    }
    const auto ours =
        kernel("ours", params("y"), [](Out<std::uint32_t> y) { y[block_id().x] = cluster_rank(); }).cluster(4);
    const auto theirs = directives_of(*text, "histogram");
    REQUIRE(theirs.size() == 2);
    CHECK(directives_of(compile(ours.ast(), {.target = "sm_90"}).ptx, "ours") == theirs);
}

TEST_CASE("kernels by Triton") {
    const auto made_by_triton = tests::triton_files("triton_kernels.py");
    if (!made_by_triton) {
        std::puts("skipped: no triton in python3");
        return;
    }
    const std::uint64_t scratch = 0;  // two parameters that Triton adds
    for (const std::string target : {"sm_80", "sm_90a", "sm_100a"}) {
        INFO(target);
        const auto text = [&](const std::string& kernel) { return made_by_triton->at(kernel + "." + target + ".ptx"); };
        {
            tests::Machine machine;
            const auto x = machine.buffer("x", made<float>(2000, [](int i) { return float(i) / 8; }));
            const auto y = machine.buffer("y", made<float>(2000, [](int i) { return float(3 * i); }));
            const auto z = machine.empty<float>("z", 2000);
            machine.run(text("0_vector_add"), {.grid = {2, 1, 1}, .block = {128, 1, 1}}, x, y, z, 2000, scratch,
                        scratch);
            CHECK(machine.get<float>(z, 2000) == made<float>(2000, [](int i) { return float(i) / 8 + float(3 * i); }));
        }
        {
            constexpr int rows = 3, columns = 1008;
            tests::Machine machine;
            const auto x = machine.buffer("x", made<std::uint16_t>(rows * columns, [](int i) {
                                              return std::uint16_t(0x3c00 + i * 37 % 1024);  // from 1 to 2
                                          }));
            const auto y = machine.empty<float>("y", rows * columns);
            machine.run(text("1_softmax"),
                        {.grid = {rows, 1, 1}, .block = {256, 1, 1}, .dynamic_shared_bytes = 32 * 1024}, x, y, columns,
                        scratch, scratch);
            const auto result = machine.get<float>(y, rows * columns);
            const auto value = [](int i) { return 1 + double(i * 37 % 1024) / 1024; };
            for (int row = 0; row < rows; ++row) {
                double sum = 0;
                for (int i = 0; i < columns; ++i) sum += std::exp(value(row * columns + i));
                for (int i = 0; i < columns; i += 61) {
                    const int at = row * columns + i;
                    CHECK(result[at] == Approx(std::exp(value(at)) / sum).epsilon(1e-5));
                }
            }
        }
        {
            tests::Machine machine;
            const auto x = machine.buffer("x", made<int>(96, [](int i) { return i % 7 - 3; }));
            const auto y = machine.empty<int>("y", 256);
            machine.run(text("9_scan_and_sort"), {.block = {128, 1, 1}, .dynamic_shared_bytes = 32 * 1024}, x, y, 96,
                        scratch, scratch);
            std::vector<int> sums = made<int>(256, [](int i) { return i < 96 ? i % 7 - 3 : 0; });
            for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
            std::sort(sums.begin(), sums.end());
            sums.resize(96);
            CHECK(machine.get<int>(y, 96) == sums);
            CHECK_THAT(machine.printed, tests::contains("last"));
        }
    }
}

TEST_CASE("a kernel in the style of Triton") {
    tests::Machine machine;
    const auto x = machine.buffer("x", made<float>(300, [](int i) { return float(i); }));
    const auto y = machine.buffer("y", made<float>(300, [](int i) { return float(2 * i); }));
    const auto z = machine.buffer("z", std::vector<float>(300));
    machine.run(tests::foreign_source("triton.ptx"), {.grid = {2, 1, 1}, .block = {128, 1, 1}}, x, y, z, 300,
                std::uint64_t{0});
    CHECK(machine.get<float>(z, 300) == made<float>(300, [](int i) { return float(3 * i); }));
}
