// SPDX-License-Identifier: Apache-2.0
// The state visible to handlers: the micro-op, the warp's registers and the memory windows it may access.
//
// A kernel is a flat array of micro-ops. Running one is
//
//     op->run(op, warp, frame, mask)
//
// `frame` holds the registers of the warp, structure of arrays: a 32-bit register is 32 adjacent words (128 bytes), a
// 64-bit one 256 bytes, a predicate one 32-bit mask of lanes. Registers narrower than 32 bits are in 32-bit slots,
// whose upper bits are undefined. An op's fields are byte offsets into the frame, or literals. `mask` is the set of
// lanes that execute.
// A handler ends by calling the next op's handler (a jump, if the compiler optimises sibling calls) and returns nullptr
// when the warp must stop: `warp.leave` then says why. Without guaranteed sibling calls, handlers return the next op
// and a loop calls it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/emulator/core/block.hpp"
#include "runtime/emulator/core/checks/faults.hpp"
#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/emulator/core/memory/written.hpp"
#include "runtime/emulator/core/micro_info.hpp"

namespace ikat::emulator {

inline constexpr unsigned warp_size = 32;
inline constexpr std::uint32_t all_lanes = ~0u;

struct MicroOp {
    Handler run = nullptr;
    std::uint32_t d = 0, a = 0, b = 0, c = 0;  // mostly frame offsets
    std::uint32_t x = 0, y = 0;                // mostly literals: address offset, jump distance, instruction count
};
static_assert(sizeof(MicroOp) == 32);

#if defined(IKAT_EMULATOR_TAIL_CALLS)
#if defined(__clang__)
#define IKAT_CONTINUE(distance) [[clang::musttail]] return op[distance].run(op + (distance), w, frame, mask)
#else
#define IKAT_CONTINUE(distance) return op[distance].run(op + (distance), w, frame, mask)
#endif
#else
#define IKAT_CONTINUE(distance) return w->mask = mask, op + (distance)
#endif
#define IKAT_NEXT IKAT_CONTINUE(1)

/// Why a handler returned control.
enum class Leave : std::uint8_t {
    None,
    Reschedule,  // a branch while the warp is diverged, or the end of its time slice: continue at `pc` with `mask`
    Diverge,     // lanes `taken` continue at `target`, the rest of `mask` at `pc`
    Scatter,     // brx: each lane continues at its own op, in `targets`
    Exit,        // `mask` has exited
    Rendezvous,  // the op at `pc` waits for more lanes of the warp
    Barrier,     // `mask` has reached the barrier op at `pc`
    Recheck,     // the op at `pc` reads uninitialised memory: continue there in the checked code (undefined.hpp)
    Fault,
};

struct Fault {
    FaultCode code = FaultCode::OutOfBounds;  // for an invalid access; the message says which kind
    Space space = Space::Global;
    bool store = false;
    unsigned lane = 0;
    std::uint32_t bytes = 0;    // of the access
    std::uint64_t address = 0;  // as seen by the instruction
    std::uint32_t lanes = 0;    // for member masks: the lanes concerned besides `lane`; 0: none
    std::uint32_t other = 0;    // for member masks: the mask that those give, if different
};

class BlockTool;
struct DecodedKernel;
struct Definedness;

/// Which lane's value each lane gets by a shuffle whose operands are literals. Aligned, as it is read by whole vectors.
struct alignas(64) ShuffleSources {
    std::uint32_t lanes[warp_size];
    std::uint32_t in_range;  // a bit for each lane
    bool operator==(const ShuffleSources&) const = default;
};

/// Bytes that an op accesses, in messages.
struct AccessedBytes {
    std::uint32_t op = ~0u;  // ~0: none is known
    Space space = Space::Global;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
};

/// A function that is called rather than inlined.
struct FunctionEntry {
    std::uint32_t op = ~0u;             // its first op; ~0: the kernel cannot call it
    std::uint32_t parameter_bytes = 0;  // of results and parameters, at the bottom of its stack frame
};

/// The address of function number i of a module, as seen by mov and initialisers: not null, and nothing can be loaded
/// from it.
constexpr std::uint64_t function_address(std::uint64_t i) { return 16 * (i + 1); }

/// The part of a warp that handlers use. Scheduling state is in warp.hpp.
struct Warp {
    // Where the running lanes are
    const MicroOp* code = nullptr;
    std::uint32_t mask = 0;        // of the running lanes, for handlers that change it
    std::uint32_t saved_mask = 0;  // outside the current guard
    unsigned running = 0;          // lanes in `mask` when it was last set outside a guard
    bool by_chance = false;        // the scheduler chooses which lanes continue after divergence
    const MicroOp* meet =
        nullptr;             // the first op where others can continue: there, and after it, the running lanes leave
    bool strayed = false;    // lanes have run ahead of others that they would have met
    bool parallel = false;   // other blocks run at the same time
    bool polls = false;      // the running lanes have asked in vain whether a phase is over (mbarriers.hpp)
    bool gives_way = false;  // ... have arrived somewhere: others may go first now
    Leave leave = Leave::None;
    std::uint32_t existing = 0;  // lanes that have a thread
    std::uint32_t live = 0;      // ... and have not exited
    std::uint32_t pc = 0, target = 0, taken = 0;

    // Counts
    std::uint64_t instructions = 0, lane_instructions = 0;
    std::uint64_t slice_end = 0, leave_at = 0;  // in warp instructions; at leave_at lanes leave at the next branch
    std::uint64_t bytes_read = 0, bytes_written = 0;
    std::uint64_t changes = 0;  // atomics that wrote a different value

    // Memory
    Cells windows[5];  // by Space, as an instruction of that space sees them; [Global] is unused
    Cells generic[5];  // as a generic address sees them: shared memory is that of all blocks of the cluster
    std::uint64_t shared_span = 0;  // the addresses of a block in that window (cluster.hpp); 0: it has only its own
    std::uint32_t rank = 0, cluster_blocks = 1;  // of the block in its cluster, and how many those are
    Memory::State* memory = nullptr;

    // Scratch of the running handler
    alignas(64) std::byte scratch[256];             // one register
    alignas(64) std::byte staging[512];             // data that the lanes load or store, lane after lane
    alignas(64) std::array<std::byte, 64> nowhere;  // what an access outside of memory is given
    alignas(64) std::uint64_t addresses[warp_size];
    alignas(64) std::uint32_t targets[warp_size];

    Fault fault;
    const std::uint32_t* lists = nullptr;  // operands of ops with more than fit their fields
    const ShuffleSources* shuffles = nullptr;

    // Calls and alloca: see ops/call.cpp
    const FunctionEntry* functions = nullptr;
    std::uint32_t function_count = 0;
    std::uint64_t stack_base = 0, stack_end = 0;  // addresses in local memory
    std::array<std::uint64_t, warp_size> stack_pointer{}, stack_top{};
    std::array<std::vector<std::uint64_t>, warp_size> call_stack;  // registers saved by calls

    const DecodedKernel* kernel = nullptr;  // the kernel whose code runs
    Definedness* definedness = nullptr;     // while that is the checked code (definedness.hpp)

    Block* block = nullptr;
    unsigned index = 0;                 // in its block
    BlockTool* const* tools = nullptr;  // of the block, by slot

    /// If the running lanes reach the only other lanes and those can run, both merge without the scheduler, which would
    /// do the same. False if the scheduler is needed.
    virtual bool join_others(std::uint32_t running_lanes) = 0;
    /// Of the running lanes, `staying` continue; `others`, which are ahead of them, wait at `pc`.
    virtual void part(std::uint32_t pc, std::uint32_t others, std::uint32_t staying) = 0;

    void count(std::uint32_t instructions_since) {
        instructions += instructions_since;
        lane_instructions += std::uint64_t(instructions_since) * running;
    }
    std::uint32_t index_of(const MicroOp* op) const { return std::uint32_t(op - code); }

protected:
    ~Warp() = default;
};

/// Stops the warp with a finding.
inline const MicroOp* fail(Warp* w, const MicroOp* op, const Fault& fault) {
    w->leave = Leave::Fault;
    w->pc = w->index_of(op);
    w->fault = fault;
    return nullptr;
}

/// A finding that may be passed over: whether it is (block.hpp).
inline bool passes(Warp* w, const MicroOp* op, const Fault& fault) { return w->block->passes(*w, op, fault); }

/// The memory at `address`, as seen by an instruction of `space`; bytes is 0 if there is none.
inline View view_of(const Warp& w, Space space, std::uint64_t address) {
    if (space != Space::Global && space != Space::Generic) return w.windows[int(space)].at(address);
    const std::uint64_t id = address >> window_bits;
    if (id == 0 || id > std::uint64_t(Space::Const)) return w.memory->find(address);
    if (space == Space::Global) return {};
    View view = w.generic[id].at(address & (window_bytes - 1));
    view.base += id << window_bits;
    return view;
}

/// An address plus the instruction's offset. In shared, local and constant memory it has 32 bits and the sum wraps: a
/// negative index compensated by a constant is in bounds (ptxas, too, folds an add.u32 into the offset).
inline std::uint64_t with_offset(const MicroOp* op, Space space, std::uint64_t base) {
    const std::uint64_t sum = base + std::uint64_t(std::int64_t(std::int32_t(op->x)));
    const bool has_window = space == Space::Shared || space == Space::Local || space == Space::Const;
    return has_window && base >> 32 == 0 ? std::uint32_t(sum) : sum;
}

/// Findings about one lane's access. False if they stop the warp, as the first always does.
inline bool fail_access(Warp* w, const MicroOp* op, FaultCode code, Space space, unsigned lane, std::uint64_t address,
                        std::uint32_t bytes, bool store) {
    fail(w, op, {.code = code, .space = space, .store = store, .lane = lane, .bytes = bytes, .address = address});
    return false;
}
inline bool passes_access(Warp* w, const MicroOp* op, FaultCode code, Space space, unsigned lane, std::uint64_t address,
                          std::uint32_t bytes, bool store) {
    return passes(w, op,
                  {.code = code, .space = space, .store = store, .lane = lane, .bytes = bytes, .address = address});
}

/// Whether an agent has one of these bytes of shared memory, and that is a finding which stops the warp (block.hpp).
inline bool touches_agent(Warp* w, const MicroOp* op, Space space, unsigned lane, std::uint64_t address,
                          std::uint32_t bytes, bool writes) {
    return w->block->is_stopped_by_agent(
        *w, op, {.space = space, .store = writes, .lane = lane, .bytes = bytes, .address = address});
}

/// One lane's bytes at an address; nullptr after a finding that stops the warp. After one that does not, they are
/// zeros that are of no memory. `found`, if given, is the view, empty for those.
inline std::byte* lane_bytes(Warp* w, const MicroOp* op, Space space, unsigned lane, std::uint64_t address,
                             std::uint32_t bytes, bool store, View* found = nullptr) {
    const View view = view_of(*w, space, address);
    if (found) *found = view;
    const std::uint64_t offset = address - view.base;
    if (bytes <= view.bytes && offset <= view.bytes - bytes && address % bytes == 0 && (view.writable || !store))
        return view.host + offset + lane * view.lane_stride;
    const bool read_only = store && !view.writable && offset < view.bytes;
    if (found) *found = {};
    if (!passes_access(w, op, read_only ? view.denial : FaultCode::OutOfBounds, space, lane, address, bytes, store))
        return nullptr;
    w->nowhere = {};
    return w->nowhere.data();
}

/// The same, if the bytes must have been written: for atomics, and for bytes that the host reads.
[[gnu::noinline]] inline std::byte* lane_bytes_written(Warp* w, const MicroOp* op, Space space, unsigned lane,
                                                       std::uint64_t address, std::uint32_t bytes, bool store) {
    View view;
    std::byte* const at = lane_bytes(w, op, space, lane, address, bytes, store, &view);
    if (!at || !view.written) return at;
    if (written::all(view.written + lane * (view.lane_stride / 8), address - view.base, bytes)) return at;
    return passes_access(w, op, FaultCode::Unwritten, space, lane, address, bytes, store) ? at : nullptr;
}

}  // namespace ikat::emulator
