// SPDX-License-Identifier: Apache-2.0
// The context of a GPU, which all devices that are opened on it share, and which other GPUs' memory its kernels reach.
#pragma once
#include <memory>

#include "runtime/cuda/driver.hpp"

namespace ikat::runtime::cuda {

/// A use of it: the context lives as long as anybody uses it. Thread-safe.
class PrimaryContext {
public:
    PrimaryContext(std::shared_ptr<const Driver> driver, DeviceId id);
    ~PrimaryContext();
    PrimaryContext(const PrimaryContext&) = delete;
    PrimaryContext& operator=(const PrimaryContext&) = delete;

    Context handle() const { return handle_; }

    bool can_reach(const PrimaryContext& other) const;
    bool reaches(const PrimaryContext& other) const;
    /// With this context current: whether its kernels reach the memory of another one, that of the other's pool, too.
    /// Throws Error if the driver refuses it.
    void set_reach(const PrimaryContext& other, bool is_enabled);

private:
    struct Shared;
    static std::shared_ptr<Shared> share(Context handle);
    void set_pool_access(const PrimaryContext& other, bool is_enabled) const;

    const std::shared_ptr<const Driver> driver_;
    const DeviceId id_;
    Context handle_ = nullptr;
    std::shared_ptr<Shared> shared_;
};

}  // namespace ikat::runtime::cuda
