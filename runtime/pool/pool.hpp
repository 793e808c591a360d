// SPDX-License-Identifier: Apache-2.0
// The memory that a device keeps for the buffers of its queues:
//
//     Pool pool = device.pool();
//     pool.set_limit(std::uint64_t{1} << 30);
//     pool.on_out_of_memory([&](std::uint64_t bytes) { return cache.drop(bytes); });
//     std::puts(to_text(pool.report()).c_str());
#pragma once
#include <concepts>
#include <cstdint>
#include <utility>

#include "codegen/support/reference.hpp"
#include "runtime/pool/report.hpp"

namespace ikat::runtime {

class PoolObject;

/// A function of the program that is asked to free memory.
class OutOfMemoryFunction : public Counted {
public:
    virtual bool operator()(std::uint64_t bytes) const = 0;
};

namespace detail {

template <class F>
class AskedForMemory final : public OutOfMemoryFunction {
public:
    explicit AskedForMemory(F function) : function_(std::move(function)) {}
    bool operator()(std::uint64_t bytes) const override { return function_(bytes); }

private:
    mutable F function_;
};

}  // namespace detail

/// A handle of a device's pool, which keeps the device open; made by Device::pool(). Several threads may use it.
class Pool {
public:
    explicit Pool(Reference<PoolObject> object) : object_(std::move(object)) {}

    /// What it has now.
    PoolReport report() const;
    /// From now on it asks the device for memory only up to this many bytes in all, in steps of 2 MiB.
    void set_limit(std::uint64_t bytes);
    /// Gives segments in which nothing is used back to the device; their bytes. What work of a stream may still use
    /// stays.
    std::uint64_t trim();
    /// f(bytes) is called when there is no memory for a buffer of that many bytes. It may free buffers. If it returns
    /// true, the pool tries again, and calls it again if that fails; if it returns false, there is an Error. The last
    /// function counts.
    template <std::predicate<std::uint64_t> F>
    void on_out_of_memory(F f) {
        ask(Reference<const OutOfMemoryFunction>(make_reference<detail::AskedForMemory<F>>(std::move(f))));
    }

    /// Throws Error if the pool was moved from.
    const Reference<PoolObject>& object() const;

private:
    void ask(Reference<const OutOfMemoryFunction> function);

    Reference<PoolObject> object_;
};

}  // namespace ikat::runtime
