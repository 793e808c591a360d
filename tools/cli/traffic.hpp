// SPDX-License-Identifier: Apache-2.0
// What a launch on the emulator moved, as `ikat run --report` shows it.
#pragma once
#include <string>

#include "runtime/emulator/observe/traffic.hpp"

namespace ikat {
class Json;
}

namespace ikat::cli {

/// A line for each buffer and direction.
std::string to_text(const emulator::LaunchTraffic& traffic);
/// The member "traffic".
void add_traffic(Json& json, const emulator::LaunchTraffic& traffic);

}  // namespace ikat::cli
