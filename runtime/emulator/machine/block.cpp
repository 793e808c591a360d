// SPDX-License-Identifier: Apache-2.0
// Thread blocks: see block.hpp; their barriers are in barriers.cpp.
#include "runtime/emulator/machine/block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/core/memory/written.hpp"
#include "runtime/emulator/machine/idle.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint64_t slice = 1 << 16;  // warp instructions a warp runs before the next one
constexpr std::uint8_t poison = 0xff;
constexpr std::uint32_t reserved_bytes = 2048;  // reserved shared memory, used by CUDA's cooperative groups

std::uint32_t* words(std::byte* frame, std::uint32_t offset) {
    return reinterpret_cast<std::uint32_t*>(frame + offset);
}

/// Whether it differs from block to block.
bool is_of_block(Special::Kind kind) {
    return kind == Special::Kind::Ctaid || kind == Special::Kind::ClusterId || kind == Special::Kind::ClusterCtaid;
}

std::uint32_t lane_mask(std::uint8_t kind, unsigned lane) {
    const std::uint32_t bit = 1u << lane;
    switch (kind) {
        case Special::Eq: return bit;
        case Special::Lt: return bit - 1;
        case Special::Le: return bit | (bit - 1);
        case Special::Gt: return ~(bit | (bit - 1));
        default: return ~(bit - 1);
    }
}

}  // namespace

const std::vector<std::uint8_t>& LaunchState::effects_in(const DecodedKernel& code) {
    const bool checked = code.is_checked();
    std::call_once(effects_once[checked], [&] { effects[checked] = effects_of_turns(code); });
    return effects[checked];
}

ThreadBlock::ThreadBlock(LaunchState& state, std::uint32_t rank, std::deque<ThreadBlock>& cluster)
    : state_(state), rank_(rank), peers_(cluster) {
    const auto& [x, y, z] = state.launch.block;
    const DecodedKernel& kernel = state.kernel;
    threads_ = x * y * z;
    const unsigned count = (threads_ + warp_size - 1) / warp_size;
    shared_variables_ = kernel.shared;
    const std::uint32_t dynamic = state.launch.dynamic_shared_bytes - kernel.own_dynamic_bytes;
    if ((dynamic && !kernel.own_dynamic_bytes) || !kernel.dynamic_name.empty())
        shared_variables_.add(kernel.dynamic_name.empty() ? "dynamic" : kernel.dynamic_name, dynamic, 1);
    const auto asks = [](const DecodedKernel::SpecialSlot& slot) {
        return slot.special.kind == Special::Kind::ReservedShared;
    };
    const bool reserves = std::ranges::any_of(kernel.specials, asks);
    if (reserves) shared_variables_.add("the part that the system reserves", reserved_bytes, reserved_bytes / 2);
    shared_.resize(shared_variables_.host_bytes + 64);
    const std::uint64_t local = kernel.local.host_bytes;
    local_.resize(local * warp_size * count + 64);
    frames_.resize(std::size_t(kernel.frame_bytes) * count + 64);
    frame_base_ = frames_.data() + (64 - reinterpret_cast<std::uintptr_t>(frames_.data()) % 64);
    std::byte* const shared = shared_.data() + (64 - reinterpret_cast<std::uintptr_t>(shared_.data()) % 64);
    std::byte* const locals = local_.data() + (64 - reinterpret_cast<std::uintptr_t>(local_.data()) % 64);
    shared_written_.resize(shared_variables_.host_bytes / 8 + 1);  // loads read two bytes at once
    local_written_.resize(local / 8 * warp_size * count);
    shared_views_ = shared_variables_.views(shared, 0, true, shared_written_.data());
    const std::uint32_t blocks = kernel.blocks_in_cluster();
    if (kernel.maps_shared && blocks > 1) {
        shared_span_ = std::bit_ceil(shared_variables_.cells + 1) << Cells::bits;
        shared_views_.resize((blocks + 1) * (shared_span_ >> Cells::bits) + 1);
    }
    if (reserves) {
        const NamedRange& range = shared_variables_.ranges.back();
        reserved_shared_ = {shared + range.host, range.bytes};
        reserved_written_ = {shared_written_.data() + range.host / 8, range.bytes / 8};
        reserved_address_ = std::uint32_t(range.address);
    }
    tools_.resize(state.tools.size());
    parameter_views_ = {{state.parameters.data(), 0, kernel.parameter_bytes, 0, false}, {}};
    for (unsigned i = 0; i < count; ++i) {
        ScheduledWarp& warp = warps_.emplace_back();
        warp.index = i;
        warp.block = this;
        warp.memory = &state.memory;
        warp.parallel = state.parallel;
        warp.tools = tools_.data();
        local_views_.push_back(kernel.local.views(locals + local * warp_size * i, local, true,
                                                  local_written_.data() + local / 8 * warp_size * i));
        warp.windows[int(Space::Shared)] = cells_of(shared_views_.data(), shared_variables_);
        warp.windows[int(Space::Local)] = cells_of(local_views_.back().data(), kernel.local);
        warp.windows[int(Space::Param)] = {parameter_views_.data(), 1};
        warp.windows[int(Space::Const)] = cells_of(state.variables.constant_views.data(), state.variables.constants);
        std::ranges::copy(warp.windows, warp.generic);
        if (shared_span_) warp.generic[int(Space::Shared)] = {shared_views_.data(), shared_views_.size() - 1};
        warp.shared_span = shared_span_;
        warp.rank = rank;
        warp.cluster_blocks = blocks;
        warp.stack_base = kernel.stack_base;
        warp.stack_end = kernel.stack_end;
        fill_constants(warp);
    }
    waiting_.resize(count);
    agents_ = state.make_agents(*this);
    for (std::size_t slot = 0; slot < state.tools.size(); ++slot) {
        if (state.tools[slot]) own_tools_.push_back(state.tools[slot]->of(*this));
        tools_[slot] = state.tools[slot] ? own_tools_.back().get() : nullptr;
        if (tools_[slot] && tools_[slot]->is_told()) told_tools_.push_back(tools_[slot]);
    }
}

std::byte* ThreadBlock::frame_of(const Warp& warp) const {
    return frame_base_ + std::size_t(state_.kernel.frame_bytes) * warp.index;
}

const Variables& ThreadBlock::variables(Space space) const {
    return space == Space::Shared  ? shared_variables_
           : space == Space::Local ? state_.kernel.local
                                   : state_.variables.constants;
}

std::array<std::uint32_t, 3> ThreadBlock::thread(const Warp& warp, unsigned lane) const {
    const auto& size = state_.launch.block;
    const std::uint32_t linear = warp.index * warp_size + lane;
    return {linear % size[0], linear / size[0] % size[1], linear / size[0] / size[1]};
}

std::uint32_t ThreadBlock::special(Special special, const Warp& warp, unsigned lane) const {
    const unsigned axis = special.axis;
    switch (special.kind) {
        case Special::Kind::Tid: return thread(warp, lane)[axis];
        case Special::Kind::Ntid: return state_.launch.block[axis];
        case Special::Kind::Ctaid: return coordinates_[axis];
        case Special::Kind::Nctaid: return state_.launch.grid[axis];
        case Special::Kind::LaneId: return lane;
        case Special::Kind::WarpId: return warp.index;
        case Special::Kind::NwarpId: return std::uint32_t(warps_.size());
        case Special::Kind::Lanemask: return lane_mask(special.axis, lane);
        case Special::Kind::DynamicSharedBytes: return state_.launch.dynamic_shared_bytes;
        case Special::Kind::TotalSharedBytes: return state_.kernel.shared_bytes + state_.launch.dynamic_shared_bytes;
        case Special::Kind::AllSharedBytes:
            return state_.kernel.shared_bytes + state_.launch.dynamic_shared_bytes + reserved_bytes;
        case Special::Kind::ReservedShared:
            return axis == Special::Begin    ? reserved_address_
                   : axis == Special::Second ? reserved_address_ + reserved_bytes / 2
                   : axis == Special::End    ? reserved_address_ + reserved_bytes
                                             : reserved_bytes;
        case Special::Kind::GridWorkspace: return std::uint32_t(state_.grid_workspace >> (axis ? 32 : 0));
        case Special::Kind::ClusterId: return coordinates_[axis] / state_.kernel.cluster[axis];
        case Special::Kind::ClusterCount: return state_.launch.grid[axis] / state_.kernel.cluster[axis];
        case Special::Kind::ClusterCtaid: return coordinates_[axis] % state_.kernel.cluster[axis];
        case Special::Kind::ClusterNctaid: return state_.kernel.cluster[axis];
        case Special::Kind::ClusterRank: return rank_;
        case Special::Kind::ClusterBlocks: return state_.kernel.blocks_in_cluster();
        case Special::Kind::NsmId: return 1;
        case Special::Kind::SmId:
        case Special::Kind::GridId:
        case Special::Kind::Zero: return 0;
    }
    return 0;
}

/// Fills in constants, and special registers that are the same in every block of the launch.
void ThreadBlock::fill_constants(const Warp& warp) {
    std::byte* const frame = frame_of(warp);
    for (const DecodedKernel::Constant& constant : state_.kernel.constants) {
        std::byte* const at = frame + constant.offset;
        if (constant.bytes == 8)
            std::fill_n(reinterpret_cast<std::uint64_t*>(at), warp_size, constant.bits);
        else
            std::fill_n(reinterpret_cast<std::uint32_t*>(at), constant.bytes ? warp_size : 1,
                        std::uint32_t(constant.bits));
    }
    for (const DecodedKernel::SpecialSlot& slot : state_.kernel.specials)
        for (unsigned lane = 0; lane < warp_size; ++lane)
            words(frame, slot.offset)[lane] = special(slot.special, warp, lane);
}

unsigned ThreadBlock::elected(std::uint32_t lanes) const {
    std::uint32_t rest = lanes;
    const Options& options = state_.options;
    if (const std::uint32_t seed = options.any_leader ? options.seed : 0)
        for (unsigned skip = mixed(seed, lanes) % unsigned(std::popcount(lanes)); skip; --skip) rest &= rest - 1;
    return unsigned(std::countr_zero(rest));
}

std::uint32_t ThreadBlock::chosen_seed(std::uint32_t number) const {
    return mixed(state_.options.seed, ~(std::uint32_t(index_) + number)) | 1;
}

void ThreadBlock::start_warp(ScheduledWarp& warp) {
    std::byte* const frame = frame_of(warp);
    std::memset(frame, poison, state_.kernel.register_bytes);
    for (const DecodedKernel::SpecialSlot& slot : state_.kernel.specials)
        if (is_of_block(slot.special.kind))
            std::fill_n(words(frame, slot.offset), warp_size, special(slot.special, warp, 0));
    const std::uint32_t lanes = std::min(threads_ - warp.index * warp_size, warp_size);
    warp.load(state_.kernel);
    warp.start(lanes == warp_size ? all_lanes : (1u << lanes) - 1, frame, state_.kernel.entry);
    if (state_.kernel.unassigned_reads && state_.options.checks.of(Check::Registers) != Action::Off)
        start_checking(warp, false);
}

void ThreadBlock::start(std::array<std::uint32_t, 3> coordinates, std::uint64_t turn) {
    const auto& grid = state_.launch.grid;
    coordinates_ = coordinates;
    index_ = coordinates[0] + std::uint64_t(grid[0]) * (coordinates[1] + std::uint64_t(grid[1]) * coordinates[2]);
    place_ = schedule().any_blocks ? turn : index_;
    std::fill(shared_.begin(), shared_.end(), std::byte{poison});
    std::fill(local_.begin(), local_.end(), std::byte{poison});
    forget_written();
    for (const auto& each : agents_) each->start();
    each_tool([](BlockTool& tool) { tool.start(); });
    std::ranges::fill(reserved_shared_, std::byte{0});
    std::ranges::fill(reserved_written_, std::uint8_t{0xff});
    for (ScheduledWarp& warp : warps_) start_warp(warp);
    std::fill(waiting_.begin(), waiting_.end(), runs);
    for (Barrier& barrier : barriers_) barrier = {};
    cluster_ = {};
    has_met_ = false;
    running_ = std::uint32_t(warps_.size());
    ended_ = 0;
    quiet_rounds_ = 0;
    meetings_ = 0;
    next_watch_ = first_watch;
    waits_ = false;
    last_turn_ = Turn::Over;
    polling_ = 0;
    random_.seed(mixed(state_.options.seed, std::uint32_t(index_)));
    order_.start(std::uint32_t(warps_.size()), schedule(), index_, random_);
}

void ThreadBlock::forget_written() {
    std::ranges::fill(shared_written_, std::uint8_t{0});
    std::ranges::fill(local_written_, std::uint8_t{0});
    for (View& view : own_shared()) view.written = view.bits;
}

/// Stops tracking completely written variables in shared memory; called at a barrier, where most tiles are complete.
void ThreadBlock::close_written() {
    const std::span<View> views = own_shared();
    for (std::size_t i = 0; i < views.size(); ++i) {
        View& view = views[i];
        if (!view.written) continue;
        if (i > 0 && views[i - 1].base == view.base && views[i - 1].bytes)
            view.written = views[i - 1].written;  // another cell of the same variable
        else if (written::all(view.written, 0, view.bytes))
            view.written = nullptr;
    }
}

void ThreadBlock::reopen(std::uint64_t address) {
    const auto [owner, place] = shared_place(address);
    const View at = cells_of(owner.shared_views_.data(), owner.shared_variables_).at(place);
    for (View& view : owner.own_shared())
        if (view.base == at.base) view.written = view.bits;
}

/// One turn of a warp. True if it was cut off: the warp could have continued, and does not do so only for others.
bool ThreadBlock::run_warp(ScheduledWarp& warp, std::uint64_t steps) {
    const Options& options = state_.options;
    const std::uint64_t before = warp.instructions, left = options.step_budget - warp.spent();
    const auto stop = warp.run(std::min({steps, left, options.launch_budget}),
                               options.seed && options.lanes && steps ? &random_ : nullptr);
    const std::uint64_t executed = warp.instructions - before;
    if (state_.steps.fetch_add(executed, std::memory_order_relaxed) + executed > options.launch_budget)
        throw budget_error(*this);
    switch (stop) {
        case ScheduledWarp::Stop::SliceOver:
            if (warp.spent() >= options.step_budget) throw budget_error(*this, warp);
            return !std::exchange(warp.gives_way, false);
        case ScheduledWarp::Stop::Done: end(warp); break;
        case ScheduledWarp::Stop::AtBarrier: arrive(warp); break;
        case ScheduledWarp::Stop::Fault: throw fault_error(*this, warp);
        case ScheduledWarp::Stop::Stuck: throw stuck_error(*this, warp);
    }
    return false;
}

/// Whether all warps that are not waiting at a barrier repeat their state. If only they could change what they read,
/// that is a finding.
bool ThreadBlock::comes_round() {
    const std::uint64_t turns = 1024 * std::min<std::uint64_t>(quiet_rounds_, 64);
    std::uint8_t reads = 0;
    for (ScheduledWarp& warp : warps_) {
        if (waiting_[warp.index] != runs) continue;
        Watch watch(*warp.kernel, state_.effects_in(*warp.kernel), warp);
        bool round = false;
        for (std::uint64_t turn = 0; turn < turns && !round && !watch.is_alive(); ++turn) {
            watch.before();
            if (!run_warp(warp, 0)) return false;
            round = watch.after();
        }
        if (!round) return false;
        if (!watch.reads()) throw endless_error(*this, warp);
        reads |= watch.reads();
    }
    if (deliver()) return false;
    const bool others_may_write = reads & ReadsOthers || shared_span_;
    if (!others_may_write) throw waiting_error(*this);
    return true;
}

/// All warps have just met at a barrier. A finding if they come back to the same state at a later one, though nothing
/// they have executed since has changed memory or read what other blocks could change.
void ThreadBlock::watch_meetings() {
    constexpr std::uint64_t max_turns = 1024, max_meetings = 16;
    std::vector<Watch> watches;
    for (ScheduledWarp& warp : warps_)
        if (!has_ended(warp)) watches.emplace_back(*warp.kernel, state_.effects_in(*warp.kernel), warp);
    std::uint64_t seen = 0;
    for (std::uint64_t turn = 0; turn < max_turns && seen < max_meetings; ++turn) {
        const std::uint64_t before = meetings_;
        bool progress = false;
        for (std::size_t i = 0; i < warps_.size(); ++i) {
            ScheduledWarp& warp = warps_[i];
            if (waiting_[i] != runs) continue;
            const auto watch = std::ranges::find(watches, &warp, &Watch::warp);
            if (watch == watches.end()) return;
            watch->before();
            run_warp(warp, 0);
            if (watch->reads() & (Changes | ReadsOthers) || !watch->is_valid()) return;
            progress = true;
        }
        if (!progress || watches.size() != running_) return;
        if (meetings_ == before) continue;
        ++seen;
        if (std::ranges::all_of(watches, &Watch::is_back)) {
            if (deliver()) return;
            throw endless_error(*this, *watches.front().warp());
        }
        if (std::has_single_bit(seen))
            for (Watch& watch : watches) watch.remember();
    }
}

/// Something arrives that is due at the latest when everybody waits.
bool ThreadBlock::deliver() {
    return std::ranges::any_of(peers_, [](const ThreadBlock& each) {
        return std::ranges::any_of(each.agents_, [](const auto& agent) { return agent->last_arrives(); });
    });
}

ThreadBlock::Turn ThreadBlock::run_for(std::uint64_t steps) {
    if (waits_ && comes_round()) return Turn::Waits;
    waits_ = false;
    for (std::uint64_t used = 0; used < steps;) {
        bool progress = false, quiet = true;
        const std::uint64_t wakes = wakes_, meetings = meetings_;
        order_.begin_round(random_);
        for (const unsigned index : order_.turns()) {
            if (waiting_[index] != runs || polling_ >> index & 1) continue;
            const std::uint64_t before = warps_[index].instructions;
            const bool is_cut = run_warp(warps_[index], slice);
            if (is_cut && warps_[index].only_polls()) polling_ |= 1u << index;
            quiet &= is_cut;
            used += warps_[index].instructions - before;
            progress = true;
            if (!is_cut && order_.ends_round(index)) break;
        }
        if (!running_) return Turn::Ended;
        const bool all_poll = polling_ && only_polls();
        if (all_poll && deliver()) {
            quiet_rounds_ = 0;
            if (polling_ && peers_.size() > 1) return Turn::Over;  // it may have been for another block
            continue;
        }
        if (all_poll) polling_ = 0;  // they ask once more
        if (all_poll && !progress) continue;
        if (wakes != wakes_) quiet = false;
        if (!progress && !waits_for_cluster()) throw deadlock_error(*this);
        if (!progress) return used ? Turn::Over : Turn::Waits;
        quiet_rounds_ = quiet ? quiet_rounds_ + 1 : 0;
        if (std::has_single_bit(quiet_rounds_) && comes_round()) {
            waits_ = true;
            return Turn::Over;
        }
        if (meetings_ != meetings && meetings_ >= next_watch_ && peers_.size() == 1) {
            watch_meetings();
            next_watch_ = 2 * meetings_;
        }
        if (all_poll && peers_.size() > 1) return Turn::Over;
        if (state_.stop.load(std::memory_order_relaxed)) return Turn::Over;
    }
    return Turn::Over;
}

/// Whether the warps that wait at no other barrier would only ask again whether a phase is over.
bool ThreadBlock::only_polls() const {
    return std::ranges::all_of(warps_, [&](const ScheduledWarp& warp) {
        return waiting_[warp.index] != runs || (polling_ >> warp.index & 1);
    });
}

std::uint64_t ThreadBlock::executed() const {
    std::uint64_t sum = 0;
    for (const ScheduledWarp& warp : warps_) sum += warp.instructions;
    return sum;
}

Statistics ThreadBlock::statistics() const {
    Statistics sum;
    for (const ScheduledWarp& warp : warps_) {
        sum.warp_instructions += warp.instructions;
        sum.lane_instructions += warp.lane_instructions;
        sum.global_bytes_read += warp.bytes_read;
        sum.global_bytes_written += warp.bytes_written;
    }
    return sum;
}

void ThreadBlock::finish_tools() {
    for (BlockTool* const each : tools_)
        if (each) each->finish();
}

}  // namespace ikat::emulator
