// SPDX-License-Identifier: Apache-2.0
// The emulator's options from those of a device and from the environment, and launches with them.
#pragma once
#include "runtime/emulator/emulator.hpp"

namespace ikat::runtime {

struct OpenOptions;

struct EmulatorOptions : emulator::Options {
    bool by_number = true;  // no schedule was asked for: each launch takes its own, by its number in the process
};

/// What `asked` says, else IKAT_THREADS, IKAT_CHECK and IKAT_SCHEDULE. Throws Error for values that these cannot have.
EmulatorOptions emulator_options(const OpenOptions& asked);

/// Runs a launch that has been checked. Throws KernelError on a finding, with a note on how to repeat the order of
/// warps.
void run(emulator::Program& program, const emulator::Launch& launch, const EmulatorOptions& asked);

}  // namespace ikat::runtime
