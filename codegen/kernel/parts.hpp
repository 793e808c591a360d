// SPDX-License-Identifier: Apache-2.0
// What a KernelInfo consists of, for those that write, read or compare it: archive(member, member ...) is called with
// all members of a structure, which are bound so that none is forgotten.
#pragma once
#include <concepts>
#include <type_traits>

#include "codegen/kernel/kernel_info.hpp"

namespace ikat {

template <class Given, class T>
concept Is = std::same_as<std::remove_const_t<Given>, T>;

void parts(auto& archive, Is<ir::Parameter> auto& it) {
    auto& [name, type, access, element, alignment, bytes, multiple] = it;
    archive(name, type, access, element, alignment, bytes, multiple);
}
void parts(auto& archive, Is<ir::LaunchBounds> auto& it) {
    auto& [max_threads, min_blocks, max_registers, cluster] = it;
    archive(max_threads, min_blocks, max_registers, cluster);
}
void parts(auto& archive, Is<KernelInfo::Absent> auto& it) {
    auto& [name, before] = it;
    archive(name, before);
}
void parts(auto& archive, Is<KernelInfo::View> auto& it) {
    auto& [pointer, rank] = it;
    archive(pointer, rank);
}
void parts(auto& archive, Is<TensorMapInfo> auto& it) {
    auto& [parameter, element, rank, box, every, swizzle, fills_with_nan, is_written] = it;
    archive(parameter, element, rank, box, every, swizzle, fills_with_nan, is_written);
}
void parts(auto& archive, Is<KernelInfo::BlockShape> auto& it) {
    auto& [whole_warps, whole_warpgroups, linear, linear_grid, threads] = it;
    archive(whole_warps, whole_warpgroups, linear, linear_grid, threads);
}
void parts(auto& archive, Is<KernelInfo::MinSize> auto& it) {
    auto& [pointer, count, per, factors] = it;
    archive(pointer, count, per, factors);
}
void parts(auto& archive, Is<KernelInfo::Halo> auto& it) {
    auto& [pointer, widths] = it;
    archive(pointer, widths);
}
void parts(auto& archive, Is<KernelInfo::Expectation> auto& it) {
    auto& [parameter, multiple, what, hint, where] = it;
    archive(parameter, multiple, what, hint, where);
}
void parts(auto& archive, Is<KernelInfo> auto& it) {
    auto& [name, parameters, absent, views, maps, bounds, block, sizes, halos, expectations, takes_dynamic_shared,
           where, target, static_shared_bytes, own_dynamic_shared_bytes, waits_for_grids, source_lines] = it;
    archive(name, parameters, absent, views, maps, bounds, block, sizes, halos, expectations, takes_dynamic_shared,
            where, target, static_shared_bytes, own_dynamic_shared_bytes, waits_for_grids);
    archive.lines(source_lines);
}

template <class Archive, class T>
concept HasParts = requires(Archive& archive, T& it) {
    parts(archive, it);
};

}  // namespace ikat
