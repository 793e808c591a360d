// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (PTX ISA, mbarrier), which count arrivals of threads and bytes of asynchronous copies:
//
//     init 2      phase 0: 2 arrivals are pending, 0 bytes
//     expect_tx   ... as many bytes more are pending, until copies have delivered them
//     arrive      ... an arrival less
// When neither arrivals nor bytes are pending, the phase is over and the next one begins, with all arrivals pending.
//
// A barrier is known by its 8 bytes, from init to inval; what it counts is kept here. The bytes themselves count as
// unwritten. So a load that reads them comes to the checked code, as with copies in flight, and a store marks them as
// written, which the next operation on the barrier finds.
//
// A warp that asks in vain whether a phase is over gives way: it runs again when some phase of its block has ended, or
// when all other warps wait, too. What copies still have to deliver arrives then at the latest.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/agents/random.hpp"
#include "runtime/emulator/agents/slots.hpp"
#include "runtime/emulator/core/agent.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::ptx {
struct Instruction;
}

namespace ikat::emulator {

class ThreadBlock;

/// For each lane, in turn: a (8 bytes) + x is the address of a barrier in `space`, b what the operation counts, or the
/// parity or the state that is waited for; without b the count is 1. d is the state before an arrival, or the answer.
/// y is bits().
struct MbarrierForm {
    Space space = Space::Shared;
    bool has_b = false;
    bool drops = false;            // arrive_drop
    bool expects = false;          // arrive.expect_tx: b are bytes, and the count is 1
    bool never_completes = false;  // .noComplete
    bool has_parity = false;       // of waits
    bool may_miss = false;         // try_wait: it may answer no, though the phase is over
    bool completes = false;        // complete_tx, not expect_tx

    constexpr std::uint32_t bits() const {
        return std::uint32_t(space) | has_b << 8 | drops << 9 | expects << 10 | never_completes << 11 |
               has_parity << 12 | may_miss << 13 | completes << 14;
    }
    static constexpr MbarrierForm of(std::uint32_t y) {
        const auto bit = [&](int i) { return (y >> i & 1) != 0; };
        return {Space(y & 255), bit(8), bit(9), bit(10), bit(11), bit(12), bit(13), bit(14)};
    }
};
const MicroOp* init_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
const MicroOp* invalidate_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
const MicroOp* arrive_at_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
const MicroOp* transact_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
const MicroOp* test_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// cp.async.mbarrier.arrive: an arrival once the copies that the thread has started are there; c is 1 with .noinc.
const MicroOp* arrive_after_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

inline constexpr std::uint32_t mbarrier_bytes = 8;
inline constexpr std::uint32_t max_mbarrier_count = (1 << 20) - 1;  // arrivals, and bytes

/// What an arrival returns: pending arrivals, the phase, whose barrier it is.
struct MbarrierState {
    static constexpr int phase_at = 20, tag_at = 44;
    static constexpr std::uint64_t phases = 1 << (tag_at - phase_at);  // from then on they begin again
    static constexpr std::uint64_t of(std::uint32_t pending, std::uint64_t phase, std::uint32_t tag) {
        return pending | phase % phases << phase_at | std::uint64_t(tag) << tag_at;
    }
};

/// Those of a block.
class Mbarriers final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::Mbarriers;
    struct Barrier {
        const ptx::Instruction* made = nullptr;  // by this init
        std::uint64_t address = 0;               // as the block's own instructions see it
        std::uint8_t* bits = nullptr;            // of its variable: which bytes have been written
        std::uint64_t offset = 0;                // ... in it
        std::uint32_t tag = 0;                   // 20 bits that tell it from others
        std::uint64_t phase = 0;
        std::uint32_t expected = 0, pending = 0;  // arrivals in each phase, and still in this one
        std::int64_t bytes = 0;                   // that are pending; negative: delivered before they were expected
    };

    explicit Mbarriers(ThreadBlock& block) : block_(block) {}
    void start() override;
    std::optional<FaultCode> claim(std::uint64_t address, std::uint64_t bytes, bool writes) const override;
    std::string polled_by(const Warp& warp) const override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;

    Barrier* find(std::uint64_t address);
    /// A barrier that has some of these bytes, or nullptr.
    const Barrier* over(std::uint64_t address, std::uint64_t bytes) const;
    Barrier& make(const Barrier& barrier);
    void remove(std::uint64_t address) { barriers_.erase(address); }

    /// An arrival, or pending bytes. Nothing, or what is wrong with it.
    std::optional<FaultCode> arrive(Barrier& barrier, std::uint32_t count, bool drops);
    std::optional<FaultCode> add_bytes(Barrier& barrier, std::int64_t bytes);

    /// Of lanes that are to be told yes, those that are told no: none, or all, or one that then falls behind.
    std::uint32_t missing(Warp* w, std::uint32_t lanes);
    /// The last question of a warp whose answer was no.
    struct Question {
        std::uint64_t address = 0;  // of the barrier
        std::uint64_t phase = 0;    // that was not over
    };
    void note(const Warp* w, const Question& question);
    const Question& last_question(const Warp& w) const { return questions_[w.index]; }

private:
    void settle(Barrier& barrier);
    bool misses(const Warp* w);

    ThreadBlock& block_;
    std::unordered_map<std::uint64_t, Barrier> barriers_;  // by address
    std::vector<Question> questions_;                      // by warp
    std::uint32_t missed_ = 0;                             // warps whose last answer was given as no
    std::vector<std::uint8_t> left_;                       // by warp: how often it is still told no, on demand
    std::uint32_t made_ = 0;                               // barriers
    Chances chances_;
};

}  // namespace ikat::emulator
