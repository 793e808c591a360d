// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies become a load and a store: done where they begin. There is nothing left to commit or to wait
// for.
//
//     copy_async 16.cg, [%to], [%from], %n  ==>  %a = gt.u32 %n, 0
//     copy_commit                                %0, %1, %2, %3 = load.u32.v4 global [%from] guard %a else 0, 0, 0, 0
//     copy_wait 0                                store.u32.v4 shared [%to], %0, %1, %2, %3
//
// As here if %n is known to be nothing or all. Otherwise words, halves of words or bytes are loaded one by one, as
// large as %n is surely a multiple of.
//
// Needs: typed instructions. Keeps: blocks and edges.
#include <algorithm>
#include <bit>

#include "codegen/analysis/ranges.hpp"
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

class Copies {
public:
    Copies(ir::Function& fn, const analysis::Dominators& dominators) : fn_(fn), walk_(fn), ranges_(fn, dominators) {}

    bool run() {
        walk_.run([this](Inst inst) {
            const Instruction& it = fn_[inst];
            if (it.op == Op::CopyAsync) return copy(inst);
            if (!effects(it).in_flight()) walk_.keep(inst);
        });
        return walk_.changed();
    }

private:
    void copy(Inst inst) {
        where_ = fn_[inst].where;
        const ir::MemoryAccess to = ir::accesses(fn_[inst])[0];
        from_ = ir::accesses(fn_[inst])[1];
        address_ = std::as_const(fn_).operands(inst)[1];
        std::vector<Value> operands{std::as_const(fn_).operands(inst)[0]};
        const std::vector<Value> words = read(std::as_const(fn_).operands(inst)[2]);
        operands.insert(operands.end(), words.begin(), words.end());
        const ir::MemoryInfo memory{.space = to.space, .count = std::uint8_t(words.size()), .offset = to.offset};
        fn_.append(walk_.block(), {.op = Op::Store, .type = Type::U32, .memory = memory, .where = where_}, operands,
                   {});
    }

    /// The first `count` bytes, and zeros.
    std::vector<Value> read(Value count) {
        const std::uint64_t multiple = ranges_.of(count).multiple;  // 0 if it is 0
        if (multiple % from_.bytes == 0) return load(Type::U32, from_.bytes / 4, 0, count);
        const auto unit = std::uint32_t(std::min<std::uint64_t>(multiple & -multiple, 4));
        std::vector<Value> words;
        for (std::uint32_t at = 0; at < from_.bytes; at += 4) words.push_back(word(unit, at, count));
        return words;
    }

    /// The four bytes from `at` on, of pieces of `unit` bytes.
    Value word(std::uint32_t unit, std::uint32_t at, Value count) {
        const Type type = unit == 4 ? Type::U32 : unit == 2 ? Type::U16 : Type::U8;
        Value out = load(type, 1, at, count)[0];
        if (unit == 4) return out;
        out = extended(type, out);
        for (std::uint32_t further = unit; further < 4; further += unit) {
            const Value piece = extended(type, load(type, 1, at + further, count)[0]);
            out = make(Op::Or, {out, make(Op::Shl, {piece, number(8 * further)})});
        }
        return out;
    }

    /// Elements from byte `at` on, if that is one of the first `count`, or zeros.
    std::vector<Value> load(Type type, std::uint32_t elements, std::uint32_t at, Value count) {
        const auto constant = ir::constant(fn_, count);
        const Value zero = walk_.constant(type, 0, where_);
        if (constant && *constant <= at) return std::vector(elements, zero);
        Instruction load{.op = Op::Load,
                         .type = type,
                         .memory = {.space = from_.space,
                                    .count = std::uint8_t(elements),
                                    .offset = from_.offset + std::int32_t(at)},
                         .where = where_};
        std::vector<Value> operands{address_};
        if (!constant) {
            load.guard = make(Op::Gt, {count, number(at)}, Type::Pred);
            load.tie = {.result = 0, .operand = 1, .count = std::uint16_t(elements)};
            operands.resize(1 + elements, zero);
        }
        const Inst made = fn_.append(walk_.block(), load, operands, std::vector(elements, type));
        const auto results = fn_.results(made);
        return {results.begin(), results.end()};
    }

    Value number(ir::Word word) { return walk_.constant(Type::U32, word, where_); }
    Value make(Op op, std::initializer_list<Value> operands, Type result = Type::U32) {
        return walk_.make({.op = op, .type = Type::U32, .where = where_}, operands, result);
    }
    Value extended(Type from, Value value) {
        return walk_.make({.op = Op::Convert, .type = Type::U32, .from = from, .where = where_}, {value}, Type::U32);
    }

    ir::Function& fn_;
    ir::Rewriter walk_;
    analysis::Ranges ranges_;
    // Of the copy at hand:
    Location where_{};
    ir::MemoryAccess from_{};
    Value address_ = ir::no_value;
};

}  // namespace

analysis::Changed expand_copies(ir::Function& fn, analysis::Context& context, const Target& target) {
    auto changed = analysis::Changed::Nothing;
    if (!target.async_copies) changed |= analysis::instructions_if(Copies(fn, context.dominators()).run());
    if (!target.matrix_stores) changed |= expand_stores_of_matrices(fn);
    return changed;
}

}  // namespace ikat::legalise
