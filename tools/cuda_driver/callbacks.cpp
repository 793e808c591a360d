// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a stream calls between its work. They run on a thread of the driver, as the API
// promises: the program's own thread may wait for what they do. Later work on the stream waits for them.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

/// Lives until the process ends, and so does its thread.
class Callbacks {
public:
    void add(CUstream stream, std::function<void()> function) {
        const std::lock_guard lock(mutex_);
        queue_.push_back({stream, std::move(function)});
        if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
        changed_.notify_all();
    }

    /// Waits for those of a stream, or for all.
    void finish(std::optional<CUstream> stream) {
        std::unique_lock lock(mutex_);
        if (std::this_thread::get_id() == worker_.get_id())
            refuse(CUDA_ERROR_NOT_PERMITTED, "it is called by a callback", "callbacks must not call the driver");
        changed_.wait(lock, [&] {
            return std::ranges::none_of(queue_, [&](const Job& job) { return !stream || job.stream == *stream; });
        });
    }

private:
    struct Job {
        CUstream stream;
        std::function<void()> function;
    };

    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return !queue_.empty(); });
            const Job& job = queue_.front();  // it stays in the queue until it has ended
            lock.unlock();
            job.function();
            lock.lock();
            queue_.pop_front();
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> queue_;
    std::thread worker_;
};

Callbacks& callbacks() {
    static Callbacks* const its = new Callbacks;
    return *its;
}

/// One name for all streams that always exist.
CUstream named(CUstream stream) { return always_exists(stream) ? nullptr : stream; }

}  // namespace

CUresult finish_callbacks(const char* function, CUstream stream) noexcept {
    return translated(function, [&] { callbacks().finish(named(stream)); });
}
CUresult finish_callbacks(const char* function) noexcept {
    return translated(function, [] { callbacks().finish({}); });
}

API(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
    return on_stream("cuStreamAddCallback", stream, [&](Driver&, Context&) {
        require(callback && flags == 0);
        callbacks().add(named(stream), [=] { callback(stream, CUDA_SUCCESS, data); });
    });
}
ALIAS(cuStreamAddCallback_ptsz, cuStreamAddCallback);
API(cuLaunchHostFunc, CUstream stream, CUhostFn callback, void* data) {
    return on_stream("cuLaunchHostFunc", stream, [&](Driver&, Context&) {
        require(callback != nullptr);
        callbacks().add(named(stream), [=] { callback(data); });
    });
}
ALIAS(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

}  // namespace ikat::cuda_driver
