// SPDX-License-Identifier: Apache-2.0
// Changes of tensor maps in shared or global memory (PTX ISA, tensormap.replace), and copies of maps to global memory
// (tensormap.cp_fenceproxy). They are ordinary accesses: between them and a bulk copy that uses the map there must be a
// fence that releases it, which cp_fenceproxy is, and one that acquires it (tools/proxies).
#pragma once
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

struct MapChange {
    Space space = Space::Generic;
    MapField field = MapField::Address;
    std::uint8_t dimension = 0;

    constexpr std::uint32_t bits() const {
        return std::uint32_t(space) | std::uint32_t(field) << 8 | std::uint32_t(dimension) << 16;
    }
    static constexpr MapChange of(std::uint32_t bits) {
        return {Space(bits & 255), MapField(bits >> 8 & 255), std::uint8_t(bits >> 16)};
    }
};

/// Lane by lane: b is the new value of a field of the map at address a; both have 8 bytes. x is MapChange::bits().
const MicroOp* change_map(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// By all living lanes of the warp, the members x: from b in shared memory to a in global memory; both have 8 bytes.
const MicroOp* copy_map(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

}  // namespace ikat::emulator
