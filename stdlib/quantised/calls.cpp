// SPDX-License-Identifier: Apache-2.0
// The functions of quantised weights: which kernels they launch for arrays without gaps, and for others.
#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/row_pairs.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

std::uint64_t elements_of(const TensorView& view) {
    std::uint64_t out = 1;
    for (std::size_t d = 0; d < view.rank; ++d) out *= view.extents[d];
    return out;
}
std::uint64_t last_extent(const TensorView& view) { return view.extents[view.rank - 1]; }
std::string extents_text(const TensorView& view) {
    return fmt::format("{}", fmt::join(view.extents.begin(), view.extents.begin() + view.rank, " x "));
}

/// Where rows are that are the dimensions of a view but the last few; a row of that many elements.
ArrayRows rows_of(const TensorView& view, std::uint64_t length, std::size_t dimensions_of_row) {
    ArrayRows out{length, {}};
    for (std::size_t d = 0; d + dimensions_of_row < view.rank; ++d) out.add(view.extents[d], view.strides[d]);
    return out;
}

/// Whether 32-bit numbers count the elements and the bytes of quantised weights, or the elements of another array.
bool are_counted(const TensorView& view) {
    return elements_of(view) <= ~0u && (!view.format || view.part.bytes <= ~0u);
}

/// 4 if a launch's rows are whole vectors of four floats, else 1.
std::uint32_t unit_of(const TensorView& part, std::uint64_t pitch) {
    return (part.part.address() / sizeof(float) | pitch) % 4 == 0 ? 4 : 1;
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

    void check_weights(const TensorView& W) const {
        if (!W.format)
            fail(fmt::format("W has elements of {}", W.type_name()),
                 "it has quantised weights: quantised_view(buffer, Quantised::Q4_K, {rows, columns})");
        if (last_extent(W) > 1 && W.strides[W.rank - 1] != 1)
            fail(fmt::format("the weights of a row of W are {} apart", W.strides[W.rank - 1]),
                 "those of the last dimension follow each other");
        if (W.part.bytes != 0 && W.part.address() % 2 != 0 && bytes_of(*W.format) % 2 == 0)
            fail(fmt::format("W begins at byte {} of its buffer", W.part.offset), "blocks begin at even bytes");
    }
    void check_type(std::string_view name, const TensorView& view, ir::Type type) const {
        if (view.format || view.type != type)
            fail(fmt::format("'{}' has elements of {}", name, view.type_name()),
                 fmt::format("they are {}", info(type).name));
    }
    void check_row(std::string_view name, const TensorView& view) const {
        if (last_extent(view) > 1 && view.strides[view.rank - 1] != 1)
            fail(fmt::format("the elements of a row of '{}' are {} apart", name, view.strides[view.rank - 1]),
                 "those of the last dimension follow each other");
    }
    void check_roles(std::initializer_list<OperandRole> roles) const {
        stdlib::check_roles(function_, queue_.where(), roles);
    }

    /// The rows of W, in bytes.
    ArrayRows rows_of_weights(const TensorView& W) const {
        const std::uint32_t weights = weights_of(*W.format), bytes = bytes_of(*W.format);
        ArrayRows out = rows_of(W, last_extent(W) / weights * bytes, 1);
        for (std::uint64_t& stride : out.strides) {
            if (stride % weights != 0)
                fail(fmt::format("rows of W are {} weights apart", stride),
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

    /// `operands(launch)` are those of the recipe's kernel for rows at pitches.
    void run_pairs(const Recipe& recipe, std::size_t kernel, const RowPairs& pairs, auto&& operands) const {
        const Variant& variant = recipe.kernels[kernel];
        const KernelHandle& handle = variant.pitched[0]();
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
WeightsOfLaunch weights_of_launch(const TensorView& W, const RowPairs::Launch& launch) {
    runtime::BufferPart part = W.part.from(launch.first[0]);
    part.bytes = std::min(part.bytes, launch.reach[0]);
    const std::uint64_t begin = part.bytes == 0 ? 0 : std::min<std::uint64_t>(part.address() % 16, part.offset);
    part.offset -= begin;
    part.bytes += begin;
    return {TensorView(ir::Type::U8, part, {&part.bytes, 1}), std::uint32_t(begin), std::uint32_t(launch.pitch[0]),
            std::uint32_t(part.bytes)};
}

TensorView bytes_of_view(const TensorView& W) { return TensorView(ir::Type::U8, W.part, {&W.part.bytes, 1}); }

}  // namespace

void dequantise(const Queue& queue, const TensorView& W, const MutableTensorView& y) {
    const QuantisedCall call("dequantise", queue);
    call.check_weights(W);
    call.check_type("y", y, ir::Type::F32);
    if (is_packed(W) && is_packed(y) && are_counted(W)) {
        const std::uint32_t blocks = std::uint32_t(W.part.bytes) / bytes_of(*W.format);
        return run(queue, dequantise_recipe, std::size_t(*W.format), {bytes_of_view(W), y, blocks});
    }
    call.check_roles({{"W", W.part, Role::Read}, {"y", y.part, Role::Written}});
    const ArrayRows from = call.rows_of_weights(W);
    const ArrayRows to = call.rows_like(from, "y", y, last_extent(W), 1,
                                        fmt::format("W is {}: with gaps between its rows, y has that shape, or its "
                                                    "dimensions before the last make as many rows",
                                                    extents_text(W)));
    const RowPairs pairs(from, to, last_extent(W), false);
    call.run_pairs(dequantise_recipe, std::size_t(*W.format), pairs, [&](const RowPairs::Launch& launch) {
        const auto [bytes, begin, pitch, end] = weights_of_launch(W, launch);
        const TensorView out = part_from(y, launch.first[1]);
        return std::vector<FunctionOperand>{bytes,
                                            out,
                                            std::uint32_t(launch.rows),
                                            call.check().reached("a row of W", pairs.columns),
                                            begin,
                                            pitch,
                                            end,
                                            std::uint32_t(launch.pitch[1]),
                                            unit_of(out, launch.pitch[1])};
    });
}

void quantised_gemv(const Queue& queue, const TensorView& W, const TensorView& x, const MutableTensorView& y) {
    const QuantisedCall call("gemv", queue);
    call.check_weights(W);
    const bool are_blocks = x.type == ir::Type::U32;
    call.check_type("x", x, are_blocks ? ir::Type::U32 : ir::Type::F32);
    call.check_type("y", y, ir::Type::F32);
    if (x.part.bytes != 0 && !is_packed(x, 1))
        call.fail("the elements of 'x' have gaps", "x is a single row: copy it to an array without gaps");
    const std::uint32_t columns = call.check().reached("columns of W", last_extent(W));
    const Recipe& recipe = are_blocks ? packed_gemv_recipe : quantised_gemv_recipe;
    const ArrayRows from = call.rows_of_weights(W);
    if (is_packed(W) && is_packed(x) && is_packed(y, 1) && are_counted(W))
        return run(queue, recipe, std::size_t(*W.format),
                   {bytes_of_view(W), x, y, call.check().reached("rows of W", from.number_of_rows()), columns});
    call.check_roles({{"W", W.part, Role::Read}, {"x", x.part, Role::Read}, {"y", y.part, Role::Written}});
    call.check().at_least("x", elements_of(x), are_blocks ? columns / 32 * std::uint64_t{9} : columns);
    const ArrayRows to = call.rows_like(from, "y", y, 1, 0,
                                        fmt::format("W is {}: y has an element for each of its rows", extents_text(W)));
    const RowPairs pairs(from, to, columns, true);
    call.run_pairs(recipe, std::size_t(*W.format), pairs, [&](const RowPairs::Launch& launch) {
        const auto [bytes, begin, pitch, end] = weights_of_launch(W, launch);
        return std::vector<FunctionOperand>{
            bytes, x,   part_from(y, launch.first[1]), std::uint32_t(launch.rows), columns, begin,
            pitch, end, std::uint32_t(launch.pitch[1])};
    });
}

void quantise_q8_1(const Queue& queue, const TensorView& x, const MutableTensorView& q) {
    const QuantisedCall call("quantise_q8_1", queue);
    call.check_type("x", x, ir::Type::F32);
    call.check_type("q", q, ir::Type::U32);
    const std::uint64_t n = elements_of(x);
    if (n % 32 != 0)
        call.fail(fmt::format("'x' has {} elements, which is not a multiple of 32", n), "pad it with zeros");
    const bool x_has_gaps = !is_packed(x, 1), q_has_gaps = !is_packed(q, 1);
    if (is_packed(x) && !q_has_gaps && are_counted(x))
        return run(queue, quantise_q8_1_recipe, 0, {x, q, call.check().reached("x", n) / 32});
    if (!x_has_gaps && !q_has_gaps) call.check().reached("x", n);
    call.check_roles({{"x", x.part, Role::Read}, {"q", q.part, Role::Written}});
    if (x_has_gaps) call.check_row("x", x);
    if (x_has_gaps && last_extent(x) % 32 != 0)
        call.fail(
            fmt::format("'x' has gaps between rows of {} elements, which is not a multiple of 32", last_extent(x)),
            "a block is of one row: pad rows with zeros, or copy them to an array without gaps");
    // Without gaps, x has the rows of q.
    const std::uint64_t columns = x_has_gaps ? last_extent(x) : q_has_gaps ? last_extent(q) / 9 * 32 : n;
    ArrayRows from = rows_of(x, columns, 1);
    if (!x_has_gaps) from = ArrayRows{columns, {}}.in({columns == 0 ? 0 : n / columns});
    const ArrayRows to =
        call.rows_like(from, "q", q, columns / 32 * 9, 1,
                       fmt::format("'x' is {}: with gaps between its rows, q has as many, of 9 words for 32 elements",
                                   extents_text(x)));
    const RowPairs pairs(from, to, columns, false);
    call.run_pairs(quantise_q8_1_recipe, 0, pairs, [&](const RowPairs::Launch& launch) {
        const TensorView in = part_from(x, launch.first[0]);
        return std::vector<FunctionOperand>{in,
                                            part_from(q, launch.first[1]),
                                            std::uint32_t(launch.rows),
                                            call.check().reached("a row of 'x'", pairs.columns),
                                            std::uint32_t(launch.pitch[0]),
                                            unit_of(in, launch.pitch[0]),
                                            std::uint32_t(launch.pitch[1])};
    });
}

}  // namespace ikat::stdlib
