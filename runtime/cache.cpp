// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache.hpp"

#include "runtime/emit.hpp"

namespace ikat::runtime {

/// Everything that affects the result of compile(). The names are bound so that a new option does not go unnoticed
/// here.
ModuleCache::Key ModuleCache::key(const ast::KernelTree& kernel, const CompileOptions& options) {
    const auto& [target, allocation, optimise, passes, verify_each, line_info, keep_stages, pressure, dump] = options;
    static_cast<void>(keep_stages), static_cast<void>(pressure), static_cast<void>(dump);  // change no code
    return {&kernel, target, allocation, optimise, passes, verify_each, line_info};
}

std::shared_ptr<ModuleCache::Slot> ModuleCache::make_room() {
    if (slots_.size() <= most_kernels) return nullptr;
    auto oldest = slots_.end();
    for (auto each = slots_.begin(); each != slots_.end(); ++each)
        if (each->second.use_count() == 1 && each->second->loaded.use_count() <= 1 &&
            (oldest == slots_.end() || each->second->last_use < oldest->second->last_use))
            oldest = each;
    if (oldest == slots_.end()) return nullptr;
    return std::move(slots_.extract(oldest).mapped());
}

std::shared_ptr<const LoadedKernel> ModuleCache::get(const CapturedKernel& kernel, const CompileOptions& options,
                                                     const Reference<Backend>& device) {
    std::shared_ptr<Slot> used, gone;
    {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<Slot>& place = slots_[key(kernel.kernel, options)];
        if (!place) place = std::make_shared<Slot>();
        used = place;
        used->last_use = ++uses_;
        gone = make_room();
    }
    gone.reset();
    Slot& slot = *used;
    const std::lock_guard lock(slot.mutex);
    if (!slot.loaded) {
        const std::optional<std::string> folder = emit_folder();
        CompileOptions wanted = options;
        if (folder) wanted.keep_stages = wanted.pressure = true;
        Compiled compiled = compile(kernel.kernel, wanted);
        if (folder) emit_files(*folder, compiled);
        const std::string file = compiled.name + ".ptx";
        Module module(device, device->load({compiled.ptx, file, compiled.source_lines}));
        slot.loaded = std::make_shared<const LoadedKernel>(std::move(compiled), std::move(module));
        if (kernel.handle) slot.owner = *kernel.handle;
    }
    return slot.loaded;
}

std::size_t ModuleCache::size() const {
    const std::lock_guard lock(mutex_);
    return slots_.size();
}

}  // namespace ikat::runtime
