// SPDX-License-Identifier: Apache-2.0
// Functions of the program in a stream of the driver.
#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/backend.hpp"

namespace ikat::runtime::cuda {

/// Functions of the program that the driver calls, on a thread of its own. What the first throws is kept.
class HostCalls final : public Counted {
public:
    struct Call {
        Reference<const HostFunction> function;
        Reference<HostCalls> calls;
    };
    static void run(void* data) {
        const std::unique_ptr<const Call> call(static_cast<const Call*>(data));
        run_kept(data);
    }
    /// The same for one that is called more than once and belongs to somebody else.
    static void run_kept(void* data) {
        const Call& call = *static_cast<const Call*>(data);
        try {
            (*call.function)();
        } catch (...) {
            const std::lock_guard lock(call.calls->mutex_);
            if (!call.calls->failure_) call.calls->failure_ = std::current_exception();
        }
    }
    void rethrow() {
        const std::lock_guard lock(mutex_);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

private:
    std::mutex mutex_;
    std::exception_ptr failure_;
};

}  // namespace ikat::runtime::cuda
