// SPDX-License-Identifier: Apache-2.0
// The recorder: which one is active, checks that values belong to it, and trees until they are committed as nodes.
#include "dsl/record/recorder.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace ikat::trace {
namespace {

using ast::Kind;

constexpr std::string_view no_capture = "a device value outside of a kernel";
constexpr std::string_view no_capture_hint =
    "device values and statements belong in the lambda that is given to kernel(); they record what the device does";

}  // namespace

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
        constexpr std::size_t max_reserve = 256 * 1024;
        pthread_attr_t attributes;
        void* end = nullptr;
        std::size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return Reserve{};
        pthread_attr_getstack(&attributes, &end, &size);
        pthread_attr_destroy(&attributes);
        return Reserve{reinterpret_cast<std::uintptr_t>(end), std::min(size / 4, max_reserve)};
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
    trees.cut(0), homes.clear(), positions.clear();
    window.clear(), order.clear(), tree_marks.clear(), node_marks.clear();
}

Recorder::Recorder(std::uint32_t capture, bool compare_regions)
    : capture_(capture), compare_regions_(compare_regions), reserve_(reserve_of_stack()) {
    std::swap(arena_, spare_arena());
    stack_.push_back(add_region());
    open_[0] = true;
}

Recorder::~Recorder() {
    constexpr std::size_t max_spare = 1 << 15;  // trees; larger arenas are freed
    arena_.clear();
    if (arena_.trees.capacity() <= max_spare) std::swap(arena_, spare_arena());
}

void Recorder::complain(std::string message, std::string hint, Location where, std::vector<Diagnostic::Note> notes) {
    // A mistake that is the same for each lane is reported once.
    if (!where.known() && std::exchange(unlocated_complaint_, message) == message) return;
    if (replaying_ && now_.diagnostics++ < diagnostics.size()) return;  // reported in the first round
    diagnostics.push_back(
        {.where = where, .message = std::move(message), .hint = std::move(hint), .notes = std::move(notes)});
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
    return owns(value.capture) ? value.tree : constant(ir::Type::U32, 0).tree;
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
    Tree tree{.what = what, .count = arguments.count};
    tree.what.fp.contract = contracts && is_contractible(what);
    for (std::uint32_t i = 0; i < arguments.count; ++i) tree.arguments[i] = adopt(arguments[i]);
    Recorded out = together(arguments);
    out.tree = std::uint32_t(trees_.size());
    trees_.push_back(Tree(tree));
    if (arguments.count > 1) arrange(tree.arguments, tree.count);
    return out;
}

Recorded Recorder::constant(ir::Type type, ir::Word bits) {
    return tree({.op = ir::Op::Const, .type = type, .operand_type = type, .attribute = bits}, {});
}

ast::Node Recorder::address(const Slot& slot, const ast::Node*& operand) {
    if (slot.array.peer) ++operand;  // committed, as place_of() wants it
    ast::NodeInfo node{.kind = ast::Kind::Address,
                       .type = slot.array.symbol ? ir::Type::U32 : ir::Type::U64,
                       .operand_type = slot.array.element,
                       .place = place_of(slot.array, slot.array.sliced ? *operand++ : ast::no_node),
                       .arguments = {*operand++},
                       .where = here_};
    node.memory.count = slot.count;
    return append(std::move(node));
}

ast::Nodes Recorder::commit_places(std::initializer_list<const Slot*> places, RecordedValues values) {
    std::vector<Recorded> operands;
    for (const Slot* place : places) {
        if (place->array.peer) operands.push_back(place->array.base);
        if (place->array.sliced) operands.push_back(place->array.first);
        operands.push_back(place->index);
    }
    operands.insert(operands.end(), values.begin(), values.end());
    const ast::Nodes nodes = commit_operands({operands.data(), std::uint32_t(operands.size())});
    const ast::Node* operand = nodes.begin();
    ast::Nodes out;
    for (const Slot* place : places) out.push_back(address(*place, operand));
    while (operand != nodes.end()) out.push_back(*operand++);
    return out;
}

std::optional<ir::Word> Recorder::remainder(ast::Node node, ir::Word power) const {
    const ast::NodeInfo& at = kernel[node];
    if (at.kind != Kind::Operation) return {};
    if (at.op == ir::Op::Const) return at.attribute % power;
    const auto of = [&](std::size_t argument) { return remainder(at.arguments[argument], power); };
    const auto product = [&]() -> std::optional<ir::Word> {
        const auto a = of(0), b = of(1);
        if (a == ir::Word{0} || b == ir::Word{0}) return 0;
        return a && b ? std::optional(*a * *b % power) : std::nullopt;
    };
    const auto sum = [&](std::optional<ir::Word> a, std::optional<ir::Word> b) {
        return a && b ? std::optional((*a + *b) % power) : std::nullopt;
    };
    switch (at.op) {
        case ir::Op::Add: return sum(of(0), of(1));
        case ir::Op::Mul: return product();
        case ir::Op::Fma: return sum(product(), of(2));
        case ir::Op::Convert:
            return ir::contains(ir::Int, at.from) && ir::contains(ir::Int, at.type) ? of(0) : std::nullopt;
        default: return {};
    }
}

std::optional<std::uint64_t> Recorder::byte_in_array(ast::Node address) const {
    constexpr ir::Word whole = ir::Word{1} << 32;  // indices are u32, and arrays smaller
    const ast::NodeInfo& at = kernel[address];
    const auto index = remainder(at.arguments[0], whole);
    const auto offset = at.place.offset == ast::no_node ? ir::Word{0} : remainder(at.place.offset, whole);
    if (!index || !offset) return {};
    return (*index * at.memory.count + *offset) % whole * ir::info(at.operand_type).bytes;
}

bool Recorder::is_misaligned(ast::Node address, std::uint32_t bytes) const {
    const ast::NodeInfo& at = kernel[address];
    const std::uint32_t size = ir::info(at.operand_type).bytes;
    const auto index = remainder(at.arguments[0], bytes);
    const auto offset = at.place.offset == ast::no_node ? ir::Word{0} : remainder(at.place.offset, bytes);
    return index && offset && (*index * at.memory.count + *offset) * size % bytes != 0;
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
    arrange_first(roots.data(), roots.size());
    ast::Nodes nodes;
    for (std::uint32_t root : roots) nodes.push_back(commit(root));
    return nodes;
}

ast::Node Recorder::commit(std::uint32_t tree) {
    const ast::Node known = is_leaf(tree) ? node_of_leaf(tree) : trees_[tree].node;
    if (is_usable(known)) return known;
    if (is_leaf(tree)) {
        complain("a value that belongs to a device region is used outside of it",
                 "the region may not have run: assign the value to a device variable declared before the region");
        const bool is_there = index(known) < kernel.nodes.size();
        return commit(constant(is_there ? kernel[known].type : ir::Type::U32, 0).tree);
    }
    ast::NodeInfo node = node_of(trees_[tree].what);
    node.arguments.reserve(trees_[tree].count);
    for (std::uint32_t i = 0; i < trees_[tree].count; ++i) node.arguments.push_back(commit(trees_[tree].arguments[i]));
    if (outermost_ && tree < outermost_->trees) recommitted_.push_back({tree, trees_[tree].node});
    return trees_[tree].node = append(std::move(node));
}

ast::Node Recorder::find_load(std::uint32_t tree) const {
    if (!is_leaf(tree)) {
        const Tree& at = trees_[tree];
        for (std::uint32_t i = 0; i < at.count; ++i)
            if (const ast::Node found = find_load(at.arguments[i]); found != ast::no_node) return found;
        return ast::no_node;
    }
    const ast::Node leaf = node_of_leaf(tree);
    if (index(leaf) >= kernel.nodes.size()) return ast::no_node;
    const ast::NodeInfo& node = kernel[leaf];
    if (node.kind == Kind::Load && node.guard == ast::no_node) return leaf;
    const bool inner = node.kind == Kind::Extract || (node.kind == Kind::Operation && node.op == ir::Op::Convert);
    return inner && kernel[node.arguments[0]].kind == Kind::Load ? node.arguments[0] : ast::no_node;
}

}  // namespace ikat::trace
