// SPDX-License-Identifier: Apache-2.0
// The kernels of the gradients of norms, of rows of x and dy that are kept in registers or read again.
#pragma once
#include <optional>
#include <type_traits>

#include "dsl/kernel/optional.hpp"
#include "stdlib/backward/column_shares.hpp"
#include "stdlib/norm/moments.hpp"
#include "stdlib/tile/shared_rows.hpp"

namespace ikat::stdlib::norm_gradient {

using Block = BlockGroup<128>;
using Wide = BlockGroup<512>;
/// Of blocks, or clusters, that keep a row of x and of dy in shared memory, and the sums of its columns.
constexpr SharedRows in_shared(bool is_centred) {
    return {.threads = 512, .registers = 8192, .elements = 2, .floats = is_centred ? 2u : 1u, .in_columns = true};
}
using OfBlock = SharedGroup<in_shared(true).threads, 1>;
using OfCluster = SharedGroup<in_shared(true).threads, SharedRows::cluster>;
/// To a multiprocessor, by which each thread has 128 registers.
template <class Group>
constexpr std::uint32_t blocks_of = 512 / Group::block;
using detail::F, detail::find_moments, detail::Moments, detail::RunningMoments;

/// The arrays and numbers of a launch. Without dbeta it is the gradient of rmsnorm. `more` is where the rows of the
/// statistics and of the residual begin, in that order, if they do not follow each other.
template <class T>
struct Gradient {
    const In<T>&x, &dy, &gamma;
    const Optional<In<float>>& statistics;
    const Optional<In<T>>& residual;
    const Out<T>& dx;
    const InOut<float>& dgamma;
    const Optional<InOut<float>>& dbeta;
    const Optional<f32>& epsilon;
    const RowPlaces& more;

    bool is_centred() const { return bool(dbeta); }
    /// The number of a row's statistic.
    F statistic(const auto& row, std::uint32_t number) const {
        return value((*statistics)[more.template starts<1>(row, 2u)[RowPlaces::X] + number]);
    }
    /// dx of a vector of a row of `length` of these.
    template <int N>
    auto with_residual(const auto& dx, const auto& row, const auto& length, const auto& column) const {
        const auto array = statistics ? RowPlaces::Second : RowPlaces::X;
        return dx + load_lanes<N>(*residual, value(more.template starts<N>(row, length)[array] + column));
    }
    template <int N>
    void store(auto&& to, const auto& dx, const auto& row, const auto& length, const auto& column) const {
        if (residual)
            to(with_residual<N>(dx, row, length, column));
        else
            to(dx);
    }
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

/// From what the forward pass has stored, or by reading the row.
template <class T>
Norm norm_of(const Gradient<T>& of, const RowPlaces& places, const auto& x, const auto& row) {
    if (of.statistics) {
        const F zero = value(f32(0.0f));
        return {value(f32(1.0f)), of.is_centred() ? of.statistic(row, 0) : zero, of.statistic(row, 1)};
    }
    Moments moments;
    find_moments(moments, of.is_centred(), x, places.columns, *of.epsilon);
    return {value(moments.scale), value(moments.mean), value(moments.factor)};
}

/// The sums of g, and of g times the distance of x from the mean so far, in one pass.
template <class T>
struct RunningRow {
    RunningMoments moments{};
    f32 g = 0, gx = 0;

    RunningRow(const Gradient<T>& of, const auto& x, const auto& dy, const F& scale) {
        x.each_with(dy, [&](const auto& v, const auto& w, const auto& column) {
            constexpr int N = std::remove_cvref_t<decltype(v)>::lane_shape::lanes;
            const auto weights = load_lanes<N>(of.gamma, column);
            const Regs<f32, N> scaled = detail::each_of<N>(v, [&](const F& x) { return x * scale; });
            if (of.is_centred())
                gx -= g * moments.add<N>(scaled);
            else
                for (std::size_t k = 0; k < N; ++k) moments.squares = fma(scaled[k], scaled[k], moments.squares);
            for (std::size_t k = 0; k < N; ++k) {
                const F of_k = value(w[k] * weights[k]);
                g += of_k;
                gx = fma(of_k, of.is_centred() ? moments.distance(value(scaled[k])) : value(scaled[k]), gx);
            }
        });
    }
};
/// The means of g and of g n over a row that has a norm.
template <class T>
OfRow row_with(const Norm& norm, const Gradient<T>& of, const RowPlaces& places, const auto& x, const auto& dy) {
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
/// All in one pass; where the sum of g x overflows, and that of g n need not, in two.
template <class T>
OfRow row_at_once(const Gradient<T>& of, const RowPlaces& places, const auto& x, const auto& dy) {
    const F number = value(cast<f32>(places.columns));
    f32 scale = 1, mean = 0, variance, mean_of_g = 0, sum_of_gx;
    const auto find = [&] {
        const RunningRow<T> mine(of, x, dy, value(scale));
        if (of.is_centred()) {
            const auto all = mine.moments.all(x.group, places.columns);
            mean = all.mean, variance = all.squares / number;
            mean_of_g = x.group.sum(mine.g) / number;
            sum_of_gx = x.group.sum(f32(fma(mine.g, all.far, mine.gx)));
        } else {
            variance = x.group.sum(mine.moments.squares) / number;
            sum_of_gx = x.group.sum(mine.gx);
        }
    };
    find();
    detail::if_overflowed(variance, mean, scale, find);
    const F factor = detail::reciprocal_root(variance, *of.epsilon * scale * scale);
    const Norm norm{value(scale), value(mean), factor};
    f32 mean_of_gn = sum_of_gx / number * factor;
    if_(!(abs(sum_of_gx) <= std::numeric_limits<float>::max()),
        [&] { mean_of_gn = row_with(norm, of, places, x, dy).mean_of_gn; });
    OfRow out{norm, value(mean_of_gn), {}};
    if (of.is_centred()) out.mean_of_g.emplace(value(mean_of_g));
    return out;
}

template <class T>
OfRow row_of(const Gradient<T>& of, const RowPlaces& places, const auto& x, const auto& dy, const auto& row) {
    if (x.is_read_again && !of.statistics) return row_at_once(of, places, x, dy);
    return row_with(norm_of(of, places, x, row), of, places, x, dy);
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
        const OfRow with = row_of(of, places, x, dy, row);
        const auto length = value(places.columns / std::uint32_t(N));
        x.each_vector([&](int k, const auto& column) {
            const auto store = [&](const auto& dx) { x.store(of.dx, k, dx); };
            of.template store<N>(store, sums[k].add(with, x[k], dy[k], load_lanes<N>(of.gamma, column)), row, length,
                                 column);
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
                const auto store = [&](const auto& dx) { store_lanes(of.dx, at[RowPlaces::Y], dx); };
                of.template store<N>(store, sums.add(with, v, w, weights), row, length, column);
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
            const OfRow with = row_of(of, places, x, dy, row);
            if_(Group::thread() == 0, [&] { keep(rows, value(row - from), with); });
        }
        sync_block();
        finish_tile<T, Group>(of, places, rows, from, to);
    }
}

/// Rows in shared memory, by a block or a cluster. A thread has the same columns of all of them, and their sums.
template <class T, class Group>
void shared_rows(const Gradient<T>& of, const RowPlaces& places) {
    require_linear_grid();
    require_threads(Group::block);
    const auto number = value(Group::row()), columns = value(places.columns);
    const RowShare share = share_of_rows(places.rows, number, value(grid_dim().x / Group::blocks));
    const SharedRowMemory<Group, T> memory(places.columns, in_shared(of.is_centred()));
    const SharedSums<Group, T> of_gamma(memory);
    std::optional<SharedSums<Group, T>> of_beta;
    if (of.is_centred()) of_beta.emplace(memory);
    sync_block();
    for (auto row : range(share.first, share.last).unroll(1)) {
        const SharedColumns<Group, T> of_row(places, row, columns, true);
        const SharedRow<Group, T> x(of.x, memory.row(0), of_row), dy(of.dy, memory.row(1), of_row, RowPlaces::Second);
        const OfRow with = row_of(of, places, x, dy, row);
        x.each_pair(dy, [&]<int N>(Width<N>, const auto& v, const auto& w, const auto& at, const auto& column,
                                   const auto& place) {
            Sums<N> sums;
            sums.gamma = of_gamma.template load<N>(place);
            if (of_beta) sums.beta = of_beta->template load<N>(place);
            const auto dx = sums.add(with, v, w, load_lanes<N>(of.gamma, column));
            of_gamma.template store<N>(place, sums.gamma);
            if (of_beta) of_beta->template store<N>(place, sums.beta);
            const auto store = [&](const auto& dx) { store_lanes(of.dx, at[RowPlaces::Y], dx); };
            of.template store<N>(store, dx, row, value(columns / std::uint32_t(N)), column);
        });
    }
    SharedColumns<Group, T>(places, value(u32(0u)), columns, true)
        .each_place([&]<int N>(Width<N>, const auto&, const auto& column, const auto& place) {
            Sums<N> sums;
            sums.gamma = of_gamma.template load<N>(place);
            if (of_beta) sums.beta = of_beta->template load<N>(place);
            store_sums(of, sums, value(number * columns + column * std::uint32_t(N)));
        });
}

template <class T, KeepsInShared Group>
void gradient_of(const Gradient<T>& of, const RowPlaces& places) {
    shared_rows<T, Group>(of, places);
}
template <class T, class Group>
void gradient_of(const Gradient<T>& of, const RowPlaces& places) {
    const RowShare share = share_of_rows(places.rows, value(block_id().x), value(grid_dim().x));
    detail::choose_rows<Group, T, kept_vectors_of_pair<T>>(
        places, [&] { kept_rows<T, Group>(of, places, share); },
        [&] { streamed_rows<T, BlockGroup<Group::block>>(of, places, share); });
}

}  // namespace ikat::stdlib::norm_gradient
