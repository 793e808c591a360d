// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/kernel_arrays.hpp"

namespace ikat::stdlib {
namespace {

using blocks::U;

template <class X>
std::array<U, 4> four_words(const In<X>& x, bool is_aligned, const U& row, const U& quad, const U& pitch,
                            const U& count) {
    const auto word = [](const auto& element) -> U {
        if constexpr (std::is_same_v<X, std::uint32_t>)
            return value(element);
        else
            return value(bit_cast<u32>(cast<f32>(element)));
    };
    if (is_aligned) {
        const auto four = value(x.template load_if<4>(count != 0u, row * pitch + quad, X(0)));
        return {word(four.lane(0)), word(four.lane(1)), word(four.lane(2)), word(four.lane(3))};
    }
    const U first = value(row * pitch + quad * 4u);
    const auto element = [&](std::uint32_t e) { return word(value(x.load_if(count > e, first + e, X(0)))); };
    return {element(0), element(1), element(2), element(3)};
}

}  // namespace

LoadFour next_rows(More& rest, ir::Type type, bool are_aligned) {
    return with_element(type, [&]<class X>() -> LoadFour {
        return [x = rest.next<In<X>>(), are_aligned](const U& row, const U& quad, const U& pitch, const U& count) {
            return four_words(x, are_aligned, row, quad, pitch, count);
        };
    });
}

StoreElement next_results(More& rest, ir::Type type) {
    return with_element(type, [&]<class Y>() -> StoreElement {
        return
            [y = rest.next<Out<Y>>()](const Leaf<bool>& condition, const U& row, const u32& pitch, const U& column,
                                      const blocks::F& x) { y.store_if(condition, row * pitch + column, cast<Y>(x)); };
    });
}

}  // namespace ikat::stdlib
