// SPDX-License-Identifier: Apache-2.0
// Runs one instruction (or a few) on chosen operands: each row of inputs is one lane.
#pragma once
#include <array>
#include <bit>

#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests {

using Row = std::array<std::uint64_t, 3>;

inline std::uint64_t F(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t D(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Runs `code` once per row. Operands are in %r1 to %r3 (low words), %d1 to %d3 and %h1 to %h3; the result is the final
/// value of the one of %r0, %d0, %h0, %p0 that it names. `lanes` of each warp execute the code, the others keep 0x5555
/// in the result.
inline std::vector<std::uint64_t> evaluate(const std::string& code, const std::vector<Row>& rows,
                                           std::uint32_t lanes = ~0u) {
    std::string text = R"(
    mov.u32 %r63, %tid.x; mov.u32 %r62, %ctaid.x; mad.lo.u32 %r63, %r62, 32, %r63;
    ld.param.u32 %r62, [n];
    setp.ge.u32 %p15, %r63, %r62;
    @%p15 bra $end;
    ld.param.u64 %d30, [p0];
    mad.wide.u32 %d30, %r63, 24, %d30;
    ld.global.b64 %d1, [%d30]; ld.global.b64 %d2, [%d30+8]; ld.global.b64 %d3, [%d30+16];
    cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3;
    cvt.u16.u64 %h1, %d1; cvt.u16.u64 %h2, %d2; cvt.u16.u64 %h3, %d3;
    setp.ne.u64 %p1, %d1, 0; setp.ne.u64 %p2, %d2, 0; setp.ne.u64 %p3, %d3, 0;
    mov.b64 %d0, 0x5555; mov.b32 %r0, 0x5555; mov.b16 %h0, 0x5555; mov.pred %p0, 0;
    ld.param.u64 %d31, [p1];
    mad.wide.u32 %d31, %r63, 8, %d31;
    ld.param.u64 %d29, [p2];
    cvt.u32.u64 %r61, %d29; mov.u32 %r60, %tid.x;
    shr.u32 %r61, %r61, %r60;
    and.b32 %r61, %r61, 1;
    setp.eq.u32 %p14, %r61, 0;
    @%p14 bra $skip;
)" + code + "\n$skip:\n";
    if (code.find("%r0") != code.npos) text += "    cvt.u64.u32 %d0, %r0;\n";
    if (code.find("%h0") != code.npos) text += "    cvt.u64.u16 %d0, %h0;\n";
    if (code.find("%p0") != code.npos) text += "    selp.b64 %d0, 1, 0, %p0;\n";
    text += "    st.global.b64 [%d31], %d0;\n$end:\n    ret;\n";
    Machine machine;
    std::vector<std::uint64_t> cells;
    for (const Row& row : rows) cells.insert(cells.end(), row.begin(), row.end());
    const auto in = machine.buffer("in", cells), out = machine.empty<std::uint64_t>("out", rows.size());
    const auto blocks = std::uint32_t((rows.size() + 31) / 32);
    machine.run(kernel(text), {.grid = {blocks, 1, 1}, .block = {32, 1, 1}}, in, out, std::uint64_t(lanes),
                std::uint32_t(rows.size()));
    return machine.get<std::uint64_t>(out, rows.size());
}

/// The same for one thread.
inline std::uint64_t one(const std::string& code, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
    return evaluate(code, {Row{a, b, c}}).front();
}

}  // namespace ikat::tests
