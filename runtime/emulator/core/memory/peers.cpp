// SPDX-License-Identifier: Apache-2.0
// Memories that see what others have, at the same addresses: kernels of a device with peer access. What sees another
// has its table of cells for each of its windows, so accesses are found and checked as the owner's are:
//
//     windows   5 6 7 8       first memory: 5 and 7; second: 6; the first sees the second: it has 6, too
// What a launch may use is kept while it runs, of all memories that it sees. A memory that is seen stays until nobody
// sees it. Who ends, or looks away, points its windows to a table without buffers: a launch that has just read the
// table's place still finds it.
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {
namespace {

/// Locked for which memory sees which, in all of the process.
std::mutex& seeing() {
    static auto& its = *new std::mutex;  // some memories end after all else
    return its;
}

/// More cells than any window has, all without a buffer. Only looked at where a window was shown.
const void* table_without_buffers() {
    static const void* const its =
        mmap(nullptr, std::size_t{1} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return its;
}

}  // namespace

/// The caller has the lock of `seeing`, and this memory its windows.
void Memory::State::show(unsigned window, State& to) const {
    to.windows_[window].cells = windows_[window].cells.load();
    to.windows_[window].shift.store(windows_[window].shift, std::memory_order_release);
}

/// A window is new: who sees this memory has it, too.
void Memory::State::show_window(unsigned window) const {
    const std::lock_guard lock(seeing());
    for (State* const viewer : seen_by_) show(window, *viewer);
}

void Memory::State::see(State& other) {
    if (&other == this) return;
    const std::lock_guard no_new_window(other.mutex_);
    const std::lock_guard lock(seeing());
    if (std::ranges::find(seen_, &other, &std::shared_ptr<State>::get) != seen_.end()) return;
    seen_.push_back(other.shared_from_this());
    sees_others_ = true;
    other.seen_by_.push_back(this);
    for (const unsigned window : other.taken_) other.show(window, *this);
}

void Memory::State::drop(const State& other) {
    auto* const empty = static_cast<Cell*>(const_cast<void*>(table_without_buffers()));
    for (const unsigned window : other.taken_) windows_[window].cells = empty;
}

void Memory::State::hide(State& other) {
    std::shared_ptr<State> ended;  // without the locks
    const std::lock_guard no_new_window(other.mutex_);
    const std::lock_guard lock(seeing());
    const auto found = std::ranges::find(seen_, &other, &std::shared_ptr<State>::get);
    if (found == seen_.end()) return;
    ended = std::move(*found);
    seen_.erase(found);
    sees_others_ = !seen_.empty();
    std::erase(other.seen_by_, this);
    drop(other);
}

void Memory::State::leave() {
    for (const std::shared_ptr<State>& other : seen())
        if (other.get() != this) hide(*other);
    std::vector<std::shared_ptr<State>> viewers;
    {
        const std::lock_guard lock(seeing());
        for (State* const viewer : seen_by_)
            if (auto its = viewer->weak_from_this().lock()) viewers.push_back(std::move(its));
    }
    for (const std::shared_ptr<State>& viewer : viewers) viewer->hide(*this);
}

bool Memory::State::sees(const State& other) const {
    const std::lock_guard lock(seeing());
    return &other == this || std::ranges::find(seen_, &other, &std::shared_ptr<State>::get) != seen_.end();
}

std::vector<std::shared_ptr<Memory::State>> Memory::State::seen() const {
    const std::lock_guard lock(seeing());
    std::vector<std::shared_ptr<State>> out{const_cast<State*>(this)->shared_from_this()};
    out.insert(out.end(), seen_.begin(), seen_.end());
    return out;
}

Memory::State& Memory::State::home(std::uint64_t address) {
    if (!sees_others_) return *this;
    const std::lock_guard lock(seeing());
    const std::shared_ptr<State> owner = address_windows().owner(address);
    const auto found = std::ranges::find(seen_, owner);
    return found == seen_.end() ? *this : **found;
}

std::shared_ptr<Memory::State> Memory::State::other_device_at(std::uint64_t address) const {
    std::shared_ptr<State> owner = address_windows().owner(address);
    return owner && !sees(*owner) && owner->find(address).bytes > 0 ? owner : nullptr;
}

Memory::State::Kept::Kept(std::shared_ptr<State> state) : state_(std::move(state)) {
    const std::lock_guard lock(state_->mutex_);
    ++state_->running_;
}

Memory::State::Kept::~Kept() {
    const std::lock_guard lock(state_->mutex_);
    if (--state_->running_ == 0) state_->return_kept();
}

Memory::State::Running::Running(State& state) {
    for (const std::shared_ptr<State>& each : state.seen()) {
        kept_.emplace_back(each);
        const std::lock_guard lock(each->mutex_);
        for (const std::uint64_t address : each->fresh_) poison_host(each->buffers_.at(address).host);
        each->fresh_.clear();
    }
}

}  // namespace ikat::emulator
