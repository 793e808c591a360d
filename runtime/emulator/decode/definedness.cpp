// SPDX-License-Identifier: Apache-2.0
// The checked code: which rule of definedness each op has. See undefined.hpp.
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/observe/undefined.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

struct DefinednessTable {
    /// What precedes an op: nothing, or one of the three.
    struct Before {
        enum class Kind : std::uint8_t { Nothing, Values, Load, Store };
        Kind kind = Kind::Values;
        Propagation rule = Propagation::Mix;
        std::uint32_t x = 0;
        std::uint8_t reads = 0x3f;  // of what the op reads
        Space space = Space::Global;
        std::uint8_t bytes = 0;
    };

    std::unordered_map<Handler, Before> rows;
};

namespace {

using Before = DefinednessTable::Before;
using Table = decltype(DefinednessTable::rows);

constexpr Type integers[] = {Type::U8, Type::I8, Type::U16, Type::I16, Type::U32, Type::I32, Type::U64, Type::I64};
constexpr Type others[] = {Type::F16, Type::BF16, Type::F32, Type::F64, Type::F16x2, Type::BF16x2};

void add(Table& table, Handler handler, const Before& before) {
    if (handler) table.try_emplace(handler, before);
}
void add(Table& table, Handler handler, Propagation rule, std::uint32_t x = 0) {
    add(table, handler, {.rule = rule, .x = x});
}
void add(Table& table, Handler handler, DefinedUse use, std::uint8_t reads = 0x3f) {
    add(table, handler, {.rule = Propagation::Use, .x = std::uint32_t(use), .reads = reads});
}

void add_integers(Table& table) {
    using O = Operation;
    for (const Type type : integers) {
        for (const O o : {O::Add, O::Sub, O::Mul, O::Fma}) add(table, select_integer(o, type), Propagation::Upward);
        for (const O o : {O::Xor, O::Not, O::Lop3}) add(table, select_integer(o, type), Propagation::Either);
        add(table, select_integer(O::And, type), Propagation::And);
        add(table, select_integer(O::Or, type), Propagation::Or);
        add(table, select_integer(O::Shl, type), Propagation::ShiftLeft);
        add(table, select_integer(O::Shr, type),
            ir::is_signed(type) ? Propagation::ShiftRightSigned : Propagation::ShiftRight);
        add(table, select_integer(O::Bfe, type), Propagation::Extract);
        add(table, select_integer(O::Bfi, type), Propagation::Insert);
    }
    add(table, select_integer(O::ShiftPairLeft, Type::U32), Propagation::FunnelLeft);
    add(table, select_integer(O::ShiftPairRight, Type::U32), Propagation::FunnelRight);
    add(table, select_permute(0), Propagation::Permute);
}

void add_moves(Table& table) {
    for (const unsigned to : {4u, 8u}) {
        for (const unsigned from : {4u, 8u})
            add(table, select_move(to, from), Propagation::ZeroExtend, std::min(to, from));
        add(table, select_pack(to), Propagation::Pack);
        add(table, select_choose(to), Propagation::Choose);
    }
    for (const Type from : integers)
        for (const Type to : integers) {
            const std::uint32_t bytes = std::min(ir::info(from).bytes, ir::info(to).bytes);
            add(table, select_convert(to, from, Rounding::Nearest, false),
                ir::is_signed(from) ? Propagation::SignExtend : Propagation::ZeroExtend, bytes);
        }
    const auto mixes = [&](Type to, Type from) {
        for (const Rounding rounding : {Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up})
            for (const bool special : {false, true})
                add(table, select_convert(to, from, rounding, special), Propagation::Mix, ir::info(from).bytes);
    };
    for (const Type a : integers) {
        for (const Type b : integers) mixes(a, b);
        for (const Type b : others) mixes(a, b), mixes(b, a);
    }
}

void add_memory(Table& table) {
    for (const Space space : {Space::Global, Space::Shared, Space::Local, Space::Param, Space::Const, Space::Generic})
        for (const unsigned address : {4u, 8u})
            for (const std::uint8_t bytes : {std::uint8_t(1), std::uint8_t(2), std::uint8_t(4), std::uint8_t(8)})
                for (const unsigned count : {1u, 2u, 4u}) {
                    Before before{.kind = Before::Kind::Load, .space = space, .bytes = bytes};
                    add(table, select_load(space, address, bytes, count), before);
                    before.kind = Before::Kind::Store;
                    add(table, select_store(space, address, bytes, count), before);
                }
    for (const Atomic atomic : {Atomic::Add, Atomic::Min, Atomic::Max, Atomic::Inc, Atomic::Dec, Atomic::And,
                                Atomic::Or, Atomic::Xor, Atomic::Exchange, Atomic::CompareSwap}) {
        for (const Type type : integers) add(table, select_atomic(atomic, type), DefinedUse::Atomic);
        for (const Type type : others) add(table, select_atomic(atomic, type), DefinedUse::Atomic);
    }
    add(table, put_aside_wide_atomic(), DefinedUse::Atomic);
    for (const bool compares : {false, true}) add(table, select_wide_atomic(compares), DefinedUse::Atomic);
}

void add_control(Table& table) {
    for (const Handler handler : {branch_if, branch_unless, branch_if_uniform, branch_unless_uniform, branch_table})
        add(table, handler, DefinedUse::Branch);
    for (const Handler handler : {guard_if, guard_unless}) add(table, handler, DefinedUse::Guard);
    for (const Handler handler : {call_lanes, allocate_on_stack, restore_stack, heap_allocate, heap_free, check_rank})
        add(table, handler, DefinedUse::Call);
    for (const Handler handler : {print_formatted, print_assertion}) add(table, handler, DefinedUse::Print);
    add(table, barrier, DefinedUse::Barrier);
    add(table, check_alignment, DefinedUse::Address);
    add(table, count_traffic, Before{.kind = Before::Kind::Nothing});
    add(table, predicate_and, Propagation::And);
    add(table, predicate_or, Propagation::Or);
    for (const Handler handler : {predicate_xor, predicate_not, predicate_move})
        add(table, handler, Propagation::Either);
    add(table, predicate_select, Propagation::Choose);
}

void add_warp_wide(Table& table) {
    for (const Vote vote : {Vote::All, Vote::Any, Vote::Uniform, Vote::Ballot})
        add(table, select_vote(vote), DefinedUse::Warp);
    for (const unsigned bytes : {4u, 8u})
        for (const bool all : {false, true}) add(table, select_match(all, bytes), DefinedUse::Warp);
    for (unsigned i = 0; i <= unsigned(Reduction::MaxFloatNan); ++i)
        add(table, select_reduction(Reduction(i)), DefinedUse::Warp);
    for (const Handler handler : {select_elect(), select_sync_warp()}) add(table, handler, DefinedUse::Warp);
    for (const Shuffle mode : {Shuffle::Up, Shuffle::Down, Shuffle::Butterfly, Shuffle::Index})
        add(table, select_shuffle(mode), DefinedUse::Shuffle, B | C | X);  // what is shuffled is its own affair
    add(table, select_known_shuffle(), Before{.kind = Before::Kind::Nothing});
}

Table make_rows() {
    Table table;
    add_integers(table);
    add_moves(table);
    add_memory(table);
    add_control(table);
    add_warp_wide(table);
    return table;
}

}  // namespace

std::shared_ptr<const DefinednessTable> definedness_table() { return std::make_shared<DefinednessTable>(make_rows()); }

/// Puts before the op that is emitted next what it does for definedness.
void Lowering::emit_definedness(Handler handler, std::uint8_t writes, std::uint8_t reads,
                                const std::array<std::uint32_t, 6>& fields) {
    const auto found = definedness_->rows.find(handler);
    const Before before = found == definedness_->rows.end() ? Before{} : found->second;
    if (before.kind == Before::Kind::Nothing || (!reads && !writes)) return;
    Micro micro;
    micro.checks = true;
    micro.partial = guarded_;
    micro.instruction = current_;
    if (before.kind == Before::Kind::Values) {
        std::uint32_t widths = 0;
        for (unsigned i = 0; i < 6; ++i)
            if ((reads | writes) >> i & 1) widths |= std::uint32_t(values[fields[i]].width) << 4 * i;
        micro.run = select_definedness();
        const auto uses = [&](Propagation rule, std::uint8_t sources, std::uint8_t results, std::uint32_t x) {
            micro.fields = {std::uint32_t(rule), sources, results, widths, x};
            micros.push_back(micro);
        };
        // What is used is defined, and so are results of it.
        if (before.rule != Propagation::Use) return uses(before.rule, reads, writes, before.x);
        uses(Propagation::Use, reads & before.reads, before.reads == 0x3f ? writes : 0, before.x);
        return;
    }
    const bool is_load = before.kind == Before::Kind::Load;
    micro.run = is_load ? select_definedness_of_load() : select_definedness_of_store();
    const std::uint32_t elements = is_load ? writes : std::uint8_t(reads & ~A);
    micro.fields = {elements, std::uint32_t(before.space), before.bytes, values[fields[1]].slot, stores_numbers_};
    micros.push_back(micro);
}

}  // namespace ikat::emulator
