// SPDX-License-Identifier: Apache-2.0
// Decoding, first half: PTX instructions become micro-ops over values. A value is a register of the kernel, a
// temporary, a constant or a special register; the second half (layout.cpp) gives values their slots in the frame and
// micro-ops their order.
//
// Functions are inlined where they are called; their .param variables are local memory. Those that cannot be (a
// recursion, a call through a register) or that would make the kernel too large are lowered once, behind the kernel,
// and called (call.cpp).
#pragma once
#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "runtime/emulator/machine/kernel.hpp"
#include "runtime/emulator/observe/observer.hpp"
#include "runtime/emulator/observe/traffic_counter.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

enum class Value : std::uint32_t {};
enum class Scalar : std::uint8_t;  // ops/scalar.hpp

struct ValueInfo {
    enum class Kind : std::uint8_t { Register, Constant, Special };
    Kind kind = Kind::Register;
    std::uint8_t slot = 4;   // bytes per lane in the frame: 4 or 8; 0 for a predicate
    std::uint8_t width = 4;  // as declared: 1, 2, 4, 8 (0 for a predicate)
    std::uint64_t bits = 0;  // of a constant
    Special special{};
};

/// Where control goes after a micro-op.
enum class Flow : std::uint8_t { Next, Jump, Branch, Table, Call, End };

/// Fields of an op by number: d, a, b, c, x, y.
enum Field : std::uint8_t { D = 1, A = 2, B = 4, C = 8, X = 16, Y = 32 };

struct Micro {
    Handler run = nullptr;
    std::array<std::uint32_t, 6> fields{};
    std::uint8_t reads = 0, writes = 0;  // sets of Field that name values; the others are literals
    bool partial = false;                // under a guard: lanes keep the old value
    bool apart = false;                  // destinations must not share a slot with sources
    bool first = false;                  // of its instruction, for counting
    bool checks = false;                 // an observer's, of the next one, whose fields it reads: it has none itself
    bool counts = false;                 // y is the number of instructions since the last that counts
    Flow flow = Flow::Next;
    std::uint32_t label = 0;  // of Jump and Branch; first of Table
    std::uint32_t targets = 0;
    const nvptx::Instruction* instruction = nullptr;
};

/// The modifiers of an instruction as a set from which they are taken; what is left over was not understood.
class Form {
public:
    Form(const nvptx::Module& module, const nvptx::Instruction& instruction);
    bool take(std::string_view modifier);
    bool has(std::string_view modifier) const;
    /// The first of these that is there, or "".
    std::string_view take_any(std::initializer_list<std::string_view> modifiers);
    /// The first type that is left.
    std::optional<Type> take_type();
    Rounding take_rounding();
    void take_cache_hints();
    std::string_view left() const { return rest_.empty() ? std::string_view{} : rest_.front(); }

private:
    std::vector<std::string_view> rest_;
};

std::optional<Type> type_of(std::string_view modifier);
constexpr std::uint8_t slot_of(Type type) { return type == Type::Pred ? 0 : ir::info(type).bytes == 8 ? 8 : 4; }

/// The operands of an instruction. One that is not there ends the lowering of the instruction.
struct MissingOperand {};
class Operands {
public:
    Operands() = default;
    Operands(std::span<const nvptx::Operand> operands) : operands_(operands) {}
    const nvptx::Operand& operator[](std::size_t i) const {
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
    std::span<const nvptx::Operand> operands_;
};

struct Symbol {
    enum class Kind : std::uint8_t { Register, Memory, Label, Table, Function, Prototype };
    Kind kind = Kind::Register;
    Value value{};                                // Register
    Value high{};                                 // ... of 128 bits: its upper half
    bool is_pair = false;                         // ... of 128 bits
    Space space = Space::Global;                  // Memory
    std::uint64_t address = 0, bytes = 0;         // Memory: as an instruction of its space sees it
    bool on_stack = false;                        // Memory: address counts from the stack pointer of the function
    std::uint32_t label = 0;                      // Label
    nvptx::Span targets{};                        // Table
    const nvptx::Function* function = nullptr;    // Function
    const nvptx::Directive* directive = nullptr;  // Prototype: .callprototype or .calltargets
};

/// Where the results and parameters of a called function lie, from its stack pointer.
struct Signature {
    struct Slot {
        std::uint32_t offset = 0, bytes = 0;
    };
    std::vector<Slot> results, parameters;
    std::uint32_t bytes = 0;
};
Signature signature_of(const nvptx::Module& module, const nvptx::Function& function);

/// What an instruction accesses, for observers: `bytes` at base + offset.
struct MemoryAccess {
    Value base{};
    std::int32_t offset = 0;
    std::uint32_t bytes = 0;
    Direction direction = Direction::Read;
    bool cached = true;
    bool of_numbers = false;  // floats, of which no part is padding
};

class Lowering {
public:
    /// Dynamic shared memory begins at `dynamic_base`, behind the static, whose size is known only after a first run.
    Lowering(const nvptx::Module& module, const ModuleMemory& variables, Kernel& kernel, std::uint64_t dynamic_base)
        : module_(module),
          variables_(variables),
          kernel_(kernel),
          dynamic_base_(dynamic_base),
          observers_(attach(kernel.observers)) {}

    void run(const nvptx::Function& entry);
    /// An op that nobody observes.
    void put(Micro micro);

    std::vector<Micro> micros;
    std::vector<ValueInfo> values;
    std::vector<std::uint32_t> labels;        // micro index by label
    std::vector<std::uint32_t> table_labels;  // targets of Table micros
    std::uint64_t dynamic_alignment = 0;      // of dynamic shared memory, 0: the kernel has none
    struct Root {
        std::uint32_t function = 0, label = 0;  // number in the module, where it begins
    };
    std::vector<Root> roots;  // functions that are called

private:
    using Rule = void (Lowering::*)(Form&, Operands);
    /// What lowers an opcode; nullptr for one that is not run.
    static Rule rule(nvptx::Opcode opcode);

    // lowering.cpp: bodies, scopes, values
    void body(const nvptx::Function& function);
    void open_scope(std::span<const nvptx::Statement> statements, const nvptx::Function& function);
    void declare(const nvptx::Variable& variable);
    void declare_registers(const nvptx::Variable& variable);
    Symbol declare_memory(const nvptx::Variable& variable, const nvptx::Variable::Declarator& declarator);
    void define(nvptx::Name name, const Symbol& symbol);
    const Symbol* find(nvptx::Name name);
    void module_shared(nvptx::Name name);
    void instruction(const nvptx::Instruction& instruction);
    void instruction_body(const nvptx::Instruction& instruction);
    [[noreturn]] void unsupported(std::string_view why, std::string_view hint = {}) const;

    Value new_value(std::uint8_t slot, std::uint8_t width);
    Value temporary(std::uint8_t slot) { return new_value(slot, slot); }
    Value constant(std::uint64_t bits, std::uint8_t slot);
    Value special(Special special);
    std::uint32_t new_label();
    void place_label(std::uint32_t label) { labels[label] = std::uint32_t(micros.size()); }

    Micro& emit(Handler handler, std::uint8_t writes, std::uint8_t reads, std::array<std::uint32_t, 6> fields);
    /// d = handler(sources...), lane by lane
    void apply(Handler handler, Value d, std::initializer_list<Value> sources, std::uint32_t x = 0);
    void count_here();
    void jump_to(std::uint32_t label);
    void branch_to(std::uint32_t label, Value predicate, bool unless, bool uniform = false);

    Value predicate(const nvptx::Operand& operand);
    Value source(const nvptx::Operand& operand, Type type);
    Value plain_source(const nvptx::Operand& operand, Type type);
    void note_offsets(Operands operands);
    void use_offset(const nvptx::Operand& operand);
    Value resized(Value value, std::uint8_t slot);
    std::uint64_t literal(const nvptx::Operand& operand, Type type) const;
    std::optional<Special> special_register(const nvptx::Operand& operand) const;
    bool is_clock(const nvptx::Operand& operand) const;

    /// Where a result of `type` is computed; finish() then brings it to the register, widened to its width.
    struct Result {
        Value at{};
        Value to{};
        Type type{};
        bool is_register = false;
    };
    Result result(const nvptx::Operand& operand, Type type);
    void finish(const Result& result);

    struct AddressOperand {
        Value base{};
        std::int32_t offset = 0;
        Space space = Space::Generic;
        bool fixed = false;  // no register takes part: `offset` alone, in `space`
    };
    AddressOperand address(const nvptx::Operand& operand, Space space);
    Value with_offset(Value base, std::int64_t offset);

    // Rules, by file: arithmetic.cpp
    void binary(Operation operation, Form& form, Operands operands);
    void apply_to_sources(Handler handler, Operation operation, Value d, Type type, Operands operands);
    void float_operation(Operation operation, Type type, Form& form, Operands operands);
    void integer_operation(Operation operation, Type type, Operands operands);
    void saturating(Operation operation, Operands operands);
    void add(Form& form, Operands operands);
    void sub(Form& form, Operands operands);
    void mul(Form& form, Operands operands);
    void mad(Form& form, Operands operands);
    void fma(Form& form, Operands operands);
    struct Magnitudes {
        bool sign = false, magnitude = false, ftz = false;  // .xorsign, .abs, .ftz
    };
    Value least_magnitude(Operation operation, Type type, Magnitudes form, std::span<const Value> numbers);
    void minmax_of_magnitudes(Operation operation, Form& form, Operands operands);
    void minmax(Operation plain, Operation nan, Form& form, Operands operands);
    void min(Form& form, Operands operands);
    void max(Form& form, Operands operands);
    template <Operation O>
    void simple(Form& form, Operands operands) {
        binary(O, form, operands);
    }
    void logic(Operation operation, Handler on_predicates, Form& form, Operands operands);
    void logic_and(Form& form, Operands operands);
    void logic_or(Form& form, Operands operands);
    void logic_xor(Form& form, Operands operands);
    void logic_not(Form& form, Operands operands);
    void cnot(Form& form, Operands operands);
    void shift_left(Form& form, Operands operands);
    void shift_right(Form& form, Operands operands);
    void shift(Operation operation, Form& form, Operands operands);
    void shift_pair(Form& form, Operands operands);
    void bfind(Form& form, Operands operands);
    void bfe(Form& form, Operands operands);
    void bfi(Form& form, Operands operands);
    void bmsk(Form& form, Operands operands);
    void lop3(Form& form, Operands operands);
    void prmt(Form& form, Operands operands);
    void mul24(Form& form, Operands operands);
    void mad24(Form& form, Operands operands);
    void product24(Operation low, Operation high, Form& form, Operands operands);
    void dot_product(Operation operation, std::uint32_t form_bits, Form& form, Operands operands);
    void dp4a(Form& form, Operands operands);
    void dp2a(Form& form, Operands operands);
    void testp(Form& form, Operands operands);
    // carry.cpp
    Value carry_flag();
    void with_carry(bool subtracts, bool reads, bool writes, Type type, const Result& d, Value a, Value b);
    void sum_with_carry(bool subtracts, bool reads, Form& form, Operands operands);
    void product_with_carry(bool reads, Form& form, Operands operands);
    void addc(Form& form, Operands operands);
    void subc(Form& form, Operands operands);
    void madc(Form& form, Operands operands);
    // scalar.cpp
    void on_words(Scalar scalar, Operands operands, std::uint32_t x = 0, std::uint32_t y = 0);
    void fns(Form& form, Operands operands);
    void szext(Form& form, Operands operands);
    void lop3_with_predicate(Form& form, Operands operands, std::string_view combine);
    void cvt_pack_integers(Form& form, Operands operands);
    void video(Form& form, Operands operands);
    void coarse_reciprocal(Scalar scalar, Operands operands);
    // packed.cpp
    bool packed_operation(Operation operation, Form& form, Operands operands);
    void pair_of_shorts(Operation operation, Form& form, Operands operands);
    void pair_of_singles(Operation operation, Form& form, Operands operands);
    void mixed_floats(Operation operation, Form& form, Operands operands);
    void cvt_tf32(Form& form, Operands operands);
    bool cvt_small(Form& form, Operands operands);
    void words_to(Type type, Scalar scalar, Operands operands, std::uint32_t x, std::uint32_t y);
    // convert.cpp
    Value compared(Form& form, Type type, std::string_view comparison, const nvptx::Operand& a,
                   const nvptx::Operand& b);
    std::array<Value, 2> compared_lanes(Form& form, Type type, std::string_view comparison, Operands operands);
    Value combined(std::string_view combine, Value p, Operands operands);
    void setp(Form& form, Operands operands);
    void set(Form& form, Operands operands);
    void selp(Form& form, Operands operands);
    void slct(Form& form, Operands operands);
    void cvt(Form& form, Operands operands);
    void cvt_packed(Type to, Type from, Rounding rounding, std::uint32_t how, Operands operands);
    Value lane_of(Value packed, Type type, unsigned number);
    void join_lanes(Type type, Value d, Value low, Value high);
    void mov(Form& form, Operands operands);
    void mov_vector(Form& form, Type type, const nvptx::Operand& to, const nvptx::Operand& from);
    void mov128(const nvptx::Operand& to, const nvptx::Operand& from);
    void pack(Type type, const nvptx::Operand& to, const nvptx::Operand& from);
    void unpack(Type type, const nvptx::Operand& to, const nvptx::Operand& from);
    void cvta(Form& form, Operands operands);
    void isspacep(Form& form, Operands operands);
    // memory.cpp
    void tell_observers(const AddressOperand& at, MemoryAccess access);
    Space take_space(Form& form);
    void take_order(Form& form, bool& before, bool& after);
    /// What ld and st say in modifiers.
    struct Access {
        AddressOperand at{};
        Type type{};
        unsigned count = 1;  // elements
        bool before = false, after = false;
        bool cached = true;
    };
    Access take_access(Form& form, const nvptx::Operand& address);
    void load_elements(const Access& access, std::span<const Value> elements);
    void store_elements(const Access& access, std::span<const Value> elements);
    template <class F>
    void in_parts(const Access& access, std::span<const Value> elements, F f);
    std::vector<Value> double_words(const nvptx::Operand& operand);
    void ld(Form& form, Operands operands);
    void st(Form& form, Operands operands);
    void atom(Form& form, Operands operands);
    void red(Form& form, Operands operands);
    void update(Form& form, const nvptx::Operand* to, Operands operands);
    void update_vector(Atomic atomic, Type type, unsigned count, const AddressOperand& at, const nvptx::Operand* to,
                       Operands operands);
    void update_wide(std::string_view name, const AddressOperand& at, const nvptx::Operand* to, Operands operands);
    void membar(Form& form, Operands operands);
    void createpolicy(Form& form, Operands operands);
    void istypep(Form& form, Operands operands);
    void ignored(Form& form, Operands operands);
    // call.cpp
    void call(Form& form, Operands operands);
    void call_through(const nvptx::Operand& target, Operands results, Operands arguments,
                      const nvptx::Operand& prototype);
    void call_out_of_line(const nvptx::Function& callee, Operands results, Operands arguments);
    void call_lanes(Value target, std::uint32_t function, const Signature& signature, Operands results,
                    Operands arguments);
    void inline_function(const nvptx::Function& callee, Operands results, Operands arguments);
    void lower_functions();
    void lower_function(const nvptx::Function& function, std::uint32_t label);
    std::uint32_t number_of(const nvptx::Function& function) const;
    void need(const nvptx::Function& function);
    void need_functions_with_addresses();
    void need_functions_in(nvptx::Span operands);
    Signature signature_of_call(const nvptx::Operand& prototype);
    Symbol formal(const nvptx::Variable& variable, const nvptx::Operand& actual);
    void copy_argument(const nvptx::Variable& variable, const nvptx::Operand& actual, const Symbol& formal, bool back);
    Value argument(const nvptx::Operand& operand);
    /// A place in local memory: `offset` from a value.
    struct Place {
        Value base{};
        std::uint64_t offset = 0;
    };
    Place place_of(const Symbol& symbol);
    const Symbol* variable_of(const nvptx::Operand& operand);
    void load_local(Value d, unsigned bytes, Place from);
    void store_local(Value from, unsigned bytes, Place to);
    void copy_local(Place from, Place to, std::uint64_t bytes);
    void alloca_(Form& form, Operands operands);
    void stacksave(Form& form, Operands operands);
    void stackrestore(Form& form, Operands operands);
    // system.cpp
    bool call_system(std::string_view name, Operands results, Operands arguments);
    void give_back(Value value, Type type, Operands results);
    void call_print(Operands results, Operands arguments);
    void call_assert_failure(Operands arguments);
    void call_malloc(Operands results, Operands arguments);
    // cluster.cpp
    void cluster_barrier(Form& form);
    void mapa(Form& form, Operands operands);
    void getctarank(Form& form, Operands operands);
    // control.cpp
    void bra(Form& form, Operands operands);
    void brx(Form& form, Operands operands);
    void ret(Form& form, Operands operands);
    void exit(Form& form, Operands operands);
    void trap(Form& form, Operands operands);
    void nanosleep(Form& form, Operands operands);
    void bar(Form& form, Operands operands);
    std::uint32_t list_sources(Shuffle mode, std::uint32_t b, std::uint32_t c);
    void shfl(Form& form, Operands operands);
    void vote(Form& form, Operands operands);
    void match(Form& form, Operands operands);
    void redux(Form& form, Operands operands);
    void redux_floats(Form& form, Operands operands, std::string_view name);
    void elect(Form& form, Operands operands);
    void activemask(Form& form, Operands operands);
    Value members_of(Form& form, Operands operands, std::size_t at);

    const nvptx::Module& module_;
    const ModuleMemory& variables_;
    Kernel& kernel_;
    const std::uint64_t dynamic_base_;
    const std::vector<Observer> observers_;

    using Scope = std::unordered_map<nvptx::Name, Symbol>;
    std::vector<Scope> scopes_;
    Scope module_scope_;
    std::size_t function_base_ = 0;  // the first scope of the function being inlined
    std::vector<const nvptx::Function*> callers_;
    std::uint32_t return_label_ = 0;
    bool on_stack_ = false;         // inside a function that is called
    Value stack_pointer_{};         // ... its
    std::uint32_t frame_used_ = 0;  // ... bytes of its frame
    std::unordered_map<const nvptx::Variable::Declarator*, Symbol> shared_of_functions_;  // one for all inlined copies
    const nvptx::Instruction* current_ = nullptr;
    bool first_ = false;                                     // the next micro is the first of its instruction
    bool guarded_ = false;                                   // inside a guard
    std::vector<const nvptx::Operand*> unused_offsets_;      // operands of the instruction of which one was written
    std::unordered_map<std::uint64_t, Value> constants_[3];  // by slot: predicate, 4, 8
    std::vector<Value> specials_;
    std::optional<Value> carry_flag_;
};

/// Bytes and alignment of a variable.
std::uint64_t variable_bytes(const nvptx::Module& module, const nvptx::Variable& variable,
                             const nvptx::Variable::Declarator& declarator);
std::uint64_t variable_alignment(const nvptx::Module& module, const nvptx::Variable& variable);
/// Bytes of a type such as ".f16x2"; 0 for one without a size.
unsigned element_bytes(std::string_view type);

/// Second half of decoding: blocks in reverse post order, slots, distances, counts.
void lay_out(Lowering& lowering, Kernel& kernel);

}  // namespace ikat::emulator
