// SPDX-License-Identifier: Apache-2.0
// The kernels of a family, of which there are many: each is made when it is first asked for, by its key.
//
//     struct GemvKernel {                                  the key: everything that the kernel is made by
//         ir::Type type; ...
//         std::string name() const;
//         KernelHandle make() const;                a new one, not yet captured
//         auto operator<=>(const GemvKernel&) const = default;
//     };
//     Kernels<GemvKernel>::of(key)                         the same object for the same key
#pragma once
#include <map>
#include <mutex>

#include "dsl/record/capture.hpp"

namespace ikat::stdlib {

template <class Key>
class Kernels {
public:
    /// Thread-safe; the reference is valid for ever.
    static const KernelHandle& of(const Key& key) {
        static Kernels all;
        const std::lock_guard lock(all.mutex_);
        const auto found = all.kernels_.find(key);
        return found != all.kernels_.end() ? found->second : all.kernels_.emplace(key, key.make()).first->second;
    }

private:
    std::map<Key, KernelHandle> kernels_;
    std::mutex mutex_;
};

}  // namespace ikat::stdlib
