// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/softmax_backward.hpp"

#include "stdlib/backward/row_variant.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/shared_rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
using Wide = BlockGroup<512>;
/// Of blocks, or clusters, that keep a row of y and of dy in shared memory.
constexpr SharedRows in_shared{.threads = 512, .registers = 16384, .elements = 2};
using OfBlock = SharedGroup<in_shared.threads, 1>;
/// Wide blocks keep 32 elements of each row in a thread, in up to 128 registers, others 16.
template <class T, class Group>
constexpr int vectors_of = std::is_same_v<Group, Wide> ? kept_vectors<T> : kept_vectors_of_pair<T>;
template <class Group>
constexpr std::uint32_t blocks_of =
    std::is_same_v<Group, Wide> || KeepsInShared<Group> ? 1 : blocks_with_64_registers<Group>;
using F = Leaf<float>;

/// Of f(y, dy) over two rows.
auto sum_of_pairs(const auto& y, const auto& dy, auto&& f) {
    f32 sum = 0;
    y.each_with(dy, [&](const auto& v, const auto& w, const auto&) {
        const auto terms = each_lane(f, v, w);
        for (const auto& term : terms) sum += term;
    });
    return value(y.group.sum(sum));
}

template <class T, class Group>
void softmax_gradient_of(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx) {
    with_row_pair<Group, T, vectors_of<T, Group>>(y, dy, places, [&](const auto& y, const auto& dy) {
        const auto sum = sum_of_pairs(y, dy, [](const F& p, const F& g) { return p * g; });
        y.map_with(dy, dx, [&](const F& p, const F& g) { return p * (g - sum); });
    });
}
template <class T, class Group>
void log_softmax_gradient_of(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx) {
    with_row_pair<Group, T, vectors_of<T, Group>>(y, dy, places, [&](const auto& y, const auto& dy) {
        const auto sum = sum_of_pairs(y, dy, [](const F&, const F& g) { return g; });
        y.map_with(dy, dx, [&](const F& log_p, const F& g) { return g - exp(log_p) * sum; });
    });
}

/// How many columns of a row come up to the diagonal.
auto columns_up_to_diagonal(const auto& row, const auto& active, const u32& columns, const u32& queries) {
    const auto hidden = value(queries - 1u - row % queries);
    return value(select(active & (columns > hidden), columns - hidden, 0u));
}
/// f(lanes of y, lanes of dy) for the elements of a vector that come before column `end`, and 0 for the others.
template <int N>
auto lanes_up_to(const auto& v, const auto& w, const auto& column, const auto& end, auto&& f) {
    Regs<f32, N> out;
    for (std::size_t k = 0; k < N; ++k)
        out[k] = select(column * std::uint32_t(N) + std::uint32_t(k) < end, f(value(v[k]), value(w[k])), 0.0f);
    return out;
}
/// Stores 0 in a row of dx from a vector on.
template <int N, class T, class Group>
void store_zeros(const RowPlaces& places, const Out<T>& dx, const auto& row, const auto& active, const auto& from) {
    const auto length = value(places.columns / std::uint32_t(N));
    const auto start = places.starts<N>(row, length)[RowPlaces::Y];
    Regs<f32, N> zeros;
    for (std::size_t k = 0; k < N; ++k) zeros[k] = 0;
    for (auto column : range(from + Group::thread(), select(active, length, 0u), Group::threads).unroll(1))
        store_lanes(dx, value(start + column), zeros);
}

constexpr auto product_of = [](const F& p, const F& g) { return p * g; };

/// A row up to the diagonal, in registers.
template <class T, class Group>
void kept_causal_row(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx, const auto& row,
                     const auto& active, const auto& end) {
    constexpr int N = lanes_of<T>;
    using Row = KeptRow<Group, T, vectors_of<T, Group>>;
    const auto count = value((end + std::uint32_t(N - 1)) / std::uint32_t(N));
    const auto p = Row::first_vectors(y, places, row, count),
               g = Row::first_vectors(dy, places, row, count, RowPlaces::Second);
    f32 sum = 0;
    p.each_with(g, [&](const auto& v, const auto& w, const auto& column) {
        const auto terms = lanes_up_to<N>(v, w, column, end, product_of);
        for (std::size_t k = 0; k < N; ++k) sum += terms[k];
    });
    const auto total = value(p.group.sum(sum));
    p.each_vector([&](int k, const auto& column) {
        p.store(dx, k,
                lanes_up_to<N>(p[k], g[k], column, end, [&](const F& p, const F& g) { return p * (g - total); }));
    });
    store_zeros<N, T, Group>(places, dx, row, active, count);
}
/// ... or read twice.
template <class T, class Group>
void streamed_causal_row(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx, const auto& row,
                         const auto& active, const auto& end) {
    const auto walk = [&](auto&& body, auto&& rest) {
        with_width<T>(places.unit(), [&]<int N>(Width<N> width) {
            const auto first = places.starts<N>(row, value(places.columns / std::uint32_t(N)));
            const auto count = value((end + std::uint32_t(N - 1)) / std::uint32_t(N));
            for (auto column : columns_of<N, T>(first[RowPlaces::X], count, Group::thread(), Group::threads)) {
                const auto at = places.further(first, column);
                body(width, load_lanes<N>(y, at[RowPlaces::X]), load_lanes<N>(dy, at[RowPlaces::Second]), column,
                     at[RowPlaces::Y]);
            }
            rest(width, count);
        });
    };
    f32 sum = 0;
    walk(
        [&]<int N>(Width<N>, const auto& v, const auto& w, const auto& column, const auto&) {
            const auto terms = lanes_up_to<N>(v, w, column, end, product_of);
            for (std::size_t k = 0; k < N; ++k) sum += terms[k];
        },
        [](const auto&...) {});
    const auto total = value(Group::sum(sum));
    walk(
        [&]<int N>(Width<N>, const auto& v, const auto& w, const auto& column, const auto& at) {
            store_lanes(dx, at,
                        lanes_up_to<N>(v, w, column, end, [&](const F& p, const F& g) { return p * (g - total); }));
        },
        [&]<int N>(Width<N>, const auto& count) { store_zeros<N, T, Group>(places, dx, row, active, count); });
}
/// ... or in shared memory.
template <class T, class Group>
void shared_causal_row(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx, const auto& row,
                       const auto& active, const auto& end) {
    const SharedRowMemory<Group, T> memory(places.columns, in_shared);
    const SharedColumns<Group, T> columns(places, row, end);
    const SharedRow<Group, T> p(y, memory.row(0), columns), g(dy, memory.row(1), columns, RowPlaces::Second);
    f32 sum = 0;
    p.each_pair(g, [&]<int N>(Width<N>, const auto& v, const auto& w, const auto&, const auto& column, const auto&) {
        const auto terms = lanes_up_to<N>(v, w, column, end, product_of);
        for (std::size_t k = 0; k < N; ++k) sum += terms[k];
    });
    const auto total = value(Group::sum(sum));
    p.each_pair(g, [&]<int N>(Width<N>, const auto& v, const auto& w, const auto& at, const auto& column, const auto&) {
        store_lanes(dx, at[RowPlaces::Y],
                    lanes_up_to<N>(v, w, column, end, [&](const F& p, const F& g) { return p * (g - total); }));
    });
    with_width<T>(places.unit(), [&]<int N>(Width<N>) {
        const auto count = value((end + std::uint32_t(N - 1)) / std::uint32_t(N));
        store_zeros<N, T, Group>(places, dx, row, active, count);
    });
}
template <class T, class Group>
void causal_gradient_of(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx, const u32& queries,
                        const u32& first_row) {
    const auto end_of = [&](const auto& row, const auto& active) {
        return columns_up_to_diagonal(value(row + first_row), active, places.columns, queries);
    };
    if constexpr (KeepsInShared<Group>) {
        detail::with_shared_row<Group>(places, [&](const auto& row, const auto&) {
            const auto active = value(row < places.rows);
            shared_causal_row<T, Group>(places, y, dy, dx, row, active, end_of(row, active));
        });
    } else {
        detail::choose_row<Group, T, vectors_of<T, Group>>(
            places,
            [&](const auto& row, const auto& active) {
                kept_causal_row<T, Group>(places, y, dy, dx, row, active, end_of(row, active));
            },
            [&](const auto& row, const auto& active) {
                streamed_causal_row<T, Group>(places, y, dy, dx, row, active, end_of(row, active));
            });
    }
}

template <class T>
using GradientBody = void(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx);

/// The kernel of a body, for rows that follow each other.
template <class T, class Group>
RowGradientKernel<T> make_packed(const char* name, GradientBody<T>* body) {
    return kernel(
               name_of<T>(name), params("y", "dy", "dx", "rows", "columns"),
               [=](In<T> y, In<T> dy, Out<T> dx, u32 rows, u32 columns) { body(RowPlaces(rows, columns), y, dy, dx); })
        .require(aligned<16>("y"), aligned<16>("dy"), aligned<16>("dx"))
        .require(at_least("y", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}

template <class T, class Group>
CausalGradientKernel<T> make_causal(const char* name) {
    return kernel(name_of<T>(name), params("y", "dy", "dx", "rows", "columns", "queries", "first_row"),
                  [](In<T> y, In<T> dy, Out<T> dx, u32 rows, u32 columns, u32 queries, u32 first_row) {
                      causal_gradient_of<T, Group>(RowPlaces(rows, columns), y, dy, dx, queries, first_row);
                  })
        .require(aligned<16>("y"), aligned<16>("dy"), aligned<16>("dx"))
        .require(at_least("y", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}

template <class T, GradientBody<T>* body>
const RowGradientKernel<T>& shared_kernel(const char* name) {
    static const auto made = make_packed<T, OfBlock>(name, body);
    return made;
}
template <class T>
const CausalGradientKernel<T>& shared_causal_kernel() {
    static const auto made = make_causal<T, OfBlock>("softmax_causal_backward_shared");
    return made;
}

}  // namespace

template <class T>
const CausalGradientKernel<T>& softmax_causal_backward_warp() {
    static const auto made = make_causal<T, WarpGroup>("softmax_causal_backward_warp");
    return made;
}
template <class T>
const CausalGradientKernel<T>& softmax_causal_backward_block() {
    static const auto made = make_causal<T, Block>("softmax_causal_backward_block");
    return made;
}
template <class T>
const CausalGradientKernel<T>& softmax_causal_backward() {
    static const auto made = make_causal<T, Wide>("softmax_causal_backward");
    return made;
}
template <class T>
const RowGradientKernel<T>& softmax_backward_warp() {
    static const auto made = make_packed<T, WarpGroup>("softmax_backward_warp", softmax_gradient_of<T, WarpGroup>);
    return made;
}
template <class T>
const RowGradientKernel<T>& softmax_backward_block() {
    static const auto made = make_packed<T, Block>("softmax_backward_block", softmax_gradient_of<T, Block>);
    return made;
}
template <class T>
const RowGradientKernel<T>& softmax_backward() {
    static const auto made = make_packed<T, Wide>("softmax_backward", softmax_gradient_of<T, Wide>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward_warp() {
    static const auto made =
        make_packed<T, WarpGroup>("log_softmax_backward_warp", log_softmax_gradient_of<T, WarpGroup>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward_block() {
    static const auto made = make_packed<T, Block>("log_softmax_backward_block", log_softmax_gradient_of<T, Block>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward() {
    static const auto made = make_packed<T, Wide>("log_softmax_backward", log_softmax_gradient_of<T, Wide>);
    return made;
}

void softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx) {
    run_rows({queue, softmax_backward_recipe, {y, dy, dx}}, {});
}
void log_softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx) {
    run_rows({queue, log_softmax_backward_recipe, {y, dy, dx}}, {});
}

void softmax_causal_backward(const Queue& queue, const TensorView& y, const TensorView& dy,
                             const MutableTensorView& dx) {
    const ViewCall call(queue, softmax_causal_backward_recipe, {y, dy, dx});
    std::uint64_t rows = 1;
    for (std::size_t d = 0; d + 1 < y.rank; ++d) rows *= y.extents[d];
    call.check().reached("y", rows);
    run_rows(call, {call.extent("rows")});
}

IKAT_INSTANTIATE(softmax_causal_backward_warp)
IKAT_INSTANTIATE(softmax_causal_backward_block)
IKAT_INSTANTIATE(softmax_causal_backward)
IKAT_INSTANTIATE(softmax_backward_warp)
IKAT_INSTANTIATE(softmax_backward_block)
IKAT_INSTANTIATE(softmax_backward)
IKAT_INSTANTIATE(log_softmax_backward_warp)
IKAT_INSTANTIATE(log_softmax_backward_block)
IKAT_INSTANTIATE(log_softmax_backward)

/// y and dy are read twice, dx is written once; for the logarithm y is read once.
constexpr double passes_of_long_rows = 5.0 / 3, passes_of_logarithms = 4.0 / 3;
#define PITCHED(name, body, Group) IKAT_PITCHED(name, (body<T, Group>), Group::block, blocks_of<Group>, "y", "dy", "dx")

// ---- the recipes

constexpr Recipe softmax_backward_recipe{
    .call = "softmax_backward(queue, y, dy, dx)",
    .kernels = {row_variant("dx = y (dy - sum of y dy), a warp per row: for up to 512 columns",
                            IKAT_FLOATS(softmax_backward_warp<T>()),
                            PITCHED("softmax_backward_warp", softmax_gradient_of, WarpGroup), rows_to<WarpGroup>,
                            passes_of_long_rows, 512),
                row_variant("dx = y (dy - sum of y dy), a block per row: for up to 4096 columns",
                            IKAT_FLOATS(softmax_backward_block<T>()),
                            PITCHED("softmax_backward_block", softmax_gradient_of, Block), rows_to<Block>,
                            passes_of_long_rows, 4096),
                IKAT_SHARED_ROWS(
                    in_shared, "dx = y (dy - sum of y dy), a block per row, which it keeps in shared memory",
                    "softmax_backward", (shared_kernel<T, softmax_gradient_of<T, OfBlock>>("softmax_backward_shared")),
                    softmax_gradient_of, "y", "dy", "dx"),
                row_variant("dx = y (dy - sum of y dy), a block of 512 threads per row",
                            IKAT_FLOATS(softmax_backward<T>()), PITCHED("softmax_backward", softmax_gradient_of, Wide),
                            rows_to<Wide>, passes_of_long_rows)},
    .operands = {{"y", "... columns"}, {"dy", "... columns"}, {"dx", "... columns", Access::Out}},
    .document =
        "y, dy and dx are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of\n"
        "16 bytes. Any sizes. y is what the function gave, dy its gradient. Each row by itself, computed in\n"
        "f32 and rounded once.",
    .sizes = {{"y", "rows columns"}, {"dy", "rows columns"}, {"dx", "rows columns"}},
    .reference = reference::softmax_backward,
    .traffic = "3 E s",
    .note = "the gradient of softmax from its result y; by the number of columns"};
constexpr Recipe log_softmax_backward_recipe{
    .call = "log_softmax_backward(queue, y, dy, dx)",
    .kernels = {row_variant("dx = dy - exp(y) sum of dy, a warp per row: for up to 512 columns",
                            IKAT_FLOATS(log_softmax_backward_warp<T>()),
                            PITCHED("log_softmax_backward_warp", log_softmax_gradient_of, WarpGroup),
                            rows_to<WarpGroup>, passes_of_logarithms, 512),
                row_variant("dx = dy - exp(y) sum of dy, a block per row: for up to 4096 columns",
                            IKAT_FLOATS(log_softmax_backward_block<T>()),
                            PITCHED("log_softmax_backward_block", log_softmax_gradient_of, Block), rows_to<Block>,
                            passes_of_logarithms, 4096),
                IKAT_SHARED_ROWS(in_shared,
                                 "dx = dy - exp(y) sum of dy, a block per row, which it keeps in shared memory",
                                 "log_softmax_backward",
                                 (shared_kernel<T, log_softmax_gradient_of<T, OfBlock>>("log_softmax_backward_shared")),
                                 log_softmax_gradient_of, "y", "dy", "dx"),
                row_variant("dx = dy - exp(y) sum of dy, a block of 512 threads per row",
                            IKAT_FLOATS(log_softmax_backward<T>()),
                            PITCHED("log_softmax_backward", log_softmax_gradient_of, Wide), rows_to<Wide>,
                            passes_of_logarithms)},
    .operands = softmax_backward_recipe.operands,
    .document = softmax_backward_recipe.document,
    .sizes = softmax_backward_recipe.sizes,
    .reference = reference::log_softmax_backward,
    .traffic = "3 E s",
    .note = "the gradient of log_softmax from its result y; by the number of columns"};

#define CAUSAL(made, Group, max_columns, summary)                                                                    \
    row_variant(summary, IKAT_FLOATS(made<T>()),                                                                     \
                IKAT_PITCHED(#made, (causal_gradient_of<T, Group>), Group::block, blocks_of<Group>, "y", "dy", "dx", \
                             "queries", "first_row"),                                                                \
                rows_to<Group>, passes_of_long_rows, max_columns)
constexpr Recipe softmax_causal_backward_recipe{
    .call = "softmax_causal_backward(queue, y, dy, dx)",
    .kernels = {CAUSAL(softmax_causal_backward_warp, WarpGroup, 512,
                       "softmax_backward up to the diagonal, a warp per row: for up to 512 columns"),
                CAUSAL(softmax_causal_backward_block, Block, 4096,
                       "softmax_backward up to the diagonal, a block per row: for up to 4096 columns"),
                IKAT_SHARED_ROWS(
                    in_shared, "softmax_backward up to the diagonal, a block per row, which it keeps in shared memory",
                    "softmax_causal_backward", shared_causal_kernel<T>(), causal_gradient_of, "y", "dy", "dx",
                    "queries", "first_row"),
                CAUSAL(softmax_causal_backward, Wide, ~0u,
                       "softmax_backward up to the diagonal, a block of 512 threads per row")},
    .operands = {{"y", "... rows columns"}, {"dy", "... rows columns"}, {"dx", "... rows columns", Access::Out}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { softmax_causal_backward(queue, arrays[0], arrays[1], arrays[2]); },
    .document =
        "y, dy and dx are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of\n"
        "16 bytes. They are matrices of `queries` rows, of which the first begins at row -first_row. Row i of a "
        "matrix\n"
        "has columns up to i + columns - queries; beyond that dx is 0, and nothing is read.",
    .sizes = softmax_backward_recipe.sizes,
    .reference = reference::softmax_causal_backward,
    .traffic = "2 E s",
    .note = "the gradient of softmax of causal scores from its result y; by the number of columns"};

}  // namespace ikat::stdlib
