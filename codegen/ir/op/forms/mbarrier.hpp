// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, and copies of many bytes that arrive there (PTX ISA, mbarrier and cp.async.bulk).
//
//     mbarrier.u32 init, [%b], 1                         a phase ends with one arrival
//     %t = mbarrier.u32 arrive_expect, [%b], 4096        it arrives, and 4096 bytes are to come
//     bulk_copy load, %s, %x, 4096, %b                   these
//     %p = mbarrier.u32 try, [%b], 0                     whether the first phase has ended
//     mbarrier.u32 arrive.peer, [%c]                     at the barrier of another block of the cluster
#pragma once
#include "codegen/ir/op/forms/family.hpp"

namespace ikat::ir {

struct MbarrierForm {
    enum class Kind : std::uint8_t {
        Init,           // operand: how many arrivals end a phase
        Invalidate,     // its bytes are free for other use
        Arrive,         // result: the phase, as a token
        Drop,           // the same, and one arrival fewer from the next phase on
        Expect,         // operand: this many bytes more are to come in this phase
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
    static constexpr std::string_view names[] = {"init",          "invalidate", "arrive", "drop",          "expect",
                                                 "arrive_expect", "test",       "try",    "arrive_relaxed"};
    static constexpr std::string_view reach_names[] = {"", "cluster", "peer"};
    Kind kind = Kind::Init;
    Reach reach = Reach::Block;

    constexpr bool arrives() const {
        return kind == Kind::Arrive || kind == Kind::Drop || kind == Kind::ArriveExpect || kind == Kind::ArriveRelaxed;
    }
    constexpr bool tests() const { return kind == Kind::Test || kind == Kind::Try; }

    static constexpr std::string_view noun = "use of a barrier";
    template <class F = MbarrierForm>
    static constexpr auto fields() {
        return std::tuple{
            Named{&F::kind, F::names},
            Named{&F::reach, F::reach_names, ", and of a test .cluster, of what another block can do .peer"}};
    }
    constexpr bool exists() const {
        if (kind > Kind::ArriveRelaxed) return false;
        if (reach == Reach::Peer) return arrives() || kind == Kind::Expect;
        if (kind == Kind::ArriveRelaxed) return false;
        return reach == Reach::Block || (reach == Reach::Cluster && tests());
    }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(const Shape&) const {
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
    constexpr MemoryAccess access(MemoryAccess row) const {
        if (reach == Reach::Peer) row.space = Space::Peer;
        return row;
    }
    constexpr bool move(Slot, std::int32_t) { return false; }
    /// Nothing passes any of them.
    constexpr Conduct conduct(Conduct row) const {
        if (kind == Kind::Init || kind == Kind::Invalidate) row.effects.reads = false;
        if (tests()) row.effects.writes = false, row.flight.awaits = Work::Loads;
        return row;
    }
};
inline constexpr std::uint32_t barrier_bytes = 8;

/// Its operands, in this order, where `map` is the address of a tensor's map and `at` its `rank` coordinates:
///
///     load       to shared, from global or (map, at), bytes unless of a tensor, barrier, mask of blocks if multicast
///     store      to global or (map, at), from shared, bytes unless of a tensor
///     prefetch   from global or (map, at), bytes unless of a tensor
///     send       to a peer, from shared, bytes, barrier of the peer
struct BulkForm {
    enum class Kind : std::uint8_t { Load, Store, Prefetch, Send };
    enum class Reduction : std::uint8_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };  // of a store
    static constexpr std::string_view names[] = {"load", "store", "prefetch", "send"};
    static constexpr std::string_view reduction_names[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
    Kind kind = Kind::Load;
    std::uint8_t rank = 0;  // of the tensor, 1 to 5; 0: bytes in a row
    Reduction reduction = Reduction::None;
    bool multicast = false;  // a load: to the same place in each block of the cluster that the mask names

    constexpr bool is_bitwise() const { return reduction >= Reduction::And; }

    static constexpr std::string_view noun = "copy";
    template <class F = BulkForm>
    static constexpr auto fields() {
        return std::tuple{Named{&F::kind, F::names}, Number{&F::rank, ", the rank of a tensor", Word{5}, "", "d", true},
                          Flag{&F::multicast, "multicast", ", .multicast"},
                          Named{&F::reduction, F::reduction_names, " or a reduction, {}, such as store.2d.add"}};
    }
    constexpr bool exists() const {
        const bool stores = kind == Kind::Store, loads = kind == Kind::Load;
        return kind <= Kind::Send && rank <= 5 && reduction <= Reduction::Xor && (kind != Kind::Send || rank == 0) &&
               (stores || reduction == Reduction::None) && (loads || !multicast);
    }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type type) const {
        const bool reduces_bytes = reduction != Reduction::None && rank == 0;
        return reduces_bytes == (type != Type::Void)
                   ? ""
                   : "a reduction of memory that is no tensor has a type, other copies have none";
    }
    constexpr Shape shape(Shape row) const {
        const std::uint8_t place = rank, bytes = rank == 0, blocks = multicast;
        switch (kind) {
            case Kind::Load:
                row.arguments = {Slot::U32, exactly(Type::U64), exactly(Type::I32), Slot::U32, exactly(Type::U16)};
                row.counts = {1, 1, place, std::uint8_t(bytes + 1), blocks};
                break;
            case Kind::Store:
                row.arguments = {exactly(Type::U64), exactly(Type::I32), Slot::U32};
                row.counts = {1, place, std::uint8_t(1 + bytes)};
                break;
            case Kind::Prefetch:
                row.arguments = {exactly(Type::U64), exactly(Type::I32), Slot::U32};
                row.counts = {1, place, bytes};
                break;
            default: row.arguments = {Slot::U32}, row.counts = {4};
        }
        return row;
    }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    /// What is sent arrives at the barrier of a peer. Nothing passes any of them.
    constexpr Conduct conduct(Conduct row) const {
        if (kind == Kind::Load) row.flight.starts = Work::Loads;
        if (kind == Kind::Store) row.flight.starts = Work::Stores;
        return row;
    }
};
inline constexpr std::uint32_t bulk_unit = 16;  // bytes: sizes and addresses are multiples of it

}  // namespace ikat::ir
