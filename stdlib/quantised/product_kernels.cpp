// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product_kernels.hpp"

#include <fmt/format.h>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {
namespace {

using blocks::U;

/// Four elements as words: floats, whatever they were.
template <class X>
std::array<U, 4> four_words(const In<X>& x, bool is_aligned, const U& token, const U& quad, const U& pitch,
                            const U& count) {
    const auto word = [](const auto& element) -> U {
        if constexpr (std::is_same_v<X, std::uint32_t>)
            return value(element);
        else
            return value(bit_cast<u32>(cast<f32>(element)));
    };
    if (is_aligned) {
        const auto four = value(x.template load_if<4>(count != 0u, token * pitch + quad, X(0)));
        return {word(four.lane(0)), word(four.lane(1)), word(four.lane(2)), word(four.lane(3))};
    }
    const U first = value(token * pitch + quad * 4u);
    const auto element = [&](std::uint32_t e) { return word(value(x.load_if(count > e, first + e, X(0)))); };
    return {element(0), element(1), element(2), element(3)};
}

template <class X, class Y>
KernelHandle made(const ProductKernel& is) {
    return kernel(is.name().c_str(),
                  params("w", "x", "y", "rows", "columns", "w_begin", "w_pitch", "w_bytes", "x_pitch", "y_pitch"),
                  [is](In<std::uint8_t> w, In<X> x, Out<Y> y, u32 rows, u32 columns, u32 w_begin, u32 w_pitch,
                       u32 w_bytes, u32 x_pitch, u32 y_pitch) {
                      const U of_x = value(x_pitch);
                      record_product(is, {.w = w,
                                          .rows = rows,
                                          .columns = columns,
                                          .w_begin = w_begin,
                                          .w_pitch = w_pitch,
                                          .w_bytes = w_bytes,
                                          .load =
                                              [&](const U& token, const U& quad, const U& count) {
                                                  return four_words(x, is.x_is_aligned, token, quad, of_x, count);
                                              },
                                          .store =
                                              [&](const Leaf<bool>& condition, const U& token, const U& row,
                                                  const blocks::F& sum) {
                                                  y.store_if(condition, token * y_pitch + row, cast<Y>(sum));
                                              }});
                  })
        .require(multiple_of<32>("columns"), aligned<16>("w"))
        .launch_bounds(WarpGroup::block, is.min_blocks())
        .handle();
}

template <class X>
KernelHandle made_of(const ProductKernel& is) {
    switch (is.y) {
        case ir::Type::F16: return made<X, half>(is);
        case ir::Type::BF16: return made<X, bfloat16>(is);
        default: return made<X, float>(is);
    }
}

}  // namespace

std::string ProductKernel::name() const {
    return fmt::format("gemm_{}_{}_{}_tokens_{}", runtime::find_info(format)->name,
                       is_packed() ? "q8_1" : ir::info(x).name, ir::info(y).name, tokens);
}

std::uint32_t ProductKernel::min_blocks() const {
    if (is_packed()) return tokens <= 2 ? 7 : tokens <= 6 ? 5 : 4;
    return tokens <= 2 ? 6 : tokens == 3 ? 5 : tokens <= 5 ? 4 : 3;
}

KernelHandle ProductKernel::make() const {
    switch (x) {
        case ir::Type::F16: return made_of<half>(*this);
        case ir::Type::BF16: return made_of<bfloat16>(*this);
        case ir::Type::U32: return made_of<std::uint32_t>(*this);
        default: return made_of<float>(*this);
    }
}

const KernelHandle& ProductKernel::handle() const { return Kernels<ProductKernel>::of(*this); }

}  // namespace ikat::stdlib
