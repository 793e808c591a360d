// SPDX-License-Identifier: Apache-2.0
// What the functions of quantised weights check and compute of their arrays.
#pragma once
#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/row_pairs.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {

inline std::uint64_t elements_of(const TensorView& view) {
    std::uint64_t out = 1;
    for (std::size_t d = 0; d < view.rank; ++d) out *= view.extents[d];
    return out;
}
inline std::uint64_t last_extent(const TensorView& view) { return view.extents[view.rank - 1]; }
inline std::string extents_text(const TensorView& view) {
    return fmt::format("{}", fmt::join(view.extents.begin(), view.extents.begin() + view.rank, " x "));
}

/// Where rows are that are the dimensions of a view but the last few; a row of that many elements.
inline ArrayRows rows_of(const TensorView& view, std::uint64_t length, std::size_t dimensions_of_row) {
    ArrayRows out{length, {}};
    for (std::size_t d = 0; d + dimensions_of_row < view.rank; ++d) out.add(view.extents[d], view.strides[d]);
    return out;
}

/// Whether 32-bit numbers count the elements and the bytes of quantised weights, or the elements of another array.
inline bool are_counted(const TensorView& view) {
    return elements_of(view) <= ~0u && (!view.format || view.part.bytes <= ~0u);
}

/// 4 if a launch's rows are whole vectors of four elements, else 1.
inline std::uint32_t unit_of(const TensorView& part, std::uint64_t pitch) {
    return (part.part.address() / info(part.type).bytes | pitch) % 4 == 0 ? 4 : 1;
}
/// See Instances.
inline std::size_t number_of_type(ir::Type type) {
    return type == ir::Type::F16 ? type_number<half> : type == ir::Type::BF16 ? type_number<bfloat16> : 0;
}

/// A call of one of the functions: its checks, and its launches.
class QuantisedCall {
public:
    QuantisedCall(std::string_view function, const Queue& queue) : function_(function), queue_(queue) {}

    SizeCheck check() const { return {function_, queue_.where()}; }
    [[noreturn]] void fail(std::string_view message, std::string_view hint) const {
        throw Error(Diagnostic{
            .where = queue_.where(), .message = fmt::format("{}: {}", function_, message), .hint = std::string(hint)});
    }

    void check_weights(const TensorView& W, std::string_view name = "W") const {
        if (!W.format)
            fail(fmt::format("{} has elements of {}", name, W.type_name()),
                 "it has quantised weights: quantised_view(buffer, Quantised::Q4_K, {rows, columns})");
        if (last_extent(W) > 1 && W.strides[W.rank - 1] != 1)
            fail(fmt::format("the weights of a row of {} are {} apart", name, W.strides[W.rank - 1]),
                 "those of the last dimension follow each other");
        if (W.part.bytes != 0 && W.part.address() % 2 != 0 && bytes_of(*W.format) % 2 == 0)
            fail(fmt::format("{} begins at byte {} of its buffer", name, W.part.offset), "blocks begin at even bytes");
    }
    void check_type(std::string_view name, const TensorView& view, ir::Type type) const {
        if (view.format || view.type != type)
            fail(fmt::format("'{}' has elements of {}", name, view.type_name()),
                 fmt::format("they are {}", info(type).name));
    }
    void check_real(std::string_view name, const TensorView& view) const {
        if (view.format || (view.type != ir::Type::F32 && view.type != ir::Type::F16 && view.type != ir::Type::BF16))
            fail(fmt::format("'{}' has elements of {}", name, view.type_name()), "they are f32, f16 or bf16");
    }
    void check_row(std::string_view name, const TensorView& view) const {
        if (last_extent(view) > 1 && view.strides[view.rank - 1] != 1)
            fail(fmt::format("the elements of a row of '{}' are {} apart", name, view.strides[view.rank - 1]),
                 "those of the last dimension follow each other");
    }
    std::string_view function() const { return function_; }
    void check_roles(const std::vector<OperandRole>& roles) const {
        stdlib::check_roles(function_, queue_.where(), roles);
    }

    /// The rows of W, in bytes.
    ArrayRows rows_of_weights(const TensorView& W, std::string_view name = "W") const {
        const std::uint32_t weights = weights_of(*W.format), bytes = bytes_of(*W.format);
        ArrayRows out = rows_of(W, last_extent(W) / weights * bytes, 1);
        for (std::uint64_t& stride : out.strides) {
            if (stride % weights != 0)
                fail(fmt::format("rows of {} are {} weights apart", name, stride),
                     fmt::format("they are whole blocks of {} weights apart", weights));
            stride = stride / weights * bytes;
        }
        return out;
    }

    /// An array that belongs to the rows of another one: `length` elements to a row. Without gaps it may have any shape
    /// and more elements.
    ArrayRows rows_like(const ArrayRows& other, std::string_view name, const TensorView& view, std::uint64_t length,
                        std::size_t dimensions_of_row, std::string_view hint) const {
        if (is_packed(view, 1)) {
            check().at_least(name, elements_of(view), other.number_of_rows() * length);
            return ArrayRows{length, {}}.in(other.extents);
        }
        if (dimensions_of_row != 0) check_row(name, view);
        const ArrayRows out = rows_of(view, length, dimensions_of_row);
        if ((dimensions_of_row != 0 && last_extent(view) != length) || !RowPairs::fit(other, out))
            fail(fmt::format("'{}' is {}, with gaps", name, extents_text(view)), hint);
        return out;
    }

    /// `operands(launch)` are those of the recipe's kernel for rows at pitches, of a type by its number.
    void run_pairs(const Recipe& recipe, std::size_t kernel, const RowPairs& pairs, auto&& operands,
                   std::size_t type = 0) const {
        const Variant& variant = recipe.kernels[kernel];
        const KernelHandle& handle = variant.pitched[type]();
        pairs.each_launch([&](const RowPairs::Launch& launch) {
            const std::vector<FunctionOperand> list = operands(launch);
            run(queue_, recipe, variant, handle, list);
        });
    }

private:
    std::string_view function_;
    const Queue& queue_;
};

/// The weights of a launch, as the kernels take them: from a multiple of 16 bytes on, of which the first are not
/// theirs.
struct WeightsOfLaunch {
    TensorView bytes;
    std::uint32_t begin, pitch, end;
};
inline WeightsOfLaunch weights_of_launch(const TensorView& W, const RowPairs::Launch& launch) {
    runtime::BufferPart part = W.part.from(launch.first[0]);
    part.bytes = std::min(part.bytes, launch.reach[0]);
    const std::uint64_t begin = part.bytes == 0 ? 0 : std::min<std::uint64_t>(part.address() % 16, part.offset);
    part.offset -= begin;
    part.bytes += begin;
    return {TensorView(ir::Type::U8, part, {&part.bytes, 1}), std::uint32_t(begin), std::uint32_t(launch.pitch[0]),
            std::uint32_t(part.bytes)};
}

}  // namespace ikat::stdlib
