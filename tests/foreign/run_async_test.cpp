// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory and asynchronous copies of kernels that nvcc compiles, on the emulator.
#include <cstdio>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::made;

TEST_CASE("barriers in shared memory by CUDA's headers") {
    const auto x_of = [](int i) { return i * 37 % 101; };
    const auto text_for = [](const char* target) {
        return tests::nvcc_ptx(tests::foreign_source("mbarriers.cu"), std::string("-std=c++17 -arch=") + target);
    };
    for (const char* target : {"sm_80", "sm_90"}) {
        const auto text = text_for(target);
        if (!text) {
            std::puts("skipped: no nvcc");
            return;
        }
        for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u}) {
            INFO(target << ", seed " << seed);
            tests::Machine machine;
            machine.options.seed = seed;
            const auto x = machine.buffer("x", made<int>(1024, x_of));

            const auto values = machine.buffer("values", made<int>(128, x_of));
            machine.run(*text, {.entry = "rounds_of_neighbours", .block = {128, 1, 1}}, values, 7);
            std::vector<int> expected = made<int>(128, x_of);
            for (int round = 0; round < 7; ++round) {
                const std::vector<int> before = expected;
                for (std::size_t i = 0; i < 128; ++i) expected[i] = 3 * before[i] + before[(i + 1) % 128];
            }
            CHECK(machine.get<int>(values, 128) == expected);

            const auto sums = machine.empty<int>("sums", 96);
            machine.run(*text, {.entry = "warps_in_roles", .block = {128, 1, 1}}, x, sums, 20);
            CHECK(machine.get<int>(sums, 96) == made<int>(96, [&](int i) {
                      int sum = 0;
                      for (int t = 0; t < 20; ++t) sum += (1 + i / 32) * x_of(32 * t + 31 - i % 32);
                      return sum;
                  }));

            const auto count = machine.buffer("count", std::vector<int>(65));
            machine.run(*text, {.entry = "dropping", .block = {64, 1, 1}}, count);
            const auto counts = machine.get<int>(count, 65);
            for (int i = 0; i < 64; ++i) CHECK(counts[std::size_t(i)] >= 1 + i % 32);
            CHECK(counts[64] == 0);

            const auto floats = machine.buffer("floats", made<float>(640, [&](int i) { return float(x_of(i)); }));
            const auto y = machine.empty<float>("y", 64);
            machine.run(*text, {.entry = "pipeline_of_roles", .block = {96, 1, 1}}, floats, y, 10);
            CHECK(machine.get<float>(y, 64) == made<float>(64, [&](int i) {
                      float sum = 0;
                      for (int t = 0; t < 10; ++t) sum += float(x_of(64 * t + i)) - float(x_of(64 * t + 63 - i)) / 2;
                      return sum;
                  }));

            if (target != std::string("sm_90")) continue;
            const auto inbox = machine.empty<int>("inbox", 4 * 256);
            machine.run(*text, {.entry = "arrivals_from_afar", .grid = {4, 1, 1}, .block = {64, 1, 1}}, inbox);
            CHECK(machine.get<int>(inbox, 1024) == made<int>(1024, [](int i) {
                      const int round = i / 256, block = i % 256 / 64, thread = i % 64;
                      return 100 * round + 10 * (block ^ 1) + 63 - thread;
                  }));
        }
    }
}

TEST_CASE("bulk copies by CUDA's headers") {
    const auto text = tests::nvcc_ptx(tests::foreign_source("bulk_copies.cu"), "-std=c++17 -arch=sm_90a");
    if (!text) {
        std::puts("skipped: no nvcc");
        return;
    }
    CHECK(text->find("cp.reduce.async.bulk") != text->npos);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
        INFO("seed " << seed);
        tests::Machine machine;
        machine.options.seed = seed;
        machine.options.threads = 1 + seed % 2;
        const auto x_of = [](int i) { return i * 37 % 101; };
        const auto x = machine.buffer("x", made<int>(1024, x_of));
        const auto y = machine.empty<int>("y", 1024);
        machine.run(*text, {.entry = "there_and_back", .grid = {4, 1, 1}, .block = {64, 1, 1}}, x, y);
        CHECK(machine.get<int>(y, 1024) == made<int>(1024, [&](int i) { return 3 * x_of(i) + 1; }));

        const auto floats = machine.buffer("floats", made<float>(3 * 7 * 64, [&](int i) { return float(x_of(i)); }));
        const auto sums = machine.buffer("sums", std::vector<float>(64, 1.0f));
        machine.run(*text, {.entry = "sums_of_stages", .grid = {3, 1, 1}, .block = {64, 1, 1}}, floats, sums, 7);
        CHECK(machine.get<float>(sums, 64) == made<float>(64, [&](int i) {
                  float sum = 1;
                  for (int t = 0; t < 21; ++t) sum += float(x_of(64 * t + i));
                  return sum;
              }));

        machine.run(*text, {.entry = "to_the_next", .grid = {8, 1, 1}, .block = {128, 1, 1}}, x, y);
        CHECK(machine.get<int>(y, 1024) == made<int>(1024, [&](int i) {
                  const int block = i / 128;
                  return x_of(128 * (block / 4 * 4 + (block + 3) % 4) + i % 128);
              }));
    }
}

TEST_CASE("bulk copies of tensors by CUDA's headers") {
    const auto text = tests::nvcc_ptx(tests::foreign_source("tensor_copies.cu"),
                                      "-std=c++17 -arch=sm_90a -isystem /usr/local/cuda/include");
    if (!text) {
        std::puts("skipped: no nvcc");
        return;
    }
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
        INFO("seed " << seed);
        tests::Machine machine;
        machine.options.seed = seed;
        machine.options.threads = 1 + seed % 2;
        const auto x_of = [](int i) { return float(i * 37 % 101); };
        const auto map_of = [](std::uint64_t address, std::uint64_t columns, std::uint64_t rows, std::uint32_t width,
                               std::uint32_t height, emulator::MapSwizzle swizzle) {
            return emulator::encode({.type = emulator::MapType::F32,
                                     .rank = 2,
                                     .address = address,
                                     .extents = {columns, rows},
                                     .strides = {4 * columns},
                                     .box = {width, height},
                                     .element_strides = {1, 1},
                                     .swizzle = swizzle});
        };
        // tiles across both edges
        constexpr int rows = 72, columns = 100;
        const auto x = machine.buffer("x", made<float>(rows * columns, x_of));
        const auto y = machine.empty<float>("y", rows * columns);
        const auto swizzle = emulator::MapSwizzle::B128;
        machine.run(*text, {.entry = "transpose", .grid = {4, 3, 1}, .block = {128, 1, 1}},
                    map_of(x, columns, rows, 32, 32, swizzle), map_of(y, rows, columns, 32, 32, swizzle));
        CHECK(machine.get<float>(y, rows * columns) ==
              made<float>(rows * columns, [&](int i) { return x_of(i % rows * columns + i / rows); }));

        const auto common = machine.buffer("common", made<float>(5 * 64, [](int i) { return float(i % 7); }));
        const auto sums = machine.empty<float>("sums", 4 * 64);
        machine.run(*text, {.entry = "shared_row", .grid = {4, 1, 1}, .block = {64, 1, 1}},
                    map_of(x, 64, 20, 64, 1, emulator::MapSwizzle::None),
                    map_of(common, 64, 5, 64, 1, emulator::MapSwizzle::None), sums, 5);
        CHECK(machine.get<float>(sums, 256) == made<float>(256, [&](int i) {
                  float sum = 0;
                  for (int round = 0; round < 5; ++round)
                      sum += x_of((5 * (i / 64) + round) * 64 + i % 64) * float((64 * round + i % 64) % 7);
                  return sum;
              }));

        // a map of bytes, of which the kernel makes one for each of its groups
        const std::vector<int> pitches{32, 36, 100, 64}, counts{8, 30, 3, 17};
        std::vector<std::uint64_t> groups;
        for (const int g : {0, 1, 2, 3}) groups.push_back(x + std::uint64_t(16 * (11 * g + 1)));
        const auto any = emulator::encode({.type = emulator::MapType::U8,
                                           .rank = 1,
                                           .address = common,
                                           .extents = {32},
                                           .box = {32},
                                           .element_strides = {1},
                                           .swizzle = swizzle,
                                           .fills_with_nan = true});
        const auto maps = machine.empty<std::byte>("maps", 4 * 128), of_groups = machine.empty<float>("y", 128);
        machine.run(*text, {.entry = "sums_of_groups", .grid = {4, 1, 1}, .block = {32, 1, 1}}, any,
                    machine.buffer("groups", groups), machine.buffer("counts", counts),
                    machine.buffer("pitches", pitches), maps, of_groups);
        CHECK(machine.get<float>(of_groups, 128) == made<float>(128, [&](int i) {
                  const auto g = std::size_t(i / 32);
                  float sum = 0;
                  for (int row = 0; row < counts[g]; ++row)
                      sum += x_of(4 * (11 * int(g) + 1) + row * pitches[g] + i % 32);
                  return sum;
              }));
    }
}
