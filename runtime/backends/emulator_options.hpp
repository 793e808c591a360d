// SPDX-License-Identifier: Apache-2.0
// The emulator's options from those of a device and from the environment.
#pragma once
#include "runtime/emulator/host/host_options.hpp"

namespace ikat::runtime {

struct OpenOptions;

/// What `asked` says, else IKAT_THREADS, IKAT_CHECK and IKAT_SCHEDULE. Throws Error for values that these cannot have.
emulator::HostOptions emulator_options(const OpenOptions& asked);

}  // namespace ikat::runtime
