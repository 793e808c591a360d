// SPDX-License-Identifier: Apache-2.0
// What a block has besides its warps: barriers in shared memory, and asynchronous work. The machine holds agents by
// slots (agents/agents.hpp) and knows no more of them than this.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/emulator/core/checks/faults.hpp"

namespace ikat {
struct Diagnostic;
}

namespace ikat::emulator {

struct Fault;
struct Warp;

class Agent {
public:
    virtual ~Agent() = default;
    /// A new block begins.
    virtual void start() = 0;
    /// Some of what may arrive at any time does so, by chance. Throws Error on a finding.
    virtual void some_arrive() {}
    /// Something arrives that is due at the latest when everybody waits. False if there is nothing.
    virtual bool last_arrives() { return false; }
    /// A warp ends, or the block. They throw Error on a finding.
    virtual void end_warp([[maybe_unused]] const Warp& warp) {}
    virtual void finish() {}

    /// Whether a warp that waits for the agent need not any more; what it waits for, and what it is called if that
    /// never comes.
    virtual bool is_met([[maybe_unused]] const Warp& warp) { return true; }
    virtual std::string awaited_by([[maybe_unused]] const Warp& warp) const { return {}; }
    /// What a warp asks for again and again (Warp::polls).
    virtual std::string polled_by([[maybe_unused]] const Warp& warp) const { return {}; }
    virtual FaultCode deadlock() const { return FaultCode::Deadlock; }

    /// What it is to read or write bytes of shared memory that are the agent's; nothing: they are not.
    virtual std::optional<FaultCode> claim([[maybe_unused]] std::uint64_t address, [[maybe_unused]] std::uint64_t bytes,
                                           [[maybe_unused]] bool writes) const {
        return {};
    }
    /// Message and notes of a finding that `by` has caused, if it is about the agent.
    virtual bool describe([[maybe_unused]] Diagnostic& diagnostic, [[maybe_unused]] const Fault& fault,
                          [[maybe_unused]] std::string_view by) const {
        return false;
    }
    /// What it has kept for a message is not needed any more.
    virtual void forget_finding() {}
};

}  // namespace ikat::emulator
