// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, and copies of many bytes that arrive there (PTX ISA, mbarrier and cp.async.bulk).
//
//     mbarrier.u32 init, [%b], 1                         a phase ends with one arrival
//     %t = mbarrier.u32 arrive_expect, [%b], 4096        it arrives, and 4096 bytes are to come
//     bulk_copy load, %s, %x, 4096, %b                   these
//     %p = mbarrier.u32 try, [%b], 0                     whether the first phase has ended
//     mbarrier.u32 arrive.peer, [%c]                     at the barrier of another block of the cluster
#pragma once
#include <cstdint>
#include <string_view>

#include "codegen/ir/op/families.hpp"

namespace ikat::ir {

struct MbarrierForm {
    enum class Kind : std::uint8_t {
        Init,           // operand: how many arrivals end a phase
        Invalidate,     // its bytes are free for other use
        Arrive,         // result: the phase, as a token
        Drop,           // the same, and one arrival fewer from the next phase on
        Expect,         // operand: so many bytes more are to come in this phase
        ArriveExpect,   // both
        Test,           // operand: the parity of a phase; result: whether that has ended
        Try,            // the same, and the thread may be suspended for a while
        ArriveRelaxed,  // at a peer's: nothing that was written before need be seen
    };
    /// Whose barrier it is, and who is told, or tells, what was written before: threads of the block or of the cluster.
    enum class Reach : std::uint8_t {
        Block,
        Cluster,  // the own barrier, at which peers arrive: a test
        Peer,     // the barrier of a block of the cluster: an arrival, without a token, or more bytes
    };
    Kind kind = Kind::Init;
    Reach reach = Reach::Block;

    constexpr bool arrives() const {
        return kind == Kind::Arrive || kind == Kind::Drop || kind == Kind::ArriveExpect || kind == Kind::ArriveRelaxed;
    }
    constexpr bool tests() const { return kind == Kind::Test || kind == Kind::Try; }
    constexpr Shape shape() const {
        if (arrives() && reach == Reach::Peer)
            return {Slot::None, {Slot::AtBarrier, kind == Kind::ArriveExpect ? Slot::U32 : Slot::None}};
        switch (kind) {
            case Kind::Init:
            case Kind::Expect: return {Slot::None, {Slot::AtBarrier, Slot::U32}};
            case Kind::Invalidate: return {Slot::None, {Slot::AtBarrier}};
            case Kind::Arrive:
            case Kind::Drop: return {Slot::Wide, {Slot::AtBarrier}};
            case Kind::ArriveExpect: return {Slot::Wide, {Slot::AtBarrier, Slot::U32}};
            default: return {Slot::Pred, {Slot::AtBarrier, Slot::U32}};
        }
    }
};
inline constexpr std::string_view mbarrier_names[] = {
    "init", "invalidate", "arrive", "drop", "expect", "arrive_expect", "test", "try", "arrive_relaxed"};
inline constexpr std::string_view mbarrier_reach_names[] = {"", "cluster", "peer"};
inline constexpr std::uint32_t barrier_bytes = 8;
constexpr bool exists(MbarrierForm form) {
    using enum MbarrierForm::Reach;
    if (std::size_t(form.kind) >= std::size(mbarrier_names)) return false;
    if (form.reach == Peer) return form.arrives() || form.kind == MbarrierForm::Kind::Expect;
    if (form.kind == MbarrierForm::Kind::ArriveRelaxed) return false;
    return form.reach == Block || (form.reach == Cluster && form.tests());
}

/// Its operands, in this order, where `map` is the address of a tensor's map and `at` its `rank` coordinates:
///
///     load       to shared, from global or (map, at), bytes unless of a tensor, barrier, mask of blocks if multicast
///     store      to global or (map, at), from shared, bytes unless of a tensor
///     prefetch   from global or (map, at), bytes unless of a tensor
///     send       to a peer, from shared, bytes, barrier of the peer
struct BulkForm {
    enum class Kind : std::uint8_t { Load, Store, Prefetch, Send };
    enum class Reduction : std::uint8_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };  // of a store
    Kind kind = Kind::Load;
    std::uint8_t rank = 0;  // of the tensor, 1 to 5; 0: bytes in a row
    Reduction reduction = Reduction::None;
    bool multicast = false;  // a load: to the same place in each block of the cluster that the mask names

    constexpr bool is_bitwise() const { return reduction >= Reduction::And; }
    /// The type of operand `position`; Void beyond the last.
    constexpr Type operand(std::uint32_t position) const {
        if (kind == Kind::Send) return position < 4 ? Type::U32 : Type::Void;
        if (kind == Kind::Load && position-- == 0) return Type::U32;
        if (position-- == 0) return Type::U64;
        if (position < rank) return Type::I32;
        position -= rank;
        if (kind == Kind::Store && position-- == 0) return Type::U32;
        if (rank == 0 && position-- == 0) return Type::U32;
        if (kind != Kind::Load) return Type::Void;
        return position == 0 ? Type::U32 : position == 1 && multicast ? Type::U16 : Type::Void;
    }
    constexpr std::uint32_t operands() const {
        std::uint32_t count = 0;
        while (operand(count) != Type::Void) ++count;
        return count;
    }
};
inline constexpr std::string_view bulk_names[] = {"load", "store", "prefetch", "send"};
inline constexpr std::string_view bulk_reduction_names[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
inline constexpr std::uint32_t bulk_unit = 16;  // bytes: sizes and addresses are multiples of it
constexpr bool exists(BulkForm form) {
    const bool stores = form.kind == BulkForm::Kind::Store, loads = form.kind == BulkForm::Kind::Load;
    return std::size_t(form.kind) < std::size(bulk_names) && form.rank <= 5 &&
           std::size_t(form.reduction) < std::size(bulk_reduction_names) &&
           (form.kind != BulkForm::Kind::Send || form.rank == 0) &&
           (stores || form.reduction == BulkForm::Reduction::None) && (loads || !form.multicast);
}

}  // namespace ikat::ir
