// SPDX-License-Identifier: Apache-2.0
// The CPU emulator as a Backend.
#pragma once
#include <string>

#include "runtime/backend.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ikat::runtime {

/// A device that compiles for `target` and runs PTX on the CPU. Streams do their work at once: a launch has finished
/// when it returns, and what goes wrong is thrown there. The order of warps is that of the options, or by_number: that
/// of the launch's number in the process.
Reference<Backend> open_emulator(emulator::Options options, std::string target, bool by_number);

/// What such a device says of itself.
DeviceProperties emulator_properties(const emulator::Options& options, std::string target);

}  // namespace ikat::runtime
