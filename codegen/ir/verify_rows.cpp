// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/verify_rows.hpp"

#include <algorithm>

#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/text/literal.hpp"

namespace ikat::ir {
namespace {

constexpr int max_vector_bytes = 32;  // ld.global.v8.b32 of sm_100; 16 before

class RowCheck {
public:
    RowCheck(const Function& fn, const Instruction& inst) : fn_(fn), inst_(inst), row_(info(inst.op)) {}

    std::vector<std::string> run() {
        types();
        modifiers();
        attribute();
        memory();
        if (row_.shape.passes_on) passes_on();
        return std::move(findings_);
    }

private:
    void require(bool holds, auto&& message) {
        if (!holds) findings_.emplace_back(message);
    }
    static std::string name(Type type) { return std::string(info(type).name); }

    void types() {
        const std::string op{ir::name(inst_.op)};
        require(contains(row_.domain, inst_.type), op + " does not exist for " + name(inst_.type));
        if (!has_second_type(inst_.op)) return require(inst_.from == Type::Void, op + " has no second type");
        require(contains(row_.from, inst_.from), op + " does not take " + name(inst_.from) + " as its second type");
        if (inst_.op == Op::Convert)
            require(converts(inst_.type, inst_.from),
                    "there is no conversion from " + name(inst_.from) + " to " + name(inst_.type));
        if (inst_.op == Op::Bitcast)
            require(bits(inst_.type) == bits(inst_.from), "a bitcast keeps the width, and " + name(inst_.from) +
                                                              " and " + name(inst_.type) + " differ in it");
    }

    void modifiers() {
        const FloatInfo& fp = inst_.fp;
        const bool floats = is_float(inst_.type), converts = inst_.op == Op::Convert;
        const bool touches_float = floats || (converts && is_float(inst_.from));
        constexpr TypeSet never_flushed = set(Type::F64, Type::BF16, Type::BF16x2);
        constexpr TypeSet saturated = set(Type::F16, Type::F32);
        const bool flushable = converts || !contains(never_flushed, inst_.type);
        const auto allows = [&](Modifier modifier) { return (row_.modifiers & modifier) != 0; };
        require(fp.rounding == Rounding::Nearest || (allows(Rounds) && touches_float), "it cannot round");
        require(!fp.ftz || (allows(Ftz) && touches_float && flushable), "it has no .ftz");
        require(!fp.sat || (allows(Sat) && (contains(saturated, inst_.type) ||
                                            (converts && contains(AnyInt | set(Type::F64), inst_.type)))),
                "it has no .sat");
        require(!fp.approx || (allows(Approx) && floats), "it has no .approx");
        require(!fp.contract || (allows(Rounds) && floats), "it cannot be contracted");
    }

    void attribute() {
        const Form value = inst_.attribute;
        if (has_form(inst_.op)) return form();
        switch (row_.attribute) {
            case Attribute::None: return require(value == 0, "it has no attribute");
            case Attribute::Constant:
                return require(fits(inst_.type, value), "the constant has more bits than its type");
            case Attribute::Parameter: return parameter();
            case Attribute::Special: return special();
            case Attribute::Symbol: return symbol();
            case Attribute::Mode: return require(!mode_name(inst_.op, value).empty(), "it has no such mode");
            case Attribute::Table: return require(value < 256, "a table of three bits has eight rows");
            case Attribute::Text:
            case Attribute::Callee: return require(value < fn_.texts.size(), "it has no text");
            default: return;
        }
    }
    void form() {
        const FormCheck form = check_form(inst_.op, inst_.attribute, inst_.type);
        if (!form.exists) return require(false, "there is no such " + std::string(form.noun));
        require(form.problem.empty(), form.problem);
        require(inst_.type == form.type, "this " + std::string(form.noun) + " is of type " + name(form.type));
        if (is_collective(inst_.op) && !row_.shape.variadic)
            require(inst_.tie == shape_of(inst_).tie, "its results are tied to what it adds to");
    }
    void parameter() {
        const std::uint32_t number = parameter_of(inst_.attribute), offset = offset_in_parameter(inst_.attribute);
        if (number >= fn_.parameters.size()) return require(false, "the function has no such parameter");
        const Parameter& parameter = fn_.parameters[number];
        if (inst_.op == Op::ParamAddress)
            return require(parameter.bytes && offset == 0,
                           "only a parameter of raw bytes has an address, of its first byte");
        if (parameter.bytes) {
            const std::uint32_t width = info(inst_.type).bytes;
            return require(contains(Storable, inst_.type) && offset % width == 0 && width <= parameter.bytes &&
                               offset <= parameter.bytes - width,
                           "parameter %" + parameter.name + " has no such bytes");
        }
        require(offset == 0, "parameter %" + parameter.name + " is not of raw bytes");
        require(inst_.type == parameter.type, "parameter %" + parameter.name + " is " + name(parameter.type));
    }
    void special() {
        if (inst_.attribute >= std::size(special_register_names))
            return require(false, "there is no such special register");
        const auto which = SpecialRegister(Word{inst_.attribute});
        require(inst_.type == type_of_register(which), "this special register is " + name(type_of_register(which)));
        require(changes(which) == (inst_.op == Op::Sample), "op sample reads the clocks, op special the others");
    }
    void symbol() {
        if (inst_.attribute >= fn_.symbols.size()) return require(false, "the function has no such symbol");
        const Symbol& symbol = fn_.symbols[inst_.attribute];
        const Type type = address_type(symbol.space);
        require(type == Type::Void || inst_.type == type, "the address of $" + symbol.name + " is " + name(type));
    }

    void passes_on() {
        const auto count = std::uint16_t(inst_.results.count);
        require(inst_.operands.count == count && inst_.tie == Tie{0, 0, count}, "each result is tied to an operand");
    }

    void memory() {
        const MemoryInfo& memory = inst_.memory;
        if (!has_memory_info(inst_.op)) {
            const bool has_address = is_address(inst_.op, 0);  // in the space that the row says
            const MemoryInfo nothing{.offset = has_address ? memory.offset : 0};
            require(row_.shape.variadic || memory == nothing,
                    has_address ? "its op says how it accesses memory" : "it does not access memory");
            return require((memory.offset == 0 || has_address) && memory.count == 1, "it has no address");
        }
        require(memory.space != Space::None, "it does not say which space it accesses");
        const int count = memory.count;
        require(count == 1 || (row_.shape.vector && std::ranges::count(vector_counts, count)),
                "it cannot access " + std::to_string(count) + " elements");
        require(count * int(info(inst_.type).bytes) <= max_vector_bytes, "a vector has at most 32 bytes");
        require((memory.order == Order::Weak) == (memory.scope == Scope::None), "order and scope belong together");
        require(!memory.is_volatile || memory.order == Order::Weak, "a volatile access has no order");
        if (inst_.op == Op::Load) load();
        if (inst_.op == Op::Store) store();
        const Effects does = effects(inst_);
        const bool atomic = does.reads && does.writes;
        require(!atomic || (memory.cache == CacheOperator::None && !memory.is_volatile),
                "an atomic has no cache operator");
    }
    void load() {
        const MemoryInfo& memory = inst_.memory;
        const CacheOperator cache = memory.cache;
        require(memory.order != Order::Release && memory.order != Order::AcquireRelease, "a load cannot release");
        require(cache != CacheOperator::Wb && cache != CacheOperator::Wt, "this cache operator is for stores");
        require(cache != CacheOperator::Nc || (memory.space == Space::Global && memory.order == Order::Weak),
                "the read-only path is for weak loads from global memory");
    }
    void store() {
        const MemoryInfo& memory = inst_.memory;
        const CacheOperator cache = memory.cache;
        require(memory.order != Order::Acquire && memory.order != Order::AcquireRelease, "a store cannot acquire");
        require(cache != CacheOperator::Ca && cache != CacheOperator::Cv && cache != CacheOperator::Nc,
                "this cache operator is for loads");
        require(memory.space != Space::Const && memory.space != Space::Param, "this space is read-only");
    }

    const Function& fn_;
    const Instruction& inst_;
    const OpInfo& row_;
    std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> row_problems(const Function& fn, const Instruction& inst) { return RowCheck(fn, inst).run(); }

}  // namespace ikat::ir
