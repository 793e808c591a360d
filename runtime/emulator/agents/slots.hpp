// SPDX-License-Identifier: Apache-2.0
// The agents of a block, in the order in which they are asked.
#pragma once
#include <cstdint>

namespace ikat::emulator {

enum class AgentSlot : std::uint8_t { InFlight, Products, Copies, Bulk, Mbarriers, Registers };

}  // namespace ikat::emulator
