// SPDX-License-Identifier: Apache-2.0
// The checked code: the definedness rule of each op, and its replacement handler, if any. See undefined.hpp.
#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/agents/bulk_copies.hpp"
#include "runtime/emulator/agents/map_changes.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/ops/matrix.hpp"
#include "runtime/emulator/ops/scalar.hpp"
#include "runtime/emulator/tools/definedness/definedness.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint8_t all_fields = 0x3f;

struct Row {
    /// The check before an op: none, or one of three.
    enum class Kind : std::uint8_t { Nothing, Values, Load, Store };
    Kind kind = Kind::Values;
    Propagation rule = Propagation::Mix;
    std::uint32_t x = 0;
    std::uint8_t reads = all_fields;  // of the fields that the op reads
    Space space = Space::Global;
    std::uint8_t bytes = 0;
    Handler instead = nullptr;  // replaces the op's handler in the checked code
};
using Table = std::unordered_map<Handler, Row>;

constexpr Type integers[] = {Type::U8, Type::I8, Type::U16, Type::I16, Type::U32, Type::I32, Type::U64, Type::I64};
constexpr Type others[] = {Type::F16, Type::BF16, Type::F32, Type::F64, Type::F16x2, Type::BF16x2};

void add(Table& table, Handler handler, const Row& row) {
    if (handler) table.try_emplace(handler, row);
}
void add(Table& table, Handler handler, Propagation rule, std::uint32_t x = 0) {
    add(table, handler, {.rule = rule, .x = x});
}
void add(Table& table, Handler handler, DefinedUse use, std::uint8_t reads = all_fields) {
    add(table, handler, {.rule = Propagation::Use, .x = std::uint32_t(use), .reads = reads});
}

void add_integers(Table& table) {
    using O = Op;
    for (const Type type : integers) {
        for (const O o : {O::Add, O::Sub, O::Mul, O::Fma}) add(table, select_integer(o, type), Propagation::Upward);
        for (const O o : {O::Xor, O::Not, O::Logic3}) add(table, select_integer(o, type), Propagation::Either);
        add(table, select_integer(O::And, type), Propagation::And);
        add(table, select_integer(O::Or, type), Propagation::Or);
        add(table, select_integer(O::Shl, type), Propagation::ShiftLeft);
        add(table, select_integer(O::Shr, type),
            ir::is_signed(type) ? Propagation::ShiftRightSigned : Propagation::ShiftRight);
        add(table, select_integer(O::ExtractBits, type), Propagation::Extract);
        add(table, select_integer(O::InsertBits, type), Propagation::Insert);
    }
    add(table, select_integer(O::FunnelShift, Type::U32, 1), Propagation::FunnelLeft);
    add(table, select_integer(O::FunnelShift, Type::U32, 3), Propagation::FunnelRight);
    add(table, select_integer(O::PermuteBytes, Type::U32, 0), Propagation::Permute);
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
                    Row row{.kind = Row::Kind::Load, .space = space, .bytes = bytes};
                    add(table, select_load(space, address, bytes, count), row);
                    row.kind = Row::Kind::Store;
                    add(table, select_store(space, address, bytes, count), row);
                }
    for (const Atomic atomic : {Atomic::Add, Atomic::Min, Atomic::Max, Atomic::Inc, Atomic::Dec, Atomic::And,
                                Atomic::Or, Atomic::Xor, Atomic::Exchange, Atomic::CompareSwap}) {
        for (const Type type : integers) add(table, select_atomic(atomic, type), DefinedUse::Atomic);
        for (const Type type : others) add(table, select_atomic(atomic, type), DefinedUse::Atomic);
    }
    for (const bool compares : {false, true}) add(table, select_wide_atomic(compares), DefinedUse::Atomic);
}

void add_control(Table& table) {
    for (const Handler handler : {branch_if, branch_unless, branch_if_uniform, branch_unless_uniform, branch_table})
        add(table, handler, DefinedUse::Branch);
    for (const Handler handler : {guard_if, guard_unless}) add(table, handler, DefinedUse::Guard);
    for (const Handler handler : {allocate_on_stack, restore_stack, heap_allocate, heap_free})
        add(table, handler, DefinedUse::Call);
    constexpr std::uint32_t call = std::uint32_t(DefinedUse::Call);
    add(table, call_lanes, {.rule = Propagation::Use, .x = call, .instead = call_lanes_checked});
    add(table, restore_lanes, {.kind = Row::Kind::Nothing, .instead = restore_lanes_checked});
    add(table, return_lanes, {.kind = Row::Kind::Nothing, .instead = return_lanes_checked});
    for (const Handler handler : {print_formatted, print_assertion}) add(table, handler, DefinedUse::Print);
    for (const Handler handler : {barrier, init_mbarrier, invalidate_mbarrier, arrive_at_mbarrier, transact_mbarrier,
                                  test_mbarrier, arrive_after_copies})
        add(table, handler, DefinedUse::Barrier);
    for (const Handler handler :
         {check_alignment, map_shared, rank_of_shared, start_copies, start_bulk, change_map, copy_map, fence})
        add(table, handler, DefinedUse::Address);
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
        add(table, select_shuffle(mode),  // the shuffle handles the shuffled value itself
            {.rule = Propagation::Use,
             .x = std::uint32_t(DefinedUse::Shuffle),
             .reads = B | C | X,
             .instead = select_checked_shuffle(mode)});
    add(table, select_known_shuffle(), {.kind = Row::Kind::Nothing, .instead = count_run});
    for (unsigned i = 0; i <= unsigned(ProductKind::Quads); ++i)
        add(table, select_matrix_product(ProductKind(i)),
            {.kind = Row::Kind::Nothing, .instead = select_checked_matrix_product(ProductKind(i))});
    for (const auto select : {select_load_matrices, select_store_matrices, select_transpose_matrix,
                              select_fragment_product, select_start_product})
        add(table, select(false), {.kind = Row::Kind::Nothing, .instead = select(true)});
    for (const Handler handler : {fence_registers, commit_products}) add(table, handler, {.kind = Row::Kind::Nothing});
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

class Checker final : public Tool {
public:
    std::string_view name() const override { return "definedness"; }

    void before(Lowering& code, Micro& op) const override {
        const auto found = rows.find(op.run);
        const Row row = found == rows.end() ? Row{} : found->second;
        if (row.instead) op.run = row.instead;
        if (row.kind == Row::Kind::Nothing || (!op.reads && !op.writes && !op.list.count)) return;
        if (row.kind == Row::Kind::Values) return before_values(code, op, row);
        const bool is_load = row.kind == Row::Kind::Load;
        const std::uint32_t elements = is_load ? op.writes : std::uint8_t(op.reads & ~A);
        code.put({.run = is_load ? select_checked_load() : select_checked_store(),
                  .fields = {elements, std::uint32_t(row.space), row.bytes, code.values[op.fields[1]].slot},
                  .checks = true});
    }

private:
    static void before_values(Lowering& code, const Micro& op, const Row& row) {
        std::uint32_t widths = 0;
        for (unsigned i = 0; i < 6; ++i)
            if ((op.reads | op.writes) >> i & 1) widths |= std::uint32_t(code.values[op.fields[i]].width) << 4 * i;
        const bool uses = row.rule == Propagation::Use;
        IKAT_ASSERT(!op.list.count || uses || row.rule == Propagation::Mix,
                    "listed operands have no places of their own");
        const std::uint32_t reads = uses ? op.reads & row.reads : op.reads;
        const std::uint32_t writes = uses && row.reads != all_fields ? 0 : op.writes;  // a used value is defined
        code.put(
            {.run = select_definedness(),
             .fields = {std::uint32_t(row.rule), reads, writes, widths, row.x, op.list.count ? 1 + op.list.results : 0},
             .checks = true});
    }

    const Table rows = make_rows();
};

}  // namespace

const Tool& definedness() {
    static const Checker checker;
    return checker;
}

}  // namespace ikat::emulator
