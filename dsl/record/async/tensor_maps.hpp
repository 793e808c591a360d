// SPDX-License-Identifier: Apache-2.0
// What dsl/kernel/tensor_map.hpp calls to record copies of boxes of tensors.
#pragma once
#include "codegen/ir/op/forms/mbarrier.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// A box of a tensor: its map, a parameter, and where it begins, i32, the innermost last.
struct TensorBox {
    Array map;
    Recorded at[5];
    std::uint32_t rank = 0;
};

/// With a mask of the blocks of the cluster, u16, that get it, or null.
void tensor_load(const Slot& to, const TensorBox& from, const Slot& barrier, const Recorded* mask, const Where& where);
void tensor_store(const TensorBox& to, const Slot& from, ir::BulkForm::Reduction reduction, const Where& where);
void tensor_prefetch(const TensorBox& from, const Where& where);
void prefetch_map(const Array& map, const Where& where);

}  // namespace ikat::trace
