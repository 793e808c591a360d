// SPDX-License-Identifier: Apache-2.0
// Products of matrices and copies in flight that nvcc compiles, on the emulator, compared with plain loops.
#include <cstdio>

#include "codegen/ir/type.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::made;

namespace {

/// A matrix of small numbers, which every type has.
std::vector<float> numbers(int count, int seed) {
    return made<float>(std::size_t(count), [&](int i) { return float((i * 37 + seed * 11 + i / 7) % 13 - 6); });
}

template <class T>
std::vector<T> as(const std::vector<float>& values) {
    std::vector<T> out;
    for (const float value : values) {
        if constexpr (std::is_same_v<T, std::uint16_t>)
            out.push_back(half(value).bits);
        else
            out.push_back(T(value));
    }
    return out;
}
std::vector<std::uint16_t> as_brains(const std::vector<float>& values) {
    std::vector<std::uint16_t> out;
    for (const float value : values) out.push_back(bfloat16(value).bits);
    return out;
}

/// a[m][k] b[k][n]
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int k) {
    std::vector<float> c(std::size_t(m * n));
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int l = 0; l < k; ++l)
                c[std::size_t(n * i + j)] += a[std::size_t(k * i + l)] * b[std::size_t(n * l + j)];
    return c;
}

std::optional<std::string> text() {
    static const auto made = tests::nvcc_ptx(tests::foreign_source("matrices.cu"), "-arch=sm_80 -std=c++17");
    if (!made) std::puts("skipped: no nvcc");
    return made;
}

}  // namespace

TEST_CASE("products by wmma of CUDA's headers") {
    const auto ptx = text();
    if (!ptx) return;
    tests::Machine machine;
    const auto check = [&]<class T, class Sum>(const char* entry, int m, int n, const std::vector<T>& a,
                                               const std::vector<T>& b, const std::vector<float>& expected, Sum) {
        INFO(entry);
        const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b);
        const auto c = numbers(m * n, 7);
        const auto at_c = machine.buffer("c", as<Sum>(c));
        machine.run(*ptx, {.entry = entry, .block = {32, 1, 1}}, at_a, at_b, at_c);
        std::vector<float> doubled;
        for (int i = 0; i < m * n; ++i) doubled.push_back(2 * (expected[std::size_t(i)] + c[std::size_t(i)]));
        CHECK(machine.get<Sum>(at_c, std::size_t(m * n)) == as<Sum>(doubled));
    };
    const auto of = [&]<class T, class Sum>(const char* entry, int m, int n, int k, T, Sum sum) {
        const auto a = numbers(m * k, 1), b = numbers(k * n, 2);
        check(entry, m, n, as<T>(a), as<T>(b), product(a, b, m, n, k), sum);
    };
    of("wmma_half", 16, 16, 16, std::uint16_t{}, float{});
    of("wmma_half_wide", 8, 32, 16, std::uint16_t{}, float{});
    of("wmma_half_tall", 32, 8, 16, std::uint16_t{}, float{});
    of("wmma_tf32", 16, 16, 8, float{}, float{});
    of("wmma_double", 8, 8, 4, double{}, double{});
    of("wmma_bytes", 32, 8, 16, std::int8_t{}, int{});
    const auto a = numbers(256, 1), b = numbers(256, 2);
    check("wmma_brain", 16, 16, as_brains(a), as_brains(b), product(a, b, 16, 16, 16), float{});
    const auto turned = [](const std::vector<float>& x) {
        return made<float>(256, [&](int i) { return x[std::size_t(i % 16 * 16 + i / 16)]; });
    };
    check("wmma_by_columns", 16, 16, as<std::uint16_t>(turned(a)), as<std::uint16_t>(turned(b)),
          product(a, b, 16, 16, 16), std::uint16_t{});
}

TEST_CASE("a product whose tiles come by cp.async and ldmatrix") {
    const auto ptx = text();
    if (!ptx) return;
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u}) {
        tests::Machine machine;
        machine.options.seed = seed;
        constexpr int k = 80;
        const auto a = numbers(16 * k, 1), b = numbers(16 * k, 2);
        const auto at_a = machine.buffer("a", as_brains(a)), at_b = machine.buffer("b", as_brains(b));
        const auto c = machine.empty<float>("c", 256);
        machine.run(*ptx, {.entry = "tiled", .block = {32, 1, 1}}, at_a, at_b, c, k);
        CHECK(machine.get<float>(c, 256) == product(a, b, 16, 16, k));
    }
}

TEST_CASE("a pipeline of libcu++, which copies by cp.async") {
    const auto ptx = text();
    if (!ptx) return;
    CHECK(ptx->find("cp.async.cg.shared.global") != ptx->npos);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
        tests::Machine machine;
        machine.options.seed = seed;
        constexpr int tiles = 5;
        const auto value = [](int i) { return float(i); };
        const auto x = machine.buffer("x", made<float>(256 * tiles, value)), y = machine.empty<float>("y", 256 * tiles);
        machine.run(*ptx, {.entry = "reversed", .block = {64, 1, 1}}, x, y, tiles);
        CHECK(machine.get<float>(y, 256 * tiles) ==
              made<float>(256 * tiles, [](int i) { return float(i / 256 * 256 + (63 - i % 256 / 4) * 4 + i % 4); }));
    }
}
