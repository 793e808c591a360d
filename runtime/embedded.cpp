// SPDX-License-Identifier: Apache-2.0
#include "runtime/embedded.hpp"

#include "codegen/kernel/section.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::runtime {
namespace {

bool runs_on(const ptx::Target& image, const ptx::Target& device) {
    return image.specific ? image.name == device.name : image.number <= device.number;
}

}  // namespace

const EmbeddedImage* image_for(const EmbeddedKernel& kernel, std::string_view target) {
    const ptx::Target& device = ptx::target(target);
    const EmbeddedImage* best = nullptr;
    for (const EmbeddedImage& image : kernel.images)
        if (runs_on(ptx::target(image.target), device)) best = &image;
    return best;
}

Module load(const Device& device, const EmbeddedKernel& kernel) {
    const std::string& target = device.properties().target;
    if (const EmbeddedImage* image = image_for(kernel, target)) {
        const Reference<Backend> backend(&device.backend());
        std::vector<KernelInfo> infos = infos_in(image->ptx, kernel.name);
        std::vector<Location> lines;
        if (infos.size() == 1) lines = infos[0].source_lines;
        return Module(backend,
                      backend->load({.text = image->ptx, .name = kernel.name, .source_lines = std::move(lines)}),
                      std::move(infos));
    }
    std::string targets;
    for (const EmbeddedImage& image : kernel.images) targets += " " + std::string(image.target);
    throw Error("kernel '" + std::string(kernel.name) + "' is not embedded for " + target,
                "it is embedded for" + targets + "; add others with ARCHITECTURES in ikat_add_kernels");
}

}  // namespace ikat::runtime
