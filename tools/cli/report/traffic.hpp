// SPDX-License-Identifier: Apache-2.0
// The memory traffic of a launch on the emulator, as shown by `ikat run --report`.
#pragma once
#include <string>

#include "runtime/emulator/tools/traffic/traffic.hpp"

namespace ikat {
class Json;
}

namespace ikat::cli {

/// A line for each buffer and direction.
std::string to_text(const emulator::LaunchTraffic& traffic);
/// Adds the member "traffic".
void add_traffic(Json& json, const emulator::LaunchTraffic& traffic);

}  // namespace ikat::cli
