// SPDX-License-Identifier: Apache-2.0
// Kernels compiled and loaded, by kernel and options: the second launch of a kernel compiles nothing. A program that
// makes kernels without end keeps those that it used last.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "codegen/pipeline/compile.hpp"
#include "dsl/record/capture.hpp"
#include "runtime/launch.hpp"
#include "runtime/stream.hpp"

namespace ikat::runtime {

/// A kernel on a device.
struct LoadedKernel {
    Compiled compiled;
    Module module;
};

/// Thread-safe. Two threads that ask for the same kernel compile it once; other kernels do not wait for it.
class ModuleCache {
public:
    /// The kernel, compiled and loaded on first use. What compile or load throws is thrown, and the next call tries
    /// again. Where the cache is full, the kernel that was not used for longest makes room, after the device's work is
    /// done.
    std::shared_ptr<const LoadedKernel> get(const CapturedKernel& kernel, const CompileOptions& options,
                                            const Reference<Backend>& device);
    static constexpr std::size_t most_kernels = 1024;
    /// Kernels held.
    std::size_t size() const;

private:
    using Key = std::tuple<const ast::Kernel*, std::string, regalloc::Method, bool, std::string, bool, bool>;
    struct Slot {
        std::mutex mutex;
        std::optional<trace::KernelHandle> owner;  // while it is held, no other kernel has this key's address
        std::shared_ptr<const LoadedKernel> loaded;
        std::uint64_t last_use = 0;
    };
    static Key key(const ast::Kernel& kernel, const CompileOptions& options);
    /// Takes the slot of the kernel that was not used for longest, and that no thread looks at, out of a full cache.
    std::shared_ptr<Slot> make_room();

    mutable std::mutex mutex_;
    std::map<Key, std::shared_ptr<Slot>> slots_;
    std::uint64_t uses_ = 0;
};

}  // namespace ikat::runtime
