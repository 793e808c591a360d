// SPDX-License-Identifier: Apache-2.0
// The IR: SSA with block arguments. A Function is a plain value: copy it to keep a snapshot, compare to test.
//
// Instructions live in an arena and are named by Inst; a block lists the ones it holds, in order. Operands and results
// are spans of two pools, so that an instruction may have any number of either. Values are results or block parameters.
// After selection the same IR holds target operations: the types stay, but only widths must agree (see verify.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/ir/access.hpp"
#include "codegen/ir/op/effects.hpp"
#include "codegen/ir/op/evaluate.hpp"
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"
#include "codegen/support/diagnostic.hpp"
#include "codegen/support/id.hpp"

namespace ikat::ir {

enum class Value : std::uint32_t {};
enum class Inst : std::uint32_t {};
enum class Block : std::uint32_t {};
inline constexpr Value no_value = no_id<Value>;
inline constexpr Inst no_inst = no_id<Inst>;

/// Elements [first, first + count) of a pool of the Function.
struct Range {
    std::uint32_t first = 0, count = 0;
    bool operator==(const Range&) const = default;
};

struct Instruction {
    Op op{};
    Type type = Type::Void;
    Type from = Type::Void;  // conversions only
    FloatInfo fp{};
    MemoryInfo memory{};
    Form attribute = 0;           // meaning by info(op).attribute
    Range operands{}, results{};  // see Function::operands, results
    Value guard = no_value;  // a pred; if false, the instruction does nothing and its results are its tied operands
    bool guard_negated = false;
    Tie tie{};
    Location where{};
    bool operator==(const Instruction&) const = default;
};
constexpr Effects effects(const Instruction& inst) { return effects(inst.op, inst.attribute, inst.memory); }

struct Jump {
    Block to{};
    std::vector<Value> arguments{};
    bool operator==(const Jump&) const = default;
};

struct Terminator {
    enum class Kind : std::uint8_t {
        None,      // still being built
        Jump,      // targets[0]
        Branch,    // targets[0] if condition (pred) is true, else targets[1]
        Multiway,  // targets[condition] (u32); the last target for larger values
        Return,
        Trap,
    };
    Kind kind = Kind::None;
    Value condition = no_value;
    bool uniform = false;      // Branch, Multiway: all threads of a warp that get here go the same way
    std::uint32_t unroll = 0;  // Branch, back edge of a loop: the requested unroll factor; 0: the compiler chooses
    std::vector<Jump> targets{};
    Value given = no_value;  // Return: the value returned to the caller, if any
    Location where{};
    bool operator==(const Terminator&) const = default;
};

struct BasicBlock {
    std::vector<Value> parameters;
    std::vector<Inst> instructions;
    Terminator terminator;
    bool operator==(const BasicBlock&) const = default;
};

/// Where a value comes from: result `position` of `instruction`, or, if that is no_inst, parameter `position` of
/// `block`.
struct Definition {
    Type type = Type::Void;
    Inst instruction = no_inst;
    Block block{};  // of a parameter
    std::uint32_t position = 0;
    bool operator==(const Definition&) const = default;
};

struct Parameter {
    std::string name;
    Type type = Type::U64;  // as passed: pointers are u64
    Access access = Access::Value;
    Type element = Type::Void;    // of a pointer
    std::uint32_t alignment = 0;  // of a pointer, in bytes, as promised by contract; 0 = the element's; or of raw bytes
    std::uint32_t bytes = 0;      // of raw bytes (of type u8): their number; 0 = a scalar or a pointer
    std::uint64_t multiple = 1;   // of an integer: a promised divisor
    bool operator==(const Parameter&) const = default;
};

/// The attribute of op Param: the parameter to read, and for raw bytes the offset to read at.
constexpr Word parameter_at(std::uint32_t parameter, std::uint32_t offset) { return Word{offset} << 32 | parameter; }
constexpr std::uint32_t parameter_of(Word attribute) { return std::uint32_t(attribute); }
constexpr std::uint32_t offset_in_parameter(Word attribute) { return std::uint32_t(attribute >> 32); }

/// A shared, local or constant array.
struct Symbol {
    std::string name;
    Space space = Space::Shared;
    Type element = Type::U8;
    std::uint64_t count = 0;      // elements; of dynamic shared memory: those that the kernel itself needs
    std::uint32_t alignment = 0;  // bytes
    bool dynamic = false;         // in dynamic shared memory
    std::uint32_t offset = 0;     // ... where it begins there, in bytes
    std::vector<Word> values{};   // of a constant array: each element's bits
    Location where{};             // of its declaration
    bool operator==(const Symbol&) const = default;
};

/// The size in bytes of the non-dynamic symbols of a space, laid out one after another at their alignments.
std::uint64_t symbol_bytes(std::span<const Symbol> symbols, Space space);
/// The dynamic shared memory that the kernel itself needs, before what a launch gives it.
std::uint64_t own_dynamic_bytes(std::span<const Symbol> symbols);

inline constexpr std::string_view cluster_words[] = {"cluster_x", "cluster_y", "cluster_z"};
struct LaunchBounds {
    std::uint32_t max_threads = 0, min_blocks = 0, max_registers = 0;  // 0 = not given
    std::array<std::uint32_t, 3> cluster{1, 1, 1};                     // the blocks of each
    std::uint32_t cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
    bool operator==(const LaunchBounds&) const = default;
};

class Function {
    template <class Pool>
    static auto slice(Pool& pool, Range range) {
        return std::span(pool).subspan(range.first, range.count);
    }

public:
    std::string name;
    bool is_entry = true;
    std::vector<Parameter> parameters;
    Type gives = Type::Void;  // the return type of a function
    std::vector<Symbol> symbols;
    std::vector<std::string> texts;  // of print, check and opaque; names of called functions
    LaunchBounds bounds;

    const Instruction& operator[](Inst inst) const { return instructions_[index(inst)]; }
    Instruction& operator[](Inst inst) { return instructions_[index(inst)]; }
    const BasicBlock& operator[](Block block) const { return blocks_[index(block)]; }
    BasicBlock& operator[](Block block) { return blocks_[index(block)]; }
    const Definition& operator[](Value value) const { return values_[index(value)]; }
    Type type(Value value) const { return values_[index(value)].type; }

    std::span<const Value> operands(Inst inst) const { return slice(operands_, (*this)[inst].operands); }
    std::span<Value> operands(Inst inst) { return slice(operands_, (*this)[inst].operands); }
    std::span<const Value> results(Inst inst) const { return slice(results_, (*this)[inst].results); }
    /// The only result of an instruction that has one.
    Value result(Inst inst) const { return results_[(*this)[inst].results.first]; }

    Block entry() const { return Block(0); }
    auto blocks() const { return ids<Block>(blocks_.size()); }
    std::size_t block_count() const { return blocks_.size(); }
    std::size_t value_count() const { return values_.size(); }
    std::size_t inst_count() const { return instructions_.size(); }

    /// Memory for about this many instructions.
    void reserve(std::size_t instructions);
    Block add_block();
    Value add_parameter(Block block, Type type);
    /// Makes an instruction with fresh results of the given types; it is in no block yet. `base` gives everything but
    /// operands and results.
    Inst create(const Instruction& base, std::span<const Value> operands, std::span<const Type> results);
    Inst append(Block block, const Instruction& base, std::span<const Value> operands, std::span<const Type> results);
    void set_operands(Inst inst, std::span<const Value> operands);
    /// Gives a value another type: selection does, when an operation of the target gives wider or narrower results.
    void set_type(Value value, Type type) { values_[index(value)].type = type; }
    /// Replaces a block's parameters; the caller must adapt the arguments of jumps to it.
    void set_parameters(Block block, std::vector<Value> parameters);
    /// Drops the blocks for which keep is false and renumbers the rest in order; no kept block may jump to a dropped
    /// one.
    void keep_blocks(const std::vector<bool>& keep);
    /// Keeps the blocks of the list, in its order, and renumbers them; none of them may jump to one left out.
    void order_blocks(std::span<const Block> order);
    std::uint32_t add_text(std::string_view text);

    /// Calls f(Value&) for every use in an instruction (its guard included) or a terminator (its jumps' arguments
    /// included).
    void each_use(Inst inst, auto&& f) {
        for (Value& value : operands(inst)) f(value);
        if ((*this)[inst].guard != no_value) f((*this)[inst].guard);
    }
    void each_use(Inst inst, auto&& f) const {
        for (Value value : operands(inst)) f(value);
        if ((*this)[inst].guard != no_value) f((*this)[inst].guard);
    }
    static void each_use(auto& terminator, auto&& f) {
        if (terminator.condition != no_value) f(terminator.condition);
        if (terminator.given != no_value) f(terminator.given);
        for (auto& jump : terminator.targets)
            for (auto& value : jump.arguments) f(value);
    }

    bool operator==(const Function&) const = default;

private:
    std::vector<Instruction> instructions_;
    std::vector<BasicBlock> blocks_;
    std::vector<Definition> values_;
    std::vector<Value> operands_, results_;
};

/// The contents of one PTX file: an entry, after the functions that it calls.
struct Module {
    std::vector<Function> functions;
    bool operator==(const Module&) const = default;
};

/// The bits of the Const instruction that defines value, if it is defined by one.
std::optional<Word> constant(const Function& fn, Value value);

}  // namespace ikat::ir
