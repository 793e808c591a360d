// SPDX-License-Identifier: Apache-2.0
// Rows of a matrix that are too long for registers, each kept in the shared memory of a block, or of a cluster of
// blocks, from sm_90 on. The functions of rows.hpp take these for a SharedGroup:
//
//     with_row<SharedGroup<1024, 1>, float, 0>(x, places, [&](const auto& row) { ... });
//
// A thread reads what it has stored there itself, so no barrier is needed. The launch is shared_row_grid<Group,
// E>(rows, columns), which has the dynamic shared memory that SharedRows says (spec/shared_rows.hpp). A kernel of a
// group of several blocks has as many in its clusters: kernel(...).cluster(8).
#pragma once
#include <algorithm>
#include <string_view>

#include "codegen/kernel/kernel_info.hpp"
#include "dsl/threads/cluster.hpp"
#include "stdlib/spec/recipe.hpp"
#include "stdlib/spec/shared_rows.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

/// `count` blocks, 1 or a cluster, of so many threads work on a row.
template <std::uint32_t threads_of_block, std::uint32_t count>
struct SharedGroup {
    static constexpr std::uint32_t block = threads_of_block, blocks = count, threads = block * count;
    static auto rank() {
        if constexpr (count == 1)
            return value(u32(0u));
        else
            return value(cluster_rank());
    }
    static auto thread() { return value(rank() * block + thread_id().x); }
    /// Of the row that the block has, which all blocks of a cluster have.
    static auto row() { return value(block_id().x / count); }
    /// Over all threads, which all get the result.
    static auto sum(const auto& v) { return over_blocks(value(block_sum(v)), plus); }
    static auto max(const auto& v) { return over_blocks(value(block_max(v)), maximum); }

private:
    /// In the order of the blocks.
    template <class V>
    static auto over_blocks(const V& of_this, auto&& combine) {
        if constexpr (count == 1) {
            return of_this;
        } else {
            Shared<DeviceTypeOf<V>, 1> from_block;
            if_(thread_id().x == 0, [&] { from_block[0] = of_this; });
            cluster_sync();
            Var total = value(peer(from_block, 0u)[0]);
            for (std::uint32_t rank = 1; rank < count; ++rank) total = combine(total, peer(from_block, rank)[0]);
            cluster_sync();
            return value(total);
        }
    }
};

/// A SharedGroup.
template <class Group>
concept KeepsInShared = requires {
    Group::blocks;
};

/// Dynamic shared memory for rows in a kernel that is being captured.
template <class Group, class E>
class SharedRowMemory {
    static constexpr std::uint32_t lanes = lanes_of<E>;

public:
    SharedRowMemory(const u32& columns, const SharedRows& of)
        : of_row_(value(of.vectors(columns, lanes, Group::blocks) * (Group::block * lanes))),
          all_(dynamic_shared<E>(value(of_row_ * of.elements))) {}
    /// Of a row, with those that threads have room for.
    const auto& elements() const { return of_row_; }
    /// Where it is.
    auto row(std::uint32_t number) const { return all_.slice(value(of_row_ * number)); }

private:
    Leaf<std::uint32_t> of_row_;  // elements
    DynamicShared<E> all_;
};

/// The first columns of a row, and where the threads keep them.
template <class Group, class E>
class SharedColumns {
public:
    /// If `in_columns`, a thread has the same columns in every row, wherever that begins. The places must outlive this.
    SharedColumns(const RowPlaces& places, const auto& row, const auto& columns, bool in_columns = false)
        : places_(places), row_(row), columns_(columns), in_columns_(in_columns) {}

    /// body(Width<N>, i, column, place) for the vectors of this thread: i counts vectors of N elements in each array,
    /// column those of the row, place those of what is kept.
    template <unsigned unroll = 1>
    void each_place(auto&& body) const {
        with_width<E>(places_.unit(), [&]<int N>(Width<N> width) {
            const auto first = places_.template starts<N>(row_, value(places_.columns / std::uint32_t(N)));
            const auto thread = Group::thread();
            const auto before = in_columns_ ? value(u32(0u)) : value(place_in_line<N, E>(first[RowPlaces::X]));
            const auto from = value(select(thread < before, thread + Group::threads, thread) - before);
            const auto count = value((columns_ + std::uint32_t(N - 1)) / std::uint32_t(N));
            for (auto column : range(from, count, Group::threads).unroll(unroll)) {
                const auto round = value((column + before) / Group::threads);
                body(width, places_.further(first, column), column, value(round * Group::block + thread_id().x));
            }
        });
    }

private:
    const RowPlaces& places_;
    Leaf<std::uint32_t> row_, columns_;
    bool in_columns_;
};

/// A row that is read once.
template <class Group, class E>
class SharedRow {
    using Memory = Indexable<E, Direction::ReadWrite>;

public:
    static constexpr bool is_read_again = false, is_in_registers = false;

    /// `array` is the number of x among the arrays of the places.
    SharedRow(const auto& x, const Memory& memory, const SharedColumns<Group, E>& columns,
              RowPlaces::Array array = RowPlaces::X)
        : memory_(memory), columns_(columns) {
        columns_.template each_place<4>([&]<int N>(Width<N>, const auto& at, const auto&, const auto& place) {
            copy_lanes<N>(memory_, place, x, at[array]);
        });
    }

    Group group;

    /// As those of a StreamedRow.
    void each(auto&& body) const {
        columns_.each_place([&]<int N>(Width<N>, const auto&, const auto& column, const auto& place) {
            body(load_lanes<N>(memory_, place), column);
        });
    }
    void map(const auto& y, auto&& f, const auto&... more) const {
        columns_.each_place([&]<int N>(Width<N>, const auto& at, const auto& column, const auto& place) {
            detail::store_mapped<N>(y, std::tuple{load_lanes<N>(memory_, place)}, at[RowPlaces::Y], column, f, more...);
        });
    }
    void each_with(const SharedRow& second, auto&& body) const {
        each_pair(second, [&]<int N>(Width<N>, const auto& v, const auto& w, const auto&, const auto& column,
                                     const auto&) { body(v, w, column); });
    }
    void map_with(const SharedRow& second, const auto& y, auto&& f, const auto&... more) const {
        each_pair(second,
                  [&]<int N>(Width<N>, const auto& v, const auto& w, const auto& at, const auto& column, const auto&) {
                      detail::store_mapped<N>(y, std::tuple{v, w}, at[RowPlaces::Y], column, f, more...);
                  });
    }
    /// body(Width<N>, lanes, lanes of the second row, i, column, place); see SharedColumns.
    void each_pair(const SharedRow& second, auto&& body) const {
        columns_.each_place([&]<int N>(Width<N> width, const auto& at, const auto& column, const auto& place) {
            body(width, load_lanes<N>(memory_, place), load_lanes<N>(second.memory_, place), at, column, place);
        });
    }
    template <class F>
    MappedRow<SharedRow, F> mapped(const F& f) const {
        return {*this, f};
    }
    /// The row becomes x + total, rounded, and total[i] too.
    void add_to(const InOut<E>& total) {
        columns_.template each_place<4>([&]<int N>(Width<N>, const auto& at, const auto&, const auto& place) {
            const auto& i = at[RowPlaces::Second];
            store_lanes(memory_, place, load_lanes<N>(memory_, place) + load_lanes<N>(total, i));
            copy_lanes<N>(total, i, memory_, place);
        });
    }

private:
    Memory memory_;
    SharedColumns<Group, E> columns_;
};

/// Sums of a thread's columns, as many as a row of E has.
template <class Group, class E>
class SharedSums {
public:
    /// As many as `rows` has room for; 0 after the next barrier.
    explicit SharedSums(const SharedRowMemory<Group, E>& rows)
        : elements_(rows.elements()), all_(dynamic_shared<float>(elements_)) {
        for (auto i : range(thread_id().x, elements_, Group::block).unroll(1)) all_[i] = 0.0f;
    }
    /// Those of a vector of N elements, in pieces of up to four floats: neighbouring threads have neighbouring pieces.
    template <int N>
    Regs<f32, N> load(const auto& place) const {
        Regs<f32, N> out;
        each_piece<N>(place, [&]<int M>(Width<M>, const auto& at, std::size_t from) {
            const auto lanes = load_lanes<M>(all_, at);
            for (std::size_t k = 0; k < M; ++k) out[from + k] = lanes[k];
        });
        return out;
    }
    template <int N>
    void store(const auto& place, const Regs<f32, N>& sums) const {
        each_piece<N>(place, [&]<int M>(Width<M>, const auto& at, std::size_t from) {
            Regs<f32, M> lanes;
            for (std::size_t k = 0; k < M; ++k) lanes[k] = sums[from + k];
            store_lanes(all_, at, lanes);
        });
    }

private:
    template <int N>
    void each_piece(const auto& place, auto&& body) const {
        constexpr int M = std::min(N, 4);
        for (int piece = 0; piece < N / M; ++piece)
            body(Width<M>{}, value(place + elements_ / std::uint32_t(N) * std::uint32_t(piece)),
                 std::size_t(piece * M));
    }

    Leaf<std::uint32_t> elements_;
    DynamicShared<float> all_;
};

namespace detail {

/// f(the row of the group, how many columns it has: none if there is no such row).
template <KeepsInShared Group>
void with_shared_row(const RowPlaces& places, auto&& f) {
    require_linear_grid();
    require_threads(Group::block);
    const auto row = Group::row();
    f(row, value(select(row < places.rows, value(places.columns), 0u)));
}

}  // namespace detail

/// As those of rows.hpp.
template <KeepsInShared Group, class E, int K>
void with_row(const In<E>& x, const RowPlaces& places, auto&& body) {
    const SharedRowMemory<Group, E> memory(places.columns, {.threads = Group::block});
    detail::with_shared_row<Group>(places, [&](const auto& row, const auto& columns) {
        body(SharedRow<Group, E>(x, memory.row(0), SharedColumns<Group, E>(places, row, columns)));
    });
}
template <KeepsInShared Group, class E, int K>
void with_row_pair(const In<E>& x, const In<E>& second, const RowPlaces& places, auto&& body) {
    const SharedRowMemory<Group, E> memory(places.columns, {.threads = Group::block, .elements = 2});
    detail::with_shared_row<Group>(places, [&](const auto& row, const auto& columns) {
        using Row = SharedRow<Group, E>;
        const SharedColumns<Group, E> all(places, row, columns);
        body(Row(x, memory.row(0), all), Row(second, memory.row(1), all, RowPlaces::Second));
    });
}
template <KeepsInShared Group, class E, int K>
void with_sum_of_rows(const In<E>& x, const InOut<E>& total, const RowPlaces& places, auto&& body) {
    with_row<Group, E, K>(x, places, [&](SharedRow<Group, E> row) {
        row.add_to(total);
        body(row);
    });
}

/// The kernel of a function void(const RowPlaces&, const P&...) for rows at pitches that the blocks of a cluster keep
/// together; see pitched_kernel(). Without saying that one block is enough, ptxas spills to fit two.
template <auto* body>
const auto& pitched_cluster_kernel(const char* name, std::uint32_t threads, auto... names) {
    static const auto made =
        detail::make_pitched(body, name, names...).launch_bounds(threads, 1).cluster(SharedRows::cluster);
    return made;
}
/// The dynamic shared memory of a launch. A number of bytes that no device has stands for more.
inline std::uint32_t dynamic_bytes(const SharedRows& of, std::uint32_t columns, std::uint64_t bytes,
                                   std::uint32_t blocks) {
    return std::uint32_t(std::min<std::uint64_t>(of.block_bytes(columns, bytes, blocks), ~0u / 2));
}

/// The launch of a kernel that calls with_row<Group> for rows of E, or with_sum_of_rows<Group>; or, with two arrays,
/// with_row_pair<Group>.
template <KeepsInShared Group, class E>
runtime::Grid shared_row_grid(std::uint32_t rows, std::uint32_t columns, std::uint32_t arrays = 1) {
    const SharedRows of{.threads = Group::block, .elements = arrays};
    return {.blocks = {rows * Group::blocks, 1, 1},
            .threads = {Group::block, 1, 1},
            .dynamic_shared_bytes = dynamic_bytes(of, columns, sizeof(E), Group::blocks)};
}

/// The same for recipes: each row has a block, or a cluster. The first parameter is an array of the rows' elements.
template <SharedRows of>
Grid shared_row_grid(const Call& call) {
    const std::uint32_t blocks = call.kernel().bounds.cluster_blocks();
    return {{call["rows"] * blocks},
            {of.threads},
            dynamic_bytes(of, call["columns"], info(call.arguments()[0].type).bytes, blocks)};
}
/// Such kernels in a recipe: for rows that follow each other, at pitches, and at pitches with a cluster for each.
/// IKAT_SHARED_ROWS makes them of a body for groups, given its first kernel and the names of its parameters.
template <SharedRows of>
constexpr Variant shared_row_variant(std::string_view summary, const Instances& instances, const Instances& pitched,
                                     const Instances& clusters) {
    return {.summary = summary,
            .instances = instances,
            .grid = shared_row_grid<of>,
            .passes = 1,
            .pitched = pitched,
            .shared = of,
            .clusters = clusters};
}
#define IKAT_SHARED_ROWS(of, text, name, made, body, ...)                                                \
    shared_row_variant<of>(                                                                              \
        text, IKAT_FLOATS(made),                                                                         \
        IKAT_PITCHED(name "_shared", (body<T, SharedGroup<of.threads, 1>>), of.threads, 1, __VA_ARGS__), \
        IKAT_FLOATS(pitched_cluster_kernel<body<T, SharedGroup<of.threads, SharedRows::cluster>>>(       \
            name_of<T>(name "_cluster"), of.threads, __VA_ARGS__)))

}  // namespace ikat::stdlib
