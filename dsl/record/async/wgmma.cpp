// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warpgroup.
#include "dsl/record/async/wgmma.hpp"

#include <algorithm>
#include <string>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ir::Op;
using ir::Type;

namespace {

constexpr std::int64_t descriptor_limit = 1 << 18;  // of addresses and steps in a descriptor, in bytes

/// Aligns the array as its pattern wants it, and complains about what no descriptor can say.
void check_matrix(Recorder& recorder, const std::string& what, const Slot& at, const SharedMatrixLayout& layout,
                  ast::Node address) {
    ir::Symbol& symbol = recorder.kernel.symbols[at.array.index];
    symbol.alignment = std::max({symbol.alignment, 8 * layout.swizzle, ir::matrix_row_bytes});
    if (recorder.is_misaligned(address, ir::matrix_row_bytes))
        recorder.complain(what + " at an element that is not aligned to 16 bytes",
                          "matrices begin at multiples of 16 bytes", recorder.here());
    for (const std::int64_t step : {layout.leading, layout.stride})
        if (step < 0 || step >= descriptor_limit || step % 16)
            return recorder.complain(what + " with a step of " + std::to_string(step) + " bytes",
                                     "steps are multiples of 16 bytes below 262144", recorder.here());
}

Recorded combined(Op op, Type type, const Recorded& a, const Recorded& b) {
    const Recorded operands[] = {a, b};
    return operation({.op = op, .type = type, .operand_type = type}, {operands, 2});
}

}  // namespace

Recorded shared_matrix(const Slot& at, const SharedMatrixLayout& layout, const char* what, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const bool is_shared = recorder.is_shared(at);
    if (!is_shared)
        recorder.complain(std::string(what) + " of memory that is not shared",
                          "the matrix lies in a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    if (!is_shared || !recorder.owns(at.array.capture)) return literal(Type::U64, std::uint64_t{0});
    const ast::Node address = recorder.commit_places({&at}, {})[0];
    check_matrix(recorder, what, at, layout, address);
    recorder.swizzled.push_back({.symbol = at.array.index,
                                 .address = address,
                                 .swizzle = layout.swizzle,
                                 .what = what,
                                 .where = recorder.here()});
    const Recorded shifted = combined(Op::Shr, Type::U32, recorder.leaf(address), literal(Type::U32, std::uint64_t{4}));
    const Recorded pieces =
        combined(Op::And, Type::U32, shifted, literal(Type::U32, std::uint64_t{descriptor_limit / 16 - 1}));
    const ir::Word rest =
        ir::matrix_descriptor(layout.swizzle, std::uint32_t(layout.leading), std::uint32_t(layout.stride));
    return committed(combined(Op::Or, Type::U64, convert(Type::U64, Type::U32, pieces, {}), literal(Type::U64, rest)));
}

std::int64_t checked_offset(std::int64_t bytes, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (bytes % 16 == 0 && bytes > -descriptor_limit && bytes < descriptor_limit) return bytes;
    recorder.complain("a matrix in shared memory is moved by " + std::to_string(bytes) + " bytes",
                      "it is moved by multiples of 16 bytes, within shared memory", recorder.here());
    return 0;
}

void wgmma(ir::WgmmaForm form, Variable sums, const Variable* factors, RecordedValues operands, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(sums.capture) || (factors && !recorder.owns(factors->capture))) return;
    recorder.kernel.block.whole_warpgroups = true;
    const ast::Nodes nodes = recorder.commit_operands(operands);
    ast::NodeInfo node =
        recorder.node_of({.op = Op::Wgmma, .operand_type = ir::register_type(form.sum), .attribute = ir::pack(form)});
    node.variable = ast::Variable(sums.index);
    if (factors) node.factor = ast::Variable(factors->index);
    node.arguments = nodes;
    recorder.statement(std::move(node));
}

void wgmma_wait(ir::Word groups, const Where& where) {
    effect({.op = Op::WgmmaWait, .attribute = ir::pack(ir::GroupsForm{std::uint16_t(groups)})}, {}, where);
}

}  // namespace ikat::trace
