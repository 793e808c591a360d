// SPDX-License-Identifier: Apache-2.0
// The rows of the registry as the families of kernels give them: for registry.cpp and those families.
#pragma once
#include <initializer_list>

#include "codegen/ast/ast.hpp"
#include "codegen/support/half.hpp"
#include "stdlib/registry.hpp"
#include "stdlib/size.hpp"

namespace ikat::stdlib {

using Arguments = std::span<const runtime::Argument>;

/// A scalar argument as the number it is; for u32 parameters.
inline std::uint32_t number(Arguments arguments, std::size_t position) {
    return std::uint32_t(arguments[position].bits);
}

/// The kernels of one idea for f32, f16 and bf16 have three names; this is the number of that for elements T.
template <class T>
inline constexpr std::size_t type_number = std::is_same_v<T, half>       ? 1
                                           : std::is_same_v<T, bfloat16> ? 2
                                                                         : 0;
template <class T>
constexpr const char* name_of(const char* single, const char* half_name, const char* brain_name) {
    const char* const names[] = {single, half_name, brain_name};
    return names[type_number<T>];
}

/// The rows of a matrix whose extents are these arguments; Error where a 32-bit index does not reach its elements.
inline std::uint32_t rows_of_matrix(Arguments arguments, std::size_t rows, std::size_t columns) {
    u32_size("the launch", "rows x columns", std::uint64_t(number(arguments, rows)) * number(arguments, columns));
    return number(arguments, rows);
}

/// A row of the registry: `launch` is an expression in the arguments a and in `block`, the number of threads that
/// blocks are asked to have, or 0.
#define IKAT_ENTRY(id, text, page, made, launch)                                                                    \
    Entry {                                                                                                         \
        .name = id, .summary = text, .document = page, .kernel = []() -> const ast::Kernel& { return made.ast(); }, \
        .grid = [](Arguments a, [[maybe_unused]] std::uint32_t block) -> runtime::Grid { return launch; }           \
    }
/// The rows id, id_f16 and id_bf16, of the kernels that made<T> gives for the arguments in parentheses.
#define IKAT_ENTRIES(id, text, page, made, of, launch)                                                            \
    IKAT_ENTRY(id, text, page, made<float> of, launch), IKAT_ENTRY(id "_f16", text, page, made<half> of, launch), \
        IKAT_ENTRY(id "_bf16", text, page, made<bfloat16> of, launch)

std::span<const Entry> conv2d_entries();
std::span<const Entry> copy_entries();
std::span<const Entry> dot_entries();
std::span<const Entry> elementwise_entries();
std::span<const Entry> gemv_entries();
std::span<const Entry> layout_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> quantised_entries();
std::span<const Entry> reduction_entries();
std::span<const Entry> softmax_entries();

}  // namespace ikat::stdlib
