// SPDX-License-Identifier: Apache-2.0
// The CPU emulator as a Backend.
#pragma once
#include <string>

#include "runtime/backend.hpp"
#include "runtime/emulator/host/host_options.hpp"

namespace ikat::runtime {

/// A device that compiles for `target` and runs PTX on the CPU. Streams execute immediately: a launch has finished when
/// it returns, and throws its errors.
Reference<Backend> open_emulator(emulator::HostOptions options, std::string target);

/// The properties of such a device.
DeviceProperties emulator_properties(const emulator::HostOptions& options, std::string target);

}  // namespace ikat::runtime
