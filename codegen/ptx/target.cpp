// SPDX-License-Identifier: Apache-2.0
// Sources: the CUDA programming guide's table of compute capabilities for the limits; the release notes of the PTX ISA
// for the versions, each feature's pair then tried with ptxas 13.0.
#include "codegen/ptx/target.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {
namespace {

constexpr std::uint32_t kib = 1024;

constexpr Target target_table[] = {
    {.name = "sm_75",
     .number = 75,
     .specific = false,
     .version = {6, 3},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 64 * kib,
     .shared_per_multiprocessor = 64 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 32,
     .blocks_per_multiprocessor = 16},
    {.name = "sm_80",
     .number = 80,
     .specific = false,
     .version = {7, 0},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 163 * kib,
     .shared_per_multiprocessor = 164 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 64,
     .blocks_per_multiprocessor = 32},
    {.name = "sm_86",
     .number = 86,
     .specific = false,
     .version = {7, 1},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 99 * kib,
     .shared_per_multiprocessor = 100 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 48,
     .blocks_per_multiprocessor = 16},
    {.name = "sm_89",
     .number = 89,
     .specific = false,
     .version = {7, 8},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 99 * kib,
     .shared_per_multiprocessor = 100 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 48,
     .blocks_per_multiprocessor = 24},
    {.name = "sm_90",
     .number = 90,
     .specific = false,
     .version = {7, 8},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 227 * kib,
     .shared_per_multiprocessor = 228 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 64,
     .blocks_per_multiprocessor = 32},
    {.name = "sm_90a",
     .number = 90,
     .specific = true,
     .version = {8, 0},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 227 * kib,
     .shared_per_multiprocessor = 228 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 64,
     .blocks_per_multiprocessor = 32},
    {.name = "sm_100",
     .number = 100,
     .specific = false,
     .version = {8, 6},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 227 * kib,
     .shared_per_multiprocessor = 228 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 64,
     .blocks_per_multiprocessor = 32},
    {.name = "sm_120",
     .number = 120,
     .specific = false,
     .version = {8, 7},
     .registers = 65536,
     .registers_per_thread = 255,
     .shared_static = 48 * kib,
     .shared_opt_in = 99 * kib,
     .shared_per_multiprocessor = 100 * kib,
     .threads_per_block = 1024,
     .warps_per_multiprocessor = 48,
     .blocks_per_multiprocessor = 24},
};

constexpr FeatureInfo feature_table[] = {
    {.feature = Feature::None, .name = "nothing"},
    {.feature = Feature::MatrixLoad, .name = "ldmatrix", .version = {6, 5}},
    {.feature = Feature::HalfAbsolute, .name = "abs of f16", .version = {6, 5}},
    {.feature = Feature::HalfMath, .name = "ex2 and tanh in half precision, tanh.approx", .version = {7, 0}},
    {.feature = Feature::AsyncCopy, .name = "cp.async", .version = {7, 0}, .target = 80},
    {.feature = Feature::AsyncCopyIgnoreSource, .name = "cp.async with ignore-src", .version = {7, 5}, .target = 80},
    {.feature = Feature::Barrier64, .name = "mbarrier", .version = {7, 0}, .target = 80},
    {.feature = Feature::BarrierParity, .name = "mbarrier.test_wait.parity", .version = {7, 1}, .target = 80},
    {.feature = Feature::WarpReduction, .name = "redux.sync", .version = {7, 0}, .target = 80},
    {.feature = Feature::Bfloat16Fma, .name = "bf16 fma, min, max, abs, neg, cvt", .version = {7, 0}, .target = 80},
    {.feature = Feature::Bfloat16Load, .name = "cvt from bf16", .version = {7, 1}, .target = 80},
    {.feature = Feature::Bfloat16Math, .name = "bf16 arithmetic", .version = {7, 8}, .target = 90},
    {.feature = Feature::HalfMinMax, .name = "f16 min and max, fma.relu", .version = {7, 0}, .target = 80},
    {.feature = Feature::NanMinMax, .name = "min and max with .NaN", .version = {7, 0}, .target = 80},
    {.feature = Feature::XorSignMinMax, .name = "min and max with .xorsign.abs", .version = {7, 2}, .target = 86},
    {.feature = Feature::ConvertRelu, .name = "cvt with .relu or two sources", .version = {7, 0}, .target = 80},
    {.feature = Feature::ConvertTf32, .name = "cvt.rn.tf32", .version = {7, 8}, .target = 90},
    {.feature = Feature::ConvertPack, .name = "cvt.pack", .version = {6, 5}},
    {.feature = Feature::ConvertSaturate, .name = "cvt with .satfinite", .version = {8, 1}, .target = 80},
    {.feature = Feature::CacheHints, .name = "cache eviction and prefetch hints", .version = {7, 4}},
    {.feature = Feature::CachePolicy, .name = "cache policies", .version = {7, 4}, .target = 80},
    {.feature = Feature::BitMask, .name = "bmsk and szext", .version = {7, 6}},
    {.feature = Feature::StackAllocation, .name = "alloca", .version = {7, 3}},
    {.feature = Feature::MmaTuring, .name = "mma.m16n8k8", .version = {6, 5}},
    {.feature = Feature::Mma, .name = "mma", .version = {7, 0}, .target = 80},
    {.feature = Feature::MmaFp8, .name = "mma of 8-bit floats", .version = {8, 4}, .target = 89},
    {.feature = Feature::MatrixStore, .name = "stmatrix", .version = {7, 8}, .target = 90},
    {.feature = Feature::MatrixMove, .name = "movmatrix", .version = {7, 8}},
    {.feature = Feature::CtaSpace, .name = "the ::cta subspaces and barrier.cta", .version = {7, 8}},
    {.feature = Feature::ProxyAlias, .name = "fence.proxy.alias", .version = {7, 5}},
    {.feature = Feature::ClusterOrder, .name = "barrier.cluster with an order", .version = {8, 0}, .target = 90},
    {.feature = Feature::Clusters, .name = "clusters", .version = {7, 8}, .target = 90},
    {.feature = Feature::DependentLaunch, .name = "griddepcontrol", .version = {7, 8}, .target = 90},
    {.feature = Feature::PackedInteger, .name = "packed integers and integer .relu", .version = {8, 0}, .target = 90},
    {.feature = Feature::Elect, .name = "elect.sync", .version = {8, 0}, .target = 90},
    {.feature = Feature::BulkCopy, .name = "cp.async.bulk", .version = {8, 0}, .target = 90},
    {.feature = Feature::ProxyFence, .name = "fence.proxy.async", .version = {8, 0}, .target = 90},
    {.feature = Feature::Wgmma, .name = "wgmma", .version = {8, 0}, .target = 90, .specific = true},
    {.feature = Feature::SetMaxRegisters, .name = "setmaxnreg", .version = {8, 0}, .target = 90, .specific = true},
    {.feature = Feature::VectorReduction, .name = "vector atom and red", .version = {8, 1}, .target = 90},
    {.feature = Feature::AsyncStore, .name = "st.async and red.async", .version = {8, 1}, .target = 90},
    {.feature = Feature::Fp8, .name = "8-bit floats", .version = {8, 1}, .target = 89},
    {.feature = Feature::LogicPredicate, .name = "lop3 with a predicate", .version = {8, 2}},
    {.feature = Feature::MemoryMappedIo, .name = "ld.mmio and st.mmio", .version = {8, 2}},
    {.feature = Feature::Wide128, .name = "128-bit ld and st", .version = {8, 3}},
    {.feature = Feature::Wide256, .name = "256-bit ld and st", .version = {8, 8}, .target = 100},
    {.feature = Feature::PackedFloat, .name = "f32x2 arithmetic", .version = {8, 6}, .target = 100},
    {.feature = Feature::ThreeWayMinMax, .name = "min and max of three", .version = {8, 8}, .target = 100},
};

}  // namespace

std::span<const Target> targets() { return target_table; }

const Target* find_target(std::string_view name) {
    const auto found = std::ranges::find(target_table, name, &Target::name);
    return found == std::end(target_table) ? nullptr : &*found;
}

const Target& target(std::string_view name) {
    if (const Target* found = find_target(name)) return *found;
    std::string known;
    for (const Target& each : target_table) known += (known.empty() ? "" : ", ") + std::string(each.name);
    throw Error("unknown target '" + std::string(name) + "'", "known targets: " + known);
}

const FeatureInfo& info(Feature feature) { return *std::ranges::find(feature_table, feature, &FeatureInfo::feature); }

bool supports(const Target& target, Feature feature) {
    const FeatureInfo& wanted = info(feature);
    if (wanted.specific) return target.specific && target.number == wanted.target;
    return target.number >= wanted.target;
}

Version lowest_version(const Target& target, std::span<const Feature> features) {
    Version lowest = target.version;
    for (Feature feature : features) {
        const FeatureInfo& wanted = info(feature);
        if (!supports(target, feature))
            throw Error(
                std::string(target.name) + " does not have " + std::string(wanted.name),
                "it needs .target sm_" + std::to_string(wanted.target) + (wanted.specific ? "a" : " or higher"));
        if (lowest < wanted.version) lowest = wanted.version;
    }
    return lowest;
}

}  // namespace ikat::nvptx
