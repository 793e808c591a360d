// SPDX-License-Identifier: Apache-2.0
// Asynchronous opcodes: background copies, barriers in shared memory that track them, clusters of blocks, multimem.
#pragma once
#include "codegen/ptx/table/forms/row.hpp"

namespace ikat::ptx::table::async {

inline constexpr Set sets[] = {
    {"near", "cta|cluster"},
    {"done", "mbarrier::complete_tx::bytes"},
    {"dimension", "1d|2d|3d|4d|5d"},
    {"images", "3d|4d|5d"},
    {"reduction", "add|min|max|inc|dec|and|or|xor"},
    {"kept", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"},
    {"asyncvalue", "b32|b64|u32|u64|s32|s64|f32|f64"},
};

inline constexpr Set lists[] = {
    {"arrival", "release $near"},
    {"late_arrival", "relaxed $near"},
    {"test", "acquire $near"},
    {"late_test", "relaxed $near"},
    {"remote", "shared|shared::cta|shared::cluster? b64"},
    {"bulk", "async bulk"},
    {"to_shared", "async bulk tensor shared::cta|shared::cluster global $done"},
    {"to_cta", "async bulk tensor shared::cta global $done"},
    {"options", "multicast::cluster? cta_group::1|cta_group::2? L2::cache_hint?"},
    {"from_shared", "tensor global shared::cta bulk_group L2::cache_hint?"},
    {"replace", "replace tile global|shared::cta? b1024"},
    {"many", "relaxed|acquire? $scope? global?"},
};

using enum Feature;

// clang-format off
inline constexpr Row rows[] = {
    // Barriers in shared memory. An operation on another block's barrier returns no state.
    {.stem = "mbarrier", .modifiers = "init $block? b64", .operands = "m s:b32", .feature = Barrier64},
    {.stem = "mbarrier", .modifiers = "inval $block? b64", .operands = "m", .feature = Barrier64},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @remote", .operands = "o:b64 m", .feature = Barrier64},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @remote", .operands = "o:b64 m s:b32", .feature = Clusters},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @arrival @remote", .operands = "o:b64 m", .feature = BarrierScope},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @late_arrival @remote", .operands = "o:b64 m", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @arrival @remote", .operands = "o:b64 m s:b32", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop @late_arrival @remote", .operands = "o:b64 m s:b32", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop expect_tx @remote", .operands = "o:b64 m s:b32", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop expect_tx @arrival @remote", .operands = "o:b64 m s:b32", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop expect_tx @late_arrival @remote", .operands = "o:b64 m s:b32", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop noComplete $block? b64", .operands = "o:b64 m s:b32", .feature = Barrier64},
    {.stem = "mbarrier", .modifiers = "arrive|arrive_drop noComplete release cta $block? b64", .operands = "o:b64 m s:b32", .feature = BarrierScope},
    {.stem = "mbarrier", .modifiers = "expect_tx|complete_tx @remote", .operands = "m s:b32", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "expect_tx|complete_tx relaxed $near @remote", .operands = "m s:b32", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "test_wait $block? b64", .operands = "q m s:b64", .feature = Barrier64},
    {.stem = "mbarrier", .modifiers = "test_wait @test $block? b64", .operands = "q m s:b64", .feature = BarrierScope},
    {.stem = "mbarrier", .modifiers = "test_wait @late_test $block? b64", .operands = "q m s:b64", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "test_wait parity $block? b64", .operands = "q m s:b32", .feature = BarrierParity},
    {.stem = "mbarrier", .modifiers = "test_wait parity @test $block? b64", .operands = "q m s:b32", .feature = BarrierScope},
    {.stem = "mbarrier", .modifiers = "test_wait parity @late_test $block? b64", .operands = "q m s:b32", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "try_wait $block? b64", .operands = "q m s:b64 s:b32?", .feature = Clusters},
    {.stem = "mbarrier", .modifiers = "try_wait @test $block? b64", .operands = "q m s:b64 s:b32?", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "try_wait @late_test $block? b64", .operands = "q m s:b64 s:b32?", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "try_wait parity $block? b64", .operands = "q m s:b32 s:b32?", .feature = Clusters},
    {.stem = "mbarrier", .modifiers = "try_wait parity @test $block? b64", .operands = "q m s:b32 s:b32?", .feature = BarrierTransactions},
    {.stem = "mbarrier", .modifiers = "try_wait parity @late_test $block? b64", .operands = "q m s:b32 s:b32?", .feature = BarrierRelaxed},
    {.stem = "mbarrier", .modifiers = "pending_count b64", .operands = "d:b32 s:b64", .feature = Barrier64},

    // Copies of a few bytes by each thread.
    {.stem = "cp", .modifiers = "async ca|cg $block global L2::cache_hint? $prefetch?", .operands = "m m i s? r:b64@L2::cache_hint", .feature = AsyncCopy},
    {.stem = "cp", .modifiers = "async commit_group", .feature = AsyncCopy},
    {.stem = "cp", .modifiers = "async wait_group", .operands = "i", .feature = AsyncCopy},
    {.stem = "cp", .modifiers = "async wait_all", .feature = AsyncCopy},
    {.stem = "cp", .modifiers = "async mbarrier arrive noinc? $block? b64", .operands = "m", .feature = AsyncCopy},

    // Copies of many bytes.
    {.stem = "cp", .modifiers = "@bulk shared::cluster global $done multicast::cluster? L2::cache_hint?", .operands = "m m s:b32 m s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk shared::cta global $done L2::cache_hint?", .operands = "m m s:b32 m r:b64@L2::cache_hint", .feature = BulkCopyToCta},
    {.stem = "cp", .modifiers = "@bulk shared::cluster shared::cta $done", .operands = "m m s:b32 m", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk global shared::cta bulk_group L2::cache_hint?", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk global shared::cta bulk_group cp_mask L2::cache_hint?", .operands = "m m s:b32 r:b64@L2::cache_hint s:b16", .feature = BulkCopyMask},
    {.stem = "cp", .modifiers = "@bulk prefetch L2 global L2::cache_hint?", .operands = "m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk commit_group", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk wait_group read?", .operands = "i", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk shared::cluster shared::cta $done add u32|s32|u64", .operands = "m m s:b32 m", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk shared::cluster shared::cta $done min|max u32|s32", .operands = "m m s:b32 m", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk shared::cluster shared::cta $done inc|dec u32", .operands = "m m s:b32 m", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk shared::cluster shared::cta $done and|or|xor b32", .operands = "m m s:b32 m", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? add u32|s32|u64", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? min|max u32|s32|u64|s64", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? inc|dec u32", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? and|or|xor b32|b64", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? add f32|f64", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? add noftz f16|bf16", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk global shared::cta bulk_group L2::cache_hint? min|max f16|bf16", .operands = "m m s:b32 r:b64@L2::cache_hint", .feature = BulkCopy},

    // Copies of tensors: a tile, gathered rows, or im2col with offsets.
    {.stem = "cp", .modifiers = "@to_cta $dimension:g tile? @options", .operands = "m T m s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopyToCta},
    {.stem = "cp", .modifiers = "@to_shared $dimension:g tile? @options", .operands = "m T m s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@to_shared 2d:g tile::gather4 @options", .operands = "m T*5 m s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = TensorGather},
    {.stem = "cp", .modifiers = "@to_cta 3d:g im2col @options", .operands = "m T m v:b16*1 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopyToCta},
    {.stem = "cp", .modifiers = "@to_shared 3d:g im2col @options", .operands = "m T m v:b16*1 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@to_cta 4d:g im2col @options", .operands = "m T m v:b16*2 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopyToCta},
    {.stem = "cp", .modifiers = "@to_shared 4d:g im2col @options", .operands = "m T m v:b16*2 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@to_cta 5d:g im2col @options", .operands = "m T m v:b16*3 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopyToCta},
    {.stem = "cp", .modifiers = "@to_shared 5d:g im2col @options", .operands = "m T m v:b16*3 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@to_shared $images:g im2col::w|im2col::w::128 @options", .operands = "m T m v:b16*2 s:b16@multicast::cluster r:b64@L2::cache_hint", .feature = TensorGather},
    {.stem = "cp", .modifiers = "@bulk @from_shared $dimension:g tile?", .operands = "T m r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk @from_shared 2d:g tile::scatter4", .operands = "T*5 m r:b64@L2::cache_hint", .feature = TensorScatter},
    {.stem = "cp", .modifiers = "@bulk @from_shared $images:g im2col_no_offs", .operands = "T m r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk @from_shared $dimension:g tile? $reduction", .operands = "T m r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "reduce @bulk @from_shared $images:g im2col_no_offs $reduction", .operands = "T m r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global $dimension:g tile? L2::cache_hint?", .operands = "T r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global 2d:g tile::gather4 L2::cache_hint?", .operands = "T*5 r:b64@L2::cache_hint", .feature = TensorGather},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global 3d:g im2col L2::cache_hint?", .operands = "T v:b16*1 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global 4d:g im2col L2::cache_hint?", .operands = "T v:b16*2 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global 5d:g im2col L2::cache_hint?", .operands = "T v:b16*3 r:b64@L2::cache_hint", .feature = BulkCopy},
    {.stem = "cp", .modifiers = "@bulk prefetch tensor L2 global $images:g im2col::w|im2col::w::128 L2::cache_hint?", .operands = "T v:b16*2 r:b64@L2::cache_hint", .feature = TensorGather},

    // Fields of a tensor map in memory, and the fence for the proxy that reads it.
    {.stem = "tensormap", .modifiers = "@replace global_address b64:t", .operands = "m s:t", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "@replace rank b32:t", .operands = "m s:t", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "@replace box_dim|element_stride b32:t", .operands = "m i s:t", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "@replace global_dim b32|b64:t", .operands = "m i s:t", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "@replace global_stride b64:t", .operands = "m i s:t", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "@replace elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode b32", .operands = "m i", .feature = TensorMapReplace},
    {.stem = "tensormap", .modifiers = "cp_fenceproxy global shared::cta tensormap::generic release $scope sync aligned", .operands = "m m i", .feature = TensorMapFence},

    // Stores and reductions that complete later.
    {.stem = "st", .modifiers = "async weak? shared::cluster? $done v2|v4?:n $asyncvalue:t", .operands = "m S:t m?", .feature = AsyncStore},
    {.stem = "st", .modifiers = "async mmio? release gpu|sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64:t", .operands = "m s:t", .feature = AsyncRelease},
    {.stem = "st", .modifiers = "bulk weak? shared::cta?", .operands = "m s:b64 i", .feature = BulkStore},
    {.stem = "red", .modifiers = "async relaxed cluster shared::cluster? $done inc|dec u32:t", .operands = "m s:t m?", .feature = AsyncStore},
    {.stem = "red", .modifiers = "async relaxed cluster shared::cluster? $done min|max u32|s32:t", .operands = "m s:t m?", .feature = AsyncStore},
    {.stem = "red", .modifiers = "async relaxed cluster shared::cluster? $done and|or|xor b32:t", .operands = "m s:t m?", .feature = AsyncStore},
    {.stem = "red", .modifiers = "async relaxed cluster shared::cluster? $done add u32|s32|u64:t", .operands = "m s:t m?", .feature = AsyncStore},
    {.stem = "red", .modifiers = "async mmio? release gpu|sys global? add u32|s32|u64:t", .operands = "m s:t", .feature = AsyncRelease},

    // The same address in the memories of several devices.
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add|min|max u32|s32|u64|s64:t", .operands = "d:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? and|or|xor b32|b64:t", .operands = "d:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add v2|v4?:n f32:t", .operands = "D:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add f64:t", .operands = "d:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add|min|max acc::f32? v2|v4|v8?:n f16|bf16:t", .operands = "D:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add|min|max acc::f32? v2|v4?:n f16x2|bf16x2:t", .operands = "D:t m", .feature = Multimem},
    {.stem = "multimem", .modifiers = "ld_reduce @many weak? add|min|max acc::f16? v2|v4|v8?:n e4m3|e5m2|e4m3x2|e5m2x2|e4m3x4|e5m2x4:t", .operands = "D:t m", .feature = MultimemFp8},
    {.stem = "multimem", .modifiers = "st weak|relaxed|release? $scope? global? u32|s32|b32|u64|s64|b64|f64:t", .operands = "m s:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "st weak|relaxed|release? $scope? global? v2|v4|v8?:n f32|f16|bf16|f16x2|bf16x2:t", .operands = "m S:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "st weak|relaxed|release? $scope? global? v2|v4|v8?:n e4m3|e5m2|e4m3x2|e5m2x2|e4m3x4|e5m2x4:t", .operands = "m S:t", .feature = MultimemFp8},
    {.stem = "multimem", .modifiers = "red relaxed|release? $scope? global? add|min|max u32|s32|u64|s64:t", .operands = "m s:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "red relaxed|release? $scope? global? and|or|xor b32|b64:t", .operands = "m s:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "red relaxed|release? $scope? global? add v2|v4?:n f32:t", .operands = "m S:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "red relaxed|release? $scope? global? add f64:t", .operands = "m s:t", .feature = Multimem},
    {.stem = "multimem", .modifiers = "red relaxed|release? $scope? global? add|min|max v2|v4|v8?:n f16|bf16|f16x2|bf16x2:t", .operands = "m S:t", .feature = Multimem},

    // Policies of the cache.
    {.stem = "createpolicy", .modifiers = "fractional $kept L2::evict_first|L2::evict_unchanged? b64", .operands = "d:b64 s:f32?", .feature = CachePolicy},
    {.stem = "createpolicy", .modifiers = "range global? $kept L2::evict_first|L2::evict_unchanged? b64", .operands = "d:b64 m s:b32 s:b32", .feature = CachePolicy},
    {.stem = "createpolicy", .modifiers = "cvt L2 b64", .operands = "d:b64 s:b64", .feature = CachePolicy},
    {.stem = "discard", .modifiers = "global? L2", .operands = "m i", .feature = CachePolicy},
    {.stem = "applypriority", .modifiers = "global? L2::evict_normal", .operands = "m i", .feature = CachePolicy},

    // Blocks of a cluster and of a grid.
    {.stem = "mapa", .modifiers = "shared::cluster? u32|u64:t", .operands = "d:t A:t s:u32", .feature = Clusters},
    {.stem = "getctarank", .modifiers = "shared::cluster? u32|u64:t", .operands = "d:u32 A:t", .feature = Clusters},
    {.stem = "griddepcontrol", .modifiers = "launch_dependents|wait", .feature = DependentLaunch},
    {.stem = "clusterlaunchcontrol", .modifiers = "try_cancel async shared::cta? $done b128", .operands = "m m", .feature = LaunchControl},
    {.stem = "clusterlaunchcontrol", .modifiers = "try_cancel async shared::cta? $done multicast::cluster::all b128", .operands = "m m", .feature = LaunchControlAll},
    {.stem = "clusterlaunchcontrol", .modifiers = "query_cancel is_canceled pred b128:u", .operands = "q s:u", .feature = LaunchControl},
    {.stem = "clusterlaunchcontrol", .modifiers = "query_cancel get_first_ctaid v4:n b32:t b128:u", .operands = "V:t s:u", .feature = LaunchControl},
    {.stem = "clusterlaunchcontrol", .modifiers = "query_cancel get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z b32:t b128:u", .operands = "d:t s:u", .feature = LaunchControl},
    {.stem = "setmaxnreg", .modifiers = "inc|dec sync aligned u32", .operands = "i", .feature = SetMaxRegisters},
};
// clang-format on

}  // namespace ikat::ptx::table::async
