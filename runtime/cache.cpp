// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache.hpp"

#include "runtime/emit.hpp"

namespace ikat::runtime {

/// Everything that changes what compile() yields. The names are bound so that a new option does not go unnoticed here.
ModuleCache::Key ModuleCache::key(const ast::Kernel& kernel, const CompileOptions& options) {
    const auto& [target, allocation, optimise, passes, verify_each, line_info, keep_stages, pressure] = options;
    static_cast<void>(keep_stages), static_cast<void>(pressure);  // add to what is told, change nothing
    return {&kernel, target, allocation, optimise, passes, verify_each, line_info};
}

const LoadedKernel& ModuleCache::get(const CapturedKernel& kernel, const CompileOptions& options,
                                     const std::shared_ptr<Backend>& device) {
    Slot& slot = [&]() -> Slot& {
        const std::lock_guard lock(mutex_);
        return slots_[key(kernel.kernel, options)];
    }();
    const std::lock_guard lock(slot.mutex);
    if (!slot.loaded) {
        const std::optional<std::string> folder = emit_folder();
        CompileOptions wanted = options;
        if (folder) wanted.keep_stages = wanted.pressure = true;
        Compiled compiled = compile(kernel.kernel, wanted);
        if (folder) emit_files(*folder, compiled);
        const std::string file = compiled.name + ".ptx";
        Module module(device, device->load({compiled.ptx, file, compiled.source_lines}));
        slot.loaded = std::make_unique<const LoadedKernel>(std::move(compiled), std::move(module));
        if (kernel.handle) slot.owner = *kernel.handle;
    }
    return *slot.loaded;
}

std::size_t ModuleCache::size() const {
    const std::lock_guard lock(mutex_);
    return slots_.size();
}

}  // namespace ikat::runtime
