// SPDX-License-Identifier: Apache-2.0
// Arrays, subscripts, stores, atomics.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "dsl/record/recorder.hpp"
#include "dsl/record/statement_operands.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ast::NodeInfo;
using ir::Op;
using ir::Type;

namespace {

/// An array as a place in the AST; commits the start of a slice.
ast::Place place(Recorder& recorder, const Array& array) {
    return recorder.place_of(array, array.sliced ? recorder.commit(array.first) : ast::no_node);
}

ir::Space space(const Recorder& recorder, const Array& array) {
    return array.symbol ? recorder.kernel.symbols[array.index].space : ir::Space::Global;
}

/// Converts a value to a type of any width.
Recorded resized(Type to, Type from, Recorded value) {
    if (to == from) return value;
    return operation({.op = Op::Convert, .type = to, .operand_type = to, .from = from}, {&value, 1});
}

Recorded binary(Op op, Type type, Recorded a, Recorded b) {
    const Recorded operands[] = {a, b};
    return operation({.op = op, .type = type, .operand_type = type}, {operands, 2});
}

Type type_of(const Position& position) { return position.wide ? Type::U64 : Type::U32; }

/// The committed index of a slot, with the effects of its expression. The start of a slice is committed first.
Recorded committed_index(Recorder& recorder, Array& array, const Position& position) {
    recorder.at(position.where);
    if (!array.sliced) return committed(position.value);
    const Recorded parts[] = {array.first, position.value};
    const std::uint32_t roots[] = {recorder.adopt(parts[0]), recorder.adopt(parts[1])};
    Recorded out = recorder.together({parts, 2});
    recorder.arrange(roots, 2);
    array.first = settled(committed(array.first));
    out.tree = committed(position.value).tree;
    return out;
}

NodeInfo load_node(Recorder& recorder, const Array& array, Node index, std::uint8_t count) {
    NodeInfo node{.kind = Kind::Load,
                  .type = array.element,
                  .place = place(recorder, array),
                  .arguments = {index},
                  .where = recorder.here()};
    node.memory.count = count;
    if (array.direction == Direction::Read && !array.symbol) node.memory.cache = ir::CacheOperator::Nc;
    return node;
}

/// The lanes of a load as values.
void unpack(Recorder& recorder, Slot& slot, Node load, const Recorded& history, bool unguarded) {
    for (std::uint8_t lane = 0; lane < slot.count; ++lane) {
        Node value = load;
        if (slot.count > 1)
            value = recorder.append({.kind = Kind::Extract,
                                     .type = slot.array.element,
                                     .attribute = lane,
                                     .arguments = {load},
                                     .where = recorder.here()});
        slot.lanes[lane] = recorder.leaf(value);
        slot.lanes[lane].effects = history.effects, slot.lanes[lane].atomic = history.atomic;
        slot.lanes[lane].loads = true;
        slot.lanes[lane].unguarded = unguarded;
    }
}

}  // namespace

// ---- arrays

std::uint32_t Recorder::add_symbol(ir::Symbol symbol) {
    const auto alike = [&](const ir::Symbol& other) {
        return other.space == symbol.space && other.dynamic == symbol.dynamic;
    };
    symbol.name = symbol.dynamic ? "dynamic" : std::string(ir::space_names[int(symbol.space)]);
    symbol.name += std::to_string(std::ranges::count_if(symbols(), alike));
    symbol.where = here_;
    if (replaying_) {
        if (now_.symbols < kernel.symbols.size()) {
            const ir::Symbol& first = kernel.symbols[now_.symbols];
            symbol.alignment = std::max(symbol.alignment, first.alignment);  // copies and products have raised it
            if (first == symbol) return std::uint32_t(now_.symbols++);
        }
        diverge(here_);
    }
    kernel.symbols.push_back(std::move(symbol));
    return std::uint32_t(kernel.symbols.size() - 1);
}

Array declare_array(ir::Space space, Type element, std::uint64_t count, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const std::uint32_t index =
        recorder.add_symbol({.name = {}, .space = space, .element = element, .count = count, .alignment = 16});
    constexpr std::uint64_t max_shared = 232448;  // of any target
    const std::uint64_t bytes = ir::symbol_bytes(recorder.symbols(), ir::Space::Shared);
    if (space == ir::Space::Shared && bytes > max_shared)
        recorder.complain("the kernel's Shared arrays take up " + std::to_string(bytes) + " bytes",
                          "a block has at most 232448 bytes on any target", recorder.here());
    return {.index = index, .capture = recorder.capture(), .symbol = true, .element = element};
}

Array declare_constant(Type element, std::uint64_t count, const void* first, std::uint64_t given, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (given != count)
        recorder.complain("a Constant of " + std::to_string(count) + " elements is given " + std::to_string(given),
                          "give it a value for each element", recorder.here());
    ir::Symbol symbol{.name = {}, .space = ir::Space::Const, .element = element, .count = count, .alignment = 16};
    symbol.values.resize(count);
    const std::size_t size = ir::info(element).bytes;
    for (std::uint64_t i = 0; i < std::min(count, given); ++i)
        std::memcpy(&symbol.values[i], static_cast<const std::byte*>(first) + i * size, size);

    const auto symbols = recorder.symbols();
    const auto found = std::ranges::find_if(symbols, [&](const ir::Symbol& other) {
        return other.space == ir::Space::Const && other.element == element && other.values == symbol.values;
    });
    auto index = std::uint32_t(found - symbols.begin());
    if (found == symbols.end()) {
        index = recorder.add_symbol(std::move(symbol));
        const std::uint64_t bytes = ir::symbol_bytes(recorder.symbols(), ir::Space::Const);
        if (bytes > ir::max_constant_bytes)
            recorder.complain("the kernel's Constant arrays take up " + std::to_string(bytes) + " bytes",
                              "constant memory has 65536 bytes: pass large tables as In<T>", recorder.here());
    }
    return {.index = index,
            .capture = recorder.capture(),
            .symbol = true,
            .direction = Direction::Read,
            .element = element};
}

Array declare_dynamic(Type element, Position count) {
    Recorder& recorder = Recorder::active();
    recorder.at(count.where);
    const bool first = std::ranges::none_of(recorder.symbols(), &ir::Symbol::dynamic);
    const std::uint32_t index = recorder.add_symbol(
        {.name = {}, .space = ir::Space::Shared, .element = element, .alignment = 16, .dynamic = true});
    const Recorded size = literal(Type::U32, std::uint64_t{ir::info(element).bytes});
    const Recorded elements = resized(Type::U32, type_of(count), settled(count.value));
    Array out{.index = index, .capture = recorder.capture(), .symbol = true, .sliced = !first, .element = element};
    Recorded bytes = binary(Op::Mul, Type::U32, elements, size);
    if (!first) {
        const int shift = std::countr_zero(ir::info(element).bytes);
        out.first = binary(Op::Shr, Type::U32, recorder.dynamic_end, literal(Type::U32, std::uint64_t(shift)));
        bytes = binary(Op::Add, Type::U32, recorder.dynamic_end, bytes);
    }
    const Recorded above = binary(Op::Add, Type::U32, bytes, literal(Type::U32, std::uint64_t{15}));
    recorder.dynamic_end = binary(Op::And, Type::U32, above, literal(Type::U32, std::uint64_t{~15u}));
    return out;
}

// ---- subscripts

Slot subscript(const Array& array, const Position& index, std::uint8_t count) {
    Recorder& recorder = Recorder::active();
    Slot slot{.array = array, .index = {}, .count = count, .where = index.where};
    recorder.owns(array.capture);
    slot.index = committed_index(recorder, slot.array, index);
    if (array.direction != Direction::Write && array.capture == recorder.capture())
        unpack(recorder, slot, recorder.append(load_node(recorder, slot.array, recorder.commit(slot.index), count)),
               slot.index, true);
    return slot;
}

Position flattened(const Position* indices, const std::uint64_t* extents, std::uint8_t rank) {
    bool wide = false;
    for (std::uint8_t r = 0; r < rank; ++r) wide |= indices[r].wide;
    const Type type = wide ? Type::U64 : Type::U32;
    Recorded flat = resized(type, type_of(indices[0]), indices[0].value);
    for (std::uint8_t r = 1; r < rank; ++r) {
        flat = binary(Op::Mul, type, flat, literal(type, extents[r]));
        flat = binary(Op::Add, type, flat, resized(type, type_of(indices[r]), indices[r].value));
    }
    return {flat, wide, indices[0].where};
}

Slot subscript(const Array& array, const Position* indices, const std::uint64_t* extents, std::uint8_t rank) {
    Slot out = subscript(array, flattened(indices, extents, rank));
    if (rank > 1) out.rows.bytes = extents[rank - 1] * ir::info(array.element).bytes;
    return out;
}

// ---- slices

namespace {

Type address_type(const Array& array) { return array.symbol ? Type::U32 : Type::U64; }

/// The array that starts `elements` later; they have the address's type.
Array further(const Array& array, Recorded elements) {
    Array out = array;
    out.first = array.sliced ? binary(Op::Add, address_type(array), array.first, elements) : elements;
    out.sliced = true;
    return out;
}

}  // namespace

Array slice(const Array& array, const Position& first) {
    Recorder::active().at(first.where);
    return fixed(further(array, resized(address_type(array), type_of(first), first.value)));
}

void subscript(const Array& array, const Position& index, const StructLayout& layout, Slot* fields) {
    Recorder& recorder = Recorder::active();
    recorder.at(index.where);
    recorder.owns(array.capture);
    const Type type = address_type(array);
    const Recorded element = committed(further(array, resized(type, type_of(index), index.value)).first);
    for (std::uint32_t k = 0; k < layout.count; ++k) {
        const auto [field, offset] = layout.fields[k];
        const std::uint32_t width = ir::info(field).bytes;
        IKAT_ASSERT(offset % width == 0 && layout.bytes % width == 0, "fields are at multiples of their width");
        Slot& slot = fields[k] = {
            .array = array, .index = literal(Type::U32, std::uint64_t{offset / width}), .where = index.where};
        slot.array.element = field;
        slot.array.sliced = true;
        slot.array.first = settled(
            committed(binary(Op::Mul, type, settled(element), literal(type, std::uint64_t{layout.bytes / width}))));
        if (array.direction == Direction::Write || array.capture != recorder.capture()) continue;
        unpack(recorder, slot, recorder.append(load_node(recorder, slot.array, recorder.commit(slot.index), 1)),
               element, true);
    }
}

Array viewed(const Array& array, Type element) {
    const auto bytes = [](Type type) { return std::uint64_t{ir::info(type).bytes}; };
    Array out = array;
    out.element = element;
    if (!array.sliced) return out;
    const Type type = address_type(array);
    const Recorded first = binary(Op::Mul, type, array.first, literal(type, bytes(array.element)));
    out.first = binary(Op::Shr, type, first, literal(Type::U32, std::uint64_t(std::countr_zero(bytes(element)))));
    return fixed(out);
}

Array advanced(const Array& array, const Position* steps, const Recorded* pitches, std::uint32_t count) {
    const Type type = address_type(array);
    Recorded sum;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Recorded step = resized(type, type_of(steps[i]), steps[i].value);
        const Recorded product = binary(Op::Mul, type, step, resized(type, Type::U32, pitches[i]));
        sum = i == 0 ? product : binary(Op::Add, type, sum, product);
    }
    return further(array, sum);
}

Array fixed(const Array& array) {
    Array out = array;
    out.first = settled(committed(array.first));
    return out;
}

std::uint32_t checked_dimension(std::int64_t dimension, std::uint32_t count, const char* what) {
    if (dimension >= 0 && dimension < count) return std::uint32_t(dimension);
    const std::string name(what);
    Recorder::active().complain(name + ' ' + std::to_string(dimension) + " of a view that has " + std::to_string(count),
                                "they are numbered from 0, the outermost; there is one pitch less than extents");
    return 0;
}

// ---- masked loads

Slot load_if(const Array& array, Recorded condition, const Position& index, RecordedValues other) {
    Recorder& recorder = Recorder::active();
    const auto count = std::uint8_t(other.count);
    Slot slot{.array = array, .index = {}, .count = count, .where = index.where};
    if (!recorder.owns(array.capture)) return slot;
    recorder.at(index.where);
    Operands operands;
    operands.add(condition);
    operands.add(array, index.value);
    for (const Recorded& value : other) operands.add(value);
    const Recorded history = operands.arrange(recorder);
    const Node guard = recorder.commit(condition);
    slot.array.first = settled(array.first);
    slot.index = committed_index(recorder, slot.array, {settled(index.value), index.wide, index.where});
    NodeInfo node = load_node(recorder, slot.array, recorder.commit(slot.index), count);
    node.guard = guard;
    for (std::uint8_t lane = 0; lane < count; ++lane) node.other.push_back(recorder.commit(other[lane]));
    unpack(recorder, slot, recorder.append(std::move(node)), history, history.unguarded);
    return slot;
}

// ---- changes of memory

namespace {

/// Puts the operands of a memory statement in order: the index, the values, the guard if there is one.
void arrange(Recorder& recorder, const Array& array, Recorded index, RecordedValues values, const Recorded* guard) {
    // The right side of an assignment comes before its left side: loads and atomics are in a defined order.
    const auto without_loads = [](Recorded value) {
        value.loads = value.unguarded = false;
        return value;
    };
    Operands operands;
    Array base = array;
    base.first = without_loads(array.first);
    operands.add(base, without_loads(index));
    for (const Recorded& value : values) operands.add(without_loads(value));
    if (guard) operands.add(without_loads(*guard));
    operands.arrange(recorder);
}

/// Commits the index and the values.
ast::Nodes commit_all(Recorder& recorder, Recorded index, RecordedValues values) {
    ast::Nodes out{ast::no_node};
    for (const Recorded& value : values) out.push_back(recorder.commit(value));
    out[0] = recorder.commit(index);
    return out;
}

void store(Recorder& recorder, const Array& array, Recorded index, const Recorded* guard, RecordedValues values) {
    if (!recorder.owns(array.capture)) return;
    arrange(recorder, array, index, values, guard);
    NodeInfo node{.kind = Kind::Store,
                  .type = array.element,
                  .place = place(recorder, array),
                  .arguments = commit_all(recorder, index, values),
                  .guard = guard ? recorder.commit(*guard) : ast::no_node,
                  .where = recorder.here()};
    node.memory.count = std::uint8_t(values.count);
    recorder.statement(std::move(node));
}

}  // namespace

void store(const Slot& slot, RecordedValues values, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    store(recorder, slot.array, slot.index, nullptr, values);
}

void store_if(const Array& array, Recorded condition, const Position& index, RecordedValues values,
              const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    store(recorder, array, index.value, &condition, values);
}

namespace {

/// An access that other threads can rely on. Weak means volatile, which has no scope.
NodeInfo ordered_node(Recorder& recorder, Kind kind, Op op, const Slot& slot, RecordedValues arguments, ir::Order order,
                      ir::Scope scope) {
    const Type type = slot.array.element;
    arrange(recorder, slot.array, slot.index, arguments, nullptr);
    NodeInfo node{.kind = kind,
                  .op = op,
                  .type = type,
                  .operand_type = type,
                  .place = place(recorder, slot.array),
                  .arguments = commit_all(recorder, slot.index, arguments),
                  .where = recorder.here()};
    node.memory.order = order;
    node.memory.is_volatile = order == ir::Order::Weak;
    if (node.memory.is_volatile) return node;
    node.memory.scope = scope != ir::Scope::None                           ? scope
                        : slot.array.peer                                  ? ir::Scope::Cluster
                        : space(recorder, slot.array) == ir::Space::Shared ? ir::Scope::Cta
                                                                           : ir::Scope::Gpu;
    return node;
}

Recorded changed(Recorder& recorder, NodeInfo node) {
    Recorded out = recorder.leaf(recorder.append(std::move(node)));
    out.effects = 1;
    out.atomic = true;
    return out;
}

}  // namespace

Recorded atomic(Op op, const Slot& slot, RecordedValues arguments, ir::Order order, ir::Scope scope,
                const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(slot.array.capture)) return literal(slot.array.element, std::uint64_t{0});
    if (order == ir::Order::Weak) {
        recorder.complain("an atomic without an order", "write Order::Relaxed, which is the default", recorder.here());
        order = ir::Order::Relaxed;
    }
    return changed(recorder, ordered_node(recorder, Kind::Atomic, op, slot, arguments, order, scope));
}

Recorded ordered_load(const Slot& slot, ir::Order order, ir::Scope scope, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(slot.array.capture)) return literal(slot.array.element, std::uint64_t{0});
    if (order == ir::Order::Release || order == ir::Order::AcquireRelease)
        recorder.complain("a load cannot release", "a load is relaxed or acquires; a store is relaxed or releases",
                          recorder.here());
    return changed(recorder, ordered_node(recorder, Kind::Atomic, Op::Load, slot, {}, order, scope));
}

void ordered_store(const Slot& slot, Recorded value, ir::Order order, ir::Scope scope, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(slot.array.capture)) return;
    if (order == ir::Order::Acquire || order == ir::Order::AcquireRelease)
        recorder.complain("a store cannot acquire", "a store is relaxed or releases; a load is relaxed or acquires",
                          recorder.here());
    recorder.statement(ordered_node(recorder, Kind::Store, Op::Store, slot, {&value, 1}, order, scope));
}

void vector_reduce(ir::Word mode, const Slot& slot, RecordedValues values, ir::Order order, ir::Scope scope,
                   const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(slot.array.capture)) return;
    if (order != ir::Order::Relaxed && order != ir::Order::Release) {
        recorder.complain("a reduction is relaxed or releases", "it has no result that could be acquired",
                          recorder.here());
        order = ir::Order::Relaxed;
    }
    NodeInfo node = ordered_node(recorder, Kind::Atomic, Op::VectorReduce, slot, values, order, scope);
    node.attribute = mode;
    node.memory.count = std::uint8_t(values.count);
    recorder.statement(std::move(node));
}

}  // namespace ikat::trace
