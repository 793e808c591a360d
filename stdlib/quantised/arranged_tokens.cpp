// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/arranged_tokens.hpp"

#include <algorithm>

namespace ikat::stdlib {

std::uint64_t ArrangedTokens::bytes(Quantised format, std::uint64_t tokens, std::uint64_t columns) {
    const std::uint64_t slices = tokens * padded_columns(columns) / 256;
    return Workspace::rounded(slices * 512) + Workspace::rounded(slices * sums_of_slice(format) * 2) +
           Workspace::rounded(tokens * 4);
}

std::uint64_t ArrangedTokens::at_once(const TensorView& X, const TensorView& Y) {
    const std::uint64_t columns = X.extents[1];
    const std::uint64_t largest =
        std::max({X.strides[0], Y.strides[0], padded_columns(columns), columns / 32 * 36 + 16});
    return std::clamp<std::uint64_t>((std::uint64_t{1} << 31) / largest, 1, X.extents[0]);
}

ArrangedTokens::ArrangedTokens(Workspace& workspace, Quantised format, std::uint64_t tokens, std::uint64_t columns)
    : columns_(padded_columns(columns)),
      columns_of_sums_(columns_ / 256 * sums_of_slice(format)),
      x_(workspace.take<half>(tokens * columns_)),
      sums_(workspace.take<half>(tokens * columns_of_sums_)),
      scales_(workspace.take<float>(tokens)) {}

void ArrangedTokens::arrange(const Queue& queue, const TensorView& X, std::uint64_t first, std::uint64_t count) const {
    const ArrangeKernel is{X.type, std::uint32_t(columns_of_sums_ / (columns_ / 256))};
    KernelArguments arguments(is.handle(), queue.where());
    arguments.add_array(part_from(X, first * X.strides[0]));
    add_to(arguments, count);
    arguments.add_numbers(std::uint32_t(X.extents[1]), std::uint32_t(count == 1 ? 0 : X.strides[0]));
    arguments.launch(queue, count, ArrangeKernel::threads);
}

void ArrangedTokens::add_to(KernelArguments& arguments, std::uint64_t tokens) const {
    const auto matrix = [&](const runtime::BufferPart& part, std::uint64_t columns) {
        const std::array<std::uint64_t, 2> extents{tokens, columns};
        return TensorView(ir::Type::F16, part, extents);
    };
    arguments.add_view(matrix(x_.part(), columns_), 2);
    if (columns_of_sums_ != 0) arguments.add_view(matrix(sums_.part(), columns_of_sums_), 2);
    arguments.add_array(TensorView(ir::Type::F32, scales_.part(), {&tokens, 1}));
}

}  // namespace ikat::stdlib
