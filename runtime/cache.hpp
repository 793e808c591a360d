// SPDX-License-Identifier: Apache-2.0
// Kernels compiled and loaded, by kernel and options: the second launch of a kernel compiles nothing.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "codegen/compile.hpp"
#include "dsl/capture.hpp"
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
    /// again.
    const LoadedKernel& get(const CapturedKernel& kernel, const CompileOptions& options,
                            const std::shared_ptr<Backend>& device);
    /// Kernels held.
    std::size_t size() const;

private:
    using Key = std::tuple<const ast::Kernel*, std::string, regalloc::Method, bool, std::string, bool, bool>;
    struct Slot {
        std::mutex mutex;
        std::optional<trace::KernelHandle> owner;  // while it is held, no other kernel has this key's address
        std::unique_ptr<const LoadedKernel> loaded;
    };
    static Key key(const ast::Kernel& kernel, const CompileOptions& options);

    mutable std::mutex mutex_;
    std::map<Key, Slot> slots_;  // nodes never move
};

}  // namespace ikat::runtime
