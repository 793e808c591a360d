// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/peers.hpp"

#include <atomic>

namespace ikat::runtime::cuda {

std::uint64_t Peers::next_number() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

bool Peers::can_reach(const Peers& other) const {
    if (other.context_ == context_) return true;
    int can = 0;
    driver_.check(driver_.cuDeviceCanAccessPeer(&can, id_, other.id_), "cuDeviceCanAccessPeer");
    return can != 0;
}

bool Peers::reaches(const Peers& other) const {
    if (other.context_ == context_) return true;
    const std::lock_guard lock(mutex_);
    return reached_.contains(other.number_);
}

/// Another user of the contexts may have changed it already.
void Peers::set(const Peers& other, bool is_enabled) {
    if (other.context_ == context_) return;
    const Result result =
        is_enabled ? driver_.cuCtxEnablePeerAccess(other.context_, 0) : driver_.cuCtxDisablePeerAccess(other.context_);
    if (result != (is_enabled ? Result::PeerAccessAlreadyEnabled : Result::PeerAccessNotEnabled))
        driver_.check(result, is_enabled ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess");
    const std::lock_guard lock(mutex_);
    if (is_enabled)
        reached_.insert(other.number_);
    else
        reached_.erase(other.number_);
}

}  // namespace ikat::runtime::cuda
