// SPDX-License-Identifier: Apache-2.0
// From a module to kernels that can run: its variables get places, an entry becomes micro-ops.
#pragma once
#include <array>

#include "runtime/emulator/core/kernel.hpp"
#include "runtime/emulator/core/memory/device_memory.hpp"
#include "runtime/emulator/core/tool.hpp"

namespace ikat::emulator {

/// Allocates the .global and .const variables of the module and writes their initial values.
ModuleMemory place_variables(const ptx::Module& module, Memory& memory);

struct DecodeOptions {
    Tools tools{};        // by slot
    bool checks = false;  // the checked code, whose frame is the same: the last tool is the definedness
    std::array<std::uint32_t, 3> cluster{};  // what the launch says about an entry that does not say it; 0: nothing
    bool moves_dynamic = false;  // dynamic shared memory begins at no higher power of two than its declaration asks for
};

/// Throws Error with the line of an instruction that the emulator cannot run.
DecodedKernel decode(const ptx::Module& module, const ptx::Function& entry, const ModuleMemory& variables,
                     const DecodeOptions& options);

}  // namespace ikat::emulator
