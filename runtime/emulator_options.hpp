// SPDX-License-Identifier: Apache-2.0
// The emulator's options from those of a device and from the environment.
#pragma once
#include "runtime/emulator/emulator.hpp"

namespace ikat::runtime {

struct OpenOptions;

struct EmulatorOptions {
    emulator::Options options;
    bool by_number = true;  // no schedule was asked for: each launch takes its own, by its number in the process
};

/// What `asked` says, else IKAT_THREADS, IKAT_CHECK and IKAT_SCHEDULE. Throws Error for values that these cannot have.
EmulatorOptions emulator_options(const OpenOptions& asked);

}  // namespace ikat::runtime
