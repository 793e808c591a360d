// SPDX-License-Identifier: Apache-2.0
// Families: an instruction that PTX has in many forms is one row of the op table. The form is a small struct, stored as
// a word in Instruction::attribute, so that it is compared, hashed and copied like a number. Each struct has a textual
// form in the IR, which can be parsed, and defines the operands and results of its form.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "codegen/ir/op/evaluate.hpp"
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

/// The struct as a word, its first byte the lowest, and back.
template <class Form>
constexpr Word pack(Form form) {
    static_assert(sizeof(Form) <= sizeof(Word) && std::has_unique_object_representations_v<Form>);
    Word word = 0;
    const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(Form)>>(form);
    for (std::size_t i = 0; i < sizeof(Form); ++i) word |= Word{bytes[i]} << (8 * i);
    return word;
}
template <class Form>
constexpr Form unpack(Word word) {
    std::array<std::uint8_t, sizeof(Form)> bytes;
    for (std::size_t i = 0; i < sizeof(Form); ++i) bytes[i] = std::uint8_t(word >> (8 * i));
    return std::bit_cast<Form>(bytes);
}

/// What a fence orders: what comes before it and what comes after it. All threads also agree on a single order of the
/// sequentially consistent ones. The last three have no scope of their own (they are of Scope::None): they order what
/// this thread has stored and what asynchronous operations do behind it, in all memory or in shared memory, and the
/// making of barriers in shared memory and what others do with them.
enum class FenceOrder : std::uint8_t { AcquireRelease, SequentiallyConsistent, Async, AsyncShared, BarrierInit };
inline constexpr std::string_view fence_order_names[] = {"acq_rel", "sc", "async", "async_shared", "barrier_init"};
struct FenceForm {
    FenceOrder order = FenceOrder::AcquireRelease;
    Scope scope = Scope::Gpu;
    constexpr bool has_scope() const { return order <= FenceOrder::SequentiallyConsistent; }
};

/// What the threads of a block do at a barrier.
struct BarrierForm {
    enum class Kind : std::uint8_t {
        All,     // all threads wait for each other, at barrier `id`; the other kinds have no id
        Sync,    // operands: which barrier, and how many threads wait there for each other
        Arrive,  // the same, without waiting
        And,     // all wait, and are told whether a predicate holds in all threads
        Or,      // ... in any
        Count,   // ... in how many
    };
    std::uint8_t id = 0;
    Kind kind = Kind::All;

    /// The type of an instruction of this form.
    constexpr Type type() const {
        return kind == Kind::Count ? Type::U32 : kind == Kind::And || kind == Kind::Or ? Type::Pred : Type::Void;
    }
    /// Whether all threads of the block wait for each other.
    constexpr bool gathers_block() const { return kind != Kind::Sync && kind != Kind::Arrive; }
    constexpr Shape shape() const {
        switch (kind) {
            case Kind::Sync:
            case Kind::Arrive: return {Slot::None, {Slot::U32, Slot::U32}};
            case Kind::And:
            case Kind::Or:
            case Kind::Count: return {Slot::T, {Slot::Pred}};
            default: return {Slot::None};
        }
    }
};
inline constexpr std::string_view barrier_kind_names[] = {"", "sync", "arrive", "and", "or", "count"};
inline constexpr int most_barriers = 16;  // of a block

/// To how many registers the threads of a warpgroup change.
struct RegistersForm {
    enum class Kind : std::uint8_t { Grow, Shrink };
    Kind kind = Kind::Grow;
    std::uint8_t unused = 0;
    std::uint16_t count = 24;
};
inline constexpr std::string_view registers_kind_names[] = {"grow", "shrink"};
/// Whether a thread can have so many after a change.
constexpr bool is_register_count(std::uint64_t count) { return count >= 24 && count <= 256 && count % 8 == 0; }

/// How a thread copies a few bytes while it goes on. Behind the addresses stands how many bytes are read; zeros fill
/// the rest.
struct CopyForm {
    enum class Cache : std::uint8_t { Ca, Cg };                    // in all caches, or in L2 alone: 16 bytes
    enum class Prefetch : std::uint8_t { None, B64, B128, B256 };  // what the L2 cache may fetch around them
    std::uint8_t bytes = 4;                                        // 4, 8 or 16: those that are written
    Cache cache = Cache::Ca;
    Prefetch prefetch = Prefetch::None;
    std::uint8_t unused = 0;
    std::int32_t from_offset = 0;  // bytes added to the address that is read; MemoryInfo has that of the other
};
inline constexpr std::string_view copy_cache_names[] = {"ca", "cg"};
inline constexpr std::string_view copy_prefetch_names[] = {"", "64B", "128B", "256B"};
/// The attribute of a wait for all copies, committed or not.
inline constexpr Word all_copies = 0xffff;
/// A wait names fewer groups than this.
constexpr Word most_groups(Op op) { return op == Op::WgmmaWait ? 8 : op == Op::CopyWait ? all_copies + 1 : all_copies; }

/// How far op At goes, in bytes: for each element, and besides.
struct AddressForm {
    std::uint32_t scale = 1;
    std::int32_t constant = 0;
};

/// The attribute of an op as the IR spells it, if it has a meaning without a function: a special register, a mode, a
/// form, a number. Else empty.
std::string attribute_text(Op op, Word attribute);
/// ... and back.
std::optional<Word> attribute_named(Op op, std::string_view text);
/// The name of the attribute and its choices, for messages.
struct AttributeChoice {
    std::string_view name;
    std::string choices;
};
AttributeChoice attribute_choice(Op op);

/// What PTX writes for a mode or a form in the row's {a}: ".lo", ".acq_rel.gpu", ".red.and.pred"; nothing for "plain".
std::string attribute_suffix(Op op, Word attribute);

}  // namespace ikat::ir
