// SPDX-License-Identifier: Apache-2.0
// What dsl/memory/async.hpp calls to record copies in flight.
#pragma once
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// Begins to copy `bytes` bytes from global to shared memory. If there is a condition and it is false, nothing is read
/// and zeros are written.
void copy_async(const Slot& to, const Slot& from, std::uint32_t bytes, const Recorded* condition, const Where& where);
void copy_commit(const Where& where);
/// Waits for all but the last groups, or for all copies (ir::all_copies).
void copy_wait(ir::Word groups, const Where& where);

}  // namespace ikat::trace
