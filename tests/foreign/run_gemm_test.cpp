// SPDX-License-Identifier: Apache-2.0
// A product of matrices with warps in different roles, as nvcc compiles it for sm_90a, on the emulator with many orders
// of warps and arrivals.
#include <cstdio>

#include "codegen/ir/type.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::made;

namespace {

constexpr int m = 256, n = 256, k = 320;
constexpr std::uint32_t stage_bytes = 32768, dynamic_bytes = 3 * stage_bytes + 6 * 8;

std::optional<std::string> gemm() {
    static const auto made = tests::nvcc_ptx(tests::foreign_source("gemm.cu"), "-arch=sm_90a -std=c++17");
    if (!made) std::puts("skipped: no nvcc");
    return made;
}

std::vector<std::uint16_t> factors(int count, int seed) {
    return made<std::uint16_t>(std::size_t(count),
                               [&](int i) { return bfloat16(float((i * 37 + seed * 11 + i / 7) % 13 - 6)).bits; });
}

/// A matrix of k columns, in boxes of 128 rows of 64.
std::array<std::byte, emulator::tensor_map_bytes> map_of(std::uint64_t address, int rows) {
    return encode(emulator::TensorMap{.type = emulator::MapType::Bf16,
                                      .rank = 2,
                                      .address = address,
                                      .extents = {std::uint64_t(k), std::uint64_t(rows)},
                                      .strides = {2 * std::uint64_t(k)},
                                      .box = {64, 128},
                                      .element_strides = {1, 1},
                                      .swizzle = emulator::MapSwizzle::B128});
}

/// The code of what is found with a seed; without a finding the result is right.
std::string outcome(const std::string& ptx, const std::string& entry, std::uint32_t seed) {
    tests::Machine machine;
    machine.options.seed = seed;
    machine.check_registers(seed % 4 == 3);
    const auto a = factors(m * k, 1), b = factors(n * k, 2);
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), c = machine.empty<float>("c", m * n);
    const std::string said = machine.failure(
        ptx, {.entry = entry, .grid = {3, 1, 1}, .block = {384, 1, 1}, .dynamic_shared_bytes = dynamic_bytes},
        map_of(at_a, m), map_of(at_b, n), at_a, at_b, c, m, n, k);
    if (said != "no failure") return machine.code;
    const auto number = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); };
    static const auto expected = made<float>(m * n, [&](int i) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
            sum += number(a[std::size_t(k * (i / n) + l)]) * number(b[std::size_t(k * (i % n) + l)]);
        return sum;
    });
    CHECK(machine.get<float>(c, m * n) == expected);
    return "";
}

void check_gemm(const std::string& entry) {
    const auto ptx = gemm();
    if (!ptx) return;
    for (std::uint32_t seed = 0; seed < 16; ++seed) CHECK(outcome(*ptx, entry, seed) == "");
    int found = 0;
    for (std::uint32_t seed = 0; seed < 16; ++seed) {
        const std::string code = outcome(*ptx, entry + "_released_early", seed);
        // or a warp is two phases late
        CHECK((code.empty() || code == "product-source-changed" || code == "deadlock"));
        found += !code.empty();
    }
    CHECK(found > 8);
}

}  // namespace

TEST_CASE("a product of matrices whose tiles threads copy into a ring") { check_gemm("gemm_of_threads"); }

TEST_CASE("a product of matrices whose tiles are copied in bulk as boxes") { check_gemm("gemm_of_boxes"); }
