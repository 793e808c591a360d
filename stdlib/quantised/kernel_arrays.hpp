// SPDX-License-Identifier: Apache-2.0
// Arrays of a kernel whose types are data: f32, f16 or bf16, and words of Q8_1, which are u32.
//
//     MoreParameters more;
//     add_array<In>(more, "x", type);
//     kernel("k", params(more), [=](More rest) {
//         const LoadFour x = next_rows(rest, type, is_aligned);
//         const auto four = x(row, quad, pitch, count);
#pragma once
#include <array>
#include <functional>
#include <initializer_list>
#include <string>

#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/more.hpp"
#include "stdlib/quantised/blocks.hpp"

namespace ikat::stdlib {

/// body.operator()<T>(), with the type of elements in C++.
template <class Body>
auto with_element(ir::Type type, Body&& body) {
    switch (type) {
        case ir::Type::F16: return body.template operator()<half>();
        case ir::Type::BF16: return body.template operator()<bfloat16>();
        case ir::Type::U32: return body.template operator()<std::uint32_t>();
        default: return body.template operator()<float>();
    }
}

/// The next parameter of a kernel is an array, In or Out.
template <template <class, int...> class Array>
void add_array(MoreParameters& more, std::string name, ir::Type type) {
    with_element(type, [&]<class T> { more.add<Array<T>>(std::move(name)); });
}

/// The next parameters are numbers.
inline void add_numbers(MoreParameters& more, std::initializer_list<std::string> names) {
    for (const std::string& name : names) more.add<u32>(name);
}

/// Elements 4 quad ... 4 quad + 3 of a row as words, floats or Q8_1, of which `count` are there; the others are 0. The
/// pitch is in fours of elements if rows are aligned, else in elements.
using LoadFour = std::function<std::array<blocks::U, 4>(const blocks::U& row, const blocks::U& quad,
                                                        const blocks::U& pitch, const blocks::U& count)>;
/// Of the next array. Aligned rows begin at multiples of four elements, and are whole fours.
LoadFour next_rows(More& rest, ir::Type type, bool are_aligned);

/// y[row pitch + column] = x, rounded, where the condition is true.
using StoreElement = std::function<void(const Leaf<bool>& condition, const blocks::U& row, const u32& pitch,
                                        const blocks::U& column, const blocks::F& x)>;
/// Of the next array.
StoreElement next_results(More& rest, ir::Type type);

}  // namespace ikat::stdlib
