// SPDX-License-Identifier: Apache-2.0
// What the linkers take in place of a library. Those are machine code; the one that programs name is the runtime of
// CUDA's device side, libcudadevrt.a. Here are its functions of cooperative groups, for a group of all blocks: they
// meet in the workspace of a cooperative launch, as CUDA's headers let them. Kernels that launch kernels find nothing.
#pragma once
#include <string_view>

namespace ikat::cuda_driver {

inline bool is_library(std::string_view data) { return data.starts_with("!<arch>\n"); }

/// The first block adds what flips the highest bit when each of the others has added 1.
inline constexpr std::string_view device_runtime = R"(.version 7.0
.target sm_70
.address_size 64

.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .pred %grid;
    .reg .b32 %r<3>;
    .reg .b64 %workspace;
    mov.u32 %r0, %envreg1;
    mov.u32 %r1, %envreg2;
    mov.b64 %workspace, {%r1, %r0};
    ld.param.b32 %r2, [scope];
    setp.eq.u32 %grid, %r2, 1;
    selp.b64 %workspace, %workspace, 0, %grid;
    st.param.b64 [handle], %workspace;
    ret;
}

.weak .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p<3>;
    .reg .b32 %blocks, %own, %x, %y, %z, %before, %now;
    .reg .b64 %workspace;
    ld.param.b64 %workspace, [handle];
    barrier.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %p0, %x, 0;
    @%p0 bra MET;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %blocks, %blocks, %y;
    mul.lo.u32 %blocks, %blocks, %z;
    sub.u32 %own, 0x80000001, %blocks;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.eq.u32 %p1, %x, 0;
    selp.b32 %own, %own, 1, %p1;
    fence.acq_rel.gpu;
    atom.global.add.u32 %before, [%workspace+4], %own;
WAIT:
    ld.acquire.gpu.global.u32 %now, [%workspace+4];
    xor.b32 %now, %now, %before;
    setp.ge.s32 %p2, %now, 0;
    @%p2 bra WAIT;
MET:
    barrier.sync 0;
    st.param.b32 [error], 0;
    ret;
}
)";

}  // namespace ikat::cuda_driver
