// SPDX-License-Identifier: Apache-2.0
// The tool that counts the traffic of a launch.
#pragma once
#include <functional>
#include <memory>

#include "runtime/facts/traffic.hpp"

namespace ikat::emulator {

class Tool;
/// Counts the traffic of a launch, and tells it at its end.
std::shared_ptr<const Tool> count_traffic(std::function<void(const LaunchTraffic&)> told);

}  // namespace ikat::emulator
