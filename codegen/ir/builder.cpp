// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/builder.hpp"

#include "codegen/ir/op/shape.hpp"
#include "codegen/support/inline_vector.hpp"

namespace ikat::ir {

Value Builder::make(Instruction base, std::span<const Value> operands) {
    InlineVector<Type, 16> results;
    for (std::uint32_t i = 0; i < result_count(base); ++i) results.push_back(result_type(base, i));
    const Inst inst = append(std::move(base), operands, results);
    return results.empty() ? no_value : fn_.result(inst);
}

Inst Builder::append(Instruction base, std::span<const Value> operands, std::span<const Type> results) {
    if (!base.where.known()) base.where = where_;
    return fn_.append(block_, base, operands, results);
}

void Builder::jump(Block to, std::vector<Value> arguments) {
    fn_[block_].terminator = {.kind = Terminator::Kind::Jump, .targets = {{to, std::move(arguments)}}, .where = where_};
}

void Builder::branch(Value condition, Block then, Block otherwise) {
    fn_[block_].terminator = {
        .kind = Terminator::Kind::Branch, .condition = condition, .targets = {{then}, {otherwise}}, .where = where_};
}

void Builder::terminate(Terminator::Kind kind) { fn_[block_].terminator = {.kind = kind, .where = where_}; }

}  // namespace ikat::ir
