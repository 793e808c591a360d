// SPDX-License-Identifier: Apache-2.0
// The CPU emulator: runs parsed PTX text and checks it while it runs. This is its entire interface; the runtime's
// device is a thin layer over it.
// Always checked: accesses out of bounds, misaligned or after free; the use of uninitialised memory; barriers that
// exited or diverged threads cannot reach; deadlock; endless loops. A finding stops the launch and is thrown as an
// Error that names buffer, offset, block, thread, PTX line and, if a line table is given, the line of the kernel's
// source.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/observe/checks.hpp"
#include "runtime/emulator/observe/traffic.hpp"

namespace ikat::emulator {

/// Device memory. Addresses are virtual 64-bit numbers whose high bits identify the allocation, so that a bounds check
/// is one comparison and a freed address stays poisoned. Thread-safe.
class Memory {
public:
    Memory();
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// `bytes` fresh bytes, 256-byte aligned, filled with a poison pattern. `name` is for messages. Throws Error if
    /// there is not enough memory. Large ones take host memory only where they are written.
    std::uint64_t allocate(std::size_t bytes, std::string_view name = {});
    /// The same at an address that the host has, too: it reads and writes there itself, so that all bytes count as
    /// written; they begin as zeros.
    std::uint64_t allocate_mapped(std::size_t bytes, std::string_view name = {});
    /// The address by which kernels reach memory that stays the host's, and begins at a page of it. release ends that.
    std::uint64_t adopt(void* host, std::size_t bytes, std::string_view name = {});
    /// Throws Error for an address that allocate did not return or that was already freed.
    void release(std::uint64_t address);
    /// Host copies; throw Error if the range is not inside one allocation.
    void write(std::uint64_t address, std::span<const std::byte> from);
    void read(std::uint64_t address, std::span<std::byte> to) const;
    /// Fills with one element. A fresh buffer filled with zeros takes memory only where it is used.
    void fill(std::uint64_t address, std::span<const std::byte> element, std::size_t count);
    /// Copies between buffers, or within one; uninitialised bytes stay uninitialised.
    void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
    void name(std::uint64_t address, std::string_view name);
    /// The bytes of a range inside a buffer that neither a kernel nor the host has written: how many, and the first,
    /// counted from the buffer's begin. What the buffer is called in messages.
    struct Unwritten {
        std::uint64_t count = 0, first = 0;
        std::string buffer{};
    };
    Unwritten unwritten(std::uint64_t address, std::size_t bytes) const;
    /// The live buffer that an address is in or right behind; its bytes are 0 if there is none.
    struct Range {
        std::uint64_t address = 0, bytes = 0;
    };
    Range buffer_of(std::uint64_t address) const;
    /// How much a kernel's malloc has, in all; at first 8 MiB, CUDA's default.
    void set_heap_bytes(std::size_t bytes);
    /// Whether the address is in the part of the address space that buffers have been given from, mapped ones aside.
    bool is_device(std::uint64_t address) const;

    struct State;
    State& state() const { return *state_; }

private:
    std::unique_ptr<State> state_;
};

/// The progress of a long launch.
struct Progress {
    std::string_view entry;
    std::uint64_t blocks_done = 0, blocks = 0, warp_instructions = 0;
    std::chrono::seconds time{};
};

struct Options {
    unsigned threads = 1;  // host threads over which the CTAs of a launch are spread
    Checks checks = Checks::strict();
    // Findings that do not end the launch, once for each line; called at its end, in the order of lines. Empty:
    // dropped.
    std::function<void(const Diagnostic&)> warning;
    std::uint64_t step_budget =
        1000000000;                       // instructions of a warp between two of its barriers; more count as endless
    std::uint64_t launch_budget = ~0ull;  // of all warps of a launch, over barriers
    std::uint32_t seed = 0;               // 0: warps round-robin; else the seed of an order
    bool lanes = true;                    // a seed also orders the diverged lanes of a warp
    bool moved_shared = true;             // ... moves dynamic shared memory on by its alignment
    bool any_leader = true;               // ... chooses which lane elect takes
    std::function<void(const Progress&)> progress;  // called every progress_interval of a launch
    std::chrono::milliseconds progress_interval{10000};
    std::function<void(std::string_view)> output;       // what the kernel prints, in CTA order; empty = stdout
    std::function<void(const LaunchTraffic&)> traffic;  // called at the end of a launch; empty = not counted
};

struct Launch {
    std::string_view entry{};
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::uint32_t dynamic_shared_bytes = 0;
    std::array<std::uint32_t, 3> cluster{0, 0, 0};  // blocks of a cluster; 0: as the entry says, else 1
    std::span<const std::byte> parameters{};  // laid out as the entry's .param list: each at its natural alignment
};

/// Counts of a finished launch.
struct Statistics {
    std::uint64_t warp_instructions = 0;
    std::uint64_t lane_instructions = 0;  // lanes summed over warp instructions, whether their guard is on or off
    std::uint64_t global_bytes_read = 0, global_bytes_written = 0;
};

/// A module decoded for execution. Decoding checks every instruction the entry can reach; an instruction the emulator
/// cannot run is an Error with its line.
class Program {
public:
    /// source_lines: by PTX line (index 0 unused), the source line of a kernel that was captured in the language, in
    /// whose words findings are then; if none are given, those that its .loc tell.
    Program(nvptx::Module module, Memory& memory, std::vector<Location> source_lines = {});
    ~Program();
    Program(Program&&) noexcept;

    struct Parameter {
        std::string name;
        std::string type;  // ".u64"
        std::size_t offset, bytes;
    };
    std::vector<Parameter> parameters(std::string_view entry) const;
    std::vector<std::string> entries() const;

    /// What is known of an entry before a launch. Memory is static, in bytes; local memory is each thread's.
    struct Entry {
        std::uint64_t shared_bytes = 0, local_bytes = 0, constant_bytes = 0;
        std::size_t parameter_bytes = 0;                // of all parameters, each at its offset
        std::uint32_t registers = 0;                    // of 32 bits that the emulator needs for each thread
        std::uint32_t unassigned_reads = 0;             // registers that may be read before they are assigned
        std::uint64_t max_threads = 0;                  // .maxntid or .reqntid, 0: neither is given
        std::array<std::uint32_t, 3> cluster{0, 0, 0};  // .reqnctapercluster, 0: not given
        bool needs_cluster = false;                     // .explicitcluster without it: the launch gives one
    };
    Entry entry(std::string_view name) const;

    /// A .global or .const variable: its address, 0 for .const, which only the module reaches.
    struct Variable {
        std::uint64_t address = 0, bytes = 0;
    };
    /// Throws Error if there is none of that name.
    Variable variable(std::string_view name) const;
    /// The contents of a .const variable.
    std::vector<std::byte> constant(std::string_view name) const;

    /// Throws Error for an impossible launch, such as a block that the entry's .maxntid or .reqntid excludes.
    void check(const Launch& launch) const;
    /// Writes all of a .global or .const variable. Throws Error if there is none of that name and size.
    void set_variable(std::string_view name, std::span<const std::byte> contents);
    /// Checks the launch and runs one grid to its end. Throws Error on a finding.
    Statistics run(const Launch& launch, const Options& options = {});

    struct State;

private:
    std::unique_ptr<State> state_;
};

/// The instruction set in use, of those that the interpreter's loops were built for: "AVX3", "AVX2", "SSE4".
std::string_view instruction_set();

}  // namespace ikat::emulator
