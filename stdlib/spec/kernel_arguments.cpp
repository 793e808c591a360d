// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/kernel_arguments.hpp"

#include "codegen/kernel/kernel_info.hpp"

namespace ikat::stdlib {

using runtime::TensorView;

KernelArguments::KernelArguments(const KernelHandle& kernel, const Location& where) : kernel_(kernel), where_(where) {
    list_.reserve(kernel.info().parameters.size());
}

void KernelArguments::add_number(ir::Type type, std::uint64_t bits) { list_.push_back({.type = type, .bits = bits}); }

void KernelArguments::add_array(ir::Type type, const runtime::BufferPart& part) {
    list_.push_back(runtime::buffer_argument(type, part, kernel_.info(), list_.size(), where_));
}

void KernelArguments::add_view(const TensorView& x, std::uint32_t rank) {
    const TensorView of = x.rank < rank ? x.of_rank(rank) : x;
    add_array(of);
    const std::uint32_t first = of.rank - rank;
    for (std::uint32_t d = 0; d < first; ++d)
        IKAT_ASSERT(of.extents[d] <= 1, "a view has more dimensions than its parameter");
    const auto add = [&](std::uint64_t number) {
        if (number > ~0u)
            throw Error(Diagnostic{.where = where_,
                                   .message = "an array has extents or strides of 2^32 elements or more",
                                   .hint = "the kernel counts in 32 bits: call it for parts"});
        list_.push_back({.type = ir::Type::U32, .bits = number});
    };
    for (std::uint32_t d = first; d < of.rank; ++d) add(of.extents[d]);
    for (std::uint32_t d = first; d + 1 < of.rank; ++d) add(of.extents[d] == 1 ? 0 : of.strides[d]);
}

void KernelArguments::add_map(const TensorView& x, std::span<const std::uint64_t> extents,
                              std::span<const std::uint64_t> pitches, std::uint64_t back) {
    list_.push_back(
        runtime::map_argument(x.type, x.part, extents, pitches, kernel_.info(), list_.size(), where_, back));
}

void KernelArguments::launch(const runtime::Queue& queue, std::uint64_t blocks, std::uint32_t threads,
                             std::uint32_t dynamic_shared_bytes) const {
    const runtime::Grid grid{{std::uint32_t(blocks)}, {threads}, dynamic_shared_bytes};
    queue.launch(kernel_, {grid, where_}, std::span(list_));
}

}  // namespace ikat::stdlib
