// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/kernel_info.hpp"

#include <algorithm>

namespace ikat {
namespace {

template <class Item>
const Item* at(const std::vector<Item>& items, std::uint32_t parameter, std::uint32_t Item::*number) {
    const auto found = std::ranges::find(items, parameter, number);
    return found == items.end() ? nullptr : &*found;
}

}  // namespace

const TensorMapInfo* KernelInfo::map_at(std::uint32_t parameter) const {
    return at(maps, parameter, &TensorMapInfo::parameter);
}
bool KernelInfo::writes(std::uint32_t parameter) const {
    if (const TensorMapInfo* const map = map_at(parameter)) return map->is_written;
    const ir::Access access = parameters[parameter].access;
    return access == ir::Access::Out || access == ir::Access::InOut;
}
const KernelInfo::View* KernelInfo::view_at(std::uint32_t parameter) const {
    return at(views, parameter, &View::pointer);
}

std::size_t ParameterLayout::add(const ir::Parameter& parameter) {
    const std::size_t bytes = parameter.bytes ? parameter.bytes : ir::info(parameter.type).bytes;
    return add(bytes, parameter.bytes ? parameter.alignment : bytes);
}

std::size_t parameter_bytes(const KernelInfo& kernel) {
    ParameterLayout layout;
    for (const ir::Parameter& parameter : kernel.parameters) layout.add(parameter);
    return layout.bytes();
}

std::string product(const KernelInfo& kernel, const KernelInfo::MinSize& size) {
    std::string out;
    for (const std::uint32_t factor : size.factors) out += (out.empty() ? "" : " * ") + kernel.parameters[factor].name;
    if (size.per > 1) out += " / " + std::to_string(size.per);
    if (size.count > 1) out += " * " + std::to_string(size.count);
    return out;
}

namespace {

constexpr std::uint32_t max_dimensions = 5;

bool is_pointer(const ir::Parameter& parameter) { return parameter.access != ir::Access::Value; }
bool is_u32(const ir::Parameter& parameter) {
    return !is_pointer(parameter) && !parameter.bytes && parameter.type == ir::Type::U32;
}

std::string problem(const ir::Parameter& parameter) {
    const ir::Type type = is_pointer(parameter) ? parameter.element : parameter.type;
    if (!ir::contains(ir::Storable, type)) return "is of no type that memory holds";
    if (parameter.multiple == 0) return "is a multiple of 0";
    if (parameter.bytes > 4096) return "has " + std::to_string(parameter.bytes) + " bytes";
    const bool is_power = (parameter.alignment & (parameter.alignment - 1)) == 0;
    if (!is_power || (parameter.bytes && parameter.alignment == 0)) return "has no alignment";
    return {};
}

}  // namespace

std::string problem(const KernelInfo& kernel) {
    const std::size_t count = kernel.parameters.size();
    const auto is = [&](std::uint32_t parameter, bool kind(const ir::Parameter&)) {
        return parameter < count && kind(kernel.parameters[parameter]);
    };
    const auto any = [](const ir::Parameter&) { return true; };
    for (const ir::Parameter& parameter : kernel.parameters)
        if (const std::string wrong = problem(parameter); !wrong.empty()) return "'" + parameter.name + "' " + wrong;
    for (std::uint32_t last = 0; const KernelInfo::Absent& absent : kernel.absent) {
        if (absent.before < last || absent.before > count) return "'" + absent.name + "' is absent from nowhere";
        last = absent.before;
    }
    for (const KernelInfo::View& view : kernel.views) {
        if (view.rank < 2 || view.rank > max_dimensions || !is(view.pointer, is_pointer))
            return "a view is not of a pointer";
        for (std::uint32_t i = 1; i < view.parameters(); ++i)
            if (!is(view.pointer + i, is_u32)) return "a view has no extents";
    }
    for (const TensorMapInfo& map : kernel.maps) {
        const bool fits = map.rank >= 1 && map.rank <= max_dimensions && ir::contains(ir::Storable, map.element);
        if (!fits || map.parameter >= count || kernel.parameters[map.parameter].bytes != TensorMapInfo::bytes)
            return "a map is none";
    }
    for (const KernelInfo::MinSize& size : kernel.sizes) {
        if (!is(size.pointer, is_pointer) || size.per == 0) return "a size is not of a pointer";
        for (const std::uint32_t factor : size.factors)
            if (factor >= count || is_pointer(kernel.parameters[factor]) || kernel.parameters[factor].bytes)
                return "a size is not a product of numbers";
    }
    for (const KernelInfo::Halo& halo : kernel.halos)
        if (!is(halo.pointer, is_pointer) || halo.widths.size() > max_dimensions) return "a halo is not of a pointer";
    for (const KernelInfo::Expectation& expected : kernel.expectations)
        if (!is(expected.parameter, any) || expected.multiple == 0) return "an expectation is of no parameter";
    for (const std::uint32_t blocks : kernel.bounds.cluster)
        if (blocks == 0) return "a cluster has no blocks";
    return {};
}

}  // namespace ikat
