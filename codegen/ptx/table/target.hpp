// SPDX-License-Identifier: Apache-2.0
// The target GPUs, their limits, and the PTX version and target that each feature needs.
// A driver rejects PTX that is newer than itself, so a module names the lowest version that has the features it uses:
// lowest_version(target, features_of(module)).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

using Version = Module::Version;

constexpr bool operator<(const Version& a, const Version& b) {
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

/// One architecture. Sizes are in bytes, counts are upper limits.
struct Target {
    std::string_view name;    // "sm_90a", as .target has it
    std::uint32_t number;     // 90
    bool specific;            // the "a": its code runs only on this architecture
    Version version;          // the first PTX that knows it
    std::uint32_t registers;  // of 32 bits, per multiprocessor and per CTA
    std::uint32_t registers_per_thread;
    std::uint32_t shared_static;  // shared memory of a CTA without the opt-in
    std::uint32_t shared_opt_in;  // ... and with it
    std::uint32_t shared_per_multiprocessor;
    std::uint32_t threads_per_block;
    std::uint32_t warps_per_multiprocessor;
    std::uint32_t blocks_per_multiprocessor;
    std::uint32_t multiprocessors;  // of its usual GPU: T4, A100, A40, L40S, H100, B200, B300, RTX 5090
};

/// All targets, in ascending order.
std::span<const Target> targets();

/// The target of that name; throws Error, which lists the known ones.
const Target& target(std::string_view name);
/// As above, or nullptr.
const Target* find_target(std::string_view name);

/// The byte of the constant bank at which the parameters of a kernel begin. Where the driver takes parameters in one
/// piece, each is aligned as it is there: one of 64 bytes' alignment is at byte 48 of them on sm_90, if it is the
/// first.
std::uint32_t parameter_base(const Target& target);

/// Whether there is such an architecture, even if ikat generates no PTX for it: sm_52.
bool is_architecture(std::string_view name);
/// Whether PTX ever had this version.
bool is_known(Version version);
/// The newest version whose opcodes are in the table.
inline constexpr Version newest_version{9, 0};
/// "9.0"
std::string to_text(Version version);

/// Features that not every version and target has. See target.cpp for the table.
enum class Feature : std::uint8_t {
    None,
    MatrixLoad,
    HalfAbsolute,
    HalfMath,
    AsyncCopy,
    AsyncCopyIgnoreSource,
    Barrier64,
    BarrierParity,
    BarrierScope,
    BarrierRelaxed,
    BarrierTransactions,
    WarpReduction,
    Bfloat16Fma,
    Bfloat16Load,
    Bfloat16Math,
    HalfMinMax,
    NanMinMax,
    XorSignMinMax,
    ConvertRelu,
    ConvertTf32,
    ConvertPack,
    ConvertSaturate,
    CacheHints,
    CachePolicy,
    BitMask,
    TexturePredicate,
    StackAllocation,
    ParameterAddress,
    ParameterSpaces,
    Mma,
    MmaTuring,
    MmaVolta,
    MmaDouble,
    MmaFp8,
    MmaFp8Half,
    MmaBits,
    MmaBitsXor,
    MmaSparse,
    MmaOrderedSparse,
    MmaScaled,
    MatrixBytes,
    MatrixStore,
    MatrixMove,
    CtaSpace,
    ProxyAlias,
    Clusters,
    ClusterOrder,
    DependentLaunch,
    PackedInteger,
    Elect,
    BulkCopy,
    BulkCopyToCta,
    BulkCopyMask,
    BulkCopyPairs,
    BulkStore,
    TensorGather,
    TensorScatter,
    TensorMapFence,
    TensorMapReplace,
    ProxyFence,
    RestrictedFence,
    LaunchControl,
    LaunchControlAll,
    Wgmma,
    WgmmaSparse,
    WgmmaMixed,
    Tcgen05,
    Tcgen05Fp4,
    Tcgen05Block,
    SetMaxRegisters,
    VectorReduction,
    Multimem,
    MultimemPrecision,
    MultimemFp8,
    AsyncStore,
    AsyncRelease,
    Fp8,
    Fp4,
    StochasticRounding,
    LogicPredicate,
    MemoryMappedIo,
    Wide128,
    Wide256,
    PackedFloat,
    MixedFloat,
    OutOfBounds,
    FloatReduction,
    ThreeWayMinMax,
};

struct FeatureInfo {
    Feature feature;
    std::string_view name;               // "cp.async", for messages
    Version version{6, 3};               // the lowest version that has it ...
    std::uint32_t target = 75;           // ... and the lowest target
    bool specific = false;               // only on "a" forms ...
    std::uint32_t last = ~0u;            // ... and of those up to this one
    Version earlier{};                   // an earlier version has it, too, if this is not 0.0 ...
    std::uint32_t earlier_target = ~0u;  // ... from this target on

    Version version_for(const Target& of) const { return of.number >= earlier_target ? earlier : version; }
};
const FeatureInfo& info(Feature feature);

bool supports(const Target& target, Feature feature);

/// The lowest PTX version that knows the target and has all the features. Throws Error for a feature that the target
/// does not have.
Version lowest_version(const Target& target, std::span<const Feature> features);

/// The features that the module's instructions and modifiers need, each once, in ascending order.
std::vector<Feature> features_of(const Module& module);

}  // namespace ikat::ptx
