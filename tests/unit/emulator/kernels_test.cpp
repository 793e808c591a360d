// SPDX-License-Identifier: Apache-2.0
// Whole kernels, written by hand and run on the emulator end to end.
#include <cmath>
#include <numeric>

#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::Machine;

namespace {

const char* const saxpy = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    setp.ge.s32 %p1, %r4, %r5;
    @%p1 bra $end;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
$end:
    ret;
}
)";

}  // namespace

TEST_CASE("saxpy over whole and partial warps and blocks") {
    for (const std::uint32_t n : {0u, 1u, 31u, 32u, 33u, 255u, 256u, 1000u}) {
        Machine machine;
        std::vector<float> x(n), y(n), expected(n);
        for (std::uint32_t i = 0; i < n; ++i) x[i] = float(i), y[i] = float(n - i), expected[i] = 2.5f * x[i] + y[i];
        const auto dx = machine.buffer("x", x), dy = machine.buffer("y", y);
        machine.run(saxpy, {.grid = {n / 256 + 1, 1, 1}, .block = {256, 1, 1}}, 2.5f, dx, dy, n);
        CHECK(machine.get<float>(dy, n) == expected);
        CHECK(machine.statistics.global_bytes_read == 8 * n);
        CHECK(machine.statistics.global_bytes_written == 4 * n);
    }
}

TEST_CASE("bytes are counted for each lane, also of undefined memory") {
    const std::string copy =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry copy(.param .u64 x, .param .u64 y) {\n"
        "    .reg .u32 %r<3>; .reg .u64 %d<4>;\n"
        "    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];\n"
        "    mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
        "    ld.global.u32 %r2, [%d1]; st.global.u32 [%d2], %r2; ret;\n}\n";
    for (const bool registers : {false, true}) {
        Machine machine;
        machine.check_registers(registers);
        const auto x = machine.empty<float>("x", 40), y = machine.empty<float>("y", 40);
        machine.run(copy, {.block = {40, 1, 1}}, x, y);
        CHECK(machine.statistics.global_bytes_read == 160);
        CHECK(machine.statistics.global_bytes_written == 160);
    }
}

TEST_CASE("instructions are counted exactly") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<float>(40)), y = machine.buffer("y", std::vector<float>(40, 1.0f));
    machine.run(saxpy, {.grid = {1, 1, 1}, .block = {64, 1, 1}}, 0.0f, x, y, 40u);
    // Warp 0 runs all 18 instructions with 32 lanes. Warp 1: 7 with 32 lanes, then 10 with 8, and ret: once for the 24
    // lanes that jumped there and waited, merged with the 8 that came.
    CHECK(machine.statistics.warp_instructions == 18 + 18);
    CHECK(machine.statistics.lane_instructions == 18 * 32 + 7 * 32 + 10 * 8 + 32);
}
