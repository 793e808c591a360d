// SPDX-License-Identifier: Apache-2.0
// The bytes of a block's shared memory to which copies are in flight, by threads (async_copies.hpp) or in bulk
// (bulk_copies.hpp). They count as unwritten until the copy has been waited for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/agents/slots.hpp"
#include "runtime/emulator/core/agent.hpp"
#include "runtime/emulator/core/memory/written.hpp"
#include "runtime/emulator/machine/block.hpp"

namespace ikat::ptx {
struct Instruction;
}

namespace ikat::emulator {

/// What a copy in flight is, in messages.
struct Flight {
    const ptx::Instruction* instruction = nullptr;
    ThreadBlock* by = nullptr;  // the block of the thread that has started it
    std::uint32_t warp = 0, lane = 0;
    bool is_bulk = false;
};

class InFlight final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::InFlight;
    explicit InFlight(ThreadBlock& block) : block_(block), written_(block.shared_written()) {}
    void start() override {
        found = nullptr;
        if (is_used_) std::ranges::fill(flags_, std::uint8_t{0});
        is_used_ = false;
    }
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found = nullptr; }

    /// Places are those in the bits of a variable's written bytes.
    bool any(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) const {
        return is_used_ && written::any(flags_.data() + (bits - written_.data()), at, count);
    }
    void begin(std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        is_used_ = true;
        flags_.resize(written_.size());
        written::set(bits, at, count, false, false);
        written::set(flags_.data() + (bits - written_.data()), at, count, false);
    }
    void end(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        written::set(flags_.data() + (bits - written_.data()), at, count, false, false);
    }

    const Flight* found = nullptr;  // that a finding is about

private:
    ThreadBlock& block_;
    const std::span<std::uint8_t> written_;  // the bits of written bytes of its shared memory
    std::vector<std::uint8_t> flags_;        // laid out like the bits of written bytes
    bool is_used_ = false;
};

}  // namespace ikat::emulator
