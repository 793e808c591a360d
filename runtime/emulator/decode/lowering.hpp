// SPDX-License-Identifier: Apache-2.0
// Decoding, first half: PTX instructions become micro-ops over values. A value is a register of the kernel, a
// temporary, a constant or a special register; the second half (layout.cpp) assigns slots in the frame to values and
// orders the micro-ops.
// Rules, selected by the form of an instruction (rules.hpp), emit ops through the class Lowering.
// Functions are inlined where they are called; their .param variables are local memory. Functions that cannot be
// inlined (recursion, calls through a register) or would make the kernel too large are lowered once, after the kernel,
// and called (call.cpp).
#pragma once
#include <array>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "runtime/emulator/core/kernel.hpp"
#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/decode/modifiers.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

enum class VReg : std::uint32_t {};
enum class Scalar : std::uint8_t;  // ops/scalar.hpp

struct VRegInfo {
    enum class Kind : std::uint8_t { Register, Constant, Special };
    Kind kind = Kind::Register;
    std::uint8_t slot = 4;    // bytes per lane in the frame: 4 or 8; 0 for a predicate
    std::uint8_t width = 4;   // as declared: 1, 2, 4, 8 (0 for a predicate)
    bool keeps_slot = false;  // no other value may have its slot: a product in flight writes it
    std::uint64_t bits = 0;   // of a constant
    Special special{};
};

/// An op that another one of its block, before it, is about, too: its micro, and its offset from the other's address.
struct GroupedOp {
    std::int32_t offset = 0;
    std::uint32_t micro = 0;
};

/// Where control continues after a micro-op.
enum class Flow : std::uint8_t { Next, Jump, Branch, Table, Call, End };

/// Operands in Lowering::listed, results first. Field d of the op is their index in the kernel's lists: their number,
/// then slot and bytes of each.
struct OperandList {
    std::uint32_t first = 0, results = 0, count = 0;
};

struct Micro {
    Handler run = nullptr;
    std::array<std::uint32_t, 6> fields{};
    std::uint8_t reads = 0, writes = 0;  // sets of Field that hold values; the others are literals
    OperandList list{};                  // operands that do not fit into fields
    OperandList kept{};                  // a tool's copies of sources that are results, too, in the order of sources
    bool partial = false;                // under a guard: inactive lanes keep the old value
    bool apart = false;                  // destinations must not share a slot with sources
    bool first = false;                  // of its instruction, for counting
    bool checks = false;                 // a tool's check of the next one, whose fields it reads; it has none itself
    bool dropped = false;                // a tool's, of which nothing is left
    bool counts = false;                 // y is the number of instructions since the last that counts
    Flow flow = Flow::Next;
    std::uint32_t label = 0;  // of Jump and Branch; first of Table
    std::uint32_t targets = 0;
    struct {
        std::uint32_t first = 0, count = 0;
    } grouped{};  // in Lowering::grouped: the ops that a tool's is about. Field d is their index in the kernel's lists:
                  // their number; for each the offset, and how far on its op is, here and in the plain code
    const ptx::Instruction* instruction = nullptr;
    MicroInfo info{};
};

/// One that does that, without operands.
inline Micro micro_of(const Behaviour& behaviour) { return {.run = behaviour.run, .info = behaviour.info}; }

/// Ops that have to be directly before and after another: one that does its work, too, and continues after it; one that
/// it comes back to.
struct Neighbours {
    std::optional<Micro> before{}, after{};
};

/// The operands of an instruction. Accessing a missing one ends the lowering of the instruction.
struct MissingOperand {};
class Operands {
public:
    Operands() = default;
    Operands(std::span<const ptx::Operand> operands) : operands_(operands) {}
    const ptx::Operand& operator[](std::size_t i) const {
        if (i >= operands_.size()) throw MissingOperand{};
        return operands_[i];
    }
    std::size_t size() const { return operands_.size(); }
    bool empty() const { return operands_.empty(); }
    auto begin() const { return operands_.begin(); }
    auto end() const { return operands_.end(); }
    Operands from(std::size_t first) const {
        if (first > operands_.size()) throw MissingOperand{};
        return operands_.subspan(first);
    }
    Operands one(std::size_t i) const { return std::span(&(*this)[i], 1); }

private:
    std::span<const ptx::Operand> operands_;
};

struct Binding {
    enum class Kind : std::uint8_t { Register, Memory, Label, Table, Function, Prototype };
    Kind kind = Kind::Register;
    VReg value{};                               // Register
    VReg high{};                                // ... of 128 bits: its upper half
    bool is_pair = false;                       // ... of 128 bits
    Space space = Space::Global;                // Memory
    std::uint64_t address = 0, bytes = 0;       // Memory: as seen by instructions of its space
    bool on_stack = false;                      // Memory: address counts from the stack pointer of the function
    std::uint32_t label = 0;                    // Label
    ptx::Span targets{};                        // Table
    const ptx::Function* function = nullptr;    // Function
    const ptx::Directive* directive = nullptr;  // Prototype: .callprototype or .calltargets
};

/// The offsets of the results and parameters of a called function from its stack pointer.
struct Signature {
    struct Slot {
        std::uint32_t offset = 0, bytes = 0;
    };
    std::vector<Slot> results, parameters;
    std::uint32_t bytes = 0;
};
Signature signature_of(const ptx::Module& module, const ptx::Function& function);

/// What an instruction accesses, for tools: `bytes` at base + offset.
struct MemoryAccess {
    VReg base{};
    std::int32_t offset = 0;
    Space space = Space::Generic;
    std::uint32_t bytes = 0;
    Direction direction = Direction::Read;
    bool cached = true;
    bool is_limited = false;  // to as many bytes as an operand says
};

/// Where a result of `type` is computed; finish() then moves it to the register, extended to its width.
struct Result {
    VReg at{};
    VReg to{};
    Type type{};
    bool is_register = false;
};

struct AddressOperand {
    VReg base{};
    std::int32_t offset = 0;
    Space space = Space::Generic;
    bool fixed = false;  // without a register: only `offset`, in `space`
};

/// Where dynamic shared memory is: what the launch gives, and by their offsets the arrays whose part of it is known.
struct DynamicPlaces {
    std::uint64_t rest = 0;
    std::map<std::uint64_t, std::uint64_t> arrays{};
    bool operator==(const DynamicPlaces&) const = default;
};

class Lowering;
class Rules;
/// Lowers the instruction `current`: emits its ops.
using Rule = void (*)(Lowering&, Modifiers&, Operands);

/// A kernel under construction: the interface for rules (rules.hpp).
class Lowering {
public:
    /// Dynamic shared memory is after the static part, whose size, as what the kernel uses, is known only after a first
    /// run.
    Lowering(const ptx::Module& module, const ModuleMemory& variables, DecodedKernel& kernel,
             const DynamicPlaces& dynamic, const Tools& tools);
    ~Lowering();
    void run(const ptx::Function& entry);

    const ptx::Module& module;
    const ModuleMemory& variables;
    DecodedKernel& kernel;

    // ---- ops
    std::vector<Micro> micros;
    std::vector<std::uint32_t> labels;        // micro index by label
    std::vector<std::uint32_t> table_labels;  // targets of Table micros

    /// Of an op that accesses memory, x is the offset from the address, unless it is a value.
    Micro& emit(const Behaviour& behaviour, std::uint8_t writes, std::uint8_t reads,
                std::array<std::uint32_t, 6> fields);
    /// Tools are told of the op and not of its neighbours, and have no ops between them.
    Micro& emit(Micro micro, const Neighbours& neighbours = {});
    OperandList list(std::span<const VReg> results, std::span<const VReg> sources);
    /// Emits a tool's op, of which other tools are not told; a check directly before the op that they are told of.
    void put(Micro micro);
    /// d = behaviour(sources...), lane by lane
    void apply(const Behaviour& behaviour, VReg d, std::initializer_list<VReg> sources, std::uint32_t x = 0);
    /// Counts the instructions up to this point, where a warp may be stopped.
    void count_here();
    void jump_to(std::uint32_t label);
    void branch_to(std::uint32_t label, VReg predicate, bool unless, bool uniform = false);
    std::uint32_t new_label();
    void place_label(std::uint32_t label) { labels[label] = std::uint32_t(micros.size()); }
    void tell_tools(const AddressOperand& at, MemoryAccess access);
    void tell_tools_of_block(std::uint32_t begin, std::uint32_t end);
    std::uint32_t asked = 0;  // the slot of the tool that is asked

    // ---- values
    std::vector<VRegInfo> values;
    std::vector<VReg> listed;  // of operand lists
    std::vector<GroupedOp> grouped;

    VReg new_value(std::uint8_t slot, std::uint8_t width);
    VReg temporary(std::uint8_t slot) { return new_value(slot, slot); }
    VReg constant(std::uint64_t bits, std::uint8_t slot);
    VReg special(Special special);
    VReg resized(VReg value, std::uint8_t slot);
    VReg with_offset(VReg base, std::int64_t offset);

    // ---- operands of the instruction
    const ptx::Instruction* current = nullptr;

    VReg predicate(const ptx::Operand& operand);
    VReg source(const ptx::Operand& operand, Type type);
    Result result(const ptx::Operand& operand, Type type);
    void finish(const Result& result);
    AddressOperand address(const ptx::Operand& operand, Space space);
    AddressOperand address_in_cluster(const ptx::Operand& operand);
    [[noreturn]] void unsupported(std::string_view why, std::string_view hint = {}) const;
    /// The instruction is wrong.
    [[noreturn]] void refuse(FaultCode code, std::string message) const;

    // ---- names and bodies
    const Binding* find(ptx::Name name);
    Binding declare_memory(const ptx::Variable& variable, const ptx::Variable::Declarator& declarator);
    void body(const ptx::Function& function);
    std::uint32_t number_of(const ptx::Function& function) const {
        return std::uint32_t(&function - module.functions.data());
    }

    using Scope = std::unordered_map<ptx::Name, Binding>;
    std::vector<Scope> scopes;
    std::size_t function_base = 0;  // the first scope of the function being inlined
    std::vector<const ptx::Function*> callers;
    std::uint32_t return_label = 0;
    struct Root {
        std::uint32_t function = 0, label = 0;  // number in the module, its first label
    };
    std::vector<Root> roots;              // functions that are called
    bool on_stack = false;                // inside one of them
    VReg stack_pointer{};                 // ... its
    std::uint32_t frame_used = 0;         // ... bytes of its frame
    bool first = false;                   // the next micro is the first of its instruction
    std::optional<VReg> carry_flag;       // the carry flag, once there is one
    std::uint64_t dynamic_alignment = 0;  // of dynamic shared memory; 0: the kernel has none
    struct DynamicArray {
        std::string_view name;
        std::uint64_t bytes = 0;
        std::uint32_t line = 0;  // of its declaration
    };
    std::map<std::uint64_t, DynamicArray> dynamic_arrays;  // those used whose part is known, by offset

private:
    void append(const Micro& micro);
    void append_neighbour(Micro micro);
    void open_scope(std::span<const ptx::Statement> statements, const ptx::Function& function);
    void declare(const ptx::Variable& variable);
    void declare_registers(const ptx::Variable& variable);
    void define(ptx::Name name, const Binding& binding);
    void module_shared(ptx::Name name);
    void instruction(const ptx::Instruction& instruction);
    void instruction_body(const ptx::Instruction& instruction);
    VReg plain_source(const ptx::Operand& operand, const Binding* binding, Type type);
    std::uint64_t literal(const ptx::Operand& operand, Type type) const;
    void note_offsets(Operands operands);
    void use_offset(const ptx::Operand& operand);

    const DynamicPlaces& dynamic_;
    std::uint64_t dynamic_place(const ptx::Variable& variable, const ptx::Variable::Declarator& declarator);
    KnownModifiers known_modifiers_;
    const std::unique_ptr<Rules> rules_;
    Tools tools_;                 // by slot; nullptr: it has nothing to do here
    std::optional<Micro> check_;  // a tool's, of the op that is being emitted
    Scope module_scope_;
    std::unordered_map<const ptx::Variable::Declarator*, Binding> shared_of_functions_;  // one for all inlined copies
    using Names = std::unordered_set<ptx::Name>;
    std::unordered_map<const ptx::Function*, Names> products_of_functions_;  // registers, of those that have products
    const Names* of_products_ = nullptr;                    // those of the function that is being lowered
    bool guarded_ = false;                                  // inside a guard
    std::vector<const ptx::Operand*> unused_offsets_;       // operands of the instruction of which one was written
    std::unordered_map<std::uint64_t, VReg> constants_[3];  // by slot: predicate, 4, 8
    std::vector<VReg> specials_;
};

/// The value of a special register (special.cpp); clocks are read where they are used.
std::optional<Special> special_register(const ptx::Module& module, const ptx::Operand& operand);
/// The elements of %tid and others that are named without .x, .y or .z; the last is 0.
std::optional<std::array<Special, 4>> special_vector(const ptx::Module& module, const ptx::Operand& operand);
bool is_clock(const ptx::Module& module, const ptx::Operand& operand);

/// The registers of a function that are d or a of a product in flight (rules/warpgroup.cpp).
std::unordered_set<ptx::Name> registers_of_products(const ptx::Module& module, const ptx::Function& function);

/// Before an op that uses registers which are d or a of a product in flight.
void touch_products(Lowering& code, const Micro& op);

/// Lowers the called functions, after the kernel (call.cpp).
void lower_functions(Lowering& code);

/// Second half of decoding: blocks in reverse post order, slots, distances, counts.
void lay_out(Lowering& lowering, DecodedKernel& kernel);

}  // namespace ikat::emulator
