// SPDX-License-Identifier: Apache-2.0
// The op table: the data of ops.def for each op, as constexpr data, and queries on it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "codegen/ir/op/conduct.hpp"
#include "codegen/ir/type.hpp"

namespace ikat::ir {

enum class Op : std::uint8_t {
#define OP(name, ...) name,
#include "codegen/ir/op/ops.def"
};

enum Trait : std::uint16_t {
    NoTraits = 0,
    Commutes = 1,         // in its first two operands
    Associates = 2,       // as a mathematical operation; floats must still not be regrouped
    Idempotent = 4,       // op(x, x) = x, or op(op(x)) = op(x) for a unary op
    Reads = 8,            // memory
    Writes = 16,          // memory, or something the host can see
    Convergent = 32,      // communicates with other lanes or warps
    Rematerialises = 64,  // cheap to recompute anywhere, without operands
    AlwaysApprox = 128,   // PTX has no correctly rounded form
    Narrows = 256,        // if integer operands fit a narrow type, so does the result: it need not be wrapped
    Copies = 512,         // copies bits of its operands, so that a NaN need not be canonical
    Fails = 1024,         // has no result for some operands
    FormActs = 2048,      // its effects depend on its form
};
constexpr Trait operator|(Trait a, Trait b) { return Trait(int(a) | int(b)); }

/// Which FloatInfo fields an op's PTX form can carry.
enum Modifier : std::uint8_t { NoModifiers = 0, Rounds = 1, Ftz = 2, Sat = 4, Approx = 8 };
constexpr Modifier operator|(Modifier a, Modifier b) { return Modifier(int(a) | int(b)); }

/// What Instruction::attribute holds, which decides how the IR text spells it.
enum class Attribute : std::uint8_t {
    None,
    Constant,             // the value's bits
    Parameter,            // index into Function::parameters
    Special,              // a SpecialRegister
    Symbol,               // index into Function::symbols
    Text,                 // index into Function::texts
    Callee,               // the same: the name of a function
    Mode,                 // index into the row's modes
    Table,                // the truth table of three bits: 0 … 255
#define FORM(name) name,  // a struct, nameForm
#include "codegen/ir/op/forms/forms.def"
};
constexpr bool is_form(Attribute attribute) { return attribute > Attribute::Table; }

enum class SpecialRegister : std::uint8_t {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    DynamicSmemSize,
    TotalSmemSize,
    ClusteridX,
    ClusteridY,
    ClusteridZ,
    NclusteridX,
    NclusteridY,
    NclusteridZ,
    ClusterCtaidX,
    ClusterCtaidY,
    ClusterCtaidZ,
    ClusterNctaidX,
    ClusterNctaidY,
    ClusterNctaidZ,
    ClusterCtarank,
    ClusterNctarank,
    Clock,  // this and the following ones change while the kernel runs: op Sample reads them
    Clock64,
    Globaltimer,
};
// clang-format off
inline constexpr std::string_view special_register_names[] = {
    "tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z",
    "laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
    "warpid", "nwarpid", "smid", "nsmid", "gridid", "dynamic_smem_size", "total_smem_size",
    "clusterid.x", "clusterid.y", "clusterid.z", "nclusterid.x", "nclusterid.y", "nclusterid.z",
    "cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctaid.z", "cluster_nctaid.x", "cluster_nctaid.y", "cluster_nctaid.z",
    "cluster_ctarank", "cluster_nctarank", "clock", "clock64", "globaltimer"};
// clang-format on
constexpr Type type_of_register(SpecialRegister which) {
    using enum SpecialRegister;
    return which == GridId || which == Clock64 || which == Globaltimer ? Type::U64 : Type::U32;
}
constexpr bool changes(SpecialRegister which) { return which >= SpecialRegister::Clock; }
/// The type of an operand or result. T is the type of the instruction.
enum class Slot : std::uint8_t {
    None,
    T,
    From,  // the type a conversion starts from
    Wide,  // 64 bits, signed as T
    Sum,   // of products of T and From: u32 if both are unsigned, else i32
    Lane,  // of a packed T, the type of one lane
    Pred,
    U32,
    Address,     // u64 or u32, by the address space that MemoryInfo names
    ToShared,    // u32: the address of shared memory that is written
    FromGlobal,  // u64: the address of global memory that is read
    FromShared,  // u32: the address of shared memory that is read
    AtBarrier,   // u32: that of a barrier in shared memory
    Exactly,     // + a Type: that type
};
constexpr Slot exactly(Type type) { return Slot(int(Slot::Exactly) + int(type)); }
constexpr bool is_address(Slot slot) { return slot >= Slot::Address && slot <= Slot::AtBarrier; }

/// Results [result, result + count) get the registers of operands [operand, operand + count): an accumulator, or the
/// value of a guarded instruction whose guard is false.
struct Tie {
    std::uint16_t result = 0, operand = 0, count = 0;
    bool operator==(const Tie&) const = default;
};

struct Shape {
    Slot result;
    std::array<Slot, 5> arguments{};
    bool vector = false;       // as many T results (or trailing T arguments) as MemoryInfo::count
    bool variadic = false;     // any arguments and results of any types
    Slot second = Slot::None;  // another result
    bool passes_on = false;    // each result is tied to an operand
    // Of a form:
    std::array<std::uint8_t, 5> counts{1, 1, 1, 1, 1};  // of each argument
    std::uint8_t count = 1;                             // of the result
    Tie tie{};

    constexpr std::uint32_t arity() const {
        std::uint32_t n = 0;
        for (std::size_t i = 0; i < arguments.size(); ++i) n += arguments[i] != Slot::None ? counts[i] : 0u;
        return n;
    }
    /// Results that are not elements of a vector.
    constexpr std::uint32_t results() const { return (result != Slot::None ? count : 0u) + (second != Slot::None); }
    constexpr Slot result_slot(std::uint32_t position) const {
        return position && count == 1 && !vector ? second : result;
    }
    /// Of the elements of a vector, which come last, that of all of them.
    constexpr Slot argument_slot(std::uint32_t position) const {
        Slot last = Slot::None;
        for (std::size_t i = 0; i < arguments.size() && arguments[i] != Slot::None; ++i) {
            if (counts[i] == 0) continue;
            last = arguments[i];
            if (position < counts[i]) break;
            position -= counts[i];
        }
        return last;
    }
};
inline constexpr Shape Leaf{Slot::T}, Unary{Slot::T, {Slot::T}}, Binary{Slot::T, {Slot::T, Slot::T}},
    Ternary{Slot::T, {Slot::T, Slot::T, Slot::T}},
    WithCarry{Slot::T, {Slot::T, Slot::T, Slot::Pred}, false, false, Slot::Pred}, Widen{Slot::Wide, {Slot::T, Slot::T}},
    WidenAdd{Slot::Wide, {Slot::T, Slot::T, Slot::Wide}}, Shift{Slot::T, {Slot::T, Slot::U32}},
    FunnelShape{Slot::T, {Slot::T, Slot::T, Slot::U32}}, Extract{Slot::T, {Slot::T, Slot::U32, Slot::U32}},
    Insert{Slot::T, {Slot::T, Slot::T, Slot::U32, Slot::U32}}, Count{Slot::U32, {Slot::T}},
    DotProduct{Slot::Sum, {Slot::T, Slot::From, Slot::Sum}}, Test{Slot::Pred, {Slot::T}},
    Compare{Slot::Pred, {Slot::T, Slot::T}}, Choose{Slot::T, {Slot::T, Slot::T, Slot::Pred}},
    FromTo{Slot::T, {Slot::From}}, Join{Slot::T, {Slot::Lane, Slot::Lane}}, Part{Slot::Lane, {Slot::T}},
    Split{Slot::Lane, {Slot::T}, false, false, Slot::Lane}, PairFromTo{Slot::T, {Slot::From, Slot::From}},
    Read{Slot::T, {Slot::Address}, true}, Write{Slot::None, {Slot::Address, Slot::T}, true},
    Update{Slot::T, {Slot::Address, Slot::T}}, CompareSwap{Slot::T, {Slot::Address, Slot::T, Slot::T}},
    Sync{Slot::None}, SyncLanes{Slot::None, {Slot::U32}}, Naming{Slot::None, {Slot::T}},
    Exchange{Slot::T,
             {Slot::T, Slot::U32, Slot::U32, Slot::U32}},  // value, lane or distance, clamp and segment, members
    Combine{Slot::T, {Slot::T, Slot::U32}}, Indexed{Slot::T, {Slot::T, Slot::From}},
    MatchShape{Slot::U32, {Slot::T, Slot::U32}}, Agreement{Slot::Pred, {Slot::T, Slot::U32}},
    Choice{Slot::Pred, {Slot::U32}}, Vote{Slot::Pred, {Slot::Pred, Slot::U32}},
    BallotShape{Slot::U32, {Slot::Pred, Slot::U32}}, Copying{Slot::None, {Slot::ToShared, Slot::FromGlobal, Slot::U32}},
    Fetching{Slot::T, {Slot::FromShared}}, Putting{Slot::None, {Slot::ToShared, Slot::T}},
    Signalling{Slot::None, {Slot::AtBarrier}}, Variadic{Slot::None, {}, false, true},
    PassOn{Slot::None, {}, false, true, Slot::None, true};

struct OpInfo {
    std::string_view row;
    bool effect = false;  // written as EFFECT: has no line in semantics.hpp
    Shape shape = Binary;
    TypeSet domain = AnyNum;
    TypeSet from = 0;  // the types to convert from; of the second operand, where it has one of its own
    Trait traits = NoTraits;
    Attribute attribute = Attribute::None;
    std::string_view modes{};  // "lo|hi": the choices for the attribute; "plain" is spelled as nothing
    Modifier modifiers = NoModifiers;
    Meeting meets = Meeting::None;  // which threads take part; of a form, at most
    Extent gives = Extent::Thread;  // … and which of them get the same
    Work starts = Work::None;       // what continues after it until an instruction that
    Work commits = Work::None;      // … makes a group of it, and
    Work awaits = Work::None;       // … waits for it
    double ulp = 0;                 // error of the approximate form, in units of the last place
    double absolute = 0;            // … or its absolute error, between -pi and pi
};

inline constexpr OpInfo op_table[] = {
#define OP(name, ...) {.row = #name, .effect = false, __VA_ARGS__},
#define EFFECT(name, ...) {.row = #name, .effect = true, __VA_ARGS__},
#include "codegen/ir/op/ops.def"
};
inline constexpr int op_count = int(std::size(op_table));

constexpr const OpInfo& info(Op op) { return op_table[int(op)]; }
constexpr bool has(Op op, Trait trait) { return info(op).traits & trait; }
/// Whether its attribute is a form, which says what differs from the row.
constexpr bool has_form(Op op) { return is_form(info(op).attribute); }

/// The mode that an op's attribute chooses, by number and by name; "" and nothing if it has no such mode.
constexpr std::string_view mode_name(Op op, std::uint64_t mode) {
    std::string_view rest = info(op).modes;
    for (; mode && !rest.empty(); --mode) {
        const std::size_t bar = rest.find('|');
        rest = bar == rest.npos ? "" : rest.substr(bar + 1);
    }
    return rest.substr(0, rest.find('|'));
}
constexpr std::optional<std::uint64_t> mode_named(Op op, std::string_view name) {
    for (std::uint64_t mode = 0; !mode_name(op, mode).empty(); ++mode)
        if (mode_name(op, mode) == name) return mode;
    return {};
}

/// Whether a convert from one type to the other exists: between numbers, and between 8-bit floats and f32 or f16, the
/// packed ones lane by lane.
constexpr bool converts(Type to, Type from) {
    const auto small = [](Type a, Type b) {
        return (contains(Float8, a) && (b == Type::F32 || b == Type::F16)) ||
               (contains(PackedFloat8, a) && b == Type::F16x2);
    };
    return (contains(AnyNum, to) && contains(AnyNum, from)) || small(to, from) || small(from, to);
}

/// The name in IR text: the row's name in lower case, words joined by underscores ("atomic_add").
std::string_view name(Op op);
std::optional<Op> op_named(std::string_view text);

/// The type of a slot in an instruction of type `type` (converting from `from`). Address is resolved by
/// the instruction's space, not here.
constexpr Type at(Slot slot, Type type, Type from = Type::Void) {
    if (slot >= Slot::Exactly) return Type(int(slot) - int(Slot::Exactly));
    switch (slot) {
        case Slot::T: return type;
        case Slot::From: return from;
        case Slot::Wide: return is_signed(type) ? Type::I64 : Type::U64;
        case Slot::Lane: return lane(type);
        case Slot::Pred: return Type::Pred;
        case Slot::Sum: return is_signed(type) || is_signed(from) ? Type::I32 : Type::U32;
        case Slot::U32:
        case Slot::ToShared:
        case Slot::FromShared:
        case Slot::AtBarrier: return Type::U32;
        case Slot::FromGlobal: return Type::U64;
        default: return Type::Void;
    }
}

}  // namespace ikat::ir
