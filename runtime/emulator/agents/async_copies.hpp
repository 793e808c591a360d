// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies from global to shared memory (cp.async).
//
// The data of a copy may arrive at any time from its start to the wait that covers it. It arrives at once, at a later
// copy or at the wait, as the seed of the launch has it; with seed 0, at the wait. Until the wait, the bytes that it
// writes count as unwritten. So a load that reads them comes to the checked code, as with any uninitialised memory, and
// is a finding there (undefined.hpp); code without copies in flight is not slowed down. What else is wrong in the
// meantime is found at the wait: that something has written these bytes, or changed those that are read.
//
// A thread may also have a barrier in shared memory tell when its copies are there (cp.async.mbarrier.arrive): an
// arrival follows them, and who has waited for that phase of the barrier has waited for them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/agents/in_flight.hpp"
#include "runtime/emulator/agents/random.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::ptx {
struct Instruction;
}

namespace ikat::emulator {

class ThreadBlock;

/// Before the others, lane by lane: a copy of `bytes` from b + y in global memory to a + x in shared memory. c is how
/// many of the bytes are read, or a predicate of the lanes that read none; the rest of the bytes are zeros. d is
/// bits().
struct CopyForm {
    enum class Source : std::uint8_t { Whole, Bytes, Ignored };
    std::uint8_t bytes = 16;
    Source source = Source::Whole;
    bool is_wide = false;    // a has 8 bytes
    bool is_cached = false;  // .ca

    constexpr std::uint32_t bits() const {
        return bytes | std::uint32_t(source) << 8 | std::uint32_t(is_wide) << 10 | std::uint32_t(is_cached) << 11;
    }
    static constexpr CopyForm of(std::uint32_t bits) {
        return {std::uint8_t(bits & 255), Source(bits >> 8 & 3), (bits >> 10 & 1) != 0, (bits >> 11 & 1) != 0};
    }
};
const MicroOp* start_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// The copies that a thread has started since the last such op are a group.
const MicroOp* commit_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Waits until only the last x groups of a thread are in flight, or with y nothing.
const MicroOp* await_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// Those of a block.
class AsyncCopies final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::Copies;
    struct Copy : Flight {
        std::uint32_t group = 0;
        std::uint64_t operation = 0;              // the same for all lanes of a warp (ThreadBlock::next_operation)
        std::uint64_t number = 0;                 // in the order of the block's copies, and arrivals after them
        std::uint64_t to = 0;                     // in shared memory
        std::byte* at = nullptr;                  // ... on the host
        std::uint8_t* bits = nullptr;             // of its variable: which bytes have been written
        std::uint64_t offset = 0;                 // ... in it
        std::uint64_t source = 0;                 // in global memory
        const std::byte* from = nullptr;          // ... on the host
        const std::uint8_t* from_bits = nullptr;  // of its buffer: which bytes have been written; nullptr: all
        std::uint64_t from_offset = 0;            // ... in it
        std::uint32_t bytes = 0, taken = 0;       // that are written, and read
        const MicroOp* op = nullptr;              // that has started it
        const DecodedKernel* code = nullptr;      // ... is of this
        enum class Arrival : std::uint8_t { Over, Later, AtWait } arrival = Arrival::AtWait;
        std::array<std::byte, 16> before{};  // what the source was at the start
        bool has_barrier = false;            // an arrival at one has followed it
        std::uint64_t barrier = 0;           // ... its address
        std::uint64_t phase = 0;             // ... during which it arrived
    };

    explicit AsyncCopies(ThreadBlock& block) : block_(block) {}
    void start() override;
    bool start(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
    void commit(const Warp* w, std::uint32_t mask);
    bool await(const MicroOp* op, Warp* w, std::uint32_t mask);
    /// The thread arrives at the barrier at an address of the block's shared memory when its copies are there.
    void arrive_after(const Warp* w, unsigned lane, const ptx::Instruction* instruction, std::uint64_t barrier);
    /// Phases of a barrier before this one are known to be over. False on a finding.
    bool end_phase(const MicroOp* op, Warp* w, unsigned lane, std::uint64_t barrier, std::uint64_t phase);
    void some_arrive() override;
    bool last_arrives() override;
    /// Throws Error if a copy has not been waited for.
    void finish() override;
    std::optional<FaultCode> claim(std::uint64_t address, std::uint64_t bytes, bool writes) const override;
    /// A copy in flight to any of these bytes, or nullptr.
    const Copy* over(std::uint64_t address, std::uint64_t bytes) const;

private:
    struct OfWarp {
        std::vector<Copy> flying;  // in the order of their starts
        std::array<std::uint32_t, warp_size> groups{};
    };
    /// What the copy takes, of global memory; nothing if it may not. False if that ends the launch.
    bool find_source(const MicroOp* op, Warp* w, Copy& copy);
    bool start_lane(const MicroOp* op, Warp* w, const std::byte* frame, unsigned lane, Copy::Arrival arrival);
    bool tell(const MicroOp* op, Warp* w, std::span<const Copy> started);
    bool end(const MicroOp* op, Warp* w, unsigned lane, Copy& copy);
    void arrive_by_chance(OfWarp& of);
    OfWarp& of(const Warp* w);
    Copy::Arrival draw_arrival();
    /// An arrival at a barrier that copies come before.
    struct Follower {
        const ptx::Instruction* instruction = nullptr;
        std::uint32_t warp = 0, lane = 0;
        std::uint64_t number = 0;  // in the order of copies and arrivals
        std::uint64_t barrier = 0;
        Copy::Arrival arrival = Copy::Arrival::AtWait;
    };
    void follow(const Follower& follower);
    void follow_up_to(std::size_t last);

    ThreadBlock& block_;
    std::vector<Follower> followers_;
    std::uint64_t started_ = 0, operation_ = 0;
    std::vector<OfWarp> warps_;  // empty until something is copied
    Chances chances_;
};

}  // namespace ikat::emulator
