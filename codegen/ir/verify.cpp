// SPDX-License-Identifier: Apache-2.0
// The verifier proper: a walk in text order. First the skeleton (ids in range, single definitions); if that is valid,
// the checks that depend on it: dominance and types.
#include "codegen/ir/verify.hpp"

#include <algorithm>
#include <optional>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/object.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/text/literal.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify_calls.hpp"
#include "codegen/ir/verify_flight.hpp"
#include "codegen/ir/verify_rows.hpp"
#include "codegen/support/dominator_tree.hpp"

namespace ikat::ir {
namespace {

class Verifier {
public:
    Verifier(const Function& fn, Level level) : fn_(fn), level_(level) {}

    std::vector<Diagnostic> run() {
        signature();
        skeleton();
        if (!findings_.empty()) return std::move(findings_);
        dominators_ = DominatorTree(control_flow(fn_));
        for (Block block : fn_.blocks()) {
            block_ = block;
            for (Inst inst : fn_[block].instructions) instruction(inst);
            inst_ = no_inst;
            terminator(fn_[block].terminator);
        }
        if (findings_.empty()) in_flight();
        return std::move(findings_);
    }

    /// Accesses to another space than that of what their address is made from, and wrong copies; run() has found
    /// nothing.
    std::vector<Diagnostic> wrong_accesses() {
        for (Block block : fn_.blocks()) {
            block_ = block;
            for (Inst inst : fn_[block].instructions) {
                inst_ = inst;
                for (const MemoryAccess& access : accesses(fn_[inst])) space(access);
                if (effects(fn_[inst]).starts) copy(fn_[inst]);
                if (fn_[inst].op == Op::Peer) own_place();
            }
        }
        return std::move(findings_);
    }

private:
    void complain(std::string message, const Location& where, std::string line) {
        findings_.push_back({.where = where, .message = std::move(message), .excerpt = std::move(line)});
    }
    void at_function(const std::string& what) { complain("@" + fn_.name + ": " + what, {}, {}); }
    void at_block(const std::string& what) {
        const auto& list = fn_[block_].instructions;
        const bool begins = !list.empty() && index(list[0]) < fn_.inst_count();
        complain("@" + fn_.name + ", ^" + std::to_string(index(block_)) + ": " + what,
                 begins ? fn_[list[0]].where : fn_[block_].terminator.where, {});
    }
    void here(const std::string& what) {
        const auto& list = fn_[block_].instructions;
        const bool terminator = inst_ == no_inst;
        const auto place = std::ranges::find(list, inst_) - list.begin();
        complain("@" + fn_.name + ", ^" + std::to_string(index(block_)) +
                     (terminator ? ", terminator: " : ", instruction " + std::to_string(place) + ": ") + what,
                 terminator ? fn_[block_].terminator.where : fn_[inst_].where,
                 "    " + (terminator ? print(fn_, fn_[block_].terminator) : print(fn_, inst_)));
    }

    // The signature: everything with a name.
    void signature() {
        if (!is_identifier(fn_.name)) at_function("its name is not an identifier");
        if (fn_.block_count() == 0) at_function("it has no entry block");
        for (const Parameter& parameter : fn_.parameters) this->parameter(parameter);
        for (const Symbol& symbol : fn_.symbols) this->symbol(symbol);
        if (symbol_bytes(fn_.symbols, Space::Const) > max_constant_bytes) at_function("too much constant memory");
        cluster();
        distinct(fn_.parameters, "parameter %");
        distinct(fn_.symbols, "symbol $");
        if (fn_.gives != Type::Void && fn_.is_entry) at_function("a kernel has no result");
        if (fn_.gives != Type::Void && !contains(AnyNum | Packed, fn_.gives)) at_function("its result is not a number");
    }
    void cluster() {
        constexpr std::uint64_t max_blocks = 16;  // of any device, if it is asked for more than 8
        std::uint64_t blocks = 1;
        for (const std::uint32_t extent : fn_.bounds.cluster) blocks *= std::min<std::uint64_t>(extent, max_blocks + 1);
        if (blocks == 0 || blocks > max_blocks) at_function("a cluster has 1 to 16 blocks");
        if (blocks != 1 && !fn_.is_entry) at_function("only a kernel has clusters");
    }
    void distinct(const auto& named, const std::string& kind) {
        std::vector<std::string_view> names;
        for (const auto& item : named) names.push_back(item.name);
        std::ranges::sort(names);
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (!is_identifier(names[i])) at_function(kind + std::string(names[i]) + " is not an identifier");
            if (i && names[i] == names[i - 1]) at_function(kind + std::string(names[i]) + " exists twice");
        }
    }
    void parameter(const Parameter& parameter) {
        const std::string name = "parameter %" + parameter.name;
        if (parameter.access == Access::Value) {
            if (parameter.type == Type::Void || parameter.type == Type::Pred)
                at_function(name + " cannot be passed as a " + std::string(info(parameter.type).name));
            if (parameter.bytes && (parameter.type != Type::U8 || !parameter.alignment || !fn_.is_entry))
                at_function(name + ": raw bytes are a u8 parameter of a kernel, with an alignment");
            if (parameter.element != Type::Void || (parameter.alignment && !parameter.bytes))
                at_function(name + " is a scalar, which has no element type and no alignment");
        } else if (parameter.type != Type::U64 || !contains(Storable, parameter.element) || parameter.bytes) {
            at_function(name + " is a pointer, which must be a u64 to numbers");
        }
        if (parameter.multiple == 0) at_function(name + " cannot be a multiple of 0");
        if (parameter.alignment & (parameter.alignment - 1))
            at_function(name + ": its alignment is not a power of two");
    }
    void symbol(const Symbol& symbol) {
        const std::string name = "symbol $" + symbol.name;
        if (!contains(Storable, symbol.element)) at_function(name + " does not hold numbers");
        if (symbol.space == Space::None || symbol.space == Space::Generic || symbol.space == Space::Param ||
            symbol.space == Space::Peer)
            at_function(name + " is in a space that has no symbols");
        if (symbol.dynamic && symbol.space != Space::Shared)
            at_function(name + " is dynamic: it must be in shared memory");
        if (symbol.offset && !symbol.dynamic) at_function(name + " has a place, which only dynamic ones have");
        if (symbol.offset % info(symbol.element).bytes) at_function(name + ": its place is not aligned");
        if (!symbol.dynamic && !symbol.count) at_function(name + " has no elements");
        if (symbol.values.size() != (symbol.space == Space::Const ? symbol.count : 0))
            at_function(name + ": constant arrays have a value for each element, others have none");
        for (const Word value : symbol.values)
            if (!fits(symbol.element, value)) at_function(name + ": a value has more bits than the element type");
        if (symbol.alignment & (symbol.alignment - 1)) at_function(name + ": its alignment is not a power of two");
    }

    // Ids in range, everything defined once, at the recorded place, and every block with a terminator.
    void skeleton() {
        place_.assign(fn_.inst_count(), none);
        block_of_.assign(fn_.inst_count(), no_id<Block>);
        std::vector<bool> defined(fn_.value_count());
        for (Block block : fn_.blocks()) {
            block_ = block;
            for (std::uint32_t i = 0; Value value : fn_[block].parameters)
                define(defined, value, {.block = block, .position = i++}, "parameter");
            for (std::uint32_t i = 0; Inst inst : fn_[block].instructions) {
                inst_ = inst;
                if (index(inst) >= fn_.inst_count()) return at_block("an instruction that does not exist");
                if (place_[index(inst)] != none) return here("it is in the function twice");
                place_[index(inst)] = i++;
                block_of_[index(inst)] = block;
                for (std::uint32_t r = 0; Value value : fn_.results(inst))
                    define(defined, value, {.instruction = inst, .position = r++}, "result");
            }
            if (fn_[block].terminator.kind == Terminator::Kind::None) at_block("it has no terminator");
            for (const Jump& jump : fn_[block].terminator.targets)
                if (index(jump.to) >= fn_.block_count()) return at_block("it jumps to a block that does not exist");
        }
        uses_defined(defined);
        entry();
    }
    void define(std::vector<bool>& defined, Value value, const Definition& expected, const std::string& what) {
        if (index(value) >= fn_.value_count()) return at_block("a " + what + " that does not exist");
        if (defined[index(value)]) return at_block(print(fn_, value) + " is defined twice");
        defined[index(value)] = true;
        const Definition& actual = fn_[value];
        const bool block_agrees = expected.instruction != no_inst || actual.block == expected.block;
        if (actual.instruction != expected.instruction || actual.position != expected.position || !block_agrees)
            at_block(print(fn_, value) + " is recorded as defined elsewhere");
        if (actual.type == Type::Void) at_block(print(fn_, value) + " has no type");
    }
    void uses_defined(const std::vector<bool>& defined) {
        const auto use = [&](Value value) {
            if (index(value) >= defined.size() || !defined[index(value)])
                here(print(fn_, value) + " is used, but no block defines it");
        };
        for (Block block : fn_.blocks()) {
            block_ = block;
            for (Inst inst : fn_[block].instructions) fn_.each_use(inst_ = inst, use);
            inst_ = no_inst;
            Function::each_use(fn_[block].terminator, use);
        }
    }
    void entry() {
        if (fn_.block_count() == 0) return;
        block_ = fn_.entry();
        if (!fn_[block_].parameters.empty())
            at_block("the entry block has parameters; those of the kernel are read by op `param`");
        for (Block block : fn_.blocks())
            for (const Jump& jump : fn_[block].terminator.targets)
                if (jump.to == fn_.entry()) return at_block("the entry block has a predecessor");
    }

    void instruction(Inst inst) {
        inst_ = inst;
        fn_.each_use(inst, [&](Value value) { use(value); });
        for (const std::string& finding : row_problems(fn_, fn_[inst])) here(finding);
        if (fn_[inst].op == Op::GridWait && !fn_.is_entry) here("only a kernel waits for other grids");
        arguments(fn_[inst]);
        results(fn_[inst]);
        if (fn_[inst].op == Op::CarryChain) carry_chain(fn_[inst]);
        guard(fn_[inst]);
        tie(fn_[inst]);
    }

    void use(Value value) {
        const Definition& definition = fn_[value];
        const bool result = definition.instruction != no_inst;
        const Block from = result ? block_of_[index(definition.instruction)] : definition.block;
        if (!dominators_.reachable(index(block_))) return;
        const std::uint32_t limit = inst_ == no_inst ? none : place_[index(inst_)];
        const bool before = from != block_ ? dominators_.dominates(index(from), index(block_))
                                           : !result || place_[index(definition.instruction)] < limit;
        if (!before) here(print(fn_, value) + " does not dominate this use");
    }

    void expect(std::string_view what, Value value, Type expected, std::string_view of = {}) {
        const Type actual = fn_.type(value);
        if (!agree(expected, actual, level_))
            here(std::string(what) + ' ' + print(fn_, value) + std::string(of) + " is " +
                 std::string(info(actual).name) + " and must be " + std::string(info(expected).name));
    }

    void arguments(const Instruction& inst) {
        const auto operands = fn_.operands(inst_);
        const bool variadic = info(inst.op).shape.variadic;
        const std::uint32_t passed_through = inst.guard != no_value ? inst.tie.count : 0;
        if (!variadic && operands.size() != operand_count(inst) + passed_through)
            return here("it takes " + std::to_string(operand_count(inst)) + " operands" +
                        (passed_through ? " and those for a false guard" : "") + ", not " +
                        std::to_string(operands.size()));
        for (std::uint32_t i = 0; i < operands.size(); ++i) expect("operand", operands[i], operand_type(inst, i));
    }
    void results(const Instruction& inst) {
        const auto results = fn_.results(inst_);
        const std::uint32_t extra = inst.op == Op::Shuffle ? 1 : 0;  // the predicate "the source lane was in range"
        if (!info(inst.op).shape.variadic && results.size() != result_count(inst) &&
            results.size() != result_count(inst) + extra)
            return here("it gives " + std::to_string(result_count(inst)) + " results, not " +
                        std::to_string(results.size()));
        for (std::uint32_t i = 0; i < results.size(); ++i)
            expect("result", results[i], i && extra ? Type::Pred : result_type(inst, i));
    }
    void carry_chain(const Instruction& inst) {
        if (level_ == Level::Typed) return here("only selection makes chains; write add_carry or sub_borrow");
        const auto operands = fn_.operands(inst_), results = fn_.results(inst_);
        const std::size_t steps = operands.size() / 2;
        if (steps == 0 || results.size() < steps || results.size() > steps + 1)
            return here("a chain has two operands and a result for each step");
        for (Value operand : operands) expect("operand", operand, inst.type);
        for (std::size_t i = 0; i < results.size(); ++i)
            expect("result", results[i], i < steps ? inst.type : Type::U32);
    }
    void guard(const Instruction& inst) {
        if (inst.guard == no_value) {
            if (inst.guard_negated) here("it negates a guard that it does not have");
            return;
        }
        expect("guard", inst.guard, Type::Pred);
        if (is_collective(inst.op)) here("a convergent operation cannot be guarded");
        if (inst.op == Op::At) here("an address cannot be guarded: guard the access");
        if (info(inst.op).shape.variadic || effects(inst).in_flight()) here("it cannot be guarded: branch around it");
        if (inst.tie.result != 0 || inst.tie.count != inst.results.count)
            here("a guard needs an operand tied to each result, for when it is false");
    }
    void tie(const Instruction& inst) {
        const Tie& tie = inst.tie;
        if (tie.result + tie.count > inst.results.count || tie.operand + tie.count > inst.operands.count)
            return here("it ties results or operands that it does not have");
        for (std::uint32_t i = 0; i < tie.count; ++i)
            expect("tied operand", fn_.operands(inst_)[tie.operand + i], fn_.type(fn_.results(inst_)[tie.result + i]));
    }

    void in_flight() {
        for (const FlightProblem& problem : flight_problems(fn_)) {
            block_ = problem.block, inst_ = problem.inst;
            here(problem.what);
        }
    }

    /// The place that op Peer maps.
    void own_place() {
        const Object object = object_of(fn_, fn_.operands(inst_)[0]);
        if (object.kind == Object::Parameter ||
            (object.kind == Object::Symbol && fn_.symbols[object.number].space != Space::Shared))
            here("it is of a place in shared memory");
    }

    void space(const MemoryAccess& access) {
        const Space accessed = access.space;
        const auto is_in = [&](const std::string& what, Space space) {
            here(what + " is in " + std::string(space_names[std::size_t(space)]) + " memory, and this accesses " +
                 std::string(space_names[std::size_t(accessed)]) + " memory");
        };
        const Object object = object_of(fn_, fn_.operands(inst_)[access.operand]);
        if (object.kind == Object::Symbol) {
            const Symbol& symbol = fn_.symbols[object.number];
            if (symbol.space != accessed) is_in("$" + symbol.name, symbol.space);
        } else if (object.kind == Object::Parameter) {
            const Parameter& parameter = fn_.parameters[object.number];
            if (parameter.bytes) return raw_bytes(parameter, access);
            if (accessed != Space::Global && accessed != Space::Generic)
                is_in("what %" + parameter.name + " points to", Space::Global);
        }
    }
    /// What can be known of places and sizes: an array at a constant offset, a constant number of bytes.
    void copy(const Instruction& inst) {
        const MemoryAccess to = accesses(inst)[0];
        const Inst base = fn_[fn_.operands(inst_)[to.operand]].instruction;
        if (base != no_inst && fn_[base].op == Op::Symbol) {
            const Symbol& symbol = fn_.symbols[fn_[base].attribute];
            if (to.offset % std::int64_t(to.bytes) || symbol.alignment % to.bytes)
                here("it copies to " + std::to_string(to.bytes) + " bytes that are not aligned to as many");
        }
        if (const auto read = constant(fn_, fn_.operands(inst_)[2]); read && *read > to.bytes)
            here("it reads more bytes than it writes");
    }

    void raw_bytes(const Parameter& parameter, const MemoryAccess& access) {
        if (access.space != Space::Generic)
            here("the address of %" + parameter.name + " is generic, and this accesses " +
                 std::string(space_names[std::size_t(access.space)]) + " memory");
        else if (access.writes)
            here("%" + parameter.name + " is a parameter, which can only be read");
    }

    void terminator(const Terminator& terminator) {
        using Kind = Terminator::Kind;
        const std::size_t count = terminator.targets.size();
        const bool decides = terminator.kind == Kind::Branch || terminator.kind == Kind::Multiway;
        const bool count_fits = terminator.kind == Kind::Jump       ? count == 1
                                : terminator.kind == Kind::Branch   ? count == 2
                                : terminator.kind == Kind::Multiway ? count >= 1
                                                                    : count == 0;
        if (!count_fits) here("it cannot have " + std::to_string(count) + " targets");
        if (decides != (terminator.condition != no_value))
            here("branch and multiway need a condition, others have none");
        if (terminator.uniform && !decides) here("only branch and multiway can be uniform");
        if (terminator.unroll && terminator.kind != Kind::Branch) here("only a branch back into a loop may unroll it");
        Function::each_use(terminator, [&](Value value) { use(value); });
        if (decides && terminator.condition != no_value)
            expect("condition", terminator.condition, terminator.kind == Kind::Branch ? Type::Pred : Type::U32);
        for (const Jump& jump : terminator.targets) this->jump(jump);
        if (terminator.kind == Kind::Return)
            given(terminator.given);
        else if (terminator.given != no_value)
            here("only return has a value");
    }
    void given(Value value) {
        if (value == no_value && fn_.gives == Type::Void) return;
        if (value == no_value || fn_.gives == Type::Void)
            return here(value == no_value ? "return needs a value: the function has a result"
                                          : "return has a value, but the function has no result");
        expect("result", value, fn_.gives);
    }
    void jump(const Jump& jump) {
        const auto to = [&] { return "^" + std::to_string(index(jump.to)); };
        const auto& parameters = fn_[jump.to].parameters;
        if (parameters.size() != jump.arguments.size())
            return here(to() + " takes " + std::to_string(parameters.size()) + " arguments, not " +
                        std::to_string(jump.arguments.size()));
        for (std::size_t i = 0; i < parameters.size(); ++i)
            expect("argument", jump.arguments[i], fn_.type(parameters[i]), " of " + to());
    }

    static constexpr std::uint32_t none = ~0u;
    const Function& fn_;
    Level level_;
    std::vector<Diagnostic> findings_;
    DominatorTree dominators_;
    std::vector<std::uint32_t> place_;  // of each instruction in its block
    std::vector<Block> block_of_;       // … and the block
    Block block_{};                     // where the walk is
    Inst inst_ = no_inst;               // … no_inst at the terminator
};

}  // namespace

bool agree(Type expected, Type actual, Level level) {
    if (expected == actual || expected == Type::Void) return true;
    if (level == Level::Typed || expected == Type::Pred || actual == Type::Pred) return false;
    const auto narrow = [](Type type) { return contains(NarrowInt | Float8, type); };
    if (narrow(expected)) return bits(actual) <= 32;
    return narrow(actual) ? bits(expected) <= 32 : bits(expected) == bits(actual);
}

bool is_identifier(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; };
    const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && letter(name[0]) && std::ranges::all_of(name, inner);
}

std::vector<Diagnostic> problems(const Function& fn, Level level) { return Verifier(fn, level).run(); }

std::vector<Diagnostic> problems(std::span<const Function> functions, Level level) {
    std::vector<Diagnostic> out;
    for (const Function& fn : functions) std::ranges::move(problems(fn, level), std::back_inserter(out));
    if (out.empty()) out = call_problems(functions, level);
    return out;
}

void verify(const Function& fn, Level level) {
    auto found = problems(fn, level);
    if (found.empty()) found = Verifier(fn, level).wrong_accesses();
    if (!found.empty()) throw Error(std::move(found));
}

void verify(const Module& module, Level level) {
    auto found = problems(module.functions, level);
    if (found.empty())
        for (const Function& fn : module.functions)
            std::ranges::move(Verifier(fn, level).wrong_accesses(), std::back_inserter(found));
    if (!found.empty()) throw Error(std::move(found));
}

namespace {
template <class Whole>
std::string as_complaint(const Whole& whole, Level level) {
    const auto found = problems(whole, level);
    if (found.empty()) return {};
    std::string out;
    for (const Diagnostic& finding : found) out += to_string(finding) + '\n';
    return out + print(whole);
}
}  // namespace

std::string complaint(const Function& fn, Level level) { return as_complaint(fn, level); }
std::string complaint(std::span<const Function> functions, Level level) { return as_complaint(functions, level); }

}  // namespace ikat::ir
