// SPDX-License-Identifier: Apache-2.0
// A kernel that makes a number in memory the driver's value of a condition. Our kernels store the number; a driver has
// the value where only a function of its own reaches it, which PTX declares as it does vprintf, and the driver defines:
//
//     .extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
#pragma once
#include <memory>
#include <mutex>

#include "runtime/cuda/driver.hpp"

namespace ikat::runtime::cuda {

/// Of a context; it is loaded when it is first asked for. Thread-safe.
class ConditionSetter {
public:
    explicit ConditionSetter(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}
    /// The context is current.
    ~ConditionSetter() {
        if (module_) driver_->cuModuleUnload(module_);
    }
    ConditionSetter(const ConditionSetter&) = delete;
    ConditionSetter& operator=(const ConditionSetter&) = delete;

    /// The entry (handle, address of the number), for one thread; the context is current. Throws Error if the driver
    /// has no conditional nodes.
    Function function();

private:
    const std::shared_ptr<const Driver> driver_;
    Module module_ = nullptr;
    std::mutex mutex_{};  // locked for it
};

}  // namespace ikat::runtime::cuda
