// SPDX-License-Identifier: Apache-2.0
// A kernel decoded for execution: code, the layout of its frame, and the requirements on a launch.
#pragma once
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/core/memory/variables.hpp"
#include "runtime/emulator/core/options.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

/// Values that are ready in the frame before the first instruction: constants, and special registers other than the
/// clocks. Axis 0 to 2 is x, y, z.
struct Special {
    enum class Kind : std::uint8_t {
        Tid,
        Ntid,
        Ctaid,
        Nctaid,
        LaneId,
        WarpId,
        NwarpId,
        Lanemask,
        SmId,
        NsmId,
        GridId,
        Zero,
        DynamicSharedBytes,
        TotalSharedBytes,
        AllSharedBytes,  // with the reserved
        ReservedShared,  // axis: a Reserved
        GridWorkspace,   // axis: 0 the low word of its address, 1 the high one
        ClusterId,       // of the cluster in the grid, and how many there are
        ClusterCount,
        ClusterCtaid,  // of the block in its cluster, and how many those are
        ClusterNctaid,
        ClusterRank,
        ClusterBlocks,
    };
    enum Mask : std::uint8_t { Eq, Lt, Le, Gt, Ge };  // the axis of Lanemask
    enum Reserved : std::uint8_t { Begin, End, Bytes, Second };
    Kind kind = Kind::Zero;
    std::uint8_t axis = 0;
    bool operator==(const Special&) const = default;
};

inline constexpr std::uint32_t max_blocks_in_cluster = 16;
/// Whether a cluster can have these extents on some device.
constexpr bool is_cluster(const std::array<std::uint32_t, 3>& extents) {
    std::uint64_t blocks = 1;
    for (const std::uint32_t extent : extents) blocks *= std::min(extent, max_blocks_in_cluster + 1);
    return blocks > 0 && blocks <= max_blocks_in_cluster;
}

struct DecodedKernel {
    std::string name;
    std::vector<MicroOp> code;
    std::vector<const ptx::Instruction*> instructions;  // by op; nullptr if there is none
    std::vector<std::uint8_t> effects;                  // by op: those of Effect (micro_info.hpp)
    std::vector<std::uint32_t> lists;
    std::vector<ShuffleSources> shuffles;
    std::uint32_t entry = 0;               // the op where threads start; functions are before it
    std::vector<FunctionEntry> functions;  // by number in the module; empty if nothing is called

    std::vector<std::uint32_t> checked_of, plain_of;  // checked code only: its ops by plain op, and the reverse

    std::uint32_t unassigned_reads = 0;  // registers that may be read before they are assigned

    std::uint32_t predicate_bytes = 0;  // of the frame
    std::uint32_t register_bytes = 0;   // with the other registers; then come constants and special registers
    std::uint32_t frame_bytes = 0;
    struct Constant {
        std::uint32_t offset, bytes;  // 4: 32 words, 8: 32 double words, 0: a predicate
        std::uint64_t bits;
    };
    std::vector<Constant> constants;
    struct SpecialSlot {
        std::uint32_t offset;
        Special special;
    };
    std::vector<SpecialSlot> specials;  // 4-byte registers

    std::vector<KernelParameter> parameters;
    std::size_t parameter_bytes = 0;
    Variables shared, local;         // of known size; local memory is each thread's, with the stack
    std::uint32_t shared_bytes = 0;  // of the static ones on a device, rounded up to the start of dynamic shared memory
    std::uint32_t own_dynamic_bytes = 0;  // at its start, of arrays whose part of it is known
    std::string dynamic_name;             // of what is after them; empty if the kernel does not use it
    bool has_dynamic() const { return own_dynamic_bytes || !dynamic_name.empty(); }
    std::uint64_t stack_base = 0, stack_end = 0;
    std::uint64_t max_threads = 0;                  // .maxntid, 0: not given
    std::array<std::uint32_t, 3> required_block{};  // .reqntid, 0: not given
    std::array<std::uint32_t, 3> cluster{1, 1, 1};  // .reqnctapercluster or the launch's: the blocks of each
    std::uint32_t registers = 0;                    // of a thread, if the file says how many; else 0
    bool needs_cluster = false;                     // .explicitcluster: it is not run without
    bool names_cluster = false;                     // ... is given
    std::uint32_t blocks_in_cluster() const { return cluster[0] * cluster[1] * cluster[2]; }
    bool has_products = false, has_bulk_copies = false;  // by the asynchronous proxy (tools/proxies/generic_writes.hpp)
    bool launches_next = false;                          // it has griddepcontrol.launch_dependents
    bool maps_shared = false;  // it uses mapa, the only way to the shared memory of another block
    ptx::Position where{};

    bool checks = false;  // it is the checked code (definedness.hpp)
    bool is_checked() const { return checks; }

    DecodedKernel() = default;
    DecodedKernel(const DecodedKernel&) = delete;  // copyable in principle, but prevents accidental copies
    DecodedKernel& operator=(const DecodedKernel&) = delete;
    DecodedKernel(DecodedKernel&&) = default;
};

/// The addresses of module-scope variables.
struct ModuleMemory {
    struct Variable {
        Space space = Space::Global;
        std::uint64_t address = 0;  // as seen by instructions of its space
        std::uint64_t bytes = 0;
        std::uint64_t host = 0;  // of .const: in the bank
    };
    std::unordered_map<ptx::Name, Variable> variables;
    std::unordered_map<const ptx::Variable::Declarator*, Variable>
        of_functions;  // .global and .const variables inside functions
    Variables constants;
    std::vector<std::byte> constant;  // the bank of .const
    std::vector<View> constant_views;
    std::vector<std::uint64_t> buffers;  // of .global variables, to release
};

}  // namespace ikat::emulator
