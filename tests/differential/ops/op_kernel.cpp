// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/ops/op_kernel.hpp"

#include "codegen/ir/builder.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/ir/text/print.hpp"
#include "tests/differential/ops/edge_values.hpp"

namespace ikat::test {
namespace {

using ir::Op, ir::Type, ir::Value, ir::Word;

/// A kernel under construction; its result is the last parameter but one.
class KernelBuilder {
public:
    explicit KernelBuilder(const OpCase& test) : test_(test) {
        fn_.name = "op";
        fn_.add_block();
    }

    std::uint32_t pointer(std::string name, ir::Access access, Type element) {
        fn_.parameters.push_back({.name = std::move(name), .access = access, .element = element});
        return std::uint32_t(fn_.parameters.size() - 1);
    }
    /// The address of element `index` of a pointer parameter.
    Value element(std::uint32_t parameter, Value index) {
        const Value base = build.leaf(Op::Param, Type::U64, parameter);
        const Value size = build.constant(Type::U64, ir::info(fn_.parameters[parameter].element).bytes);
        return build.make(Op::Add, Type::U64,
                          {base, build.make(Op::Mul, Type::U64, {build.convert(Type::U64, index), size})});
    }
    Value load(Type type, Value address) {
        const Value value = build.make(
            {.op = Op::Load, .type = stored_type(type), .memory = {.space = ir::Space::Global}}, {&address, 1});
        if (type != Type::Pred) return value;
        return build.make(Op::Ne, Type::U32, {value, build.constant(Type::U32, 0)});
    }
    void store_result(Value address, std::span<const Value> operands) {
        const Value made = build.make(test_.instruction, operands);
        Value value = std::as_const(fn_).results(fn_[made].instruction)[test_.result];
        const Type type = test_.result_type();
        if (type == Type::Pred) {
            const Value one = build.constant(Type::U32, 1), zero = build.constant(Type::U32, 0);
            value = build.make(Op::Select, Type::U32, {one, zero, value});
        }
        const Value both[] = {address, value};
        build.make({.op = Op::Store, .type = stored_type(type), .memory = {.space = ir::Space::Global}}, both);
    }
    ir::Function take() { return std::move(fn_); }

private:
    const OpCase& test_;
    ir::Function fn_;

public:
    ir::Builder build{fn_, ir::Block(0)};
};

}  // namespace

std::vector<Type> OpCase::argument_types() const {
    std::vector<Type> out;
    const ir::Shape& shape = ir::info(instruction.op).shape;
    for (std::uint32_t i = 0; i < shape.arity(); ++i)
        out.push_back(ir::at(shape.arguments[std::size_t(i)], instruction.type, instruction.from));
    return out;
}

Type OpCase::result_type() const { return ir::result_type(instruction, result); }

std::string OpCase::name() const {
    std::string out = std::string(ir::name(instruction.op)) + "." + std::string(ir::info(instruction.type).name);
    if (instruction.from != Type::Void) out += "." + std::string(ir::info(instruction.from).name);
    if (const auto mode = ir::mode_name(instruction.op, instruction.attribute); !mode.empty()) (out += ' ') += mode;
    const auto kind = ir::info(instruction.op).attribute;
    if (kind == ir::Attribute::Table || kind == ir::Attribute::Address)
        out += ' ' + ir::attribute_text(instruction.op, instruction.attribute);
    if (result != 0) out += " result " + std::to_string(result);
    return out + ir::print(instruction.fp);
}

Type stored_type(Type type) { return type == Type::Pred ? Type::U32 : type; }

Arguments edge_arguments(const OpCase& test) {
    Arguments out{{}};
    const auto types = test.argument_types();
    for (std::size_t i = 0; i < types.size(); ++i) {
        const bool shifts = ir::info(test.instruction.op).shape.arguments[i] == ir::Slot::U32;
        const std::vector<Word> values = shifts ? shift_amounts() : edge_values(types[i]);
        Arguments longer;
        for (const auto& list : out)
            for (Word value : values) (longer.emplace_back(list)).push_back(value);
        out = std::move(longer);
    }
    return out;
}

ir::Function memory_kernel(const OpCase& test) {
    KernelBuilder kernel(test);
    ir::Builder& build = kernel.build;
    const std::vector<Type> types = test.argument_types();
    for (std::size_t i = 0; i < types.size(); ++i)
        kernel.pointer("argument" + std::to_string(i), ir::Access::In, stored_type(types[i]));
    const std::uint32_t result = kernel.pointer("result", ir::Access::Out, stored_type(test.result_type()));
    build.function().parameters.push_back({.name = "n", .type = Type::U32});

    const auto special = [&](ir::SpecialRegister which) { return build.leaf(Op::Special, Type::U32, Word(which)); };
    const Value i = build.make(Op::Fma, Type::U32,
                               {special(ir::SpecialRegister::CtaidX), special(ir::SpecialRegister::NtidX),
                                special(ir::SpecialRegister::TidX)});
    const ir::Block body = build.function().add_block(), end = build.function().add_block();
    build.branch(build.make(Op::Lt, Type::U32, {i, build.leaf(Op::Param, Type::U32, result + 1)}), body, end);
    build.set_block(body);
    std::vector<Value> operands;
    for (std::uint32_t a = 0; a < types.size(); ++a) operands.push_back(kernel.load(types[a], kernel.element(a, i)));
    kernel.store_result(kernel.element(result, i), operands);
    build.jump(end);
    build.set_block(end);
    build.terminate(ir::Terminator::Kind::Return);
    return kernel.take();
}

ir::Function constant_kernel(const OpCase& test, const Arguments& arguments) {
    KernelBuilder kernel(test);
    ir::Builder& build = kernel.build;
    const std::uint32_t result = kernel.pointer("result", ir::Access::Out, stored_type(test.result_type()));
    const std::vector<Type> types = test.argument_types();
    for (std::uint32_t i = 0; i < arguments.size(); ++i) {
        std::vector<Value> operands;
        for (std::size_t a = 0; a < types.size(); ++a) operands.push_back(build.constant(types[a], arguments[i][a]));
        kernel.store_result(kernel.element(result, build.constant(Type::U32, i)), operands);
    }
    build.terminate(ir::Terminator::Kind::Return);
    return kernel.take();
}

namespace {

constexpr Rounding roundings[] = {Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up};

/// The modifier combinations of the op at a type.
std::vector<ir::FloatInfo> ways(Op op, Type type) {
    const ir::Modifier modifiers = ir::info(op).modifiers;
    std::vector<ir::FloatInfo> out{{}};
    if (!is_float(type)) return out;
    const bool wide = type == Type::F32 || type == Type::F64;
    if (modifiers & ir::Rounds && wide)
        for (Rounding rounding : {Rounding::Zero, Rounding::Down, Rounding::Up}) out.push_back({.rounding = rounding});
    if (modifiers & ir::Ftz && type == Type::F32) out.push_back({.ftz = true});
    if (modifiers & ir::Sat && (type == Type::F16 || type == Type::F32)) out.push_back({.sat = true});
    if (modifiers & ir::Approx && type == Type::F32) out.push_back({.approx = true});
    return out;
}

std::vector<Type> second_types(Op op) {
    if (ir::info(op).from == 0) return {Type::Void};
    std::vector<Type> out;
    for (int t = 0; t < ir::type_count; ++t)
        if (contains(ir::info(op).from, Type(t))) out.push_back(Type(t));
    return out;
}

/// All modes; some truth tables, not all of them symmetric.
std::vector<ir::Form> attributes(Op op) {
    if (ir::info(op).attribute == ir::Attribute::Address)
        return {ir::pack(ir::AddressForm{1, 0}), ir::pack(ir::AddressForm{4, 16}), ir::pack(ir::AddressForm{12, -8})};
    if (ir::info(op).attribute == ir::Attribute::Table) return {0x00, 0x01, 0xca, 0xe8, 0x96, 0xea, 0xff};
    std::vector<ir::Form> out{0};
    while (!ir::mode_name(op, out.size()).empty()) out.push_back(out.size());
    return out;
}

void add_cases(Op op, std::vector<OpCase>& out) {
    for (int t = 0; t < ir::type_count; ++t) {
        const Type type = Type(t);
        if (!contains(ir::info(op).domain, type)) continue;
        for (const ir::FloatInfo& fp : ways(op, type))
            for (Type from : second_types(op))
                for (const ir::Form attribute : attributes(op))
                    for (std::uint32_t result = 0; result < std::uint32_t(ir::info(op).shape.results()); ++result)
                        out.push_back(
                            {{.op = op, .type = type, .from = from, .fp = fp, .attribute = attribute}, result});
    }
}

bool changes_by_rounding(Type to, Type from) {
    if (contains(ir::Float8 | ir::PackedFloat8, to)) return false;  // to nearest only
    if (is_float(to) != is_float(from)) return true;
    return is_float(to) && to != from && ir::bits(to) <= ir::bits(from);
}

}  // namespace

bool has_way(const OpCase& test, const ptx::Target& target) {
    const ir::Instruction& it = test.instruction;
    constexpr ir::TypeSet float8 = ir::Float8 | ir::PackedFloat8;
    if (it.op == Op::Fma && lane(it.type) == Type::BF16) return target.number >= 80;
    if (it.op == Op::Convert && (contains(float8, it.type) || contains(float8, it.from))) return target.number >= 89;
    return true;
}

std::vector<OpCase> arithmetic_cases() {
    std::vector<OpCase> out;
    for (int op = 0; op < ir::op_count; ++op)
        if (!ir::info(Op(op)).effect) add_cases(Op(op), out);
    return out;
}

std::vector<OpCase> conversion_cases() {
    std::vector<OpCase> out;
    for (int to = 0; to < ir::type_count; ++to)
        for (int from = 0; from < ir::type_count; ++from) {
            const bool stored = contains(ir::Storable, Type(to)) && contains(ir::Storable, Type(from));
            if (stored && ir::bits(Type(to)) == ir::bits(Type(from)))
                out.push_back({{.op = Op::Bitcast, .type = Type(to), .from = Type(from)}});
            if (!ir::converts(Type(to), Type(from))) continue;
            const ir::Instruction convert{.op = Op::Convert, .type = Type(to), .from = Type(from)};
            for (Rounding rounding : roundings) {
                out.push_back({convert});
                out.back().instruction.fp.rounding = rounding;
                if (!changes_by_rounding(Type(to), Type(from))) break;
            }
            if (!contains(ir::AnyNum, Type(from)) || !contains(ir::AnyNum, Type(to)) || Type(to) == Type::BF16)
                continue;
            out.push_back({convert});
            out.back().instruction.fp.sat = true;
        }
    return out;
}

}  // namespace ikat::test
