// SPDX-License-Identifier: Apache-2.0
// Values: literals, operations; variables.
#include "dsl/record/trace.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <optional>
#include <utility>

#include "codegen/ir/op/semantics.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {
namespace {

using ast::Kind;
using ir::Type;

std::string name_of(Type type) { return std::string(ir::info(type).name); }

Recorded constant(Type type, ir::Word bits) { return Recorder::active().constant(type, bits); }

std::string text_of(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

Recorded unfit(Type type, const std::string& number) {
    Recorder::active().complain("the number " + number + " does not fit " + name_of(type),
                                "write a number that " + name_of(type) + " holds, or compute in a wider type");
    return constant(type, 0);
}

/// An integer as the bits of an integer or floating type that holds it exactly.
template <class I>
std::optional<ir::Word> bits_of_integer(Type type, I number) {
    return ir::with_type(type, [&]<class T>() -> std::optional<ir::Word> {
        if constexpr (ir::sem::is_float<T>) {
            const T rounded = ir::sem::convert<T>(number, Rounding::Nearest);
            const double exact = double(ir::sem::wide(rounded));
            const bool same = std::abs(exact) < 0x1p63 && exact == std::floor(exact) &&
                              std::cmp_equal(static_cast<std::int64_t>(exact), number);
            return same ? std::optional(ir::to_word(rounded)) : std::nullopt;
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            return std::in_range<T>(number) ? std::optional(ir::to_word(T(number))) : std::nullopt;
        } else {
            return {};
        }
    });
}

/// A number rounded to a floating type; nothing if it overflows to infinity or saturates.
std::optional<ir::Word> bits_of_float(Type type, double number) {
    return ir::with_type(type, [&]<class T>() -> std::optional<ir::Word> {
        if constexpr (ir::sem::is_float<T>) {
            const T rounded = ir::sem::convert<T>(number, Rounding::Nearest);
            if constexpr (is_small_float<T>)
                if (T::format.clamps && std::abs(number) > double(T::from_bits(T::format.beyond() - 1))) return {};
            const bool fits = std::isfinite(double(ir::sem::wide(rounded))) == std::isfinite(number);
            return fits ? std::optional(ir::to_word(rounded)) : std::nullopt;
        } else {
            return {};
        }
    });
}

std::string text_of(std::integral auto number) { return std::to_string(number); }

/// A number as a value; for a packed type, in both lanes.
Recorded filled(Type type, std::optional<ir::Word> bits, auto number) {
    if (!bits) return unfit(type, text_of(number));
    return constant(type, is_packed(type) ? *bits << ir::bits(lane(type)) | *bits : *bits);
}

}  // namespace

// ---- literals

Recorded literal(Type type, std::int64_t number) { return filled(type, bits_of_integer(lane(type), number), number); }
Recorded literal(Type type, std::uint64_t number) { return filled(type, bits_of_integer(lane(type), number), number); }
Recorded literal(Type type, bool truth) { return constant(type, truth); }

Recorded literal(Type type, double number) { return filled(type, bits_of_float(lane(type), number), number); }

Recorded special(ir::SpecialRegister which) {
    const Type type = ir::type_of_register(which);
    return Recorder::active().tree(
        {.op = ir::Op::Special, .type = type, .operand_type = type, .attribute = ir::Word(which)}, {});
}

// ---- operations

Recorded operation(const Operation& what, RecordedValues arguments) { return Recorder::active().tree(what, arguments); }

void operation(const Operation& what, RecordedValues arguments, const Results& results, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    ast::NodeInfo node = recorder.node_of(what);
    node.arguments = recorder.commit_operands(arguments);
    const auto nodes = recorder.append(std::move(node), {results.types, results.count});
    for (std::uint32_t i = 0; i < results.count; ++i) results.values[i] = recorder.leaf(nodes[i]);
}

Recorded choice(const Operation& what, RecordedValues arguments) {
    Recorder& recorder = Recorder::active();
    const bool selects = what.op == ir::Op::Select;
    for (const Recorded& argument : arguments) {
        if (!argument.unguarded || (selects && &argument == &arguments[2])) continue;  // always computed
        const ast::Node load = recorder.find_load(recorder.adopt(argument));
        if (load == ast::no_node) continue;
        const ast::NodeInfo& node = recorder.kernel[load];
        const std::string array = node.place.base == ast::Place::Base::Parameter
                                      ? "`" + recorder.kernel.parameters[node.place.index].name + "`"
                                      : "a shared or local array";
        recorder.complain(
            "the load from " + array + " inside " +
                (selects                  ? "select()"
                 : what.op == ir::Op::And ? "&"
                                          : "|") +
                " happens whatever the condition is",
            "load under the condition with .load_if(condition, index, other) or inside if_(); or name the "
            "load first (auto v = ...), if it is always in bounds",
            node.where);
        break;
    }
    return recorder.tree(what, arguments);
}

Recorded convert(Type to, Type from, Recorded value, ir::FloatInfo fp) {
    constexpr ir::TypeSet float8 = ir::Float8 | ir::PackedFloat8;
    if (contains(float8, to) && fp.rounding != Rounding::Nearest) {
        Recorder::active().complain("conversions to 8-bit floats round to nearest", "leave out the rounding");
        fp.rounding = Rounding::Nearest;
    }
    return operation({.op = ir::Op::Convert, .type = to, .operand_type = to, .from = from, .fp = fp}, {&value, 1});
}

Recorded committed(Recorded value) {
    Recorder& recorder = Recorder::active();
    Recorded out = recorder.leaf(recorder.commit(value));
    out.effects = value.effects, out.atomic = value.atomic;
    out.loads = value.loads, out.unguarded = value.unguarded;
    return out;
}

void in_order(RecordedValues leaves, bool several) {
    Recorder& recorder = Recorder::active();
    InlineVector<std::uint32_t, 32> roots;
    bool effects = false;
    for (const Recorded& leaf : leaves) {
        effects |= leaf.effects != 0;
        if (leaf.capture == recorder.capture()) roots.push_back(leaf.tree);
    }
    if (effects)
        recorder.complain("an atomic, shuffle, vote or call inside an expression of several lanes",
                          "it happens once, not once for each lane: name it first (auto a = ...;) and use the name");
    if (several && !roots.empty()) recorder.arrange(roots.data(), roots.size());
}

// ---- variables

namespace {

ast::Variable id(Variable variable) { return ast::Variable(variable.index); }

bool usable(Recorder& recorder, Variable variable) {
    if (variable.index == moved_from) {
        recorder.complain("a device variable is used after it was moved from",
                          "copy a device variable instead of moving it; exchange two with swap(a, b), not std::swap");
        return false;
    }
    return recorder.owns(variable.capture);
}

}  // namespace

Variable declare(Type type, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    return recorder.define(type, {}, ast::no_node);
}

Variable define(Type type, Recorded value, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    return recorder.define(type, {}, recorder.commit(value));
}

void assign(Variable variable, Recorded value, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!usable(recorder, variable)) return;
    const ast::Node node = recorder.commit(value);
    recorder.statement({.kind = Kind::Assign, .variable = id(variable), .arguments = {node}, .where = recorder.here()});
}

Recorded read(Variable variable) {
    Recorder& recorder = Recorder::active();
    if (!usable(recorder, variable)) return constant(Type::U32, 0);
    // A read has no location of its own; it gets that of the next statement or subscript.
    return recorder.leaf(
        recorder.append({.kind = Kind::Read, .type = recorder.kernel[id(variable)].type, .variable = id(variable)}));
}

std::uint64_t checked_index(std::int64_t index, std::uint64_t size) {
    if (index >= 0 && std::uint64_t(index) < size) return std::uint64_t(index);
    Recorder::active().complain("register " + std::to_string(index) + " of Regs, which has " + std::to_string(size),
                                "registers are numbered from 0");
    return 0;
}

namespace {
constexpr std::string_view no_member = "this member of the struct is not a field that a kernel can read",
                           no_member_hint = "list it in BOOST_HANA_DEFINE_STRUCT(Params, (float, scale), ...)";
}

Recorded no_field() {
    Recorder::active().complain(std::string(no_member), std::string(no_member_hint));
    return constant(Type::U32, 0);
}

void refuse_member() {
    throw Error(Diagnostic{
        .where = Recorder::active().here(), .message = std::string(no_member), .hint = std::string(no_member_hint)});
}

int checked_width(int width, const Where& where) {
    if (width >= 1 && width <= 32 && (width & (width - 1)) == 0) return width;
    Recorder::active().complain("a shuffle among " + std::to_string(width) + " lanes",
                                "the width is 1, 2, 4, 8, 16 or 32", Location::of(where));
    return 32;
}

int checked_lane(int number) {
    if (number == 0 || number == 1) return number;
    Recorder::active().complain("lane " + std::to_string(number) + " of a packed value, which has two",
                                "lanes are numbered 0 and 1");
    return 0;
}

std::size_t checked_lane(std::int64_t number, std::size_t lanes) {
    if (number >= 0 && std::uint64_t(number) < lanes) return std::size_t(number);
    Recorder::active().complain("lane " + std::to_string(number) + " of " + std::to_string(lanes),
                                "lanes are numbered from 0");
    return 0;
}

Recorded Recorder::parameter_value(std::uint32_t parameter) {
    const ir::Type type = kernel.parameters[parameter].type;
    at(kernel.where);
    return leaf(commit(tree({.op = ir::Op::Param, .type = type, .operand_type = type, .attribute = parameter}, {})));
}

Recorded raw_number(const Array& parameter, ir::Type type, std::int64_t offset, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(parameter.capture)) return constant(type, 0);
    const ir::Parameter& of = recorder.kernel.parameters[parameter.index];
    const std::int64_t width = ir::info(type).bytes;
    if (offset < 0 || offset + width > std::int64_t(of.bytes) || offset % width != 0) {
        recorder.complain("no " + name_of(type) + " starts at byte " + std::to_string(offset) + " of `" + of.name +
                              "`, which has " + std::to_string(of.bytes),
                          "an offset is in bytes, from 0, and a multiple of the size that is read", recorder.here());
        return constant(type, 0);
    }
    return recorder.leaf(
        recorder.commit(recorder.tree({.op = ir::Op::Param,
                                       .type = type,
                                       .operand_type = type,
                                       .attribute = ir::parameter_at(parameter.index, std::uint32_t(offset))},
                                      {})));
}

Recorded raw_address(const Array& parameter, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(parameter.capture)) return constant(ir::Type::U64, 0);
    return recorder.leaf(recorder.commit(recorder.tree({.op = ir::Op::ParamAddress,
                                                        .type = ir::Type::U64,
                                                        .operand_type = ir::Type::U64,
                                                        .attribute = parameter.index},
                                                       {})));
}

Variable Recorder::define_parameter(std::uint32_t parameter) {
    const ast::Node value = commit(parameter_value(parameter));
    return define(kernel.parameters[parameter].type, kernel.parameters[parameter].name, value);
}

}  // namespace ikat::trace
