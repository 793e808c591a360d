// SPDX-License-Identifier: Apache-2.0
// Opcodes on matrices that are distributed over the threads of a warp, or of four warps.
#pragma once
#include "codegen/ptx/table/forms/row.hpp"

namespace ikat::ptx::table::matrix {

inline constexpr Set sets[] = {
    {"intshape", "m8n8k16|m16n8k16|m16n8k32"},
    {"halfbyteshape", "m8n8k32|m16n8k32|m16n8k64"},
    {"doubleshape", "m8n8k4|m16n8k4|m16n8k8|m16n8k16"},
    {"half", "f16|f32"},
    {"byte", "u8|s8"},
    {"nibble", "u4|s4"},
    {"fp8", "e4m3|e5m2"},
    {"fp864", "e4m3|e5m2|e3m2|e2m3|e2m1"},
    {"sparse", "sp|sp::ordered_metadata"},
    {"wmmashape", "m16n16k16|m8n32k16|m32n8k16"},
    {"wmmaany", "m16n16k16|m8n32k16|m32n8k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128"},
    {"wmmatype", "f16|f32|f64|bf16|tf32|u8|s8|u4|s4|b1|s32"},
    // For integers, wgmma does not support every multiple of 8.
    {"wgmma8",
     "m64n8k32|m64n16k32|m64n24k32|m64n32k32|m64n48k32|m64n64k32|m64n80k32|m64n96k32|m64n112k32|m64n128k32|m64n144k32|"
     "m64n160k32|m64n176k32|m64n192k32|m64n208k32|m64n224k32|m64n240k32|m64n256k32"},
    {"wgmma1",
     "m64n8k256|m64n16k256|m64n24k256|m64n32k256|m64n48k256|m64n64k256|m64n80k256|m64n96k256|m64n112k256|m64n128k256|"
     "m64n144k256|m64n160k256|m64n176k256|m64n192k256|m64n208k256|m64n224k256|m64n240k256|m64n256k256"},
    {"wgmma8sp",
     "m64n8k64|m64n16k64|m64n24k64|m64n32k64|m64n48k64|m64n64k64|m64n80k64|m64n96k64|m64n112k64|m64n128k64|m64n144k64|"
     "m64n160k64|m64n176k64|m64n192k64|m64n208k64|m64n224k64|m64n240k64|m64n256k64"},
};

inline constexpr Set lists[] = {
    {"warp", "sync aligned"},
    {"mma", "sync aligned row col"},
    {"sp", "$sparse sync aligned row col"},
    {"wg", "mma_async sync aligned"},
    {"wgsp", "mma_async sp sync aligned"},
    {"moved", "$block? b8x16 b6x16_p32|b4x16_p64"},
};

using enum Feature;

// clang-format off
inline constexpr Row rows[] = {
    // Between registers and shared memory.
    {.stem = "ldmatrix", .modifiers = "@warp m8n8 x1|x2|x4:n trans? $block? b16", .operands = "V:b32 m", .feature = MatrixLoad},
    {.stem = "ldmatrix", .modifiers = "@warp m16n16:n x1|x2:n trans $block? b8", .operands = "V:b32 m", .feature = MatrixBytes},
    {.stem = "ldmatrix", .modifiers = "@warp m16n16:n x1|x2:n trans @moved", .operands = "V:b32 m", .feature = MatrixBytes},
    {.stem = "ldmatrix", .modifiers = "@warp m8n16 x1|x2|x4:n @moved", .operands = "V:b32 m", .feature = MatrixBytes},
    {.stem = "stmatrix", .modifiers = "@warp m8n8 x1|x2|x4:n trans? $block? b16", .operands = "m v:b32", .feature = MatrixStore},
    {.stem = "stmatrix", .modifiers = "@warp m16n8 x1|x2|x4:n trans $block? b8", .operands = "m v:b32", .feature = MatrixBytes},
    {.stem = "movmatrix", .modifiers = "@warp m8n8 trans b16", .operands = "d:b32 s:b32", .feature = MatrixMove},

    // Products by a warp.
    {.stem = "mma", .modifiers = "@mma m16n8k8:s $half:d f16:a f16:b $half:c", .operands = "V:d v:a v:b v:c", .feature = MmaTuring},
    {.stem = "mma", .modifiers = "@warp m8n8k4:s row|col row|col $half:d f16:a f16:b $half:c", .operands = "V:d v:a v:b v:c", .feature = MmaVolta},
    {.stem = "mma", .modifiers = "@mma m16n8k16:s $half:d f16:a f16:b $half:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m16n8k8|m16n8k16:s f32:d bf16:a bf16:b f32:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m16n8k4|m16n8k8:s f32:d tf32:a tf32:b f32:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m8n8k4:s f64:d f64:a f64:b f64:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma $doubleshape:s f64:d f64:a f64:b f64:c", .operands = "V:d v:a v:b v:c", .feature = MmaDouble},
    {.stem = "mma", .modifiers = "@mma m8n8k16:s satfinite? s32:d $byte:a $byte:b s32:c", .operands = "V:d v:a v:b v:c", .feature = MmaTuring},
    {.stem = "mma", .modifiers = "@mma $intshape:s satfinite? s32:d $byte:a $byte:b s32:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m8n8k32:s satfinite? s32:d $nibble:a $nibble:b s32:c", .operands = "V:d v:a v:b v:c", .feature = MmaTuring},
    {.stem = "mma", .modifiers = "@mma $halfbyteshape:s satfinite? s32:d $nibble:a $nibble:b s32:c", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m8n8k128:s s32:d b1:a b1:b s32:c xor popc", .operands = "V:d v:a v:b v:c", .feature = MmaBitsXor},
    {.stem = "mma", .modifiers = "@mma m16n8k128|m16n8k256:s s32:d b1:a b1:b s32:c xor popc", .operands = "V:d v:a v:b v:c", .feature = Mma},
    {.stem = "mma", .modifiers = "@mma m8n8k128|m16n8k128|m16n8k256:s s32:d b1:a b1:b s32:c and popc", .operands = "V:d v:a v:b v:c", .feature = MmaBits},
    {.stem = "mma", .modifiers = "@mma m16n8k32:s f32:d $fp8:a $fp8:b f32:c", .operands = "V:d v:a v:b v:c", .feature = MmaFp8},
    {.stem = "mma", .modifiers = "@mma m16n8k16|m16n8k32:s $half:d $fp8:a $fp8:b $half:c", .operands = "V:d v:a v:b v:c", .feature = MmaFp8Half},
    {.stem = "mma", .modifiers = "@mma m16n8k32:s kind::f8f6f4 $half:d $fp864:a $fp864:b $half:c", .operands = "V:d v:a v:b v:c", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@mma m16n8k32:s kind::mxf8f6f4 block_scale scale_vec::1X? f32:d $fp864:a $fp864:b f32:c ue8m0", .operands = "V:d v:a v:b v:c s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@mma m16n8k64:s kind::mxf4 block_scale scale_vec::2X? f32:d e2m1:A e2m1:B f32:c ue8m0", .operands = "V:d v:a v:b v:c s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@mma m16n8k64:s kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X f32:d e2m1:A e2m1:B f32:c ue8m0|ue4m3", .operands = "V:d v:a v:b v:c s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},

    // ... with a sparse: half of its elements, and metadata for which half.
    {.stem = "mma", .modifiers = "@sp m16n8k16|m16n8k32:s $half:d f16:a f16:b $half:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaSparse},
    {.stem = "mma", .modifiers = "@sp m16n8k16|m16n8k32:s f32:d bf16:a bf16:b f32:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaSparse},
    {.stem = "mma", .modifiers = "@sp m16n8k8|m16n8k16:s f32:d tf32:a tf32:b f32:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaSparse},
    {.stem = "mma", .modifiers = "@sp m16n8k32|m16n8k64:s satfinite? s32:d $byte:a $byte:b s32:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaSparse},
    {.stem = "mma", .modifiers = "@sp m16n8k64|m16n8k128:s satfinite? s32:d $nibble:a $nibble:b s32:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaSparse},
    {.stem = "mma", .modifiers = "@sp m16n8k64:s f32:d $fp8:a $fp8:b f32:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaFp8},
    {.stem = "mma", .modifiers = "@sp m16n8k64:s f16:d $fp8:a $fp8:b f16:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaFp8Half},
    {.stem = "mma", .modifiers = "@sp m16n8k64:s kind::f8f6f4 $half:d $fp864:a $fp864:b $half:c", .operands = "V:d v:half v:b v:c s:b32 i", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@sp m16n8k64:s kind::mxf8f6f4 block_scale scale_vec::1X? f32:d $fp864:a $fp864:b f32:c ue8m0", .operands = "V:d v:half v:b v:c s:b32 i s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@sp m16n8k128:s kind::mxf4 block_scale scale_vec::2X? f32:d e2m1:A e2m1:B f32:c ue8m0", .operands = "V:d v:half v:b v:c s:b32 i s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},
    {.stem = "mma", .modifiers = "@sp m16n8k128:s kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X f32:d e2m1:A e2m1:B f32:c ue8m0|ue4m3", .operands = "V:d v:half v:b v:c s:b32 i s:b32 v:b16*2 s:b32 v:b16*2", .feature = MmaScaled},

    // Products by a warp, the older instructions.
    {.stem = "wmma", .modifiers = "load a|b|c @warp row|col $wmmaany global|shared|shared::cta? $wmmatype", .operands = "V m s:u32?"},
    {.stem = "wmma", .modifiers = "store d @warp row|col $wmmaany global|shared|shared::cta? $wmmatype", .operands = "m v s:u32?"},
    {.stem = "wmma", .modifiers = "mma @warp row|col row|col $wmmashape $half $half satfinite?", .operands = "V v v v"},
    {.stem = "wmma", .modifiers = "mma @warp row|col row|col $wmmashape f32 bf16 bf16 f32", .operands = "V v v v", .feature = Mma},
    {.stem = "wmma", .modifiers = "mma @warp row|col row|col m16n16k8 f32 tf32 tf32 f32", .operands = "V v v v", .feature = Mma},
    {.stem = "wmma", .modifiers = "mma @warp row|col row|col $round? m8n8k4 f64 f64 f64 f64", .operands = "V v v v", .feature = Mma},
    {.stem = "wmma", .modifiers = "mma @warp row|col row|col $wmmashape s32 $byte $byte s32 satfinite?", .operands = "V v v v"},
    {.stem = "wmma", .modifiers = "mma @warp row col m8n8k32 s32 $nibble $nibble s32 satfinite?", .operands = "V v v v"},
    {.stem = "wmma", .modifiers = "mma xor popc @warp row col m8n8k128 s32 b1 b1 s32", .operands = "V v v v"},
    {.stem = "wmma", .modifiers = "mma and popc @warp row col m8n8k128 s32 b1 b1 s32", .operands = "V v v v", .feature = MmaBits},

    // Products by four warps. a is in registers or, like b, given by a descriptor; the remaining operands say whether d
    // is added, the signs of a and b, and whether they are transposed.
    {.stem = "wgmma", .modifiers = "fence sync aligned", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "commit_group sync aligned", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "wait_group sync aligned", .operands = "i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk16:s $half:d f16:a f16:b", .operands = "V:d r:b64 r:b64 p i i i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk16:s $half:d f16:a f16:b", .operands = "V:d v:a r:b64 p i i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk16:s f32:d bf16:a bf16:b", .operands = "V:d r:b64 r:b64 p i i i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk16:s f32:d bf16:a bf16:b", .operands = "V:d v:a r:b64 p i i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk8:s f32:d tf32:a tf32:b", .operands = "V:d f:a r:b64 p i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg m64nNk32:s $half:d $fp8:a $fp8:b", .operands = "V:d f:a r:b64 p i i", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg $wgmma8:s satfinite? s32:d s8:a s8:b", .operands = "V:d f:a r:b64 p", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg $wgmma8:s satfinite? s32:d u8:a u8:b", .operands = "V:d f:a r:b64 p", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wg $wgmma8:s satfinite? s32:d $byte:a $byte:b", .operands = "V:d f:a r:b64 p", .feature = WgmmaMixed},
    {.stem = "wgmma", .modifiers = "@wg $wgmma1:s s32:d b1:a b1:b and popc", .operands = "V:d f:a r:b64 p", .feature = Wgmma},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk32:s $half:d f16:a f16:b", .operands = "V:d r:b64 r:b64 s:b32 i p i i i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk32:s $half:d f16:a f16:b", .operands = "V:d v:half r:b64 s:b32 i p i i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk32:s f32:d bf16:a bf16:b", .operands = "V:d r:b64 r:b64 s:b32 i p i i i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk32:s f32:d bf16:a bf16:b", .operands = "V:d v:half r:b64 s:b32 i p i i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk16:s f32:d tf32:a tf32:b", .operands = "V:d f:half r:b64 s:b32 i p i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp m64nNk64:s $half:d $fp8:a $fp8:b", .operands = "V:d f:half r:b64 s:b32 i p i i", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp $wgmma8sp:s satfinite? s32:d s8:a s8:b", .operands = "V:d f:half r:b64 s:b32 i p", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp $wgmma8sp:s satfinite? s32:d u8:a u8:b", .operands = "V:d f:half r:b64 s:b32 i p", .feature = WgmmaSparse},
    {.stem = "wgmma", .modifiers = "@wgsp $wgmma8sp:s satfinite? s32:d $byte:a $byte:b", .operands = "V:d f:half r:b64 s:b32 i p", .feature = WgmmaMixed},
};
// clang-format on

}  // namespace ikat::ptx::table::matrix
