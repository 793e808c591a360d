// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/norm_backward.hpp"

#include <algorithm>
#include <optional>

#include "stdlib/backward/column_shares.hpp"
#include "stdlib/backward/row_variant.hpp"
#include "stdlib/norm/moments.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<128>;
using Wide = BlockGroup<512>;
/// To a multiprocessor, by which each thread has 128 registers.
template <class Group>
constexpr std::uint32_t blocks_of = 512 / Group::block;
using detail::F, detail::find_moments, detail::Moments;

/// The arrays and numbers of a launch. Without dbeta it is the gradient of rmsnorm.
template <class T>
struct Gradient {
    const In<T>&x, &dy, &gamma;
    const Out<T>& dx;
    const InOut<float>&dgamma, *dbeta;
    const f32& epsilon;

    bool is_centred() const { return dbeta != nullptr; }
};

/// What norms a row, see Moments.
struct Norm {
    F scale, mean, factor;

    F normed(const F& x) const { return value(fma(x, scale, -mean) * factor); }
};
/// What the elements of a row have in common: with g = dy gamma and n the normed row, means over the row.
struct OfRow : Norm {
    F mean_of_gn;
    std::optional<F> mean_of_g;  // of rows with a mean

    F dx(const F& g, const F& n) const {
        const F centred = mean_of_g ? value(g - *mean_of_g) : g;
        return value((centred - n * mean_of_gn) * (factor * scale));
    }
};

template <class T>
OfRow row_of(const Gradient<T>& of, const RowPlaces& places, const auto& x, const auto& dy) {
    Moments moments;
    find_moments(moments, of.is_centred(), x, places.columns, of.epsilon);
    const Norm norm{value(moments.scale), value(moments.mean), value(moments.factor)};
    f32 sum_of_g = 0, sum_of_gn = 0;
    x.each_with(dy, [&](const auto& v, const auto& w, const auto& column) {
        constexpr int N = std::remove_cvref_t<decltype(v)>::lane_shape::lanes;
        const auto weights = load_lanes<N>(of.gamma, column);
        for (std::size_t k = 0; k < N; ++k) {
            const F g = value(w[k] * weights[k]);
            if (of.is_centred()) sum_of_g += g;
            sum_of_gn += g * norm.normed(value(v[k]));
        }
    });
    const auto mean_of = [&](const f32& sum) { return value(x.group.sum(sum) / cast<f32>(places.columns)); };
    const F mean_of_gn = mean_of(sum_of_gn);
    if (!of.is_centred()) return {norm, mean_of_gn, {}};
    return {norm, mean_of_gn, mean_of(sum_of_g)};
}

/// The sums over rows of a thread's columns.
template <int N>
struct Sums {
    Regs<f32, N> gamma, beta;

    void clear() {
        for (std::size_t k = 0; k < N; ++k) gamma[k] = 0, beta[k] = 0;
    }
    /// Adds a vector of a row, and gives its dx.
    auto add(const OfRow& row, const auto& v, const auto& w, const auto& weights) {
        for (std::size_t k = 0; k < N; ++k) {
            gamma[k] += w[k] * row.normed(value(v[k]));
            if (row.mean_of_g) beta[k] += w[k];
        }
        return each_lane(
            [&](const F& x, const F& dy, const F& weight) { return row.dx(value(dy * weight), row.normed(x)); }, v, w,
            weights);
    }
};

/// The sums of a vector, which are from dgamma[at] and dbeta[at] on.
template <int N, class T>
void store_sums(const Gradient<T>& of, const Sums<N>& sums, const auto& at) {
    for (std::size_t k = 0; k < N; ++k) {
        of.dgamma[at + std::uint32_t(k)] = sums.gamma[k];
        if (of.is_centred()) (*of.dbeta)[at + std::uint32_t(k)] = sums.beta[k];
    }
}
template <int N, class T>
void add_to_sums(const Gradient<T>& of, const Sums<N>& sums, const auto& at) {
    for (std::size_t k = 0; k < N; ++k) {
        of.dgamma[at + std::uint32_t(k)] += sums.gamma[k];
        if (of.is_centred()) (*of.dbeta)[at + std::uint32_t(k)] += sums.beta[k];
    }
}

/// Stores the sums of a block of which each warp has had rows of its own: those of its warps, in their order.
template <int K, int N>
void store_sums_of_warps(const InOut<float>& to, const Sums<N>* sums, auto&& which, const u32& columns) {
    Shared<float, WarpGroup::rows_of_block, 32 * K * N> of_warp;
    for (int k = 0; k < K; ++k)
        for (std::size_t lane = 0; lane < N; ++lane)
            of_warp[warp_id(), (lane_id() + 32u * std::uint32_t(k)) * std::uint32_t(N) + std::uint32_t(lane)] =
                which(sums[k])[lane];
    sync_block();
    for (auto column : range(thread_id().x, columns, WarpGroup::block)) {
        f32 total = of_warp[0, column];
        for (std::uint32_t warp = 1; warp < WarpGroup::rows_of_block; ++warp) total += of_warp[warp, column];
        to[block_id().x * columns + column] = total;
    }
}

/// Rows that fit are read once. A thread has the same columns of all of them.
template <class T, class Group>
void kept_rows(const Gradient<T>& of, const RowPlaces& places, const RowShare& share) {
    constexpr int K = kept_vectors_of_pair<T>, N = lanes_of<T>;
    using Row = KeptRow<Group, T, K>;
    Sums<N> sums[K];
    for (auto& each : sums) each.clear();
    for (auto row : range(share.first + Group::number(), share.last, Group::rows_of_block).unroll(1)) {
        const auto x = Row::in_columns(of.x, places, row), dy = Row::in_columns(of.dy, places, row, RowPlaces::Second);
        const OfRow with = row_of(of, places, x, dy);
        x.each_vector([&](int k, const auto& column) {
            x.store(of.dx, k, sums[k].add(with, x[k], dy[k], load_lanes<N>(of.gamma, column)));
        });
    }
    if constexpr (Group::rows_of_block > 1) {
        const auto of_gamma = [](const auto& of_thread) -> const auto& { return of_thread.gamma; };
        const auto of_beta = [](const auto& of_thread) -> const auto& { return of_thread.beta; };
        store_sums_of_warps<K, N>(of.dgamma, sums, of_gamma, places.columns);
        if (of.is_centred()) store_sums_of_warps<K, N>(*of.dbeta, sums, of_beta, places.columns);
        return;
    }
    for (int k = 0; k < K; ++k) {
        const auto first = value((Group::thread() + std::uint32_t(k) * Group::threads) * std::uint32_t(N));
        if_(first < places.columns, [&] { store_sums(of, sums[k], value(block_id().x * places.columns + first)); });
    }
}

constexpr std::uint32_t rows_of_tile = 32;
using TileRows = Shared<float, rows_of_tile, 5>;

void keep(const TileRows& rows, const auto& i, const OfRow& of) {
    rows[i, 0] = of.scale, rows[i, 1] = of.mean, rows[i, 2] = of.factor, rows[i, 3] = of.mean_of_gn;
    if (of.mean_of_g) rows[i, 4] = *of.mean_of_g;
}
OfRow kept_row(const TileRows& rows, const auto& i, bool is_centred) {
    const auto number = [&](std::uint32_t k) { return value(f32(rows[i, k])); };
    OfRow out{{number(0), number(1), number(2)}, number(3), {}};
    if (is_centred) out.mean_of_g.emplace(number(4));
    return out;
}

/// For the columns of each thread, down the rows of a tile, whose numbers are known.
template <class T, class Group>
void finish_tile(const Gradient<T>& of, const RowPlaces& places, const TileRows& rows, const auto& from,
                 const auto& to) {
    with_width<T>(places.unit(), [&]<int N>(Width<N>) {
        const auto length = value(places.columns / std::uint32_t(N));
        for (auto column : range(Group::thread(), length, Group::threads).unroll(1)) {
            const auto weights = value(load_lanes<N>(of.gamma, column));
            const auto place = value(block_id().x * places.columns + column * std::uint32_t(N));
            Sums<N> sums;
            sums.clear();
            for (auto row : range(from, to).unroll(1)) {
                const auto at = places.further(places.starts<N>(row, length), column);
                const auto v = load_lanes<N>(of.x, at[RowPlaces::X]), w = load_lanes<N>(of.dy, at[RowPlaces::Second]);
                const OfRow with = kept_row(rows, value(row - from), of.is_centred());
                store_lanes(of.dx, at[RowPlaces::Y], sums.add(with, v, w, weights));
            }
            add_to_sums(of, sums, place);
        }
    });
}

/// Rows that are read again in each pass, by the whole block, in tiles: first what each row has in common, then down
/// the columns.
template <class T, class Group>
void streamed_rows(const Gradient<T>& of, const RowPlaces& places, const RowShare& share) {
    using Row = StreamedRow<Group, T>;
    for (auto column : range(Group::thread(), places.columns, Group::threads).unroll(1)) {
        const auto place = value(block_id().x * places.columns + column);
        of.dgamma[place] = 0;
        if (of.is_centred()) (*of.dbeta)[place] = 0;
    }
    const TileRows rows;
    for (auto from : range(share.first, share.last, rows_of_tile).unroll(1)) {
        const auto to = value(from + min(share.last - from, rows_of_tile));
        sync_block();
        for (auto row : range(from, to).unroll(1)) {
            const auto active = value(row < to);
            const Row x(of.x, places, row, active), dy(of.dy, places, row, active, RowPlaces::Second);
            const OfRow with = row_of(of, places, x, dy);
            if_(Group::thread() == 0, [&] { keep(rows, value(row - from), with); });
        }
        sync_block();
        finish_tile<T, Group>(of, places, rows, from, to);
    }
}

template <class T, class Group>
void gradient_of(const Gradient<T>& of, const RowPlaces& places) {
    const RowShare share = share_of_rows(places.rows, value(block_id().x), value(grid_dim().x));
    detail::choose_rows<Group, T, kept_vectors_of_pair<T>>(
        places, [&] { kept_rows<T, Group>(of, places, share); },
        [&] { streamed_rows<T, BlockGroup<Group::block>>(of, places, share); });
}
template <class T, class Group>
void rmsnorm_gradient_of(const RowPlaces& places, const In<T>& x, const In<T>& dy, const In<T>& gamma, const Out<T>& dx,
                         const InOut<float>& dgamma, const f32& epsilon) {
    gradient_of<T, Group>({x, dy, gamma, dx, dgamma, nullptr, epsilon}, places);
}
template <class T, class Group>
void layernorm_gradient_of(const RowPlaces& places, const In<T>& x, const In<T>& dy, const In<T>& gamma,
                           const Out<T>& dx, const InOut<float>& dgamma, const InOut<float>& dbeta,
                           const f32& epsilon) {
    gradient_of<T, Group>({x, dy, gamma, dx, dgamma, &dbeta, epsilon}, places);
}

template <class T, class Group>
RmsnormBackwardKernel<T> make_rmsnorm_backward(const char* name) {
    return kernel(
               name_of<T>(name), params("x", "dy", "gamma", "dx", "dgamma", "rows", "columns", "epsilon"),
               [](In<T> x, In<T> dy, In<T> gamma, Out<T> dx, InOut<float> dgamma, u32 rows, u32 columns, f32 epsilon) {
                   rmsnorm_gradient_of<T, Group>(RowPlaces(rows, columns), x, dy, gamma, dx, dgamma, epsilon);
               })
        .require(aligned<16>("x"), aligned<16>("dy"), aligned<16>("gamma"), aligned<16>("dx"))
        .require(at_least("x", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .require(at_least("gamma", "columns"), at_least("dgamma", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}
template <class T, class Group>
LayernormBackwardKernel<T> make_layernorm_backward(const char* name) {
    return kernel(name_of<T>(name), params("x", "dy", "gamma", "dx", "dgamma", "dbeta", "rows", "columns", "epsilon"),
                  [](In<T> x, In<T> dy, In<T> gamma, Out<T> dx, InOut<float> dgamma, InOut<float> dbeta, u32 rows,
                     u32 columns, f32 epsilon) {
                      layernorm_gradient_of<T, Group>(RowPlaces(rows, columns), x, dy, gamma, dx, dgamma, dbeta,
                                                      epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("dy"), aligned<16>("gamma"), aligned<16>("dx"))
        .require(at_least("x", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .require(at_least("gamma", "columns"), at_least("dgamma", "columns"), at_least("dbeta", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}

/// A block has 32 rows for each sum, so that what is stored in between is little, but where there are few rows.
std::uint32_t blocks_for(std::uint32_t rows, std::uint32_t sums) {
    const std::uint32_t few = std::min(64u, rows / 8);
    return std::clamp(rows / (32 * sums), std::max(few, 1u), 1024u);
}
template <std::uint32_t sums>
std::uint32_t shares_of(const Call& call) {
    return blocks_for(call["rows"], sums);
}

/// All rows by one block.
template <class Group>
Grid one_share(const Call&) {
    return {{1}, {Group::block}};
}
/// For the kernel that a function takes for that many columns.
Grid grid_of(const Call& call, std::uint32_t shares) {
    const std::uint32_t columns = call["columns"];
    return {{shares}, {columns <= 512 ? WarpGroup::block : columns <= 2048 ? Block::block : Wide::block}};
}

std::uint64_t bytes_for(std::uint32_t rows, std::uint64_t columns, std::uint32_t sums) {
    return sums * Workspace::rounded(blocks_for(rows, sums) * columns * sizeof(float));
}
template <std::uint32_t sums>
std::uint64_t workspace_of_call(const Call& call) {
    return bytes_for(call["rows"], call["columns"], sums);
}

void launch_rmsnorm(Steps& steps) { launch_column_shares<1>(steps, {"dgamma"}, shares_of<1>, grid_of); }
void launch_layernorm(Steps& steps) { launch_column_shares<2>(steps, {"dgamma", "dbeta"}, shares_of<2>, grid_of); }

}  // namespace

template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward_warp() {
    static const auto made = make_rmsnorm_backward<T, WarpGroup>("rmsnorm_backward_warp");
    return made;
}
template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward_block() {
    static const auto made = make_rmsnorm_backward<T, Block>("rmsnorm_backward_block");
    return made;
}
template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward() {
    static const auto made = make_rmsnorm_backward<T, Wide>("rmsnorm_backward");
    return made;
}
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward_warp() {
    static const auto made = make_layernorm_backward<T, WarpGroup>("layernorm_backward_warp");
    return made;
}
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward_block() {
    static const auto made = make_layernorm_backward<T, Block>("layernorm_backward_block");
    return made;
}
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward() {
    static const auto made = make_layernorm_backward<T, Wide>("layernorm_backward");
    return made;
}

std::uint64_t norm_backward_workspace(const TensorView& x, const TensorView& dy, const TensorView& dx) {
    return workspace_of_parts(RowLayout({&x, &dy, &dx}, true), [](std::uint32_t rows, std::uint32_t columns) {
        return std::max(bytes_for(rows, columns, 1), bytes_for(rows, columns, 2));
    });
}

void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const WorkspaceSlice& workspace) {
    run_rows({queue, rmsnorm_backward_recipe, {x, dy, gamma, dx, dgamma}, workspace}, {epsilon});
}
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const WorkspaceSlice& workspace) {
    run_rows({queue, layernorm_backward_recipe, {x, dy, gamma, dx, dgamma, dbeta}, workspace}, {epsilon});
}

IKAT_INSTANTIATE(rmsnorm_backward_warp)
IKAT_INSTANTIATE(rmsnorm_backward_block)
IKAT_INSTANTIATE(rmsnorm_backward)
IKAT_INSTANTIATE(layernorm_backward_warp)
IKAT_INSTANTIATE(layernorm_backward_block)
IKAT_INSTANTIATE(layernorm_backward)

// A kernel of a recipe, with its pitched ones.
#define RMSNORM(made, Group, max_columns, summary)                                                              \
    row_variant(summary, IKAT_FLOATS(made<T>()),                                                                \
                IKAT_PITCHED(#made, (rmsnorm_gradient_of<T, Group>), Group::block, blocks_of<Group>, "x", "dy", \
                             "gamma", "dx", "dgamma", "epsilon"),                                               \
                one_share<Group>, 2, max_columns)
#define LAYERNORM(made, Group, max_columns, summary)                                                              \
    row_variant(summary, IKAT_FLOATS(made<T>()),                                                                  \
                IKAT_PITCHED(#made, (layernorm_gradient_of<T, Group>), Group::block, blocks_of<Group>, "x", "dy", \
                             "gamma", "dx", "dgamma", "dbeta", "epsilon"),                                        \
                one_share<Group>, 7.0 / 3, max_columns)

// ---- the recipes

constexpr Recipe rmsnorm_backward_recipe{
    .call = "rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, epsilon, workspace)",
    .kernels = {RMSNORM(rmsnorm_backward_warp, WarpGroup, 512,
                        "the gradients of rmsnorm, a warp per row of up to 512 columns"),
                RMSNORM(rmsnorm_backward_block, Block, 2048,
                        "the gradients of rmsnorm, a block per row of up to 2048 columns"),
                RMSNORM(rmsnorm_backward, Wide, ~0u, "the gradients of rmsnorm, a block of 512 threads per row")},
    .operands = {{"x", "... columns"},
                 {"dy", "... columns"},
                 {"gamma", "columns"},
                 {"dx", "... columns", Access::Out},
                 {"dgamma", "columns", Access::Out, ir::Type::F32}},
    .settings = {{"epsilon", "what was added under the root, such as 1e-5"}},
    .document =
        "x, dy and dx are row-major, rows x columns, with fewer than 2^32 elements; gamma, dgamma and dbeta\n"
        "have an element for each column. All begin at multiples of 16 bytes. Any sizes. dx is computed in\n"
        "f32 over each row and rounded once; dgamma and dbeta are sums over all rows, in f32.",
    .sizes = {{"x", "rows columns"},
              {"dy", "rows columns"},
              {"gamma", "columns"},
              {"dx", "rows columns"},
              {"dgamma", "columns"},
              {"dbeta", "columns"}},
    .steps = launch_rmsnorm,
    .workspace = workspace_of_call<1>,
    .reference = reference::rmsnorm_backward,
    .traffic = "3 E s",
    .note = "dx, and dgamma in f32; two launches, no atomics, the same result in every run"};
constexpr Recipe layernorm_backward_recipe{
    .call = "layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, epsilon, workspace)",
    .kernels = {LAYERNORM(layernorm_backward_warp, WarpGroup, 512,
                          "the gradients of layernorm, a warp per row of up to 512 columns"),
                LAYERNORM(layernorm_backward_block, Block, 2048,
                          "the gradients of layernorm, a block per row of up to 2048 columns"),
                LAYERNORM(layernorm_backward, Wide, ~0u, "the gradients of layernorm, a block of 512 threads per row")},
    .operands = {{"x", "... columns"},
                 {"dy", "... columns"},
                 {"gamma", "columns"},
                 {"dx", "... columns", Access::Out},
                 {"dgamma", "columns", Access::Out, ir::Type::F32},
                 {"dbeta", "columns", Access::Out, ir::Type::F32}},
    .settings = rmsnorm_backward_recipe.settings,
    .document = rmsnorm_backward_recipe.document,
    .sizes = rmsnorm_backward_recipe.sizes,
    .steps = launch_layernorm,
    .workspace = workspace_of_call<2>,
    .reference = reference::layernorm_backward,
    .traffic = "3 E s",
    .note = "dx, and dgamma and dbeta in f32; two launches, no atomics, the same result in every run"};

}  // namespace ikat::stdlib
