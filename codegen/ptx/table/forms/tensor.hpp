// SPDX-License-Identifier: Apache-2.0
// tcgen05: tensor memory and matrix products in it. Its addresses have 32 bits.
#pragma once
#include "codegen/ptx/table/forms/row.hpp"

namespace ikat::ptx::table::tensor {

inline constexpr Set sets[] = {
    {"group", "cta_group::1|cta_group::2"},
    {"times", "x1|x2|x4|x8|x16|x32|x64|x128"},
    {"times2", "x1|x2|x4|x8|x16|x32|x64"},
    {"times4", "x1|x2|x4|x8|x16|x32"},
    {"plainkind", "kind::f16|kind::tf32|kind::f8f6f4|kind::i8"},
    {"bufferuse", "collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard"},
    {"bufferend", "collector::a::lastuse|collector::a::discard"},
    {"bufferb",
     "collector::b0::fill|collector::b0::use|collector::b0::lastuse|collector::b0::discard|collector::b1::fill|"
     "collector::b1::use|collector::b1::lastuse|collector::b1::discard|collector::b2::fill|collector::b2::use|"
     "collector::b2::lastuse|collector::b2::discard|collector::b3::fill|collector::b3::use|collector::b3::lastuse|"
     "collector::b3::discard"},
};

inline constexpr Set lists[] = {
    {"plain", "$group $plainkind $bufferuse?"},
    {"plain1", "cta_group::1 $plainkind $bufferuse?"},
    {"plain2", "cta_group::2 $plainkind $bufferuse?"},
    {"shifted", "$group $plainkind ashift $bufferend?"},
    {"scaled8", "$group kind::mxf8f6f4 block_scale scale_vec::1X $bufferuse?"},
    {"scaled4", "$group kind::mxf4 block_scale scale_vec::2X $bufferuse?"},
    {"scalednv", "$group kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X $bufferuse?"},
    {"blocks", "$group kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 block_scale block16|block32? $bufferuse?"},
    {"ws", "ws cta_group::1 $plainkind $bufferb?"},
};

using enum Feature;

// clang-format off
inline constexpr Row rows[] = {
    // Allocation of columns of tensor memory, and fences.
    {.stem = "tcgen05", .modifiers = "alloc $group sync aligned shared::cta? b32", .operands = "m s:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "dealloc $group sync aligned b32", .operands = "s:b32 s:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "relinquish_alloc_permit $group sync aligned", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "wait::ld|wait::st sync aligned", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "fence::before_thread_sync|fence::after_thread_sync", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "commit $group mbarrier::arrive::one shared::cluster? multicast::cluster? b64", .operands = "m s:b16@multicast::cluster", .feature = Tcgen05},

    // Copies between tensor memory and registers, shared memory and itself.
    {.stem = "tcgen05", .modifiers = "ld sync aligned 16x64b|32x32b:n $times:n pack::16b? b32", .operands = "V:b32 y", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "ld sync aligned 16x128b:n $times2:n pack::16b? b32", .operands = "V:b32 y", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "ld sync aligned 16x256b:n $times4:n pack::16b? b32", .operands = "V:b32 y", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "ld sync aligned 16x32bx2 $times:n pack::16b? b32", .operands = "V:b32 y i", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "st sync aligned 16x64b|32x32b:n $times:n unpack::16b? b32", .operands = "y v:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "st sync aligned 16x128b:n $times2:n unpack::16b? b32", .operands = "y v:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "st sync aligned 16x256b:n $times4:n unpack::16b? b32", .operands = "y v:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "st sync aligned 16x32bx2 $times:n unpack::16b? b32", .operands = "y i v:b32", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 128x256b|4x256b|128x128b", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 64x128b warpx2::02_13|warpx2::01_23", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 32x128b warpx4", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 128x256b|4x256b|128x128b b8x16 b6x16_p32|b4x16_p64", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 64x128b warpx2::02_13|warpx2::01_23 b8x16 b6x16_p32|b4x16_p64", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "cp $group 32x128b warpx4 b8x16 b6x16_p32|b4x16_p64", .operands = "y r:b64", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "shift $group down", .operands = "y", .feature = Tcgen05},

    // Products [d] = a * b + [d]. After b and the operands for the types, a mask of disabled lanes may follow.
    {.stem = "tcgen05", .modifiers = "mma @plain", .operands = "y g:b64 r:b64 r:b32 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @plain1", .operands = "y g:b64 r:b64 r:b32 v:b32*4 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @plain2", .operands = "y g:b64 r:b64 r:b32 v:b32*8 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @shifted", .operands = "y y r:b64 r:b32 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @scaled8", .operands = "y g:b64 r:b64 r:b32 y y p", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @scaled4", .operands = "y g:b64 r:b64 r:b32 y y p", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma @scalednv", .operands = "y g:b64 r:b64 r:b32 y y p", .feature = Tcgen05Fp4},
    {.stem = "tcgen05", .modifiers = "mma @blocks", .operands = "y g:b64 r:b64 r:b32 y y p", .feature = Tcgen05Block},
    {.stem = "tcgen05", .modifiers = "mma @ws", .operands = "y g:b64 r:b64 r:b32 p r:b64?", .feature = Tcgen05},

    // ... with a sparse a, whose metadata is in tensor memory.
    {.stem = "tcgen05", .modifiers = "mma sp @plain", .operands = "y g:b64 r:b64 y r:b32 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @plain1", .operands = "y g:b64 r:b64 y r:b32 v:b32*4 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @plain2", .operands = "y g:b64 r:b64 y r:b32 v:b32*8 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @shifted", .operands = "y y r:b64 y r:b32 p i?", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @scaled8", .operands = "y g:b64 r:b64 y r:b32 y y p", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @scaled4", .operands = "y g:b64 r:b64 y r:b32 y y p", .feature = Tcgen05},
    {.stem = "tcgen05", .modifiers = "mma sp @scalednv", .operands = "y g:b64 r:b64 y r:b32 y y p", .feature = Tcgen05Fp4},
    {.stem = "tcgen05", .modifiers = "mma sp @blocks", .operands = "y g:b64 r:b64 y r:b32 y y p", .feature = Tcgen05Block},
    {.stem = "tcgen05", .modifiers = "mma sp @ws", .operands = "y g:b64 r:b64 y r:b32 p r:b64?", .feature = Tcgen05},
};
// clang-format on

}  // namespace ikat::ptx::table::tensor
