// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics and fences.
#include <fmt/format.h>

#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

/// The two halves of a register of 128 bits.
std::vector<VReg> double_words(Lowering& code, const ptx::Operand& operand) {
    const Binding* const binding = operand.kind == ptx::Operand::Kind::Symbol ? code.find(operand.name) : nullptr;
    if (!binding || !binding->is_pair) code.unsupported("a register of 128 bits is needed here");
    return {binding->value, binding->high};
}

namespace {

/// `map`: the address of a tensor map that it is about.
void emit_fence(Lowering& code, const Synchronises& how, std::optional<VReg> map = {}) {
    const MicroInfo info{.operation = Op::Fence, .synchronises = how, .use = DefinedUse::Address};
    code.emit({fence, info}, 0, map ? A : 0, {0, map ? index(*map) : 0});
}

/// The addresses of `bytes` each must be multiples of that.
void check_alignment_of(Lowering& code, const AddressOperand& at, std::uint32_t bytes) {
    const MicroInfo info{.operation = OwnOp::CheckAlignment, .use = DefinedUse::Address};
    code.emit({check_alignment, info}, 0, A,
              {0, index(at.base), bytes, code.values[index(at.base)].slot, std::uint32_t(at.offset),
               std::uint32_t(at.space)});
}

/// Orders stronger than relaxed become fences before and after an otherwise plain access.
struct Order {
    bool acquires = false, releases = false;
    bool is_strong = false;  // or relaxed, or volatile
    Scope scope = Scope::Thread;

    void before(Lowering& code) const {
        if (releases) emit_fence(code, {.releases = true, .of_access = true, .scope = scope});
    }
    void after(Lowering& code) const {
        if (acquires) emit_fence(code, {.acquires = true, .of_access = true, .scope = scope});
    }
};

Scope take_scope(Modifiers& modifiers) {
    switch (modifiers.take_any({Modifier::Cta, Modifier::Cluster, Modifier::Gpu, Modifier::Gl, Modifier::Sys})) {
        case Modifier::Cta: return Scope::Block;
        case Modifier::Cluster: return Scope::Cluster;
        case Modifier::Gpu:
        case Modifier::Gl: return Scope::Device;
        case Modifier::Sys: return Scope::System;
        default: return Scope::Thread;
    }
}

/// The modifiers of ld and st.
struct Access {
    AddressOperand at{};
    Type type{};
    unsigned count = 1;  // elements
    Order order{};
    bool cached = true;
};

Order take_order(Modifiers& modifiers) {
    Order order;
    order.scope = take_scope(modifiers);
    const Modifier plain = modifiers.take_any({Modifier::Volatile, Modifier::Weak, Modifier::Mmio});
    const bool is_relaxed = modifiers.take(Modifier::Relaxed);
    order.is_strong = is_relaxed || plain == Modifier::Volatile || plain == Modifier::Mmio;
    if (order.is_strong && order.scope == Scope::Thread) order.scope = Scope::System;
    if (order.is_strong || plain != Modifier::Unknown) return order;
    const bool both = modifiers.take(Modifier::AcqRel);
    order.acquires = modifiers.take(Modifier::Acquire) || both;
    order.releases = modifiers.take(Modifier::Release) || both;
    order.is_strong = order.acquires || order.releases;
    // What atom and red default to.
    if (order.is_strong && order.scope == Scope::Thread) order.scope = Scope::Device;
    return order;
}

Access take_access(Lowering& code, Modifiers& modifiers, const ptx::Operand& operand) {
    Access access;
    for (const Modifier past : {Modifier::Volatile, Modifier::Relaxed, Modifier::Acquire, Modifier::Release,
                                Modifier::Mmio, Modifier::Cg, Modifier::Cv, Modifier::Wt, Modifier::L1NoAllocate})
        if (modifiers.has(past)) access.cached = false;
    access.order = take_order(modifiers);
    access.at = code.address(operand, modifiers.take_space());
    modifiers.take_cache_hints();
    modifiers.take(Modifier::Nc);
    access.count = modifiers.take_vector();
    if (modifiers.take(Modifier::B128)) {
        if (access.count > 1) code.unsupported("vectors of .b128 are not supported");
        access.type = Type::U64;
        access.count = 2;
        return access;
    }
    const auto type = modifiers.take_type();
    if (!type || *type == Type::Pred) code.unsupported("its type is not supported");
    access.type = *type;
    return access;
}

/// Accesses of more than four elements or 16 bytes are made in parts of 16 bytes, after checking their alignment.
template <class F>
void in_parts(Lowering& code, const Access& access, std::span<const VReg> elements, F f) {
    const unsigned bytes = ir::info(access.type).bytes, at_once = std::min(4u, 16 / bytes);
    Access part = access;
    if (elements.size() > at_once) {
        const std::uint8_t slot = code.values[index(access.at.base)].slot;
        part.at.base = code.temporary(slot);  // a load may overwrite its own address
        code.apply(select_move(slot, slot), part.at.base, {access.at.base});
        check_alignment_of(code, part.at, unsigned(elements.size()) * bytes);
    }
    for (std::size_t i = 0; i < elements.size(); i += at_once) {
        const std::span<const VReg> now = elements.subspan(i, std::min<std::size_t>(at_once, elements.size() - i));
        std::array<std::uint32_t, 6> fields{};
        constexpr unsigned element_fields[4] = {0, 2, 3, 5};
        std::uint8_t used = 0;
        for (std::size_t k = 0; k < now.size(); ++k) {
            fields[element_fields[k]] = index(now[k]);
            used |= std::uint8_t(1 << element_fields[k]);
        }
        fields[1] = index(part.at.base);
        fields[4] = std::uint32_t(part.at.offset + std::int32_t(i * bytes));
        f(part.at, bytes, unsigned(now.size()), fields, used);
    }
}

void load_elements(Lowering& code, const Access& access, std::span<const VReg> elements) {
    const unsigned bytes = ir::info(access.type).bytes;
    if (access.at.fixed) {
        const auto end = std::uint64_t(access.at.offset) + bytes * elements.size();
        if (access.at.offset < 0 || end > code.kernel.parameter_bytes)
            code.unsupported("it reads outside of the kernel's parameters", "check the offset against the .param list");
        for (std::size_t i = 0; i < elements.size(); ++i)
            code.emit(select_load_parameter(bytes), D, 0,
                      {index(elements[i]), 0, 0, 0, std::uint32_t(access.at.offset) + std::uint32_t(i) * bytes});
        return;
    }
    code.tell_tools(access.at, {.bytes = bytes * std::uint32_t(elements.size()), .cached = access.cached});
    in_parts(code, access, elements,
             [&](const AddressOperand& at, unsigned size, unsigned count, const auto& fields, std::uint8_t used) {
                 Behaviour load = select_load(at.space, code.values[index(at.base)].slot, size, count);
                 load.info.access.is_strong = access.order.is_strong;
                 load.info.access.scope = access.order.scope;
                 code.emit(load, used, A, fields).apart = true;
             });
}

void store_elements(Lowering& code, const Access& access, std::span<const VReg> elements) {
    const unsigned bytes = ir::info(access.type).bytes;
    code.tell_tools(
        access.at,
        {.bytes = bytes * std::uint32_t(elements.size()), .direction = Direction::Write, .cached = access.cached});
    in_parts(code, access, elements,
             [&](const AddressOperand& at, unsigned size, unsigned count, const auto& fields, std::uint8_t used) {
                 Behaviour store = select_store(at.space, code.values[index(at.base)].slot, size, count);
                 store.info.access.is_strong = access.order.is_strong;
                 store.info.access.scope = access.order.scope;
                 code.emit(store, 0, std::uint8_t(A | used), fields);
             });
}

void ld(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool is_wide = modifiers.has(Modifier::B128);
    const Access from = take_access(code, modifiers, operands[1]);
    from.order.before(code);
    if (is_wide) {
        load_elements(code, from, double_words(code, operands[0]));
    } else {
        const bool is_vector = operands[0].kind == ptx::Operand::Kind::Vector;
        const Operands targets = is_vector ? Operands(code.module.operands(operands[0].children)) : operands.one(0);
        if (targets.size() != from.count) code.unsupported("the vector's length is not that of the instruction");
        std::vector<Result> results;
        std::vector<VReg> elements;
        for (const ptx::Operand& target : targets) results.push_back(code.result(target, from.type));
        for (const Result& each : results) elements.push_back(each.at);
        load_elements(code, from, elements);
        for (const Result& each : results) code.finish(each);
    }
    from.order.after(code);
}

void st(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool is_wide = modifiers.has(Modifier::B128);
    const Access to = take_access(code, modifiers, operands[0]);
    std::vector<VReg> elements;
    if (is_wide) {
        elements = double_words(code, operands[1]);
    } else {
        const bool is_vector = operands[1].kind == ptx::Operand::Kind::Vector;
        const Operands sources = is_vector ? Operands(code.module.operands(operands[1].children)) : operands.one(1);
        if (sources.size() != to.count) code.unsupported("the vector's length is not that of the instruction");
        for (const ptx::Operand& each : sources) elements.push_back(code.source(each, to.type));
    }
    to.order.before(code);
    store_elements(code, to, elements);
    to.order.after(code);
}

Behaviour in_scope(Behaviour atomic, Scope scope) {
    atomic.info.access.scope = scope;
    return atomic;
}

/// Each element separately, as the ISA says; the vector must be aligned as a whole.
void update_vector(Lowering& code, Atomic atomic, Type type, unsigned count, const AddressOperand& at, Scope scope,
                   const ptx::Operand* to, Operands operands) {
    const Operands sources = code.module.operands(operands[1].children);
    const Operands targets = to ? Operands(code.module.operands(to->children)) : Operands();
    if (sources.size() != count || (to && targets.size() != count))
        code.unsupported("the vector's length is not that of the instruction");
    const unsigned bytes = ir::info(type).bytes;
    const VReg base = code.resized(at.base, 8);
    check_alignment_of(code, {base, at.offset, at.space}, count * bytes);
    code.tell_tools({base, at.offset, at.space},
                    {.bytes = count * bytes, .direction = Direction::Atomic, .cached = false});
    std::vector<VReg> old;
    for (unsigned i = 0; i < count; ++i) {
        old.push_back(code.temporary(slot_of(type)));
        const VReg b = code.source(sources[i], type);
        const std::uint32_t offset = std::uint32_t(at.offset) + i * bytes;
        code.emit(in_scope(select_atomic(atomic, type, at.space), scope), D, A | B | C,
                  {index(old[i]), index(base), index(b), index(b), offset, std::uint32_t(at.space)})
            .apart = true;
    }
    for (unsigned i = 0; to && i < count; ++i) {
        const Result d = code.result(targets[i], type);
        code.apply(select_move(slot_of(type), slot_of(type)), d.at, {old[i]});
        code.finish(d);
    }
}

/// atom.exch.b128 and atom.cas.b128
void update_wide(Lowering& code, std::optional<Atomic> operation, const AddressOperand& at, Scope scope,
                 const ptx::Operand* to, Operands operands) {
    const bool compares = operation == Atomic::CompareSwap;
    if (!to || (operation != Atomic::Exchange && !compares))
        code.unsupported("128 bits are exchanged or compared and swapped");
    const VReg base = code.resized(at.base, 8);
    const std::vector<VReg> written = double_words(code, operands[compares ? 2 : 1]),
                            expected = double_words(code, operands[1]);
    const VReg low = code.temporary(8), high = code.temporary(8);
    code.tell_tools({base, at.offset, at.space}, {.bytes = 16, .direction = Direction::Atomic, .cached = false});
    const VReg old[] = {low, high}, sources[] = {written[0], written[1], expected[0], expected[1]};
    Micro micro = micro_of(in_scope(select_wide_atomic(compares, at.space), scope));
    micro.fields = {0, index(base), 0, 0, std::uint32_t(at.offset), std::uint32_t(at.space)};
    micro.reads = A;
    micro.list = code.list(old, std::span(sources).first(compares ? 4 : 2));
    micro.apart = true;
    code.emit(micro);
    if (to->kind == ptx::Operand::Kind::Sink) return;
    const std::vector<VReg> d = double_words(code, *to);
    code.apply(select_move(8, 8), d[0], {low});
    code.apply(select_move(8, 8), d[1], {high});
}

/// A policy has no effect here: its bits are all zero, and its operands only need to be present.
void createpolicy(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_any({Modifier::Fractional, Modifier::Range, Modifier::Cvt});
    modifiers.take(Modifier::Global);
    modifiers.take(Modifier::L2);
    modifiers.take_cache_hints();
    modifiers.take_type();
    const Result d = code.result(operands[0], Type::U64);
    code.emit(select_literal(8), D, 0, {index(d.at), 0, 0, 0, 0, 0});
    code.finish(d);
}

/// Whether an address is that of a .texref, .samplerref or .surfref of the module.
void istypep(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Modifier type = modifiers.take_any({Modifier::Texref, Modifier::Samplerref, Modifier::Surfref});
    const Result p = code.result(operands[0], Type::Pred);
    const VReg address = code.source(operands[1], Type::U64);
    code.emit(select_predicate(Op::Const), D, 0, {index(p.at), 0, 0, 0, 0});
    for (const ptx::Variable& variable : code.module.variables) {
        if (ptx::spelled_modifier(code.module.text(variable.type)) != type) continue;
        for (const auto& declarator : variable.declarators) {
            const auto placed = code.variables.variables.find(declarator.name);
            if (placed == code.variables.variables.end()) continue;
            const VReg same = code.temporary(0);
            code.apply(select_compare(Comparison::Eq, Type::U64, false), same,
                       {address, code.constant(placed->second.address, 8)});
            code.apply(select_predicate(Op::Or), p.at, {p.at, same});
        }
    }
}

void update(Lowering& code, Modifiers& modifiers, const ptx::Operand* to, Operands operands) {
    static constexpr std::pair<Modifier, Atomic> names[] = {
        {Modifier::Add, Atomic::Add},        {Modifier::Min, Atomic::Min}, {Modifier::Max, Atomic::Max},
        {Modifier::Inc, Atomic::Inc},        {Modifier::Dec, Atomic::Dec}, {Modifier::And, Atomic::And},
        {Modifier::Or, Atomic::Or},          {Modifier::Xor, Atomic::Xor}, {Modifier::Exch, Atomic::Exchange},
        {Modifier::Cas, Atomic::CompareSwap}};
    const Order order = take_order(modifiers);
    const Scope scope = order.scope == Scope::Thread ? Scope::Device : order.scope;
    const AddressOperand at = code.address(operands[0], modifiers.take_space());
    modifiers.take_cache_hints();
    modifiers.take(Modifier::Noftz);
    const unsigned count = modifiers.take_vector();
    const auto operation = modifiers.take_named(names);
    if (modifiers.take(Modifier::B128)) {
        order.before(code);
        update_wide(code, operation, at, scope, to, operands);
        order.after(code);
        return;
    }
    const auto type = modifiers.take_type();
    if (!operation || !type) code.unsupported("its operation or its type is not supported");
    if (count > 1) {
        order.before(code);
        update_vector(code, *operation, *type, count, at, scope, to, operands);
        order.after(code);
        return;
    }
    const Result d = to ? code.result(*to, *type) : Result{code.temporary(slot_of(*type)), {}, *type, false};
    const VReg base = code.resized(at.base, 8), b = code.source(operands[1], *type);
    const VReg c = operands.size() > 2 ? code.source(operands[2], *type) : b;
    order.before(code);
    code.tell_tools({base, at.offset, at.space},
                    {.bytes = ir::info(*type).bytes, .direction = Direction::Atomic, .cached = false});
    code.emit(in_scope(select_atomic(*operation, *type, at.space), scope), D, A | B | C,
              {index(d.at), index(base), index(b), index(c), std::uint32_t(at.offset), std::uint32_t(at.space)})
        .apart = true;
    code.finish(d);
    order.after(code);
}

void atom(Lowering& code, Modifiers& modifiers, Operands operands) {
    update(code, modifiers, &operands[0], operands.from(1));
}
void red(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    update(code, modifiers, nullptr, operands);
}

void membar(Lowering& code, Modifiers& modifiers, Operands operands) {
    Synchronises how;
    const bool is_of_maps = modifiers.has(Modifier::TensormapGeneric);
    const bool is_of_proxies = modifiers.has(Modifier::Proxy) || is_of_maps;
    how.scope = take_scope(modifiers);
    if (!is_of_proxies || is_of_maps) {
        how.acquires = !modifiers.has(Modifier::Release);
        how.releases = !modifiers.has(Modifier::Acquire);
    }
    how.shows_maps = is_of_maps;
    how.shows_barriers = modifiers.has(Modifier::MbarrierInit) || (how.scope > Scope::Block && !is_of_proxies);
    if (modifiers.has(Modifier::AsyncGeneric)) {
        how.shows_shared = true;
        how.shows_peers = modifiers.has(Modifier::Acquire);
    } else if (modifiers.has(Modifier::Proxy) && modifiers.has(Modifier::Async)) {
        how.shows_shared = !modifiers.has(Modifier::Global);
        how.shows_peers = how.shows_shared && !modifiers.has(Modifier::SharedCta);
        how.shows_global = !modifiers.has(Modifier::SharedCta) && !modifiers.has(Modifier::SharedCluster);
    }
    std::optional<VReg> map;
    if (is_of_maps && how.acquires) {
        const AddressOperand at = code.address(operands[0], Space::Generic);
        map = code.resized(at.offset ? code.with_offset(at.base, at.offset) : at.base, 8);
    }
    modifiers.take_all();  // always the strongest
    emit_fence(code, how, map);
}

/// Hints: prefetch, brkpt, pmevent ...
void ignored(Lowering&, Modifiers& modifiers, Operands) { modifiers.take_all(); }

/// Grids run one after the other: what it says is for a tool (tools/grids/grids.hpp).
void griddepcontrol(Lowering& code, Modifiers& modifiers, Operands) {
    const bool waits = modifiers.take(Modifier::Wait);
    if (!waits && modifiers.take(Modifier::LaunchDependents)) code.kernel.launches_next = true;
    const MicroInfo info{.operation = waits ? Op::GridWait : Op::LaunchNext};
    code.emit({nothing, info}, 0, 0, {});
}

constexpr RuleRow memory_rows[] = {
    {"ld", ld},
    {"ldu", ld},
    {"st", st},
    {"atom", atom},
    {"red", red},
    {"membar", membar},
    {"fence", membar},
    {"createpolicy", createpolicy},
    {"istypep", istypep},
    {"griddepcontrol", griddepcontrol},
    // hints
    {"prefetch", ignored},
    {"prefetchu", ignored},
    {"discard", ignored},
    {"applypriority", ignored},
    {"brkpt", ignored},
    {"pmevent", ignored},
};

}  // namespace

constinit const Family memory_family{memory_rows};

}  // namespace ikat::emulator
