// SPDX-License-Identifier: Apache-2.0
// What dsl/threads/wgmma.hpp calls to record products of matrices by a warpgroup.
#pragma once
#include "codegen/ir/op/forms/wgmma.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// How a matrix lies in shared memory; steps are in bytes.
struct SharedMatrixLayout {
    std::uint32_t swizzle = 0;
    std::int64_t leading = 0, stride = 0;
};
/// The descriptor of a matrix that begins at a place in shared memory, a u64; `what` makes it, for messages.
Recorded shared_matrix(const Slot& at, const SharedMatrixLayout& layout, const char* what, const Where& where);
/// Bytes that a descriptor is moved by: a multiple of 16; otherwise a diagnostic, and 0.
std::int64_t checked_offset(std::int64_t bytes, const Where& where);
/// Consecutive variables of a fragment.
void wgmma(ir::WgmmaForm form, Variable sums, const Variable* factors, RecordedValues operands, const Where& where);
void wgmma_wait(ir::Word groups, const Where& where);

}  // namespace ikat::trace
