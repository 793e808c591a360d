// SPDX-License-Identifier: Apache-2.0
// Loaded PTX.
#pragma once
#include <string_view>
#include <vector>

#include "codegen/support/reference.hpp"
#include "runtime/stream.hpp"

namespace ikat {
struct KernelInfo;
}

namespace ikat::runtime {

/// PTX loaded on a device, and what its sections say of its entries; made by Device::load. Movable, not copyable.
class Module : public Owned<ModuleHandle, &Backend::unload> {
public:
    struct Infos;

    using Owned::Owned;
    Module(Reference<Backend> device, ModuleHandle handle, std::vector<KernelInfo> infos);

    /// What a launch of the entry has to know, or null: PTX that ikat has not made does not say it.
    const KernelInfo* info(std::string_view entry) const;

private:
    Reference<const Infos> infos_;
};

}  // namespace ikat::runtime
