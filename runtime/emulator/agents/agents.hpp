// SPDX-License-Identifier: Apache-2.0
// The agents of a block.
#pragma once
#include "runtime/emulator/agents/slots.hpp"
#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

/// One of each, by slot.
Agents make_agents(ThreadBlock& block);

/// A block's agent of this type.
template <class A>
A& agent(const ThreadBlock& block) {
    return static_cast<A&>(block.agent(std::size_t(A::slot)));
}
template <class A>
A& agent(const Warp* w) {
    return agent<A>(block_of(w));
}

}  // namespace ikat::emulator
