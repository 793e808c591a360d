// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/layouts.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "codegen/ptx/text/layout.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/cuda/driver.hpp"

namespace ikat::runtime::cuda {
namespace {

/// Whether a parameter may be aligned to more than 16 bytes: the map of a tensor, say.
bool has_wide_parameters(std::string_view ptx) {
    constexpr std::string_view space = ".param", align = ".align";
    const auto skip = [&](std::size_t at) { return std::min(ptx.find_first_not_of(" \t\r\n", at), ptx.size()); };
    for (auto at = ptx.find(space); at != ptx.npos; at = ptx.find(space, at)) {
        at = skip(at + space.size());
        if (!ptx.substr(at).starts_with(align)) continue;
        std::uint32_t alignment = 0;
        std::from_chars(ptx.data() + skip(at + align.size()), ptx.data() + ptx.size(), alignment);
        if (alignment > 16) return true;
    }
    return false;
}

}  // namespace

Layouts layouts_of(const PtxText& ptx) {
    Layouts out;
    if (!has_wide_parameters(ptx.text)) return out;
    const ptx::Module module = ptx::parse(ptx.text, ptx.name);
    for (const ptx::Function& function : module.functions) {
        if (!function.is_entry || function.parameters.empty()) continue;
        const ptx::Variable& last = function.parameters.back();
        Layout layout{ptx::parameter_offsets(module, function)};
        layout.bytes = layout.offsets.back() + ptx::variable_bytes(module, last, last.declarators.front());
        out.emplace(module.text(function.name), std::move(layout));
    }
    return out;
}

LaunchParameters::LaunchParameters(std::span<const std::byte> bytes, std::span<const std::uint64_t> offsets)
    : bytes_(bytes.size()) {
    auto* const first = const_cast<std::byte*>(bytes.data());
    for (const std::uint64_t offset : offsets) pointers_.push_back(first + offset);
    void* const list[] = {reinterpret_cast<void*>(launch_param_buffer_pointer), first,
                          reinterpret_cast<void*>(launch_param_buffer_size), &bytes_,
                          reinterpret_cast<void*>(launch_param_end)};
    std::ranges::copy(list, piece_);
}

}  // namespace ikat::runtime::cuda
