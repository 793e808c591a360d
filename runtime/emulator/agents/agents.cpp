// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/agents.hpp"

#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/agents/bulk/bulk_copies.hpp"
#include "runtime/emulator/agents/in_flight.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/agents/register_pool.hpp"

namespace ikat::emulator {

Agents make_agents(ThreadBlock& block) {
    Agents all;
    all.reserve(std::size_t(RegisterPool::slot) + 1);  // the last
    const auto add = [&]<class A>(std::unique_ptr<A> agent) {
        IKAT_ASSERT(std::size_t(A::slot) == all.size(), "agents are in the order of their slots");
        all.push_back(std::move(agent));
    };
    add(std::make_unique<InFlight>(block));
    add(std::make_unique<AsyncProducts>(block));
    add(std::make_unique<AsyncCopies>(block));
    add(std::make_unique<BulkCopies>(block));
    add(std::make_unique<Mbarriers>(block));
    add(std::make_unique<RegisterPool>(block));
    return all;
}

}  // namespace ikat::emulator
