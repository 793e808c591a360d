// SPDX-License-Identifier: Apache-2.0
// Tells how far a long launch is.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/emulator/core/options.hpp"
#include "runtime/emulator/core/tool.hpp"

namespace ikat::emulator {

/// Calls `told` every so often during a launch, with the time since it began.
std::shared_ptr<const Tool> tell_progress(std::chrono::milliseconds every,
                                          std::function<void(const Progress& at, std::chrono::seconds time)> told);

}  // namespace ikat::emulator
