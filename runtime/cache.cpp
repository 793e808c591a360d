// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache.hpp"

#include <optional>

#include "runtime/emit.hpp"

namespace ikat::runtime {

/// Everything that affects the result of compile(). The names are bound so that a new option does not go unnoticed
/// here.
ModuleCache::Key ModuleCache::key(const Digest& kernel, const CompileOptions& options) {
    const auto& [target, allocation, optimise, passes, verify_each, line_info, keep_stages, pressure, dump,
                 stop_after] = options;
    static_cast<void>(keep_stages), static_cast<void>(pressure), static_cast<void>(dump);  // change no code
    static_cast<void>(stop_after);                                                         // leaves none
    return {kernel, target, allocation, optimise, passes, verify_each, line_info};
}

std::shared_ptr<ModuleCache::Slot> ModuleCache::make_room() {
    if (slots_.size() <= max_kernels) return nullptr;
    auto oldest = slots_.end();
    for (auto each = slots_.begin(); each != slots_.end(); ++each)
        if (each->second.use_count() == 1 && each->second->loaded.use_count() <= 1 &&
            (oldest == slots_.end() || each->second->last_use < oldest->second->last_use))
            oldest = each;
    if (oldest == slots_.end()) return nullptr;
    return std::move(slots_.extract(oldest).mapped());
}

std::shared_ptr<const LoadedKernel> ModuleCache::get(const trace::KernelHandle& kernel, const CompileOptions& options,
                                                     const Reference<Backend>& device) {
    std::shared_ptr<Slot> used, gone;
    {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<Slot>& place = slots_[key(kernel.digest(), options)];
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
        wanted.stop_after.clear();
        if (folder) wanted.keep_stages = wanted.pressure = true;
        Compiled compiled = compile(kernel.ast(), wanted);
        if (folder) emit_files(*folder, compiled);
        const std::string file = compiled.info.name + ".ptx";
        Module module(device, device->load({compiled.ptx, file, compiled.info.source_lines}), {});
        slot.loaded = std::make_shared<const LoadedKernel>(std::move(compiled), std::move(module));
    }
    return slot.loaded;
}

std::size_t ModuleCache::size() const {
    const std::lock_guard lock(mutex_);
    return slots_.size();
}

}  // namespace ikat::runtime
