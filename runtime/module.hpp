// SPDX-License-Identifier: Apache-2.0
// Loaded PTX.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/backend.hpp"

namespace ikat {
struct KernelInfo;
}

namespace ikat::runtime {

/// What a Module is a handle of. It keeps its device open, and is unloaded with the last Reference.
struct LoadedModule final : Counted {
    LoadedModule(Reference<Backend> device, ModuleHandle handle, std::vector<KernelInfo> infos);
    ~LoadedModule() override;

    /// What a launch of the entry has to know, or null: PTX that ikat has not made does not say it.
    const KernelInfo* info(std::string_view entry) const;

    const Reference<Backend> device;
    const ModuleHandle handle;
    const std::vector<KernelInfo> infos;
};

/// PTX loaded on a device, and what its sections say of its entries; made by Device::load.
class Module {
public:
    Module(Reference<Backend> device, ModuleHandle handle, std::vector<KernelInfo> infos);

    /// What launches know of an entry; null if its PTX does not say it.
    const KernelInfo* info(std::string_view entry) const { return object()->info(entry); }
    Backend& device() const { return *object()->device; }
    ModuleHandle handle() const { return object()->handle; }
    /// Throws Error if the module was moved from.
    const Reference<const LoadedModule>& object() const {
        if (!object_) throw Error(moved_from, moved_from_hint);
        return object_;
    }

private:
    Reference<const LoadedModule> object_;
};

}  // namespace ikat::runtime
