// SPDX-License-Identifier: Apache-2.0
// The functions of quantised weights: which kernels they launch for arrays without gaps, and for others.
#include "stdlib/quantised/call.hpp"
#include "stdlib/quantised/quantiser_kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

static TensorView bytes_of_view(const TensorView& W) { return TensorView(ir::Type::U8, W.part, {&W.part.bytes, 1}); }

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
    call.check_real("x", x);
    call.check_type("q", q, ir::Type::U32);
    const std::uint64_t n = elements_of(x);
    if (n % 32 != 0)
        call.fail(fmt::format("'x' has {} elements, which is not a multiple of 32", n), "pad it with zeros");
    const bool x_has_gaps = !is_packed(x, 1), q_has_gaps = !is_packed(q, 1);
    if (x.type == ir::Type::F32 && is_packed(x) && !q_has_gaps && are_counted(x))
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
    call.run_pairs(
        quantise_q8_1_recipe, 0, pairs,
        [&](const RowPairs::Launch& launch) {
            const TensorView in = part_from(x, launch.first[0]);
            return std::vector<FunctionOperand>{in,
                                                part_from(q, launch.first[1]),
                                                std::uint32_t(launch.rows),
                                                call.check().reached("a row of 'x'", pairs.columns),
                                                std::uint32_t(launch.pitch[0]),
                                                unit_of(in, launch.pitch[0]),
                                                std::uint32_t(launch.pitch[1])};
        },
        number_of_type(x.type));
}

void quantise(const Queue& queue, const TensorView& x, const MutableTensorView& W) {
    const QuantisedCall call("quantise", queue);
    call.check_weights(W);
    call.check_real("x", x);
    if (!QuantiserKernel::takes(*W.format))
        call.fail(fmt::format("W has blocks of {}", W.type_name()),
                  "a device makes blocks of q8_0, q4_0 and mxfp4: stored::quantise() makes those of all formats");
    call.check_roles({{"x", x.part, Role::Read}, {"W", W.part, Role::Written}});
    const ArrayRows to = call.rows_of_weights(W);
    const ArrayRows from =
        call.rows_like(to, "x", x, last_extent(W), 1,
                       fmt::format("W is {}: with gaps between its rows, x has that shape", extents_text(W)));
    const RowPairs pairs(from, to, last_extent(W), false);
    pairs.each_launch([&](const RowPairs::Launch& launch) {
        const TensorView in = part_from(x, launch.first[0]);
        runtime::BufferPart blocks = W.part.from(launch.first[1]);
        blocks.bytes = std::min(blocks.bytes, launch.reach[1]);
        const std::uint32_t columns = call.check().reached("a row of W", pairs.columns);
        if (columns == 0 || launch.rows == 0) return;
        const QuantiserKernel is{*W.format, x.type, unit_of(in, launch.pitch[0]) == 4};
        const Location where = queue.where();
        KernelArguments arguments(is.handle(), where);
        arguments.add_array(in);
        arguments.add_array(ir::Type::U8, blocks);
        arguments.add_numbers(std::uint32_t(launch.rows), columns,
                              std::uint32_t(is.x_is_aligned ? launch.pitch[0] / 4 : launch.pitch[0]),
                              std::uint32_t(launch.pitch[1]));
        const std::uint64_t warps = launch.rows * ((columns / 32 + 7) / 8);
        arguments.launch(queue, (warps + WarpGroup::rows_of_block - 1) / WarpGroup::rows_of_block, WarpGroup::block);
    });
}

}  // namespace ikat::stdlib
