// SPDX-License-Identifier: Apache-2.0
// Data races in shared memory: two accesses to a byte, one of them a write, that nothing orders. Accesses of one thread
// are ordered; those of others by barriers of every kind, `bar.warp.sync`, and waits for what goes on behind an
// instruction. Shuffles and votes order nothing. What is found does not depend on the order in which warps are run,
// where only barriers order them.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/tools/races/shadow.hpp"

namespace ikat::emulator {

/// Finds them. Used where the class `races-shared` is not off.
const Tool& shared_races();

namespace races {

/// What is known of a kernel before it runs.
struct Facts {
    bool exact = false;  // warps meet otherwise than all at a barrier
};

class BlockRaces final : public BlockTool {
public:
    BlockRaces(ThreadBlock& block, const Facts& facts) : block_(block), facts_(facts) {}

    void start() override;
    void arrive(const Warp& warp, std::uint32_t lanes, const Meeting& at, bool waits) override;
    void complete(const Meeting& at, bool of_all) override;
    void leave(const Warp& warp, std::uint32_t lanes, const Meeting& at) override;
    void forget(const Meeting& at) override { meetings_.erase({at.kind, at.place}); }
    void end_warp(const Warp& warp) override;
    bool access(const AgentAccess& access) override;
    void await(const Warp& warp, std::uint32_t lanes, std::uint64_t operation, bool reads) override;
    void arrive_for(std::uint64_t operation, std::uint32_t lanes, const Meeting& at) override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found_.reset(); }

    /// Lanes of a warp meet.
    void meet(const Warp& warp, std::uint32_t lanes);
    /// Lanes access `bytes` bytes each at addresses in the window of shared memory. False after a finding that stops
    /// the warp.
    struct LaneAccess {
        std::uint32_t bytes = 0;
        Direction direction = Direction::Read;
        bool is_strong = false, is_of_all = false;
    };
    bool access(const MicroOp* op, Warp* w, const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes);

private:
    /// What a warp knows: all of its lanes, and single lanes where they know more.
    struct OfWarp {
        explicit OfWarp(Stamp before) : common(before), stamp(before + 1) {}
        Clock common;
        std::array<std::unique_ptr<Clock>, warp_size> more;
        unsigned copies_agent = most_agents;     // of its own copies, once there are some
        Stamp stamp;                             // of its accesses
        std::array<Stamp, warp_size> awaited{};  // of its own copies
        Stamp all_awaited = 0;                   // by all lanes that have started them
        std::deque<std::uint64_t> copies;        // those of which some are not awaited
    };
    /// An agent that works behind instructions.
    enum class Behind : std::uint8_t { Copies, Stores, Loads, Products };
    struct OfAgent {
        bool is_warp = false, has_ended = false;
        Stamp last = 0;  // of its accesses
    };
    struct Operation {
        std::uint8_t agent = 0;
        Behind kind = Behind::Copies;
        std::uint32_t lanes = 0;  // that have started it
        std::uint32_t left = 0;  // of these, for which it is not over; of a product, how many warps have not awaited it
        std::uint32_t awaited = 0;  // that have awaited it
        Stamp stamp = 0;
    };
    struct Known {
        Clock arrived, over;
        std::uint64_t waiting = 0;  // warps
    };
    /// A new stamp. Without any left, nothing more is found in this block.
    Stamp tick() {
        is_spent_ |= now_ == most_stamp;
        return is_spent_ ? now_ : ++now_;
    }
    unsigned agent_of(Behind kind, std::uint64_t number);
    Operation* find(std::uint64_t operation);
    Known& at(const Meeting& meeting) { return meetings_[{meeting.kind, meeting.place}]; }
    bool is_all(const Warp& warp, std::uint32_t lanes) const { return !(warp.live & ~lanes); }
    void publish(const Warp& warp, std::uint32_t lanes, Clock& to);
    void publish_copies(unsigned warp, std::uint32_t lanes, bool is_all, Clock& to);
    bool is_in_flight(const Access& access) const;
    void gather(const Warp& warp);
    void find_several(unsigned warp);
    Clock& clock_of(unsigned warp, unsigned lane);
    Knower knower(unsigned warp, unsigned lane) const;
    std::size_t word_of(const std::uint8_t* bits, std::uint64_t offset) const {
        return (8 * std::uint64_t(bits - written_) + offset) / 4;
    }
    bool touch(const MicroOp* op, Warp* w, const Access& now, const Knower& by, std::size_t byte, std::uint32_t bytes,
               std::uint64_t address);
    bool report(const MicroOp* op, Warp* w, const Access& now, const Access& before, std::uint64_t address);

    ThreadBlock& block_;
    const Facts& facts_;
    const std::uint8_t* written_ = nullptr;
    Stamp now_ = 0;
    bool is_spent_ = false;
    Shadow shadow_;
    std::deque<OfWarp> warps_;
    std::vector<OfAgent> agents_;
    std::map<std::pair<Behind, std::uint64_t>, unsigned> behind_;
    std::unordered_map<std::uint64_t, Operation> operations_;  // that are not over, by number
    std::map<std::pair<Meeting::Kind, std::uint64_t>, Known> meetings_;
    Clock ended_;  // what warps knew that have ended
    struct Found {
        Access now, before;
    };
    std::optional<Found> found_;
};

}  // namespace races

}  // namespace ikat::emulator
