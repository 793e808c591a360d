// SPDX-License-Identifier: Apache-2.0
// Kernels around products of matrices by a warpgroup (wgmma), for their tests.
#pragma once
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/tensor/elements.hpp"

namespace ikat::tests::warpgroups {

/// "{%r40, %r41}"
inline std::string registers(const char* prefix, int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + (prefix + std::to_string(first + i));
    return text + "}";
}

/// A kernel of several warps: %r1 is the thread, %r2 the address of `tile` in shared memory, which begins at a multiple
/// of 1024 and has been written (it is dynamic: the launch gives its size, too), %d1 and %d2 are p0 and p1 plus 4 times
/// the thread. %f0 ... and %r100 ... are free.
inline std::string group_kernel(int tile_bytes, const std::string& body, const std::string& scope = "") {
    return R"(.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)
{
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<400>; .reg .b64 %d<32>; .reg .f32 %f<200>;
    .shared .align 4 .b8 before[12]; st.shared.b32 [before], %r0;
)" + scope +
           R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2];
    mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2;
    mov.u32 %r3, %ntid.x; shl.b32 %r3, %r3, 2; cvt.u64.u32 %d4, %r3;
    mad.wide.u32 %d3, %r1, 4, %d3; shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; add.u32 %r6, %r2, )" +
           std::to_string(tile_bytes) + R"(;
fill:
    setp.ge.u32 %p1, %r5, %r6; @%p1 bra filled;
    ld.global.b32 %r7, [%d3]; st.shared.b32 [%r5], %r7; add.u64 %d3, %d3, %d4; add.u32 %r5, %r5, %r3;
    bra fill;
filled:
    fence.proxy.async.shared::cta; bar.sync 0;
)" + body + R"(
$end:
    ret;
}
)";
}

/// The fields of a descriptor except its start, in bytes.
inline std::uint64_t descriptor(int swizzle_bytes, int leading, int stride) {
    const std::uint64_t mode = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 3 : 0;
    return mode << 62 | std::uint64_t(leading / 16) << 16 | std::uint64_t(stride / 16) << 32;
}
/// %dI = the descriptor with a start inside `tile`.
inline std::string make_descriptor(int i, std::uint64_t fields, int start) {
    const std::string d = "%d" + std::to_string(i);
    return "    add.u32 %r8, %r2, " + std::to_string(start) +
           "; and.b32 %r8, %r8, 0x3ffff; shr.u32 %r8, %r8, 4; cvt.u64.u32 " + d + ", %r8; or.b64 " + d + ", " + d +
           ", " + std::to_string(std::int64_t(fields)) + ";\n";
}

inline const std::string fence = "wgmma.fence.sync.aligned;\n", commit = "wgmma.commit_group.sync.aligned;\n",
                         wait = "wgmma.wait_group.sync.aligned 0;\n";

}  // namespace ikat::tests::warpgroups
