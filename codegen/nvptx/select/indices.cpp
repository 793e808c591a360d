// SPDX-License-Identifier: Apache-2.0
// Addresses become sums and products.
//
//     %1 = at.u64.u32 4+16, %x, %i    ==>    %2 = convert.u64.u32 %i
//                                            %3 = mul.u64 %2, 4
//                                            %4 = add.u64 %x, %3
//                                            %1 = add.u64 %4, 16
//
// Leaves equal products, and sums that do not change in a loop: the passes that find them come once more.
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {

using ir::Op, ir::Type, ir::Value;

Changed expand_addresses(ir::Function& fn, analysis::Context& context) {
    ir::Rewriter walk(fn);
    walk.run(context.dominators().reverse_postorder(), [&](ir::Inst inst) {  // blocks are not in order yet
        const ir::Instruction at = fn[inst];
        if (at.op != Op::At) return walk.keep(inst);
        const Type type = at.type;
        const auto form = ir::unpack<ir::AddressForm>(at.attribute);
        const auto make = [&](Op op, Value a, Value b) {
            return walk.make({.op = op, .type = type, .where = at.where}, {a, b}, type);
        };
        const Value base = std::as_const(fn).operands(inst)[0];
        Value index = std::as_const(fn).operands(inst)[1];
        if (at.from != type)
            index = walk.make({.op = Op::Convert, .type = type, .from = at.from, .where = at.where}, {index}, type);
        if (form.scale != 1) index = make(Op::Mul, index, walk.constant(type, form.scale, at.where));
        Value sum = make(Op::Add, base, index);
        const ir::Word constant =
            bits(type) == 32 ? std::uint32_t(form.constant) : ir::Word(std::int64_t(form.constant));
        if (constant) sum = make(Op::Add, sum, walk.constant(type, constant, at.where));
        walk.replace(fn.result(inst), sum);
    });
    return analysis::instructions_if(walk.changed());
}

}  // namespace ikat::nvptx
