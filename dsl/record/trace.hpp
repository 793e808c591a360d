// SPDX-License-Identifier: Apache-2.0
// The functions that the language's templates call to record a kernel. Nothing here is a template, so that a file with
// a kernel compiles little; trace.cpp and its neighbours do the work.
// While a kernel is captured, one recorder per thread builds its ast::KernelTree. Expressions are trees owned by the
// recorder; a Value refers to one. An operation becomes a node of the AST when its tree is committed: assigned, stored,
// used as an index or passed to another thread. Reads of variables and loads become nodes immediately, because they
// belong to the place where they are written.
//
//     a * x[i] + y[i]          trees            nodes so far
//     x[i]                     load             read i, load x
//     a * x[i]                 mul(read, load)  read a
//     y[i] = ...               -                ..., mul, add, store
//
// A call outside of any capture, or with a value of another capture, throws Error.
#pragma once
#include <cstdint>
#include <source_location>

#include "codegen/ir/op/evaluate.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::trace {

using Where = std::source_location;

/// A tree of the current capture. `effects` (atomics and shuffles) and `loads` count what its full expression has done
/// so far, because C++ does not specify the order in which operands are evaluated.
struct Recorded {
    std::uint32_t tree = 0;
    std::uint32_t capture = 0;
    std::uint8_t effects = 0;
    bool atomic = false;  // one of the effects changes memory
    bool loads = false;
    bool unguarded = false;  // one of the loads is not a load_if
};

/// The same value once it is named: its effects belong to an earlier full expression.
inline Recorded settled(Recorded value) { return {.tree = value.tree, .capture = value.capture}; }

/// The same value without its side effects, which in_order() has already checked.
inline Recorded pure(Recorded value) {
    value.effects = 0, value.atomic = false;
    return value;
}

struct Operation {
    ir::Op op{};
    ir::Type type = ir::Type::Void;          // of the result
    ir::Type operand_type = ir::Type::Void;  // that the operation works on
    ir::Type from = ir::Type::Void;          // conversions
    ir::FloatInfo fp{};
    ir::Form attribute = 0;
};

struct RecordedValues {
    const Recorded* first = nullptr;
    std::uint32_t count = 0;
    const Recorded* begin() const { return first; }
    const Recorded* end() const { return first + count; }
    const Recorded& operator[](std::uint32_t i) const { return first[i]; }
};

// ---- values

/// A host number as a value of `type`. A number that does not fit is a diagnostic.
Recorded literal(ir::Type type, std::int64_t number);
Recorded literal(ir::Type type, std::uint64_t number);
Recorded literal(ir::Type type, double number);
Recorded literal(ir::Type type, bool truth);
Recorded special(ir::SpecialRegister which);  // one that is constant
/// The types of an operation's several results, and where to store them.
struct Results {
    const ir::Type* types = nullptr;
    Recorded* values = nullptr;
    std::uint32_t count = 0;
};

/// A pure operation; one with several results becomes a node immediately.
Recorded operation(const Operation& what, RecordedValues arguments);
void operation(const Operation& what, RecordedValues arguments, const Results& results, const Where& where);
/// select(condition, then, otherwise), and pred & pred, pred | pred: like operation(), but a load in the same
/// expression is a diagnostic, because it would happen regardless of the condition.
Recorded choice(const Operation& what, RecordedValues arguments);
Recorded convert(ir::Type to, ir::Type from, Recorded value, ir::FloatInfo fp);
/// The value as one node, recorded here.
Recorded committed(Recorded value);
/// Puts the reads of the leaves of an expression with several lanes in source order, if it has `several` operands. A
/// side effect among them is a diagnostic.
void in_order(RecordedValues leaves, bool several);

// ---- variables

inline constexpr std::uint32_t moved_from = ~0u;
struct Variable {
    std::uint32_t index = moved_from;
    std::uint32_t capture = 0;
};

Variable declare(ir::Type type, const Where& where);
/// declare and assign.
Variable define(ir::Type type, Recorded value, const Where& where);
void assign(Variable variable, Recorded value, const Where& where);
Recorded read(Variable variable);
/// A host index into `size` registers; a diagnostic and 0 if it is out of bounds.
std::uint64_t checked_index(std::int64_t index, std::uint64_t size);
/// For a member of a struct that is not a field known to Hana: a diagnostic, and a dummy value.
Recorded no_field();
/// The same where no dummy is possible: throws Error.
[[noreturn]] void refuse_member();
/// The width of a shuffle group: a power of two up to 32; otherwise a diagnostic, and 32.
int checked_width(int width, const Where& where);
/// The number of a lane of a packed value, 0 or 1; otherwise a diagnostic, and 0.
int checked_lane(int number);
/// The same for a value with that many lanes.
std::size_t checked_lane(std::int64_t number, std::size_t lanes);

// ---- memory

enum class Direction : std::uint8_t { Read, Write, ReadWrite };

/// The base of a subscript: a pointer parameter, a shared or local array, or a slice of one.
struct Array {
    std::uint32_t index = 0;
    std::uint32_t capture = 0;
    bool symbol = false;  // index into the kernel's symbols, else into its parameters
    bool sliced = false;
    Direction direction = Direction::ReadWrite;
    ir::Type element = ir::Type::Void;
    Recorded first{};   // of a slice: elements before it; a u64 in a parameter, a u32 in a symbol
    bool peer = false;  // of a block of the cluster, where its address is:
    Recorded base{};
};

/// A number of type `type` in a parameter of raw bytes, at an offset in bytes; if none can be there, a diagnostic, and
/// the first bytes.
Recorded raw_number(const Array& parameter, ir::Type type, std::int64_t offset, const Where& where);
/// The generic address of a parameter of raw bytes, a u64.
Recorded raw_address(const Array& parameter, const Where& where);

/// A u32 or u64 index and its location in the source.
struct Position {
    Recorded value;
    bool wide = false;  // u64
    Where where{};
};

/// A vector has 2, 4, 8 or 16 elements.
inline constexpr int max_lanes = 16;

/// What is known of the rows of the array that a subscript is in, if it has indices for the row and within it.
struct KnownRows {
    std::uint64_t bytes = 0;      // of each; 0: nothing is known
    std::uint32_t swizzle = ~0u;  // the bytes within which their pieces are swizzled; ~0: not known
};

/// `count` elements of an array, at a fixed index; for arrays that may be read, their values at the time of the
/// subscript.
struct Slot {
    Array array;
    Recorded index;
    Recorded lanes[max_lanes]{};
    std::uint8_t count = 1;
    Where where{};
    KnownRows rows{};
};

Array declare_array(ir::Space space, ir::Type element, std::uint64_t count, const Where& where);
/// An array in constant memory with a copy of the elements at `first`. Equal arrays are shared.
Array declare_constant(ir::Type element, std::uint64_t count, const void* first, std::uint64_t given,
                       const Where& where);
/// Dynamic shared memory for `count` elements, after what earlier calls have asked for.
Array declare_dynamic(ir::Type element, Position count);

/// A number in a struct in memory, by its offset in bytes.
struct FieldPlace {
    ir::Type type = ir::Type::Void;
    std::uint32_t offset = 0;
};
struct StructLayout {
    const FieldPlace* fields = nullptr;
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;  // of the struct, with its padding
};

/// array[index]; with `count` = 2, 4, 8 or 16, elements index * count and the next.
Slot subscript(const Array& array, const Position& index, std::uint8_t count = 1);
/// array[i, j, ...] of an array with extents, row-major.
Slot subscript(const Array& array, const Position* indices, const std::uint64_t* extents, std::uint8_t rank);
/// [i, j, ...] as one index.
Position flattened(const Position* indices, const std::uint64_t* extents, std::uint8_t rank);
/// The fields of array[index], where indices, also those of slices, count structs.
void subscript(const Array& array, const Position& index, const StructLayout& layout, Slot* fields);
/// The array from element `first` on.
Array slice(const Array& array, const Position& first);
/// The same memory as elements of another type. A slice must begin at a whole number of them.
Array viewed(const Array& array, ir::Type element);
/// A shared array of the block of the cluster with this rank, a u32.
Array peer(const Array& array, Recorded rank, const Where& where);
/// The array from steps[0] * pitches[0] + steps[1] * pitches[1] + ... on. The pitches are u32; the products and the sum
/// are 64 bits wide, so that they do not wrap. It is part of the current expression, unless it is `fixed`.
Array advanced(const Array& array, const Position* steps, const Recorded* pitches, std::uint32_t count);
Array fixed(const Array& array);
/// The number of one of a view's extents or pitches (`what`); a diagnostic and 0 if there are only `count`.
std::uint32_t checked_dimension(std::int64_t dimension, std::uint32_t count, const char* what);
Slot load_if(const Array& array, Recorded condition, const Position& index, RecordedValues other);
void store(const Slot& slot, RecordedValues values, const Where& where);
void store_if(const Array& array, Recorded condition, const Position& index, RecordedValues values, const Where& where);
/// Gives the old element.
Recorded atomic(ir::Op op, const Slot& slot, RecordedValues arguments, ir::Order order, ir::Scope scope,
                const Where& where);
/// A load and a store that other threads can rely on: with an order, or volatile if the order is Weak.
Recorded ordered_load(const Slot& slot, ir::Order order, ir::Scope scope, const Where& where);
void ordered_store(const Slot& slot, Recorded value, ir::Order order, ir::Scope scope, const Where& where);
/// Updates the elements of a vector, each atomically, according to the mode of op VectorReduce.
void vector_reduce(ir::Word mode, const Slot& slot, RecordedValues values, ir::Order order, ir::Scope scope,
                   const Where& where);

// ---- other threads, and the host

void require_whole_warps();
void require_linear_blocks();
void require_linear_grid();
void require_threads(std::uint32_t count);
Recorded exchange(const Operation& what, RecordedValues arguments, const Where& where);  // shuffles and votes
void barrier(const Where& where);
void effect(const Operation& what, RecordedValues arguments, const Where& where);  // an operation without a value
void sync_warp(Recorded members, const Where& where);
void print(const char* text, RecordedValues arguments, const Where& where);
/// With values the text has a {} for each, as in print(); without values it is literal.
void check(Recorded condition, const char* text, RecordedValues arguments, const Where& where);

/// An operand of inline_ptx(): a value that its text reads, or a variable that it writes, or both. The text sees a
/// register of type `type`, which holds an integer of 8 bits in 32.
struct TextOperand {
    ir::Type type = ir::Type::Void;
    bool reads = false, writes = false;
    Recorded value{};     // where it reads
    Variable variable{};  // where it writes, of type `variable_type`
    ir::Type variable_type = ir::Type::Void;
};
void inline_ptx(const char* text, const TextOperand* operands, std::uint32_t count, const Where& where);

// ---- control flow

/// A user's lambda that records a region.
struct Body {
    void (*call)(void* object) = nullptr;
    void* object = nullptr;
};
struct Condition {
    Recorded (*call)(void* object) = nullptr;
    void* object = nullptr;
};

struct If {
    std::uint32_t node = 0;
    std::uint32_t capture = 0;
};
If if_(Recorded condition, Body body, const Where& where);
/// Both return the If that can still get an else.
If else_if(If open, Condition condition, Body body, const Where& where);
void else_(If open, Body body, const Where& where);
void while_(Condition condition, Body body, const Where& where);
void break_(const Where& where);
void continue_(const Where& where);
void return_(const Where& where);

/// The body of an inlined device function, the scope that return_value() leaves.
class Inlined {
public:
    /// Begins it. The type of a function without a result is Void.
    Inlined(ir::Type result, const Where& where);
    Inlined(const Inlined&) = delete;
    ~Inlined();
    /// Ends it with the value at its end; returns the result over all paths.
    Recorded end(Recorded value, const Where& where);
    void end();

private:
    void close();
    Variable result_;
    std::uint32_t region_ = 0;  // the region around it
    bool open_ = true;
};
/// The type that return_value() must have here; Void, with a diagnostic, outside a function.
ir::Type returned_type(const Where& where);
/// Leaves the innermost function with a value of type `given`, or without one if that is Void.
void return_value(ir::Type given, Recorded value, const Where& where);

/// Sets whether products and sums of floats recorded during its lifetime may become one fma.
class Contraction {
public:
    explicit Contraction(bool allowed);
    Contraction(const Contraction&) = delete;
    ~Contraction();

private:
    bool before_;
};
/// The current setting.
bool contracted();

/// Checks that the host's step of a range is not 0; returns whether it counts downwards.
bool counts_down(double step, const Where& where);

/// A device loop around the body of a host range-for: begin() opens it, the end of the host iteration closes it.
class RangeLoop {
public:
    RangeLoop(ir::Type type, Recorded begin, Recorded end, Recorded step, std::uint32_t unroll, const Where& where);
    RangeLoop(const RangeLoop&) = delete;
    ~RangeLoop();
    /// Begins the body; returns the loop variable.
    Recorded open();
    /// Ends the body. False if it must run once more, to be compared with the first time.
    bool close();

private:
    ir::Type type_;
    Recorded begin_, end_, step_;
    std::uint32_t unroll_;
    Where where_;
    std::uint32_t node_ = 0, exceptions_ = 0;
    enum class State : std::uint8_t { Unused, Open, Done } state_ = State::Unused;
};

}  // namespace ikat::trace

namespace ikat {

/// What a kernel may do with memory: In, Out and InOut.
using trace::Direction;
/// The location of a call, for functions that record: with `const Where& where = Where::current()` as its last
/// parameter a function knows where it is called, and findings about what it records have that location.
using trace::Where;

}  // namespace ikat
