// SPDX-License-Identifier: Apache-2.0
// A cache of compiled and loaded kernels, by what they are and by options: the second launch of a kernel, or of one
// that is equal to it, compiles nothing. The most recently used kernels are kept.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "codegen/pipeline/compile.hpp"
#include "codegen/support/digest.hpp"
#include "dsl/record/capture.hpp"
#include "runtime/launch/launch.hpp"
#include "runtime/module.hpp"

namespace ikat::runtime {

/// A kernel on a device.
struct LoadedKernel {
    Compiled compiled;
    Module module;
};

/// Thread-safe. Two threads that ask for the same kernel compile it once; other kernels do not wait for it.
class ModuleCache {
public:
    /// The kernel, compiled and loaded on first use. Exceptions of compile and load are passed on, and the next call
    /// tries again. If the cache is full, the least recently used kernel is evicted, after the device's work is done.
    std::shared_ptr<const LoadedKernel> get(const trace::KernelHandle& kernel, const CompileOptions& options,
                                            const Reference<Backend>& device);
    static constexpr std::size_t max_kernels = 1024;
    /// Kernels held.
    std::size_t size() const;

private:
    using Key = std::tuple<Digest, std::string, regalloc::Method, bool, std::string, bool, bool>;
    struct Slot {
        std::mutex mutex;
        std::shared_ptr<const LoadedKernel> loaded;
        std::uint64_t last_use = 0;
    };
    static Key key(const Digest& kernel, const CompileOptions& options);
    /// Removes the slot of the least recently used kernel that no thread is using from a full cache.
    std::shared_ptr<Slot> make_room();

    mutable std::mutex mutex_;
    std::map<Key, std::shared_ptr<Slot>> slots_;
    std::uint64_t uses_ = 0;
};

}  // namespace ikat::runtime
