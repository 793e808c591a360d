// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_view.hpp"

#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"

namespace ikat::runtime {

TensorView::TensorView(ir::Type type, const BufferPart& whole, std::span<const std::uint64_t> given,
                       std::span<const std::uint64_t> pitches, const Location& where)
    : type(type), part(whole), rank(std::uint32_t(given.size())) {
    IKAT_ASSERT(rank >= 1 && rank <= max_dimensions && (pitches.empty() || pitches.size() + 1 == rank),
                "a view has one to five dimensions, and a pitch for each but the last");
    std::uint64_t stride = 1;
    for (std::size_t d = rank; d-- > 0;) {
        extents[d] = given[d];
        strides[d] = d + 1 < rank && !pitches.empty() ? pitches[d] : stride;
        stride *= given[d];
    }
    const std::size_t bytes = ir::info(type).bytes;
    const std::span<const std::uint64_t> all(strides.data(), rank - 1);
    detail::check_view(whole, given, all, bytes, where);
    part.bytes = view_size(given, all) * bytes;
}

TensorView::TensorView(Quantised given_format, const BufferPart& whole, std::span<const std::uint64_t> given,
                       std::span<const std::uint64_t> pitches, const Location& where)
    : part(whole), rank(std::uint32_t(given.size())) {
    IKAT_ASSERT(rank >= 1 && rank <= max_dimensions && (pitches.empty() || pitches.size() + 1 == rank),
                "a view has one to five dimensions, and a pitch for each but the last");
    const QuantisedInfo* const info = find_info(given_format);
    if (!info)
        throw Error("there is no format " + std::to_string(unsigned(given_format)) + " of quantised weights",
                    "formats are the enumerators of Quantised")
            .located(where);
    format = given_format;
    std::uint64_t stride = 1;
    for (std::size_t d = rank; d-- > 0;) {
        extents[d] = given[d];
        strides[d] = d + 1 < rank && !pitches.empty() ? pitches[d] : stride;
        stride *= given[d];
    }
    if (given.back() % info->weights != 0)
        throw Error(
            "a row of " + std::to_string(given.back()) + " weights is not whole blocks of " + std::string(info->name),
            "a block has " + std::to_string(info->weights) + " weights; pad the rows with zeros")
            .located(where);
    const auto to_bytes = [&](std::uint64_t& number) { number = number / info->weights * info->bytes; };
    std::vector<std::uint64_t> bytes(given.begin(), given.end()), apart(pitches.begin(), pitches.end());
    to_bytes(bytes.back());
    for (std::uint64_t& pitch : apart) {
        if (pitch % info->weights != 0)
            throw Error(
                "a pitch of " + std::to_string(pitch) + " weights is not whole blocks of " + std::string(info->name),
                "a block has " + std::to_string(info->weights) + " weights; the pitch is in weights")
                .located(where);
        to_bytes(pitch);
    }
    part = TensorView(ir::Type::U8, whole, bytes, apart, where).part;
}

std::string_view TensorView::type_name() const { return format ? find_info(*format)->name : ir::info(type).name; }

TensorView TensorView::of_rank(std::uint32_t wanted) const {
    IKAT_ASSERT(wanted >= rank && wanted <= max_dimensions, "a view of fewer dimensions than it has");
    TensorView out = *this;
    out.rank = wanted;
    for (std::uint32_t d = 0; d < wanted; ++d) {
        const bool is_new = d < wanted - rank;
        out.extents[d] = is_new ? 1 : extents[d - (wanted - rank)];
        out.strides[d] = is_new ? 0 : strides[d - (wanted - rank)];
    }
    return out;
}

TensorView TensorView::permuted(const std::array<std::uint32_t, max_dimensions>& order) const {
    TensorView out = *this;
    for (std::uint32_t d = 0; d < rank; ++d) {
        IKAT_ASSERT(order[d] < rank, "a permutation names a dimension that does not exist");
        out.extents[d] = extents[order[d]];
        out.strides[d] = strides[order[d]];
    }
    return out;
}

}  // namespace ikat::runtime
