// SPDX-License-Identifier: Apache-2.0
// What the threads of a block know of the accesses of others, as far as something orders them: barriers of every kind,
// `bar.warp.sync`, waits for asynchronous work; fences, and what they order around atomics, volatile
// and relaxed accesses to one location. Shuffles and votes order nothing.
#pragma once
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/tools/races/shadow.hpp"

namespace ikat::emulator::races {

/// What is known to who sees a location as it is.
struct Release {
    Scope scope = Scope::Device;
    std::uint64_t block = 0;  // that has released it, or `several`
    KnownBlocks known;

    static constexpr std::uint64_t several = ~std::uint64_t{0};
};
using Releases = std::vector<Release>;

class Order;

/// What the blocks of a launch tell each other.
class LaunchOrder {
public:
    explicit LaunchOrder(const LaunchState& state) : state_(state) {}

    void add(const ThreadBlock& block, Order& order) { orders_[&block] = &order; }
    Order& order_of(const ThreadBlock& block) const { return *orders_.at(&block); }
    std::uint64_t cluster_of(std::uint64_t block) const;
    /// Whether both blocks are in what a scope spans around either.
    bool reaches(Scope scope, std::uint64_t one, std::uint64_t other) const;
    /// By the location: an address in global memory, or place_in().
    std::unordered_map<std::uint64_t, Releases> locations;
    /// By the number of the cluster: what is known after its barrier.
    struct Cluster {
        KnownBlocks arrived, over;
    };
    std::unordered_map<std::uint64_t, Cluster> clusters;

private:
    const LaunchState& state_;
    std::unordered_map<const ThreadBlock*, Order*> orders_;
};

/// An address in the shared memory of a block, other than all in global memory.
inline std::uint64_t place_in(const ThreadBlock& block, std::uint64_t address) {
    return std::uint64_t{1} << 63 | block.index() << 24 | address;
}

template <class F>
void each_lane(std::uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(std::countr_zero(lanes)));
}

/// Kinds of asynchronous work.
enum class AsyncWork : std::uint8_t {
    Copies,    // cp.async
    Stores,    // bulk copies from shared memory: they read it
    StoredTo,  // ... and write global memory
    Loads,     // bulk copies that arrive at a barrier
    Products
};
AsyncWork async_work_of(const AgentAccess& access);

class Order {
public:
    /// `keeps_base`: what all warps know is kept, for Knower.
    Order(ThreadBlock& block, LaunchOrder& launch, bool keeps_base)
        : block_(block), launch_(launch), keeps_base_(keeps_base) {
        launch.add(block, *this);
    }

    /// A new block begins. True if stamps begin again, so that those of blocks before it mean nothing.
    bool start();

    // What happens: see BlockTool.
    void arrive(const Warp& warp, std::uint32_t lanes, const Meeting& at, bool waits);
    void complete(const Meeting& at, bool of_all);
    void leave(const Warp& warp, std::uint32_t lanes, const Meeting& at);
    void forget(const Meeting& at) { meetings_.erase({at.kind, at.place}); }
    void end_warp(const Warp& warp);
    void release(const Warp& warp);
    void await(const Warp& warp, std::uint32_t lanes, std::uint64_t operation, bool reads);
    void arrive_for(std::uint64_t operation, std::uint32_t lanes, const Meeting& at);
    /// Whether who leaves a meeting knows what lanes of an agent have done up to a stamp.
    bool is_known_after(const Meeting& meeting, unsigned agent, std::uint32_t lanes, Stamp stamp) {
        return !at(meeting).over.unknown(agent, lanes, stamp);
    }
    /// Lanes of a warp meet.
    void meet(const Warp& warp, std::uint32_t lanes);
    /// ... and give each other values, which orders nothing.
    void exchange(const Warp& warp, std::uint32_t lanes);
    void fence(const Warp& warp, std::uint32_t lanes, const Synchronises& how);
    /// Lanes execute a fence that shows what they know to the asynchronous proxy (clock.hpp).
    void show(const Warp& warp, std::uint32_t lanes, unsigned by);
    /// Of lanes of an agent those of which no fence has shown to any of a warp's what they have done up to a stamp.
    std::uint32_t not_shown(unsigned warp, std::uint32_t to, unsigned by, std::uint64_t block, unsigned agent,
                            std::uint32_t lanes, Stamp stamp) const;
    /// A lane is about to access a location, strongly: an atomic, or volatile or relaxed.
    void use(const Warp& warp, unsigned lane, std::uint64_t location, std::uint32_t bytes, Direction direction,
             Scope scope);
    /// A location is written in another way.
    void overwrite(std::uint64_t location, std::uint32_t bytes);
    bool has_locations() const { return !launch_.locations.empty(); }

    Knower knower(unsigned warp, unsigned lane) const;
    /// What all lanes of a warp know; nullptr: some know more.
    const Clock* common_clock(unsigned warp) const;
    /// Those of a warp's accesses from now on; without any left, nothing more is found in this block.
    Stamp stamp_of(unsigned warp) { return agents_[warp].last = agents_[warp].stamp; }
    bool is_spent() const { return is_spent_; }
    bool is_warp(unsigned agent) const { return agent < agents_.size() && agents_[agent].is_warp; }
    /// An operation of a kind, started by lanes of a warp of the block, or for Loads of any: its agent and its stamp.
    struct Operation {
        std::uint8_t agent = 0;
        AsyncWork kind = AsyncWork::Copies;
        std::uint32_t lanes = 0;  // that have started it
        std::uint32_t left = 0;  // of these, for which it is not over; of a product, how many warps have not awaited it
        std::uint32_t awaited = 0;  // that have awaited it
        Stamp stamp = 0;
    };
    const Operation& begin(std::uint64_t number, AsyncWork kind, unsigned warp, std::uint32_t lanes,
                           std::uint64_t barrier);
    /// Whether a lane of a warp has exchanged values, since a stamp, with one of others.
    bool has_exchanged(unsigned warp, unsigned lane, std::uint32_t others, Stamp stamp) const {
        const OfWarp& of = warps_[warp];
        const Exchange& last = of.exchanges[lane];
        return stamp <= of.exchange_of_all || (stamp <= last.stamp && (others & last.lanes));
    }
    /// Whether an access is a copy's write that is not over.
    bool is_in_flight(unsigned agent, Stamp stamp, std::uint32_t lanes) const;
    /// Whether the warp would know of it if it had asked in a wider scope, or been told in one.
    bool is_refused(unsigned warp, std::uint64_t block, unsigned agent, std::uint32_t lanes, Stamp stamp) const;

private:
    /// What lanes knew at a fence: `base`, and each what it had done up to the stamp.
    struct Fence {
        std::uint32_t lanes = 0;
        Scope scope = Scope::Thread;
        bool of_access = false;  // the order of the access that follows
        std::uint64_t only = 0;  // ... which was to this location: of later ones only those to it
        std::shared_ptr<const Clock> base{};
        Stamp stamp = 0;
        std::array<Stamp, warp_size> awaited{};  // of their own copies
    };
    /// What a lane has seen at a location, and will know after a fence.
    struct Seen {
        std::uint64_t location = 0;
        Scope by = Scope::Thread;  // that of its own access
        Release release;
    };
    /// Lanes that have given each other values, after what they have done up to a stamp.
    struct Exchange {
        std::uint32_t lanes = 0;
        Stamp stamp = 0;
    };
    /// What a warp knows: all of its lanes, and single lanes where they know more.
    struct OfWarp {
        explicit OfWarp(Stamp before) : common(before) {}
        Clock common;
        std::array<std::unique_ptr<Clock>, warp_size> more;
        unsigned copies_agent = max_agents;      // of its own copies, once there are some
        std::array<Stamp, warp_size> awaited{};  // of its own copies
        Stamp all_awaited = 0;                   // by all lanes that have started them
        std::deque<std::uint64_t> copies;        // those of which some are not awaited
        std::vector<Fence> fences;
        std::array<std::vector<Seen>, warp_size> seen;
        std::uint32_t sees = 0;                                                      // lanes that have seen something
        std::array<std::pair<std::uint64_t, std::uint64_t>, warp_size> last_used{};  // from, to
        std::vector<KnownBlocks> refused;
        std::array<Exchange, warp_size> exchanges{};  // the last one of each lane with some others
        Stamp exchange_of_all = 0;                    // what came before the last one of all lanes
    };
    /// A warp, or those who do asynchronous work.
    struct OfAgent {
        bool is_warp = false, has_ended = false;
        Stamp last = 0;   // of its accesses
        Stamp stamp = 0;  // of a warp's from now on
    };
    struct Known {
        Clock arrived, over;
        std::uint64_t waiting = 0;  // warps
        std::uint64_t leaving = 0;  // ... which are all there are, and have not left
    };
    Stamp tick() {
        is_spent_ |= now_ == max_stamp;
        return is_spent_ ? now_ : ++now_;
    }
    unsigned agent_of(AsyncWork kind, std::uint64_t number);
    Known& at(const Meeting& meeting) { return meetings_[{meeting.kind, meeting.place}]; }
    bool is_all(const Warp& warp, std::uint32_t lanes) const { return !(warp.live & ~lanes); }
    void publish(const Warp& warp, std::uint32_t lanes, Clock& to);
    void publish_copies(unsigned warp, std::uint32_t lanes, bool is_all, Clock& to);
    void gather(const Warp& warp);
    void find_base();
    void find_several(unsigned warp);
    Clock& clock_of(unsigned warp, unsigned lane);
    void remember(const Warp& warp, std::uint32_t lanes, const Synchronises& how);
    void see_at(OfWarp& of, unsigned lane, std::uint64_t location, Scope scope);
    void release_at(std::uint64_t location, Scope reach, const KnownBlocks& known);
    void see(const Warp& warp, std::uint32_t lanes, const Synchronises& how);
    static std::uint64_t key_of(std::uint64_t number, bool is_target) { return 2 * number + is_target; }
    void await_one(const Warp& warp, std::uint32_t lanes, std::uint64_t key);

    ThreadBlock& block_;
    LaunchOrder& launch_;
    Stamp now_ = 0;
    bool is_spent_ = false;
    std::deque<OfWarp> warps_;
    std::vector<OfAgent> agents_;
    std::map<std::pair<AsyncWork, std::uint64_t>, unsigned> async_agents_;
    std::unordered_map<std::uint64_t, Operation> operations_;  // that are not over, by key_of
    std::map<std::pair<Meeting::Kind, std::uint64_t>, Known> meetings_;
    Clock ended_;  // what warps knew that have ended
    const bool keeps_base_;
    BlockClock base_;
};

}  // namespace ikat::emulator::races
