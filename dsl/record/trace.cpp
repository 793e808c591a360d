// SPDX-License-Identifier: Apache-2.0
// Values: literals, trees and committing them; variables.
#include "dsl/record/trace.hpp"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "codegen/ir/op/semantics.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {
namespace {

using ast::Kind;
using ir::Type;

constexpr std::string_view no_capture = "a device value outside of a kernel";
constexpr std::string_view no_capture_hint =
    "device values and statements belong in the lambda that is given to kernel(); they record what the device does";

std::string name_of(Type type) { return std::string(ir::info(type).name); }

Recorded constant(Type type, ir::Word bits) {
    return Recorder::active().tree({.op = ir::Op::Const, .type = type, .operand_type = type, .attribute = bits}, {});
}

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

/// A number as a value; for a packed type, in both lanes.
Recorded filled(Type type, std::optional<ir::Word> bits, const std::string& number) {
    if (!bits) return unfit(type, number);
    return constant(type, is_packed(type) ? *bits << ir::bits(lane(type)) | *bits : *bits);
}

}  // namespace

// ---- literals

Recorded literal(Type type, std::int64_t number) {
    return filled(type, bits_of_integer(lane(type), number), std::to_string(number));
}
Recorded literal(Type type, std::uint64_t number) {
    return filled(type, bits_of_integer(lane(type), number), std::to_string(number));
}
Recorded literal(Type type, bool truth) { return constant(type, truth); }

Recorded literal(Type type, double number) { return filled(type, bits_of_float(lane(type), number), text_of(number)); }

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
    if (several) recorder.arrange(roots.data(), roots.size());
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

Variable Recorder::define_parameter(std::uint32_t parameter) {
    const ast::Node value = commit(parameter_value(parameter));
    return define(kernel.parameters[parameter].type, kernel.parameters[parameter].name, value);
}

// ---- the recorder: checks that values belong to it

namespace {
thread_local Recorder* current_recorder = nullptr;
}

Recorder* Recorder::current() { return current_recorder; }
Recorder* Recorder::exchange(Recorder* recorder) { return std::exchange(current_recorder, recorder); }

Recorder& Recorder::active() {
    if (!current_recorder) throw Error(std::string(no_capture), std::string(no_capture_hint));
    current_recorder->check_stack();
    return *current_recorder;
}

namespace {

/// The last part of this thread's stack, reserved for reporting that the rest is exhausted; empty if it is unknown.
Reserve reserve_of_stack() {
    static thread_local const Reserve reserve = [] {
        constexpr std::size_t most = 256 * 1024;
        pthread_attr_t attributes;
        void* end = nullptr;
        std::size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return Reserve{};
        pthread_attr_getstack(&attributes, &end, &size);
        pthread_attr_destroy(&attributes);
        return Reserve{reinterpret_cast<std::uintptr_t>(end), std::min(size / 4, most)};
    }();
    return reserve;
}

}  // namespace

/// A C++ function that calls itself under a device condition is recorded forever.
void Recorder::check_stack() const {
    if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - reserve_.end >= reserve_.bytes) return;
    throw Error(Diagnostic{.where = here_,
                           .message = "the host's stack is exhausted while the kernel is captured",
                           .hint = "a C++ function that calls itself is recorded without end, whatever if_ it is in: "
                                   "write a loop, or a device_fn, which may call itself"});
}

namespace {
/// This thread's arena while it captures nothing.
Arena& spare_arena() {
    static thread_local Arena arena;
    return arena;
}
}  // namespace

void Arena::clear() {
    nodes.clear(), trees.clear(), homes.clear(), positions.clear();
    window.clear(), order.clear(), tree_marks.clear(), node_marks.clear();
}

Recorder::Recorder(std::uint32_t capture, bool compare_regions)
    : capture_(capture), compare_regions_(compare_regions), reserve_(reserve_of_stack()) {
    std::swap(arena_, spare_arena());
    std::swap(kernel.nodes, arena_.nodes);
    kernel.nodes.reserve(64);
    trees_.reserve(64);
    stack_.push_back(add_region());
    open_[0] = true;
}

Recorder::~Recorder() {
    constexpr std::size_t most = 1 << 13;  // nodes of a kernel; larger arenas are freed
    std::swap(kernel.nodes, arena_.nodes);
    arena_.clear();
    if (arena_.nodes.capacity() <= most) std::swap(arena_, spare_arena());
}

void Recorder::complain(std::string message, std::string hint, Location where) {
    // A mistake that is the same for each lane is reported once.
    if (!where.known() && std::exchange(unlocated_complaint_, message) == message) return;
    if (replaying_ && now_.diagnostics++ < diagnostics.size()) return;  // reported in the first round
    diagnostics.push_back({.where = where, .message = std::move(message), .hint = std::move(hint)});
}

bool Recorder::owns(std::uint32_t capture) {
    if (capture == capture_) return true;
    complain("a device value of another kernel, or of an earlier capture, is used here",
             "device values live as long as the capture of their kernel: do not keep them in globals, statics or "
             "members");
    return false;
}

void Recorder::at(const Location& where) {
    if (where.known()) {
        here_ = where;
        callers.at(where);
    }
    locate();
}

void Recorder::locate() {
    unlocated_complaint_.clear();
    for (; located_ < diagnostics.size(); ++located_)
        if (!diagnostics[located_].where.known()) diagnostics[located_].where = here_;
    if (!unlocated_nodes_) return;
    for (ast::Node node : window_)
        if (!kernel[node].where.known()) kernel[node].where = here_;
    unlocated_nodes_ = false;
}

// ---- trees

std::uint32_t Recorder::adopt(const Recorded& value) {
    return owns(value.capture) ? value.tree : constant(Type::U32, 0).tree;
}

Recorded Recorder::together(RecordedValues operands) {
    Recorded out{.capture = capture_};
    const Recorded* atomic = nullptr;
    const Recorded* load = nullptr;
    unsigned effects = 0;
    for (const Recorded& operand : operands) {
        effects += operand.effects;
        if (operand.atomic) atomic = &operand;
        if (operand.loads) load = &operand;
        out.loads |= operand.loads, out.unguarded |= operand.unguarded, out.atomic |= operand.atomic;
    }
    // If the last load found is the atomic itself, look for another one.
    if (atomic && load == atomic)
        for (const Recorded& operand : operands)
            if (operand.loads && &operand != atomic) load = &operand;
    if (effects > 1)
        complain("two atomics, shuffles, votes or calls in one expression: C++ does not specify which comes first",
                 "give the first a name (auto a = ...;) and use the name");
    else if (atomic && load && load != atomic)
        complain("an atomic and a load in one expression: C++ does not specify which comes first",
                 "give the first a name (auto a = ...;) and use the name");
    out.effects = effects ? 1 : 0;
    return out;
}

namespace {
/// Whether the operation may become part of an fma.
bool is_contractible(const Operation& what) {
    return ir::is_float(what.type) && (what.op == ir::Op::Mul || what.op == ir::Op::Add || what.op == ir::Op::Sub);
}
}  // namespace

Recorded Recorder::tree(const Operation& what, RecordedValues arguments) {
    IKAT_ASSERT(arguments.count <= 4, "a tree has at most four arguments");
    Tree tree{.what = what, .count = std::uint8_t(arguments.count)};
    tree.what.fp.contract = contracts && is_contractible(what);
    for (std::uint32_t i = 0; i < arguments.count; ++i) tree.arguments[i] = adopt(arguments[i]);
    Recorded out = together(arguments);
    out.tree = std::uint32_t(trees_.size());
    trees_.push_back(tree);
    if (arguments.count > 1) arrange(tree.arguments, tree.count);
    return out;
}

Recorded Recorder::leaf(ast::Node node) {
    trees_.push_back({.node = node, .leaf = true});
    return {.tree = std::uint32_t(trees_.size() - 1), .capture = capture_};
}

ast::NodeInfo Recorder::node_of(const Operation& what) const {
    return {.kind = Kind::Operation,
            .op = what.op,
            .type = what.type,
            .operand_type = what.operand_type,
            .from = what.from,
            .fp = what.fp,
            .attribute = what.attribute,
            .where = here_};
}

ast::Nodes Recorder::commit_operands(RecordedValues arguments) {
    InlineVector<std::uint32_t, 4> roots;
    for (const Recorded& argument : arguments) roots.push_back(adopt(argument));
    together(arguments);
    arrange(roots.data(), roots.size());
    ast::Nodes nodes;
    for (std::uint32_t root : roots) nodes.push_back(commit(root));
    return nodes;
}

ast::Node Recorder::commit(std::uint32_t tree) {
    const ast::Node known = trees_[tree].node;
    if (known != ast::no_node && is_open(region_of(known))) return known;
    if (trees_[tree].leaf) {
        complain("a value that belongs to a device region is used outside of it",
                 "the region may not have run: assign the value to a device variable declared before the region");
        return commit(constant(kernel[known].type, 0).tree);
    }
    ast::NodeInfo node = node_of(trees_[tree].what);
    node.arguments.reserve(trees_[tree].count);
    for (std::uint32_t i = 0; i < trees_[tree].count; ++i) node.arguments.push_back(commit(trees_[tree].arguments[i]));
    if (outermost_ && tree < outermost_->trees) recommitted_.push_back({tree, trees_[tree].node});
    return trees_[tree].node = append(std::move(node));
}

ast::Node Recorder::find_load(std::uint32_t tree) const {
    const Tree& at = trees_[tree];
    if (!at.leaf) {
        for (std::uint32_t i = 0; i < at.count; ++i)
            if (const ast::Node found = find_load(at.arguments[i]); found != ast::no_node) return found;
        return ast::no_node;
    }
    const ast::NodeInfo& node = kernel[at.node];
    if (node.kind == Kind::Load && node.guard == ast::no_node) return at.node;
    const bool inner = node.kind == Kind::Extract || (node.kind == Kind::Operation && node.op == ir::Op::Convert);
    return inner && kernel[node.arguments[0]].kind == Kind::Load ? node.arguments[0] : ast::no_node;
}

}  // namespace ikat::trace
