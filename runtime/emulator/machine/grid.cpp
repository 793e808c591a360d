// SPDX-License-Identifier: Apache-2.0
// Runs the clusters of a grid on host threads. Each thread takes the next cluster number; while a cluster runs very
// long, or its blocks wait for others, more clusters are started alongside, as on a device.
//
// A block that waits reports this (ThreadBlock::Turn::Waits) when all its warps repeat their state without changing
// anything. The report is valid until a block changes something: any other turn begins a new generation. When all
// running blocks have reported in one generation and no other can start, they wait forever. With one thread everything
// happens in a fixed order. With several, memory accesses of blocks interleave as on a device, but findings and printed
// text still come in block order, or, if blocks start in any order, in that.
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "runtime/emulator/machine/cluster.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint64_t alone = 1 << 20;     // warp instructions before another block may start alongside
constexpr std::uint64_t together = 1 << 17;  // and the turns they take from then on
constexpr std::uint64_t one_round = 1;       // of the warps, each up to where it waits
constexpr std::size_t max_resident = 256;    // blocks, if all run
constexpr std::size_t max_waiting = 2048;    // blocks, if some wait for others: more than a device holds
constexpr unsigned patience = 8;             // turns of each without an end, if some run at a time, before more start

class Grid {
public:
    explicit Grid(LaunchState& state) : state_(state) {}

    Statistics run() {
        const auto in_turn = [](const auto& tool) { return tool && tool->in_turn(); };
        const unsigned threads = std::ranges::any_of(state_.tools, in_turn) ? 1 : state_.options.threads;
        threads_ = std::min<std::uint64_t>(std::max(1u, threads), clusters_);
        state_.parallel = threads_ > 1;
        {
            std::vector<std::jthread> others;
            for (std::uint64_t i = 1; i < threads_; ++i) others.emplace_back([this] { work(); });
            work();
        }
        if (failure_) std::rethrow_exception(failure_);
        return statistics_;
    }

private:
    /// Runs clusters on this host thread; one at a time unless they take long.
    void work() {
        std::vector<std::unique_ptr<Cluster>> resident, idle;
        std::minstd_rand random(mixed(state_.options.seed, 0));
        for (unsigned rounds = 0;; ++rounds) {
            // If some wait for later blocks, double the number each time: checking all waiting blocks is expensive.
            const std::size_t max_present = somebody_waits_ ? max_waiting : max_resident;
            std::size_t starting = somebody_waits_ ? std::max<std::size_t>(resident.size(), 1) : 1;
            const std::size_t at_a_time = order_.at_a_time();
            if (at_a_time && !somebody_waits_ && rounds < (at_a_time > 1 ? patience : 1))
                starting = at_a_time - std::min(at_a_time, resident.size());
            for (; starting > 0 && resident.size() * per_cluster_ < max_present && !state_.stop; --starting) {
                const std::uint64_t next = next_.fetch_add(1);
                if (next >= clusters_) break;
                if (idle.empty()) idle.push_back(std::make_unique<Cluster>(state_));
                resident.push_back(std::move(idle.back()));
                idle.pop_back();
                resident.back()->start(order_.at(next), next);
            }
            if (resident.empty()) break;
            bool progress = false;
            for (std::size_t i = 0; i < resident.size();) {
                tell_progress();
                const bool is_alone = resident.size() == 1 && per_cluster_ == 1;
                const bool is_short = at_a_time > 1 && random() % 4 != 0;
                const std::uint64_t steps = is_short ? one_round : is_alone ? alone : together;
                resident[i]->each_running([&](ThreadBlock& block, bool gives_way) {
                    return advance(block, gives_way ? one_round : steps, progress);
                });
                if (resident[i]->has_ended()) {
                    rounds = 0;
                    idle.push_back(std::move(resident[i]));
                    resident.erase(resident.begin() + std::ptrdiff_t(i));
                } else {
                    ++i;
                }
            }
            if (!progress) std::this_thread::yield();  // other threads' blocks are to change something
        }
        const std::lock_guard lock(mutex_);
        for (const auto& cluster : idle)
            for (ThreadBlock& block : cluster->blocks()) {
                add(block.statistics());
                block.finish_tools();
            }
    }

    /// True if the block has ended, by itself or because an earlier one has failed, or one of its cluster, for which it
    /// may wait.
    bool advance(ThreadBlock& block, std::uint64_t steps, bool& progress) {
        const bool is_last = failed_in_ == &block.peer(0) && !stuck_;
        try {
            const std::optional<std::uint64_t> generation = begin_turn(block);
            ThreadBlock::Turn turn = ThreadBlock::Turn::Waits;
            if (generation) {
                progress = true;
                turn = block.run(steps);
                end_turn(block, turn, *generation);
            }
            if (turn == ThreadBlock::Turn::Ended || is_last) return true;
            // Of blocks that all wait forever, each reports it itself, so that the first is named.
            return state_.stop && (block.place() > failed_block_ || (turn == ThreadBlock::Turn::Waits && !stuck_));
        } catch (const Error& error) {
            constexpr FaultCode waits[] = {FaultCode::Deadlock, FaultCode::EndlessWait, FaultCode::StepBudget,
                                           FaultCode::LaunchBudget};
            const auto is_it = [&](FaultCode code) { return error.diagnostics().front().code == info(code).name; };
            if (!is_last || std::ranges::none_of(waits, is_it)) fail(block);
            return true;
        } catch (...) { return fail(block), true; }
    }

    void fail(ThreadBlock& block) {
        const std::lock_guard lock(mutex_);
        if (block.place() < failed_block_) {
            failed_block_ = state_.failed_block = block.place();
            failed_in_ = &block.peer(0);
            failure_ = std::current_exception();
        }
        state_.stop = true;
        write(block);
    }

    /// The generation in which the block's turn begins; nothing if its report is still valid. Once all are known to
    /// wait forever, all report it.
    std::optional<std::uint64_t> begin_turn(const ThreadBlock& block) {
        const std::lock_guard lock(mutex_);
        if (stuck_) throw block.waits_for_cluster() ? deadlock_error(block) : waiting_error(block);
        if (waiting_.contains(block.index())) return {};
        return generation_;
    }

    void end_turn(ThreadBlock& block, ThreadBlock::Turn turn, std::uint64_t generation) {
        const std::lock_guard lock(mutex_);
        if (turn == ThreadBlock::Turn::Ended) ++ended_, write(block);
        if (turn != ThreadBlock::Turn::Waits) {
            ++generation_;
            waiting_.clear();
        } else if (generation == generation_) {
            waiting_.insert(block.index());
        }
        somebody_waits_ = !waiting_.empty();
        const std::uint64_t present = std::min<std::uint64_t>(next_, clusters_) * per_cluster_ - ended_;
        const bool no_more = next_ >= clusters_ || present >= max_waiting * threads_;
        stuck_ = turn == ThreadBlock::Turn::Waits && no_more && waiting_.size() == present;
    }

    void tell_progress() {
        if (std::ranges::none_of(state_.tools, [](const auto& tool) { return tool != nullptr; })) return;
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return;  // others are at work, and will tell
        const Progress at{state_.launch.entry, ended_, count_, state_.steps};
        for (const auto& tool : state_.tools)
            if (tool) tool->advance(at);
    }

    /// Output in block order: text of a block that ended early is kept until those before it have ended. After the
    /// block that failed nothing is written.
    void write(ThreadBlock& block) {
        outputs_[block.place()] = std::exchange(block.output, {});
        for (auto it = outputs_.begin(); it != outputs_.end() && it->first == next_output_; it = outputs_.erase(it)) {
            if (it->first > failed_block_) return;
            ++next_output_;
            if (it->second.empty()) continue;
            if (state_.options.output)
                state_.options.output(it->second);
            else
                std::fwrite(it->second.data(), 1, it->second.size(), stdout);
        }
    }

    void add(const Statistics& part) {
        statistics_.warp_instructions += part.warp_instructions;
        statistics_.lane_instructions += part.lane_instructions;
        statistics_.global_bytes_read += part.global_bytes_read;
        statistics_.global_bytes_written += part.global_bytes_written;
    }

    LaunchState& state_;
    const std::uint64_t per_cluster_ = state_.kernel.blocks_in_cluster();
    const std::uint64_t count_ =
        std::uint64_t(state_.launch.grid[0]) * state_.launch.grid[1] * state_.launch.grid[2];  // blocks
    const std::uint64_t clusters_ = count_ / per_cluster_;
    std::uint64_t threads_ = 1;           // of the host
    std::atomic<std::uint64_t> next_{0};  // how many clusters have started
    const StartOrder order_{state_.options, clusters_};
    std::mutex mutex_;
    std::uint64_t ended_ = 0, generation_ = 0;
    std::set<std::uint64_t> waiting_;  // blocks that have reported waiting in this generation
    std::atomic<bool> somebody_waits_ = false;
    std::atomic<bool> stuck_ = false;
    std::map<std::uint64_t, std::string> outputs_;
    std::uint64_t next_output_ = 0;
    std::atomic<std::uint64_t> failed_block_{~std::uint64_t{0}};
    std::atomic<const ThreadBlock*> failed_in_ = nullptr;  // the first block of its cluster
    std::exception_ptr failure_;
    Statistics statistics_;
};

}  // namespace

Statistics run_grid(LaunchState& state) { return Grid(state).run(); }

}  // namespace ikat::emulator
