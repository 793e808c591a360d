// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.hpp"

#include <algorithm>

#include "codegen/kernel/kernel_info.hpp"

namespace ikat::runtime {

LoadedModule::LoadedModule(Reference<Backend> on, ModuleHandle loaded, std::vector<KernelInfo> of)
    : device(std::move(on)), handle(loaded), infos(std::move(of)) {}
LoadedModule::~LoadedModule() { device->unload(handle); }

const KernelInfo* LoadedModule::info(std::string_view entry) const {
    const auto found = std::ranges::find(infos, entry, &KernelInfo::name);
    return found == infos.end() ? nullptr : &*found;
}

Module::Module(Reference<Backend> device, ModuleHandle handle, std::vector<KernelInfo> infos)
    : object_(make_reference<LoadedModule>(std::move(device), handle, std::move(infos))) {}

}  // namespace ikat::runtime
