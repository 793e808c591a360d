// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product_kernels.hpp"

#include <fmt/format.h>

#include "stdlib/quantised/kernel_arrays.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

using blocks::U;

std::string ProductKernel::name() const {
    return fmt::format("gemm_{}_{}_{}_tokens_{}{}", runtime::find_info(format)->name,
                       is_packed() ? "q8_1" : ir::info(x).name, ir::info(y).name, tokens, suffix_of(epilogue));
}

std::uint32_t ProductKernel::min_blocks() const {
    if (is_packed()) return tokens <= 2 ? 7 : tokens <= 6 ? 5 : 4;
    return tokens <= 2 ? 6 : tokens == 3 ? 5 : tokens <= 5 ? 4 : 3;
}

KernelHandle ProductKernel::make() const {
    MoreParameters more;
    more.add<In<std::uint8_t>>("w");
    add_array<In>(more, "x", x);
    add_array<Out>(more, "y", y);
    for (const char* const number : {"rows", "columns", "w_begin", "w_pitch", "w_bytes", "x_pitch", "y_pitch"})
        more.add<u32>(number);
    add_epilogue(more, epilogue);
    return kernel(name().c_str(), params(more),
                  [is = *this](More rest) {
                      const auto w = rest.next<In<std::uint8_t>>();
                      const LoadFour x = next_rows(rest, is.x, is.x_is_aligned);
                      const StoreElement y = next_results(rest, is.y);
                      const auto rows = rest.next<u32>(), columns = rest.next<u32>(), w_begin = rest.next<u32>(),
                                 w_pitch = rest.next<u32>(), w_bytes = rest.next<u32>();
                      const U x_pitch = value(rest.next<u32>());
                      const auto y_pitch = rest.next<u32>();
                      const StoreResult store =
                          by_epilogue(is.epilogue, rest, rows,
                                      [&](const Leaf<bool>& condition, const U& token, const U& row,
                                          const blocks::F& x) { y(condition, token, y_pitch, row, x); });
                      record_product(is, {.w = {is.format, is.w_is_aligned, w, rows, w_begin, w_pitch, w_bytes},
                                          .x = {is.tokens, is.is_packed(), columns,
                                                [&](const U& token, const U& quad, const U& count) {
                                                    return x(token, quad, x_pitch, count);
                                                }},
                                          .store = store});
                  })
        .require(multiple_of<32>("columns"), aligned<16>("w"))
        .launch_bounds(WarpGroup::block, min_blocks())
        .handle();
}

const KernelHandle& ProductKernel::handle() const { return Kernels<ProductKernel>::of(*this); }

}  // namespace ikat::stdlib
