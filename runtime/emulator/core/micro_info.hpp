// SPDX-License-Identifier: Apache-2.0
// What a micro-op does, in words of a few facts: for decoding, for tools (tool.hpp), and for who finds loops that never
// end (machine/idle.hpp). The rule that emits an op says it, mostly by the selector that gives it the handler
// (ops/handlers.hpp); nobody asks what a handler's address means.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "codegen/ir/op/op.hpp"
#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

using ir::Op;
using ir::Type;

struct MicroOp;
struct Warp;
using Handler = const MicroOp* (*)(const MicroOp*, Warp*, std::byte*, std::uint32_t);

/// Operations that the IR has not.
enum class OwnOp : std::uint8_t {
    Unknown,
    // lane by lane
    MadHi,
    Mad24,     // in the modes of Op::Mul24
    MaskBits,  // bmsk
    MinNan,
    MaxNan,
    Saturate,
    Relu,
    Compare,  // as the IR does not
    Scalar,   // ops/scalar.hpp
    IsOwnShared,
    RankOfShared,
    // by a warp
    VoteUniform,
    ReduceFloats,
    MeetWarp,
    // control
    Nothing,
    Count,
    Branch,
    Guard,
    GuardUnless,
    Unguard,
    End,
    Trap,
    GiveWay,
    Frame,  // of a call: it is made, entered, read, left
    Return,
    // memory
    CheckAlignment,
    Alloca,
    StackTop,  // is read, or set
    Malloc,
    Free,
    ChangeMap,
    CopyMap,
    TouchRegisters,  // that a product in flight may use
    Watch,           // a tool's, which changes nothing in the kernel
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

/// Fields of an op by number: d, a, b, c, x, y.
enum Field : std::uint8_t { D = 1, A = 2, B = 4, C = 8, X = 16, Y = 32 };
inline constexpr std::uint8_t all_fields = 0x3f;

/// What an op does beyond the registers and the local memory of its lanes.
enum Effect : std::uint8_t {
    NoEffect = 0,
    ReadsBlock = 1,   // shared memory
    ReadsOthers = 2,  // global memory, or any
    Changes = 4,      // memory, or state that nobody compares: stacks, output, clocks; atomics report it when they run
    Branches = 8,     // control goes elsewhere, or ends
    MeetsApart = 16,  // lanes that meet may do so at different ops
};

/// How the definedness of results follows from that of sources, byte by byte. For one lane: u are the undefined bits, v
/// the values.
enum class Propagation : std::uint8_t {
    Mix,     // all undefined if any source is; the parameter is how many bytes of the first source count, 0: all
    Upward,  // sums and low products: from the lowest undefined bit upwards
    Either,  // bit by bit: or, xor, not, lop3
    And,     // ... from here on, results are parts of their sources
    Or,      // ... where a defined 0, or 1, decides
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    FunnelLeft,
    FunnelRight,
    Extract,
    Insert,  // bfe, bfi
    Choose,  // c ? a : b
    Pack,    // a in the low half, b in the high half
    ZeroExtend,
    SignExtend,  // of as many low bytes as the parameter says
    Permute,     // prmt
};

/// What undefined values must not be used as, in the order of the faults.
enum class DefinedUse : std::uint8_t { Address, Branch, Guard, Barrier, Warp, Atomic, Print, Call, Store, Shuffle };

enum class Direction : std::uint8_t { Read, Write, Atomic };
inline constexpr std::size_t directions = 3;

/// The threads that a fence, or an access with an order, speaks to.
enum class Scope : std::uint8_t { Thread, Block, Cluster, Device, System };

/// How it orders what the threads of a launch do.
struct Synchronises {
    bool meets_warp = false;                  // the lanes that execute it meet
    bool exchanges_in_warp = false;           // ... and only give each other values, which orders no memory
    bool acquires = false, releases = false;  // a fence, or the order of its own access
    bool of_access = false;                   // ... the latter
    Scope scope = Scope::Thread;
    // What a fence makes visible to copies and products, which access memory by the asynchronous proxy: ordinary
    // accesses of shared and global memory, barriers in shared memory that its thread has made, tensor maps.
    bool shows_shared = false, shows_global = false, shows_barriers = false, shows_maps = false;
    bool shows_peers = false;  // shared memory of other blocks of the cluster, too
};

/// The numbers of float arithmetic that may give a NaN or an infinity for finite ones.
struct Arithmetic {
    Type to = Type::Void;                     // of the result; Void: it is none
    std::array<Type, 3> from{};               // of all sources; of a product of matrices: the elements of a, b and c
    std::array<std::uint8_t, 3> registers{};  // ... that fill that many registers of the list, after those of d
    bool drops_negative = false;              // the next op makes zeros of negative results
};

struct MicroInfo {
    /// Unknown: nothing is said of the op, and it may do anything.
    Operation operation{};
    /// The memory that each lane accesses; none if there are no bytes.
    struct Access {
        Space space = Space::Generic;
        std::uint32_t bytes = 0;
        Direction direction = Direction::Read;
        std::uint32_t lanes = ~0u;    // those that give an address
        std::int32_t offset = 0;      // from the address, which is field a
        bool is_strong = false;       // an atomic, or volatile or relaxed: two of them on one address are no race
        Scope scope = Scope::Thread;  // ... of threads in it
        bool is_of_all = false;       // made by all lanes of the warp together, as ldmatrix
    } access{};
    Synchronises synchronises{};
    std::uint8_t effects = NoEffect;  // besides what follows from the rest: effects_of
    Arithmetic arithmetic{};

    // Definedness
    Propagation propagation = Propagation::Mix;
    std::uint8_t parameter = 0;       // of the propagation
    std::optional<DefinedUse> use{};  // its sources must be defined, and then its results are
    std::uint8_t used = all_fields;   // those of its sources
    Handler checked = nullptr;        // instead of its own in the checked code: it also says what its results are
};

/// All effects of an op but that it branches, which the rule says in other ways (Flow, decode/lowering.hpp).
constexpr std::uint8_t effects_of(const MicroInfo& info) {
    if (info.operation == OwnOp::Unknown) return Changes;
    const std::uint8_t effects = info.effects | (info.operation == Op::SyncWarp ? MeetsApart : NoEffect);
    const Space space = info.access.space;
    const bool is_own = space == Space::Local || space == Space::Param || space == Space::Const;
    if (!info.access.bytes || is_own) return effects;
    return effects | (info.access.direction == Direction::Write ? Changes
                      : space == Space::Shared                  ? ReadsBlock
                                                                : ReadsOthers);
}

/// A handler, and what an op does that has it.
struct Behaviour {
    Behaviour(Handler run, const MicroInfo& info = {}) : run(run), info(info) {}
    Handler run;
    MicroInfo info;
};

}  // namespace ikat::emulator
