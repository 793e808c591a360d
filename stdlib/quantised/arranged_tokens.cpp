// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/arranged_tokens.hpp"

#include <algorithm>

namespace ikat::stdlib {

std::uint64_t ArrangedTokens::bytes(std::uint32_t sums, std::uint64_t tokens, std::uint64_t columns) {
    const std::uint64_t slices = tokens * padded_columns(columns) / 256;
    return Workspace::rounded(slices * 512) + Workspace::rounded(slices * sums * 2) + Workspace::rounded(tokens * 4);
}

std::uint64_t ArrangedTokens::at_once(const TensorView& X, const TensorView& Y) {
    const std::uint64_t columns = X.extents[1];
    const std::uint64_t largest =
        std::max({X.strides[0], Y.strides[0], padded_columns(columns), columns / 32 * 36 + 16});
    return std::clamp<std::uint64_t>((std::uint64_t{1} << 31) / largest, 1, X.extents[0]);
}

ArrangedTokens::ArrangedTokens(Workspace& workspace, std::uint32_t sums, std::uint64_t tokens, std::uint64_t columns)
    : sums_of_slice_(sums),
      slices_(padded_columns(columns) / 256),
      x_(workspace.take<half>(tokens * slices_ * 256)),
      sums_(workspace.take<half>(tokens * slices_ * sums)),
      scales_(workspace.take<float>(tokens)) {}

void ArrangedTokens::arrange(const Queue& queue, const TensorView& X, std::uint64_t first, std::uint64_t count) const {
    const ArrangeKernel is{X.type, sums_of_slice_};
    KernelArguments arguments(is.handle(), queue.where());
    arguments.add_array(part_from(X, first * X.strides[0]));
    arguments.add_view(x(count), 2);
    if (sums_of_slice_ != 0) arguments.add_view(sums(count), 2);
    arguments.add_array(scales(count));
    arguments.add_numbers(std::uint32_t(X.extents[1]), std::uint32_t(count == 1 ? 0 : X.strides[0]));
    arguments.launch(queue, count, ArrangeKernel::threads);
}

void ArrangedTokens::add_to(KernelArguments& arguments, Quantised format, std::uint64_t tokens) const {
    const std::uint32_t of_format = sums_of_slice(format);
    arguments.add_view(x(tokens), 2);
    if (of_format != 0) {
        const bool are_first = sums_of_slice_ == of_format || of_format == 16;
        TensorView of_x = part_from(sums(tokens), are_first ? 0 : slices_ * 16);
        of_x.extents[1] = slices_ * of_format;
        arguments.add_view(of_x, 2);
    }
    arguments.add_array(scales(tokens));
}

TensorView ArrangedTokens::x(std::uint64_t tokens) const {
    const std::array<std::uint64_t, 2> extents{tokens, slices_ * 256};
    return TensorView(ir::Type::F16, x_.part(), extents);
}
TensorView ArrangedTokens::sums(std::uint64_t tokens) const {
    const std::array<std::uint64_t, 2> extents{tokens, slices_ * sums_of_slice_};
    return TensorView(ir::Type::F16, sums_.part(), extents);
}
TensorView ArrangedTokens::scales(std::uint64_t tokens) const {
    return TensorView(ir::Type::F32, scales_.part(), {&tokens, 1});
}

}  // namespace ikat::stdlib
