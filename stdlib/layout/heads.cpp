// SPDX-License-Identifier: Apache-2.0
// interleave_heads() and deinterleave_heads(): copies between views whose dimensions are in another order.
#include <fmt/format.h>

#include <algorithm>

#include "stdlib/layout/layout.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/named_functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

template <class T>
void copy_rows(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    require_linear_grid();
    for_each_of_rows<T>(places, [&]<int N>(Width<N>, const auto& at, const auto&, const auto&) {
        copy_lanes<N>(y, at[RowPlaces::Y], x, at[RowPlaces::X]);
    });
}

/// The same elements of two views of one shape. Without kernels for rows that follow each other in both: those are rows
/// like others.
constexpr Recipe recipe_for(std::string_view call) {
    const Instances kernels = IKAT_PITCHED("copy_heads", (copy_rows<T>), threads, 0, "x", "y");
    return {.call = call,
            .kernels = {{.summary = "copies heads",
                         .instances = kernels,
                         .grid =
                             [](const Call& of) {
                                 const std::uint64_t all = std::uint64_t(of["rows"]) * of["columns"];
                                 return runtime::grid(std::max<std::uint64_t>((all + 3) / 4, 1), threads);
                             },
                         .pitched = kernels}},
            .operands = {{"x", "..."}, {"y", "...", Access::Out}}};
}
constexpr Recipe of_interleave = recipe_for("interleave_heads(queue, x, y)"),
                 of_deinterleave = recipe_for("deinterleave_heads(queue, x, y)");

void copy_heads(const Queue& queue, const Recipe& recipe, const TensorView& x, const MutableTensorView& y) {
    const auto fail = [&](const std::string& message, std::string hint) {
        throw Error(Diagnostic{.where = queue.where(),
                               .message = fmt::format("{}: {}", recipe.function(), message),
                               .hint = std::move(hint)});
    };
    if (x.rank < 3 || x.rank > 4)
        fail(fmt::format("'x' has {} dimension{}", x.rank, x.rank == 1 ? "" : "s"),
             "it is heads of tokens, tokens of heads, or sequences of these: a view of three or four dimensions");
    TensorView turned = x;
    const std::uint32_t first = x.rank - 3;
    std::swap(turned.extents[first], turned.extents[first + 1]);
    std::swap(turned.strides[first], turned.strides[first + 1]);
    const auto shape = [](const TensorView& view) {
        return fmt::format("{}", fmt::join(view.extents.begin(), view.extents.begin() + view.rank, " x "));
    };
    if (y.rank != x.rank || !std::equal(y.extents.begin(), y.extents.begin() + y.rank, turned.extents.begin()))
        fail(fmt::format("'x' is {}, and 'y' is {}", shape(x), shape(y)),
             fmt::format("heads and tokens change places: y is {}", shape(turned)));
    run_rows({queue, recipe, {turned, y}}, {});
}

}  // namespace

void interleave_heads(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    copy_heads(queue, of_interleave, x, y);
}
void deinterleave_heads(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    copy_heads(queue, of_deinterleave, x, y);
}

// ---- by names

namespace {

constexpr NamedFunction::Size head_sizes[] = {{"sequences", 1}, {"tokens", 2048}, {"heads", 16}, {"head_dim", 128}};
constexpr std::string_view head_document =
    "x and y are of f32, f16 or bf16, with pitches. Bits stay as they are. For attention with heads in rows,\n"
    "nothing has to be moved: flash_attention_heads_in_rows.";
constexpr auto interleave_family = family_of("interleave_heads", "y[t, h] = x[h, t]: the heads of a token side by side",
                                             head_document, {}, head_sizes);
constexpr auto deinterleave_family =
    family_of("deinterleave_heads", "y[h, t] = x[t, h]: the tokens of a head together", head_document, {}, head_sizes);

NamedFunction heads_function(const NamedFunction::Family& family, bool interleaves) {
    const OperandShape by_heads("[sequences] heads tokens head_dim"), by_tokens("[sequences] tokens heads head_dim");
    NamedFunction out{.name = std::string(family.prefix), .family = &family};
    out.formula = interleaves ? "y[t, h] = x[h, t]" : "y[h, t] = x[t, h]";
    out.call = fmt::format("{}(queue, x, y)", family.prefix);
    out.arrays = {input("x", interleaves ? by_heads : by_tokens), output("y", interleaves ? by_tokens : by_heads)};
    out.run = [interleaves](const Queue& queue, NamedArrays arrays, const FunctionSettings&) {
        (interleaves ? interleave_heads : deinterleave_heads)(queue, arrays[0], arrays[1]);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> head_functions() {
    return {heads_function(interleave_family, true), heads_function(deinterleave_family, false)};
}

}  // namespace ikat::stdlib
