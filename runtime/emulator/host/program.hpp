// SPDX-License-Identifier: Apache-2.0
// A program of the CPU emulator: parsed PTX text, which runs and is checked while it runs. Devices with streams
// (host_device.hpp) are made of programs.
// Always checked: accesses out of bounds, misaligned or after free; the use of uninitialised memory; barriers that
// exited or diverged threads cannot reach; deadlock; endless loops. A finding stops the launch and is thrown as an
// Error that names buffer, offset, block, thread, PTX line and, if a line table is given, the line of the kernel's
// source.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/core/memory/device_memory.hpp"
#include "runtime/emulator/core/options.hpp"
#include "runtime/emulator/tools/traffic/traffic.hpp"

namespace ikat::emulator {

/// A module decoded for execution. Decoding checks every instruction the entry can reach; an instruction the emulator
/// cannot run is an Error with its line.
class Program {
public:
    /// source_lines: by PTX line (index 0 unused), the source line of a kernel that was captured in the language, in
    /// whose words findings are then; if none are given, those that its .loc tell.
    Program(ptx::Module module, Memory& memory, std::vector<Location> source_lines = {});
    ~Program();
    Program(Program&&) noexcept;

    using Parameter = KernelParameter;
    std::vector<Parameter> parameters(std::string_view entry) const;
    std::vector<std::string> entries() const;
    bool has_entry(std::string_view name) const;

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

    /// Where its buffers are.
    Memory& memory() const;

    struct State;

private:
    std::unique_ptr<State> state_;
};

/// The instruction set in use, of those that the interpreter's loops were built for: "AVX3", "AVX2", "SSE4".
std::string_view instruction_set();

}  // namespace ikat::emulator
