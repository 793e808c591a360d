// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.hpp"

#include <algorithm>

#include "codegen/kernel/kernel_info.hpp"

namespace ikat::runtime {

struct Module::Infos : Counted {
    explicit Infos(std::vector<KernelInfo> given) : list(std::move(given)) {}
    std::vector<KernelInfo> list;
};

Module::Module(Reference<Backend> device, ModuleHandle handle, std::vector<KernelInfo> infos)
    : Owned(std::move(device), handle), infos_(make_reference<Infos>(std::move(infos))) {}

const KernelInfo* Module::info(std::string_view entry) const {
    if (!infos_) return nullptr;
    const auto found = std::ranges::find(infos_->list, entry, &KernelInfo::name);
    return found == infos_->list.end() ? nullptr : &*found;
}

}  // namespace ikat::runtime
