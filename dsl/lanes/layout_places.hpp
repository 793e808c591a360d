// SPDX-License-Identifier: Apache-2.0
// Layouts in kernels: the place of an element whose indices are device values.
//
//     const Layout tile({8, 64}, {64, 1});
//     const auto swizzled = compose(Swizzle(3, 3, 3), tile);
//     s[swizzled(row, column)] = x;                         a few instructions: the layout itself is known
#pragma once
#include <vector>

#include "dsl/lanes/layout.hpp"
#include "dsl/values/expr.hpp"

namespace ikat {
namespace detail {

using LayoutIndex = Leaf<std::uint32_t>;
LayoutIndex place_of(const Layout& layout, const std::vector<LayoutIndex>& coordinate);
LayoutIndex place_of(const SwizzledLayout& layout, const std::vector<LayoutIndex>& coordinate);

}  // namespace detail

/// The offset of a coordinate of u32 values: one, or one for each mode of the layout. An index that is not below its
/// extent is not found out: it gives some place. Throws Error for another number of indices, and for a layout with 2^32
/// places or elements, or more.
template <class L>
auto place_on_device(const L& layout, const Incoming<std::uint32_t>& index, const auto&... more) {
    const auto leaf = [](const Incoming<std::uint32_t>& v) { return value(Leaf<std::uint32_t>(v.value())); };
    return detail::place_of(layout, {leaf(index), leaf(more)...});
}

}  // namespace ikat
