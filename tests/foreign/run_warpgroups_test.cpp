// SPDX-License-Identifier: Apache-2.0
// Products by a warpgroup that nvcc compiles, on the emulator, compared with plain loops.
#include <cstdio>

#include "codegen/ir/type.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::made;

namespace {

std::vector<float> small_numbers(int count, int seed) {
    return made<float>(std::size_t(count), [&](int i) { return float((i * 37 + seed * 11 + i / 7) % 13 - 6); });
}
std::vector<std::uint16_t> brains(const std::vector<float>& values) {
    return made<std::uint16_t>(values.size(), [&](int i) { return bfloat16(values[std::size_t(i)]).bits; });
}

/// a[64][k] b, where b(l, j) is row l, column j
template <class B>
std::vector<float> product_64(const std::vector<float>& a, int k, B b) {
    return made<float>(4096, [&](int i) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += a[std::size_t(k * (i / 64) + l)] * b(l, i % 64);
        return sum;
    });
}

std::optional<std::string> warpgroups() {
    static const auto made = tests::nvcc_ptx(tests::foreign_source("warpgroups.cu"), "-arch=sm_90a -std=c++17");
    if (!made) std::puts("skipped: no nvcc");
    return made;
}

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("a pipeline of products by a warpgroup") {
    const auto ptx = warpgroups();
    if (!ptx) return;
    for (const int k : {64, 128, 320})
        for (const std::uint32_t seed : seeds) {
            tests::Machine machine;
            machine.options.seed = seed;
            machine.check_registers(seed % 2);
            const auto a = small_numbers(64 * k, 1), b = small_numbers(64 * k, 2);
            const auto at_a = machine.buffer("a", brains(a)), at_b = machine.buffer("b", brains(b)),
                       c = machine.empty<float>("c", 4096);
            machine.run(*ptx, {.entry = "pipelined", .block = {128, 1, 1}}, at_a, at_b, c, k);
            CHECK(machine.get<float>(c, 4096) ==
                  product_64(a, k, [&](int l, int j) { return b[std::size_t(k * j + l)]; }));
        }
}

TEST_CASE("a wait that is missing in a pipeline of products is found") {
    const auto ptx = warpgroups();
    if (!ptx) return;
    for (const std::uint32_t seed : seeds) {
        tests::Machine machine;
        machine.options.seed = seed;
        machine.check_registers(seed % 2);
        const auto a = machine.buffer("a", brains(small_numbers(64 * 320, 1))),
                   b = machine.buffer("b", brains(small_numbers(64 * 320, 2))), c = machine.empty<float>("c", 4096);
        CHECK_THAT(machine.failure(*ptx, {.entry = "unawaited", .block = {128, 1, 1}}, a, b, c, 320),
                   tests::contains("while a product was reading them") && tests::contains("wgmma.mma_async"));
        CHECK(machine.code == "product-source-changed");
    }
}

TEST_CASE("the sums of one product as the registers of another") {
    const auto ptx = warpgroups();
    if (!ptx) return;
    for (const std::uint32_t seed : seeds) {
        tests::Machine machine;
        machine.options.seed = seed;
        machine.check_registers(seed % 2);
        const auto q = small_numbers(8192, 1), k = small_numbers(4096, 2), v = small_numbers(4096, 3);
        const auto at_q = machine.buffer("q", brains(q)), at_k = machine.buffer("k", brains(k)),
                   at_v = machine.buffer("v", brains(v)), o = machine.empty<float>("o", 8192);
        machine.run(*ptx, {.entry = "chained", .block = {256, 1, 1}}, at_q, at_k, at_v, o);
        const auto out = machine.get<float>(o, 8192);
        for (int group = 0; group < 2; ++group) {
            const std::vector<float> own(q.begin() + 4096 * group, q.begin() + 4096 * (group + 1));
            auto p = product_64(own, 64, [&](int l, int j) { return k[std::size_t(64 * j + l)]; });
            for (float& each : p) each = each > 0;
            CHECK(std::vector<float>(out.begin() + 4096 * group, out.begin() + 4096 * (group + 1)) ==
                  product_64(p, 64, [&](int l, int j) { return v[std::size_t(64 * l + j)]; }));
        }
    }
}

TEST_CASE("a product with b by rows, and one of bytes") {
    const auto ptx = warpgroups();
    if (!ptx) return;
    tests::Machine machine;
    const auto a = small_numbers(4096, 1), b = small_numbers(4096, 2);
    const auto c = machine.empty<float>("c", 4096);
    machine.run(*ptx, {.entry = "by_rows", .block = {128, 1, 1}}, machine.buffer("a", brains(a)),
                machine.buffer("b", brains(b)), c);
    CHECK(machine.get<float>(c, 4096) == product_64(a, 64, [&](int l, int j) { return b[std::size_t(64 * l + j)]; }));

    const auto bytes = [](int seed) {  // 0.5, 1, 1.5, 2, 3, -1, -2 and 0
        constexpr std::uint8_t known[] = {0x30, 0x38, 0x3c, 0x40, 0x44, 0xb8, 0xc0, 0};
        return made<std::uint8_t>(8192, [&](int i) { return known[(i * 5 + i / 3 + seed) % 8]; });
    };
    const auto value = [](std::uint8_t bits) {
        constexpr float values[] = {0.5f, 1, 1.5f, 2, 3};
        const int i = bits == 0 ? -1 : (bits & 0x7f) == 0x30 ? 0 : ((bits & 0x7f) - 0x38) / 4 + 1;
        return i < 0 ? 0 : bits & 0x80 ? -values[i] : values[i];
    };
    const auto x = bytes(1), y = bytes(2);
    const auto old = small_numbers(4096, 3);
    const auto sums = machine.buffer("sums", old);
    machine.run(*ptx, {.entry = "bytes", .block = {128, 1, 1}}, machine.buffer("x", x), machine.buffer("y", y), sums);
    CHECK(machine.get<float>(sums, 4096) == made<float>(4096, [&](int i) {
              float sum = old[std::size_t(i)];
              for (int l = 0; l < 128; ++l)
                  sum -= value(x[std::size_t(128 * (i / 64) + l)]) * value(y[std::size_t(128 * (i % 64) + l)]);
              return sum;
          }));
}
