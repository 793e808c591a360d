// SPDX-License-Identifier: Apache-2.0
// Tools watch kernels. A tool may add micro-ops when a kernel is decoded, and is told what happens while it runs. A
// launch has any number of them; code is decoded once for each set, and without tools has none of their ops.
//
//     Tool        what a launch is given; the same for many launches
//     LaunchTool  what it knows of one launch
//     BlockTool   ... of one block after the other, by one host thread at a time
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/emulator/core/micro_info.hpp"

namespace ikat {
struct Diagnostic;
}

namespace ikat::ptx {
struct Instruction;
}

namespace ikat::emulator {

struct DecodedKernel;
struct LaunchState;
struct MemoryAccess;
struct Micro;
struct MicroOp;
struct Fault;
struct Progress;
struct Statistics;
struct Warp;
struct WarpgroupWork;
class Lowering;
class ThreadBlock;

/// Where threads meet: a barrier of the block, by its number, that of the cluster, or one in shared memory, by its
/// address in its block.
struct Meeting {
    enum class Kind : std::uint8_t { Barrier, Cluster, Mbarrier };
    Kind kind = Kind::Barrier;
    std::uint64_t place = 0;
};

/// An agent's access to memory, for a lane or for all of a warp.
struct AgentAccess {
    enum class Of : std::uint8_t {
        Copy,  // cp.async
        BulkCopy,
        Product,
        TensorMap,  // one that a copy uses, or an instruction changes
        Arrival,    // of a bulk copy, at a barrier in shared memory
    };
    struct Range {
        std::uint64_t address = 0;  // as the instruction sees it
        std::uint32_t bytes = 0;
        const std::uint8_t* bits = nullptr;  // in shared memory, of the variable: which bytes have been written
        std::uint64_t offset = 0;            // ... in it
        std::uint64_t place = 0;             // the address in its own block
    };
    const DecodedKernel* code = nullptr;  // that the op is of, which has started it
    const MicroOp* op = nullptr;
    Warp* w = nullptr;
    std::uint32_t lanes = 0;      // that have started it; of some operations, the whole warp
    std::uint64_t operation = 0;  // its number in the block (ThreadBlock::next_operation); 0: its end is not told
    ThreadBlock* numbered_by = nullptr;  // ... if that is not the block which is told
    Of of = Of::Copy;
    bool by_async_proxy = true;
    bool of_tensor = false;  // of a bulk copy: by a map
    Direction direction = Direction::Read;
    Space space = Space::Global;      // of the addresses
    ThreadBlock* owner = nullptr;     // of shared memory; nullptr: it is global memory
    std::uint64_t barrier = 0;        // of a bulk copy to shared memory: where it arrives, in the owner
    std::span<const Range> ranges{};  // of copies by threads, one for each lane
};

class BlockTool {
public:
    virtual ~BlockTool() = default;
    /// False: of all that follows it is told of accesses alone, and of the end.
    virtual bool is_told() const { return true; }
    /// A new block begins, or has ended.
    virtual void start() {}
    virtual void finish() {}
    /// What it has kept for a message is not needed any more.
    virtual void forget_finding() {}

    /// Lanes of a warp arrive at a meeting, and wait there or continue; all have arrived, so that those who wait from
    /// now on leave; lanes leave; the place begins again.
    virtual void arrive([[maybe_unused]] const Warp& warp, [[maybe_unused]] std::uint32_t lanes,
                        [[maybe_unused]] const Meeting& at, [[maybe_unused]] bool waits) {}
    /// (`of_all`: all that have not exited have arrived, whoever they are.)
    virtual void complete([[maybe_unused]] const Meeting& at, [[maybe_unused]] bool of_all) {}
    virtual void leave([[maybe_unused]] const Warp& warp, [[maybe_unused]] std::uint32_t lanes,
                       [[maybe_unused]] const Meeting& at) {}
    virtual void forget([[maybe_unused]] const Meeting& at) {}
    /// A warp ends.
    virtual void end_warp([[maybe_unused]] const Warp& warp) {}
    /// An arrival at the cluster's barrier that releases what came before; all such are acquired.
    virtual void release([[maybe_unused]] const Warp& warp) {}
    virtual void acquire_released() {}

    /// A thread makes a barrier in shared memory.
    virtual void begin([[maybe_unused]] const Warp& warp, [[maybe_unused]] unsigned lane,
                       [[maybe_unused]] const Meeting& at, [[maybe_unused]] const ptx::Instruction* by) {}

    /// An agent is about to access memory. False after a finding that stops the warp.
    virtual bool access([[maybe_unused]] const AgentAccess& access) { return true; }
    /// Lanes know that an operation which they have started is over, or with `reads` that it has read its source.
    virtual void await([[maybe_unused]] const Warp& warp, [[maybe_unused]] std::uint32_t lanes,
                       [[maybe_unused]] std::uint64_t operation, [[maybe_unused]] bool reads) {}
    /// An operation is over, for these lanes, and arrives at a barrier in shared memory.
    virtual void arrive_for([[maybe_unused]] std::uint64_t operation, [[maybe_unused]] std::uint32_t lanes,
                            [[maybe_unused]] const Meeting& at) {}
    /// A write counts as an ordinary one from now on: that of a copy by a thread, or of a tensor map.
    virtual void land([[maybe_unused]] const AgentAccess& access) {}
    /// Four warps are about to multiply; they have, and `op` of the last one has let them. False after a finding that
    /// stops the warp.
    virtual void before_product([[maybe_unused]] const WarpgroupWork& work) {}
    virtual bool after_product([[maybe_unused]] const WarpgroupWork& work, [[maybe_unused]] Warp& warp,
                               [[maybe_unused]] const MicroOp* op) {
        return true;
    }
    /// Message and notes of a finding that `by` has caused, if it is the tool's.
    virtual bool describe([[maybe_unused]] Diagnostic& diagnostic, [[maybe_unused]] const Fault& fault,
                          [[maybe_unused]] std::string_view by) const {
        return false;
    }
};

class LaunchTool {
public:
    virtual ~LaunchTool() = default;
    virtual std::unique_ptr<BlockTool> of([[maybe_unused]] ThreadBlock& block) { return nullptr; }
    /// Blocks are to run on one host thread, in an order that depends on the seed alone.
    virtual bool in_turn() const { return false; }
    /// From time to time, by one host thread at a time.
    virtual void advance([[maybe_unused]] const Progress& at) {}
    /// It has ended, without an error.
    virtual void end([[maybe_unused]] Statistics& statistics) {}
};

class Tool {
public:
    virtual ~Tool() = default;
    /// Tells its ops from those of others.
    virtual std::string_view name() const = 0;
    /// Whether it has anything to do in a kernel, of which its instructions are not known yet.
    virtual bool watches([[maybe_unused]] const DecodedKernel& kernel) const { return true; }

    /// While a kernel is decoded, in code order; they may call Lowering::put, whose ops find the tool in the slot
    /// Lowering::asked. An instruction is about to access global, shared or generic memory with one or several ops; an
    /// op is about to be emitted, whose handler may still be replaced, or has been, if it does not lead elsewhere.
    virtual void before_access([[maybe_unused]] Lowering& code, [[maybe_unused]] const MemoryAccess& access) const {}
    virtual void before_op([[maybe_unused]] Lowering& code, [[maybe_unused]] Micro& op) const {}
    virtual void after_op([[maybe_unused]] Lowering& code, [[maybe_unused]] const Micro& op) const {}
    /// All ops have been emitted; of these, control enters at the first alone and leaves after the last. Ops of the
    /// tool may be changed or dropped.
    virtual void after_block([[maybe_unused]] Lowering& code, [[maybe_unused]] std::uint32_t begin,
                             [[maybe_unused]] std::uint32_t end) const {}

    /// A launch begins, in which the tool has this slot. Without a LaunchTool it is told nothing.
    virtual std::unique_ptr<LaunchTool> of([[maybe_unused]] LaunchState& launch,
                                           [[maybe_unused]] std::size_t slot) const {
        return nullptr;
    }
};

/// The tools of a launch or of code, by their slots.
using Tools = std::vector<const Tool*>;

}  // namespace ikat::emulator
