// SPDX-License-Identifier: Apache-2.0
// The emulator's options from those of a device and from the environment.
#pragma once
#include "runtime/emulator/host/host_options.hpp"

namespace ikat::runtime {

struct OpenOptions;

/// How many emulated devices there are: IKAT_DEVICES, from 1 to 16, else 1. Throws Error for other values.
std::uint32_t emulated_devices();

/// What `asked` says, else IKAT_THREADS, IKAT_CHECK and IKAT_SCHEDULE. Throws Error for values that these cannot have,
/// and if there is no emulated device of this number.
emulator::HostOptions emulator_options(const OpenOptions& asked, int ordinal = 0);

}  // namespace ikat::runtime
