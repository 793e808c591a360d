// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/primary_context.hpp"

#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace ikat::runtime::cuda {
namespace {

std::mutex& shared_mutex() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace

/// What is known of a context while this process uses it: with its last use, access ends. Guarded by shared_mutex().
struct PrimaryContext::Shared {
    std::set<std::weak_ptr<Shared>, std::owner_less<>> reached;
};

std::shared_ptr<PrimaryContext::Shared> PrimaryContext::share(Context handle) {
    static std::map<Context, std::weak_ptr<Shared>> known;
    const std::lock_guard lock(shared_mutex());
    std::shared_ptr<Shared> its = known[handle].lock();
    if (!its) known[handle] = its = std::make_shared<Shared>();
    return its;
}

PrimaryContext::PrimaryContext(std::shared_ptr<const Driver> driver, DeviceId id)
    : driver_(std::move(driver)), id_(id) {
    driver_->check(driver_->cuDevicePrimaryCtxRetain(&handle_, id_), "cuDevicePrimaryCtxRetain");
    shared_ = share(handle_);
}

PrimaryContext::~PrimaryContext() { driver_->cuDevicePrimaryCtxRelease_v2(id_); }

bool PrimaryContext::can_reach(const PrimaryContext& other) const {
    if (other.handle_ == handle_) return true;
    int can = 0;
    driver_->check(driver_->cuDeviceCanAccessPeer(&can, id_, other.id_), "cuDeviceCanAccessPeer");
    return can != 0;
}

bool PrimaryContext::reaches(const PrimaryContext& other) const {
    if (other.handle_ == handle_) return true;
    const std::lock_guard lock(shared_mutex());
    return shared_->reached.contains(other.shared_);
}

/// Another user of the contexts may have changed it already.
void PrimaryContext::set_reach(const PrimaryContext& other, bool is_enabled) {
    if (other.handle_ == handle_) return;
    const Result result =
        is_enabled ? driver_->cuCtxEnablePeerAccess(other.handle_, 0) : driver_->cuCtxDisablePeerAccess(other.handle_);
    if (result != (is_enabled ? Result::PeerAccessAlreadyEnabled : Result::PeerAccessNotEnabled))
        driver_->check(result, is_enabled ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess");
    set_pool_access(other, is_enabled);
    const std::lock_guard lock(shared_mutex());
    if (is_enabled)
        shared_->reached.insert(other.shared_);
    else
        shared_->reached.erase(other.shared_);
}

/// A pool says for itself who reaches its memory. A device may have none.
void PrimaryContext::set_pool_access(const PrimaryContext& other, bool is_enabled) const {
    MemoryPool pool = nullptr;
    if (!driver_->cuMemPoolSetAccess || !driver_->cuDeviceGetMemPool ||
        driver_->cuDeviceGetMemPool(&pool, other.id_) != Result::Success)
        return;
    using enum MemoryAccess::Flags;
    const MemoryAccess access{.device = id_, .flags = is_enabled ? ReadWrite : None};
    driver_->check(driver_->cuMemPoolSetAccess(pool, &access, 1), "cuMemPoolSetAccess");
}

}  // namespace ikat::runtime::cuda
