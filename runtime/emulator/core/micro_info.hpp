// SPDX-License-Identifier: Apache-2.0
// What a micro-op is, for those that watch it (tool.hpp); written by the rule that emits it.
#pragma once
#include <cstdint>
#include <optional>

#include "codegen/ir/op/op.hpp"
#include "runtime/emulator/core/memory.hpp"

namespace ikat::emulator {

using ir::Op;
using ir::Type;

/// Operations that the IR has not.
enum class OwnOp : std::uint8_t {
    Unknown,
    MadHi,
    Mad24,     // in the modes of Op::Mul24
    MaskBits,  // bmsk
    MinNan,
    MaxNan,
    Saturate,
    Relu,
};

/// An operation of the IR, or another.
class Operation {
public:
    constexpr Operation() = default;
    constexpr Operation(OwnOp op) : number(std::uint16_t(op)) {}
    constexpr Operation(Op op) : number(std::uint16_t(first_of_ir + int(op))) {}
    constexpr bool operator==(const Operation&) const = default;

    constexpr std::optional<Op> of_ir() const {
        return number < first_of_ir ? std::nullopt : std::optional(Op(number - first_of_ir));
    }
    constexpr OwnOp own() const { return number < first_of_ir ? OwnOp(number) : OwnOp::Unknown; }

    // public, so that it may be a template's argument
    static constexpr int first_of_ir = 256;
    std::uint16_t number = 0;
};

enum class Direction : std::uint8_t { Read, Write, Atomic };
inline constexpr std::size_t directions = 3;

/// The threads that a fence, or an access with an order, speaks to.
enum class Scope : std::uint8_t { Thread, Block, Cluster, Device, System };

/// How it orders what the threads of a launch do.
struct Synchronises {
    bool meets_warp = false;                  // the lanes that execute it meet
    bool acquires = false, releases = false;  // a fence, or the order of its own access
    Scope scope = Scope::Thread;
    // What a fence makes visible to copies and products, which access memory by the asynchronous proxy: ordinary
    // accesses of shared and global memory, barriers in shared memory that its thread has made, tensor maps.
    bool shows_shared = false, shows_global = false, shows_barriers = false, shows_maps = false;
};

struct MicroInfo {
    /// The memory that each lane accesses; none if there are no bytes.
    struct Access {
        Space space = Space::Generic;
        std::uint32_t bytes = 0;
        Direction direction = Direction::Read;
        std::uint32_t lanes = ~0u;  // those that give an address
        std::int32_t offset = 0;    // from the address, which is field a
        bool is_strong = false;     // an atomic, or volatile or relaxed: two of them on one address are no race
        bool is_of_all = false;     // made by all lanes of the warp together, as ldmatrix
    } access{};
    Synchronises synchronises{};
};

}  // namespace ikat::emulator
