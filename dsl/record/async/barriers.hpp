// SPDX-License-Identifier: Apache-2.0
// What dsl/threads/barrier.hpp calls to record barriers in shared memory and copies that arrive there.
#pragma once
#include "codegen/ir/op/forms/mbarrier.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// What is done to a barrier in shared memory, with a number if the form takes one.
void mbarrier(const Slot& barrier, ir::MbarrierForm form, const Recorded* number, const Where& where);
/// Whether the phase of this parity has ended; the thread may be suspended for a while.
Recorded try_barrier(const Slot& barrier, const Recorded& parity, const Where& where);
/// Asks until it has.
void wait_at_barrier(const Slot& barrier, const Recorded& parity, const Where& where);
/// Arrives when this thread's copies are done.
void copy_arrive(const Slot& barrier, const Where& where);

/// A number of bytes, with its value if the host knows it.
struct ByteCount {
    Recorded value;
    std::uint64_t known = 0;
};
/// Copies between shared and global memory, a multiple of 16 bytes.
void bulk_load(const Slot& to, const Slot& from, const ByteCount& bytes, const Slot& barrier, const Where& where);
void bulk_store(const Slot& to, const Slot& from, const ByteCount& bytes, ir::BulkForm::Reduction reduction,
                const Where& where);
void bulk_prefetch(const Slot& from, const ByteCount& bytes, const Where& where);
/// To another block of the cluster, where it arrives at a barrier of that block.
void bulk_send(const Slot& to, const Slot& from, const ByteCount& bytes, const Slot& barrier, const Where& where);
/// Waits for all but the last groups of stores, or, to change what they read, until it has been read.
void bulk_commit(const Where& where);
void bulk_wait(ir::Word groups, bool read_only, const Where& where);

}  // namespace ikat::trace
