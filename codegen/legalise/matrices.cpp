// SPDX-License-Identifier: Apache-2.0
// Matrices of 8 x 8 elements of 16 bits are stored without stmatrix. A lane has two elements of a row, and another lane
// has the address of that row.
//
//     store_matrix.u32 x1, [%row], %v  ==>  %0 = shuffle.u32 idx, %row, lane / 4, 31, -1
//                                           store.u32 shared [%0 + 4 * (lane % 4)], %v
//
// Of a transposed matrix, a lane has two elements of a column: it stores each by itself, in two rows.
//
// Needs: typed instructions. Keeps: blocks and edges.
#include <utility>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/forms/matrices.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

class StoredMatrices {
public:
    explicit StoredMatrices(ir::Function& fn) : fn_(fn), walk_(fn) {}

    bool run() {
        walk_.run([this](Inst inst) { fn_[inst].op == Op::StoreMatrix ? store(inst) : walk_.keep(inst); });
        return walk_.changed();
    }

private:
    void store(Inst inst) {
        where_ = fn_[inst].where;
        const auto form = ir::unpack<ir::MatricesForm>(fn_[inst].attribute);
        const std::int32_t offset = fn_[inst].memory.offset;
        const auto all = std::as_const(fn_).operands(inst);
        const std::vector<Value> operands(all.begin(), all.end());
        const Value lane = walk_.make(
            {.op = Op::Special, .type = Type::U32, .attribute = Word(ir::SpecialRegister::LaneId), .where = where_}, {},
            Type::U32);
        const Value quad = make(Op::Shr, {lane, number(2)}), place = make(Op::And, {lane, number(3)});
        for (std::uint32_t i = 0; i < form.count; ++i) {
            const Value word = operands[1 + i];
            if (!form.transposed) {
                const Value column = make(Op::Shl, {place, number(2)});
                put(Type::U32, row(operands[0], i, quad), column, offset, word);
                continue;
            }
            const Value even = make(Op::Shl, {place, number(1)}), column = make(Op::Shl, {quad, number(1)});
            const Value low = half(word);
            put(Type::U16, row(operands[0], i, even), column, offset, low);
            const Value high = half(make(Op::Shr, {word, number(16)})), odd = make(Op::Add, {even, number(1)});
            put(Type::U16, row(operands[0], i, odd), column, offset, high);
        }
    }

    /// The address of row `number` of matrix i, which lane 8 i + number has.
    Value row(Value address, std::uint32_t i, Value number_of_row) {
        const Value from = i ? make(Op::Add, {number_of_row, number(8 * i)}) : number_of_row;
        return walk_.make({.op = Op::Shuffle,
                           .type = Type::U32,
                           .attribute = ir::pack(ir::ShuffleForm{ir::ShuffleMode::Idx}),
                           .where = where_},
                          {address, from, number(31), number(0xffffffff)}, Type::U32);
    }
    void put(Type type, Value row, Value bytes, std::int32_t offset, Value value) {
        const ir::MemoryInfo memory{.space = ir::Space::Shared, .offset = offset};
        const Value operands[] = {make(Op::Add, {row, bytes}), value};
        fn_.append(walk_.block(), {.op = Op::Store, .type = type, .memory = memory, .where = where_}, operands, {});
    }

    Value half(Value word) {
        return walk_.make({.op = Op::Convert, .type = Type::U16, .from = Type::U32, .where = where_}, {word},
                          Type::U16);
    }
    Value number(Word word) { return walk_.constant(Type::U32, word, where_); }
    Value make(Op op, std::initializer_list<Value> operands) {
        return walk_.make({.op = op, .type = Type::U32, .where = where_}, operands, Type::U32);
    }

    ir::Function& fn_;
    ir::Rewriter walk_;
    Location where_{};  // of the store at hand
};

}  // namespace

analysis::Changed expand_stores_of_matrices(ir::Function& fn) {
    return analysis::instructions_if(StoredMatrices(fn).run());
}

}  // namespace ikat::legalise
