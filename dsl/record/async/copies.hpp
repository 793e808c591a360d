// SPDX-License-Identifier: Apache-2.0
// What dsl/memory/async.hpp and dsl/threads/mma.hpp call to record copies in flight, loads and stores of matrices.
#pragma once
#include "codegen/ir/op/forms/matrices.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// Begins to copy `bytes` bytes from global to shared memory. If there is a condition and it is false, nothing is read
/// and zeros are written.
void copy_async(const Slot& to, const Slot& from, std::uint32_t bytes, const Recorded* condition, const Where& where);
void copy_commit(const Where& where);
/// Waits for all but the last groups, or for all copies (ir::all_copies).
void copy_wait(ir::Word groups, const Where& where);

/// A host number of an element of a fragment that has this many; a diagnostic and 0 if there is no such element.
int checked_element(int number, int elements);
/// Rows of 16 bytes from shared memory, of matrices of 8 x 8 elements of 16 bits: as many values as matrices, u32.
void load_matrix(const Slot& from, ir::MatricesForm form, Recorded* results, const Where& where);

/// The same stored: a value for each matrix, u32.
void store_matrix(const Slot& to, ir::MatricesForm form, RecordedValues words, const Where& where);

}  // namespace ikat::trace
