// SPDX-License-Identifier: Apache-2.0
// How an instruction touches memory: address space, width, cache operator, order and scope.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::ir {

enum class Space : std::uint8_t {
    None,
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
    Peer  // shared memory of the blocks of the cluster, also of this one: .shared::cluster
};
inline constexpr std::string_view space_names[] = {"",      "generic", "global", "shared",
                                                   "local", "const",   "param",  "peer"};

/// The maximum total size of a kernel's constant arrays.
inline constexpr std::uint64_t max_constant_bytes = 65536;

/// PTX cache operators; Nc is the read-only path ld.global.nc.
enum class CacheOperator : std::uint8_t { None, Ca, Cg, Cs, Cv, Wb, Wt, Nc };
inline constexpr std::string_view cache_operator_names[] = {"", "ca", "cg", "cs", "cv", "wb", "wt", "nc"};

enum class Order : std::uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };
inline constexpr std::string_view order_names[] = {"weak", "relaxed", "acquire", "release", "acq_rel"};

enum class Scope : std::uint8_t { None, Cta, Cluster, Gpu, Sys };
inline constexpr std::string_view scope_names[] = {"", "cta", "cluster", "gpu", "sys"};

/// How an instruction touches memory. The element's type is the instruction's; `count` elements are adjacent (v2, v4,
/// until selection also v8 and v16).
struct MemoryInfo {
    Space space = Space::None;
    std::uint8_t count = 1;
    CacheOperator cache = CacheOperator::None;
    Order order = Order::Weak;
    Scope scope = Scope::None;
    bool is_volatile = false;
    std::int32_t offset = 0;  // bytes added to the address operand; selection folds constants into it
    bool operator==(const MemoryInfo&) const = default;
};

/// One of the places where an instruction touches memory (accesses.hpp).
struct MemoryAccess {
    std::uint32_t operand = 0;  // the address
    Space space = Space::None;
    bool reads = false, writes = false;
    std::int32_t offset = 0;  // bytes added to the address
    std::uint32_t bytes = 0;  // from there on
};

}  // namespace ikat::ir
