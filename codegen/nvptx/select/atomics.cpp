// SPDX-License-Identifier: Apache-2.0
// Which atomics a target has; the others become loops (codegen/legalise/atomics.cpp).
#include <algorithm>
#include <iterator>

#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

/// The types for which every target has the atomic.
struct Native {
    ir::Op op;
    ir::TypeSet types;
};
constexpr ir::TypeSet numbers = ir::Int | ir::set(ir::Type::F16, ir::Type::F32, ir::Type::F64, ir::Type::F16x2);
constexpr Native native[] = {
    {ir::Op::AtomicAdd, numbers},
    {ir::Op::AtomicMin, ir::Int},
    {ir::Op::AtomicMax, ir::Int},
    {ir::Op::AtomicAnd, ir::Words},
    {ir::Op::AtomicOr, ir::Words},
    {ir::Op::AtomicXor, ir::Words},
    {ir::Op::AtomicExchange, ir::Words | ir::Packed | ir::set(ir::Type::F32, ir::Type::F64)},
};

/// Whether PTX has the atomic, or the reduction of a vector, for this target.
bool has_atomic(const ir::Instruction& it, const ptx::Target& target) {
    if (it.op == ir::Op::VectorReduce) {
        const bool adds_singles = it.attribute == 0 || it.type != ir::Type::F32;
        return it.memory.space == ir::Space::Global && adds_singles && supports(target, ptx::Feature::VectorReduction);
    }
    const auto row = std::ranges::find(native, it.op, &Native::op);
    const bool adds_bfloats = it.op == ir::Op::AtomicAdd && lane(it.type) == ir::Type::BF16;
    return row == std::end(native) || contains(row->types, it.type) ||
           (adds_bfloats && supports(target, ptx::Feature::Bfloat16Math));
}

}  // namespace

Changed expand_atomics(ir::Function& fn, const ptx::Target& target) {
    return legalise::expand_atomics(fn, [&](const ir::Instruction& it) { return has_atomic(it, target); });
}

}  // namespace ikat::nvptx
