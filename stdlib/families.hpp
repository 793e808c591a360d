// SPDX-License-Identifier: Apache-2.0
// The rows of the registry as the families of kernels give them: for registry.cpp and those families.
#pragma once
#include <initializer_list>

#include "codegen/ast/ast.hpp"
#include "stdlib/registry.hpp"

namespace ikat::stdlib {

using Arguments = std::span<const runtime::Argument>;

/// A scalar argument as the number it is; for u32 parameters.
inline std::uint32_t number(Arguments arguments, std::size_t position) {
    return std::uint32_t(arguments[position].bits);
}

std::span<const Entry> conv2d_entries();
std::span<const Entry> copy_entries();
std::span<const Entry> dot_entries();
std::span<const Entry> elementwise_entries();
std::span<const Entry> gemv_entries();
std::span<const Entry> layout_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> quantised_entries();
std::span<const Entry> softmax_entries();

}  // namespace ikat::stdlib
