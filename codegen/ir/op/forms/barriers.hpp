// SPDX-License-Identifier: Apache-2.0
// Threads that meet: barriers of blocks and clusters, fences, shuffles, and what a warpgroup has in common.
#pragma once
#include "codegen/ir/op/forms/family.hpp"

namespace ikat::ir {

/// What the threads of a block do at a barrier: "3", "sync".
struct BarrierForm {
    enum class Kind : std::uint8_t {
        All,     // all threads wait for each other, at barrier `id`; the other kinds have no id
        Sync,    // operands: which barrier, and how many threads wait there for each other
        Arrive,  // the same, without waiting
        And,     // all wait, and are told whether a predicate holds in all threads
        Or,      // ... in any
        Count,   // ... in how many
    };
    static constexpr std::string_view names[] = {"", "sync", "arrive", "and", "or", "count"};
    static constexpr int max_barriers = 16;  // barriers of a block
    std::uint8_t id = 0;
    Kind kind = Kind::All;

    /// The type of an instruction of this form.
    constexpr Type type() const {
        return kind == Kind::Count ? Type::U32 : kind == Kind::And || kind == Kind::Or ? Type::Pred : Type::Void;
    }
    /// Whether all threads of the block wait for each other.
    constexpr bool gathers_block() const { return kind != Kind::Sync && kind != Kind::Arrive; }

    static constexpr std::string_view noun = "barrier";
    static std::string write(const BarrierForm& form);
    static bool read(BarrierForm& form, std::string_view word);
    template <class F = BarrierForm>
    static constexpr auto fields() {
        return std::tuple{Spelled{&F::write, &F::read, "a number from 0 to 15, or sync, arrive, and, or, count"}};
    }
    constexpr bool exists() const { return kind <= Kind::Count && (kind == Kind::All || id == 0); }
    constexpr Type type(Type) const { return type(); }
    constexpr std::string_view problem(Op, Type) const {
        return id < max_barriers ? "" : "a block has barriers 0 to 15";
    }
    constexpr Shape shape(const Shape&) const {
        switch (kind) {
            case Kind::Sync:
            case Kind::Arrive: return {Slot::None, {Slot::U32, Slot::U32}};
            case Kind::And:
            case Kind::Or:
            case Kind::Count: return {Slot::T, {Slot::Pred}};
            default: return {Slot::None};
        }
    }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(Conduct row) const {
        if (!gathers_block()) row.meets = Meeting::Warp;
        return row;
    }
};

/// What the threads of a cluster do at its barrier: each arrives once, and then waits.
struct ClusterBarrierForm {
    enum class Kind : std::uint8_t { Sync, Arrive, Wait };  // Sync: both
    static constexpr std::string_view names[] = {"sync", "arrive", "wait"};
    Kind kind = Kind::Sync;

    static constexpr std::string_view noun = "mode";
    template <class F = ClusterBarrierForm>
    static constexpr auto fields() {
        return std::tuple{Named{&F::kind, F::names, "modes are {}"}};
    }
    constexpr bool exists() const { return kind <= Kind::Wait; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(Conduct row) const {
        if (kind != Kind::Sync) row.meets = Meeting::Warp;
        return row;
    }
};

/// What a fence orders: what comes before it and what comes after it. All threads also agree on a single order of the
/// sequentially consistent ones. The last three have no scope of their own (they are of Scope::None): they order what
/// this thread has stored and what asynchronous operations do after it, in all memory or in shared memory, and the
/// making of barriers in shared memory and what others do with them.
enum class FenceOrder : std::uint8_t { AcquireRelease, SequentiallyConsistent, Async, AsyncShared, BarrierInit };

/// "acq_rel.gpu", "async"
struct FenceForm {
    static constexpr std::string_view names[] = {"acq_rel", "sc", "async", "async_shared", "barrier_init"};
    FenceOrder order = FenceOrder::AcquireRelease;
    Scope scope = Scope::Gpu;
    constexpr bool has_scope() const { return order <= FenceOrder::SequentiallyConsistent; }

    static constexpr std::string_view noun = "fence";
    template <class F = FenceForm>
    static constexpr auto fields() {
        return std::tuple{Named{&F::order, F::names, "an order, {}"},
                          Named{&F::scope, scope_names, ", and of the first two a scope, {}"}};
    }
    constexpr bool exists() const {
        return order <= FenceOrder::BarrierInit && scope <= Scope::Sys && has_scope() == (scope != Scope::None);
    }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

/// To how many registers the threads of a warpgroup change: "grow.240".
struct RegistersForm {
    enum class Kind : std::uint8_t { Grow, Shrink };
    static constexpr std::string_view names[] = {"grow", "shrink"};
    Kind kind = Kind::Grow;
    std::uint8_t unused = 0;
    std::uint16_t count = 24;

    static constexpr std::string_view noun = "number of registers";
    template <class F = RegistersForm>
    static constexpr auto fields() {
        return std::tuple{Named{&F::kind, F::names, "grow or shrink and "},
                          Number{&F::count, "a number, such as grow.240", 0xffff}};
    }
    constexpr bool exists() const { return kind <= Kind::Shrink && unused == 0; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const;
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};
/// Whether a thread can have this many after a change.
constexpr bool is_register_count(std::uint64_t count) { return count >= 24 && count <= 256 && count % 8 == 0; }
constexpr std::string_view RegistersForm::problem(Op, Type) const {
    return is_register_count(count) ? "" : "a thread has 24 to 256 registers, a multiple of 8";
}

enum class ShuffleMode : std::uint8_t { Up, Down, Xor, Idx };

/// From which lane each takes a value.
struct ShuffleForm {
    static constexpr std::string_view names[] = {"up", "down", "bfly", "idx"};
    ShuffleMode mode = ShuffleMode::Up;
    /// A reduction may end with the same value everywhere; moving values up or down never does that.
    constexpr bool moves() const { return mode == ShuffleMode::Up || mode == ShuffleMode::Down; }

    static constexpr std::string_view noun = "shuffle mode";
    template <class F = ShuffleForm>
    static constexpr auto fields() {
        return std::tuple{Named{&F::mode, F::names}};
    }
    constexpr bool exists() const { return mode <= ShuffleMode::Idx; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(Conduct row) const {
        if (!moves()) row.likely = Extent::Warp;
        return row;
    }
};

}  // namespace ikat::ir
