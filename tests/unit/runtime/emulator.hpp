// SPDX-License-Identifier: Apache-2.0
// The emulator, which runs a launch on one thread of the host.
#pragma once
#include "runtime/device.hpp"

namespace ikat::tests {

inline runtime::Device emulator() { return runtime::Device::open({.device = "emulator", .threads = 1}); }

}  // namespace ikat::tests
