// SPDX-License-Identifier: Apache-2.0
// Rows of a matrix, each walked several times by a group of threads: the building block of softmax and the norms.
//
//     with_row<BlockGroup<256>, float, 8>(x, rows, columns, [&](const auto& row) {
//         f32 sum = 0;
//         row.each([&](const auto& v, const auto&) { for (const auto& x : v) sum += x; });      // the first pass
//         const auto mean = value(row.group.sum(sum) / cast<f32>(columns));
//         row.map(y, [&](const auto& x, const auto&...) { return x - mean; });                  // another, and the
//         result
//     });
//
// A row that fits is read once and kept in registers. A longer one, or one that is not a whole number of vectors, is
// read again in each pass. The lambda is recorded for both. Where several passes need f(x), row.mapped(f) is a row of
// these, which a kept row computes once. The lambda of a pass gets the lanes of a vector as f32 values, and the number
// of the vector in the row, for arrays that have one element per column. with_row_pair() is the same for a row of each
// of two arrays, of which the lambdas get the lanes together: row.each_with(second, f), row.map_with(second, y, f).
#pragma once
#include <tuple>

#include "runtime/launch/launch.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/tile/row_places.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

/// A warp works on a row.
struct WarpGroup {
    static constexpr std::uint32_t threads = 32, block = 128, rows_of_block = block / threads;
    static auto thread() { return value(lane_id()); }
    static auto number() { return value(warp_id()); }  // in its block
    static auto row() { return value(block_id().x * rows_of_block + warp_id()); }
    static auto sum(const auto& v) { return value(warp_sum(v)); }
    static auto max(const auto& v) { return value(warp_max(v)); }
};
/// A block of this many threads works on a row.
template <std::uint32_t count>
struct BlockGroup {
    static constexpr std::uint32_t threads = count, block = count, rows_of_block = 1;
    static auto thread() { return value(thread_id().x); }
    static auto number() { return 0u; }
    static auto row() { return value(block_id().x); }
    /// Over the threads of the block, all of which get the result.
    static auto sum(const auto& v) { return value(block_sum(v)); }
    static auto max(const auto& v) { return value(block_max(v)); }
};

namespace detail {

/// y[i] = f(v ..., more[column] ...), lane by lane, with a tuple of lanes v.
template <int N, class E, Direction direction>
void store_mapped(const Indexable<E, direction>& y, const auto& lanes, const auto& i, const auto& column, auto&& f,
                  const auto&... more) {
    const auto apply = [&](const auto&... v) { return each_lane(f, v...); };
    store_lanes(y, i, std::apply(apply, std::tuple_cat(lanes, std::tuple{load_lanes<N>(more, column)...})));
}

}  // namespace detail

/// f(x) of each element of a row that is read again in each pass: it is computed again, too.
template <class Row, class F>
class MappedRow {
public:
    MappedRow(const Row& row, const F& f) : group(row.group), row_(row), f_(f) {}

    decltype(Row::group) group;

    /// As those of the rows below.
    void each(auto&& body) const {
        row_.each([&](const auto& v, const auto& column) { body(each_lane(f_, v), column); });
    }
    void map(const auto& y, auto&& f, const auto&... more) const {
        row_.map(
            y, [&](const auto& x, const auto&... others) { return f(f_(x), others...); }, more...);
    }

private:
    const Row& row_;
    F f_;
};

/// A row that is read again in each pass; of x, an In or an InOut.
template <class Group, class E, class Array = In<E>>
class StreamedRow {
public:
    /// Whether each pass reads memory.
    static constexpr bool is_read_again = true, is_in_registers = false;

    /// `array` is the number of x among the arrays of the places, which must outlive this.
    StreamedRow(const Array& x, const RowPlaces& places, const auto& row, const auto& active,
                RowPlaces::Array array = RowPlaces::X)
        : x_(x),
          places_(places),
          array_(array),
          row_(row),
          columns_(value(select(active, value(places.columns), 0u))) {}

    Group group;

    /// body(lanes, column) for the vectors of this thread.
    void each(auto&& body) const {
        walk([&]<int N>(Width<N>, const auto& at, const auto& column) { body(load_lanes<N>(x_, at[array_]), column); });
    }
    /// y[i] = f(x[i], more[column] ...).
    void map(const auto& y, auto&& f, const auto&... more) const {
        walk([&]<int N>(Width<N>, const auto& at, const auto& column) {
            detail::store_mapped<N>(y, std::tuple{load_lanes<N>(x_, at[array_])}, at[RowPlaces::Y], column, f, more...);
        });
    }
    /// body(lanes, lanes of the same row of another array, column).
    void each_with(const StreamedRow& second, auto&& body) const {
        walk([&]<int N>(Width<N>, const auto& at, const auto& column) {
            body(load_lanes<N>(x_, at[array_]), load_lanes<N>(second.x_, at[second.array_]), column);
        });
    }
    /// y[i] = f(x[i], second[i], more[column] ...).
    void map_with(const StreamedRow& second, const auto& y, auto&& f, const auto&... more) const {
        walk([&]<int N>(Width<N>, const auto& at, const auto& column) {
            detail::store_mapped<N>(
                y, std::tuple{load_lanes<N>(x_, at[array_]), load_lanes<N>(second.x_, at[second.array_])},
                at[RowPlaces::Y], column, f, more...);
        });
    }
    /// A row of f(x), while this one lives.
    template <class F>
    MappedRow<StreamedRow, F> mapped(const F& f) const {
        return {*this, f};
    }

    /// total[i] += x[i], rounded. From then on the row is that of total.
    void add_to(const InOut<E>& total) const {
        walk([&]<int N>(Width<N>, const auto& at, const auto&) {
            const auto& i = at[RowPlaces::Second];
            const auto v = load_lanes<N>(x_, at[RowPlaces::X]), more = load_lanes<N>(total, i);
            store_lanes(total, i, v + more);
        });
    }
    /// body(Width<N>, at, column) for the vectors of this thread.
    void walk(auto&& body) const {
        const u32 columns = columns_;
        for_each_in_row<E>(places_, row_, columns, Group::thread(), Group::threads, body);
    }

private:
    Array x_;
    const RowPlaces& places_;
    RowPlaces::Array array_;
    Leaf<std::uint32_t> row_, columns_;
};

/// A row of whole vectors, at most `K` to a thread, in registers.
template <class Group, class E, int K>
class KeptRow {
    static constexpr int N = lanes_of<E>;

public:
    static constexpr bool is_read_again = false, is_in_registers = true;
    static constexpr std::uint32_t capacity = Group::threads * K * N;

    /// `array` is the number of x among the arrays of the places.
    KeptRow(const In<E>& x, const RowPlaces& places, const auto& row, const auto& active,
            RowPlaces::Array array = RowPlaces::X)
        : KeptRow(x, places.starts<N>(row, places.columns / std::uint32_t(N)),
                  value(select(active, value(places.columns / std::uint32_t(N)), 0u)), array, !places.has_pitches()) {}
    /// Whose thread has the same columns in every row, wherever that begins.
    static KeptRow in_columns(const In<E>& x, const RowPlaces& places, const auto& row,
                              RowPlaces::Array array = RowPlaces::X) {
        const auto length = value(places.columns / std::uint32_t(N));
        return {x, places.starts<N>(row, length), length, array, false};
    }
    /// Its first vectors alone.
    static KeptRow first_vectors(const In<E>& x, const RowPlaces& places, const auto& row, const auto& count,
                                 RowPlaces::Array array = RowPlaces::X) {
        return {x, places.starts<N>(row, places.columns / std::uint32_t(N)), count, array, !places.has_pitches()};
    }

    Group group;

    /// body(lanes, column) for the vectors of this thread.
    void each(auto&& body) const {
        walk([&](int k, const auto& column) { body(value(values_[k]), column); });
    }
    /// y[i] = f(x[i], more[column] ...).
    void map(const auto& y, auto&& f, const auto&... more) const {
        walk([&](int k, const auto& column) {
            detail::store_mapped<N>(of_group(y, RowPlaces::Y), std::tuple{value(values_[k])}, place(k), column, f,
                                    more...);
        });
    }
    /// As those of a StreamedRow.
    void each_with(const KeptRow& second, auto&& body) const {
        walk([&](int k, const auto& column) { body(value(values_[k]), value(second.values_[k]), column); });
    }
    void map_with(const KeptRow& second, const auto& y, auto&& f, const auto&... more) const {
        walk([&](int k, const auto& column) {
            detail::store_mapped<N>(of_group(y, RowPlaces::Y), std::tuple{value(values_[k]), value(second.values_[k])},
                                    place(k), column, f, more...);
        });
    }
    /// body(k, column) for this thread's vectors: (*this)[k] is what vector k has, store(y, k, lanes) where it is in y.
    void each_vector(auto&& body) const { walk(body); }
    Lanes<N> operator[](int k) const { return value(values_[k]); }
    void store(const auto& y, int k, const auto& lanes) const {
        store_lanes(of_group(y, RowPlaces::Y), place(k), lanes);
    }
    /// A row of f(x), each computed once.
    KeptRow mapped(const auto& f) const {
        KeptRow out = *this;
        walk([&](int k, const auto&) { out.values_[k] = each_lane(f, value(values_[k])); });
        return out;
    }

    /// The row becomes x + total, rounded, and total[i] too.
    void add_to(const InOut<E>& total) {
        walk([&](int k, const auto&) {
            const auto sums = of_group(total, RowPlaces::Second);
            values_[k] = cast<f32>(cast<E>(values_[k] + load_lanes<N>(sums, place(k))));
            store_lanes(sums, place(k), values_[k]);
        });
    }

private:
    /// Whose rows follow each other, or not.
    KeptRow(const In<E>& x, const RowPlaces::Index& first, const auto& length, RowPlaces::Array array, bool is_packed)
        : KeptRow(x, first, length, is_packed ? before(first[RowPlaces::X], length) : value(u32(0u)), array,
                  is_packed) {}
    KeptRow(const In<E>& x, const RowPlaces::Index& first, const auto& length, const auto& before,
            RowPlaces::Array array, bool is_packed)
        : start_(is_packed ? start_of(value(first[RowPlaces::X] - before)) : first),
          length_(length),
          begin_(value(Group::thread() - before)) {
        for (int k = 0; k < K; ++k)
            values_[k] = load_lanes_if<N>(column(k) < length_, of_group(x, array), place(k), 0.0f);
    }
    static RowPlaces::Index start_of(const Leaf<std::uint32_t>& all) { return {all, all, all}; }

    /// By how much the threads begin before the row, so that a warp's accesses are whole lines.
    static auto before(const auto& first, const auto& length) {
        const auto place = place_in_line<N, E>(first);
        return value(select(length + place <= Group::threads * std::uint32_t(K), place, 0u));
    }
    /// The array from the vector of the group's first thread on, and where vector k of this thread is in there: a
    /// number known to be small, so that all k have one address.
    auto of_group(const auto& array, RowPlaces::Array number) const {
        return array.slice(cast<u64>(start_[number]) * std::uint64_t(N));
    }
    auto place(int k) const { return value(Group::thread() + std::uint32_t(k) * Group::threads); }
    /// The vector's number in the row; a very large one for a vector in front of the row.
    auto column(int k) const { return value(begin_ + std::uint32_t(k) * Group::threads); }
    void walk(auto&& body) const {
        for (int k = 0; k < K; ++k) {
            const auto at = column(k);
            if_(at < length_, [&] { body(k, at); });
        }
    }

    RowPlaces::Index start_;
    Leaf<std::uint32_t> length_, begin_;  // in vectors, like it
    Regs<Regs<f32, N>, K> values_;
};

namespace detail {

/// Calls kept() if rows fit in registers, else streamed().
template <class Group, class E, int K>
void choose_rows(const RowPlaces& places, auto&& kept, auto&& streamed) {
    require_linear_grid();
    require_threads(Group::block);
    constexpr std::uint32_t N = lanes_of<E>;
    if_((places.unit() % N == 0) & (places.columns <= KeptRow<Group, E, K>::capacity), [&] { kept(); }).else_([&] {
        streamed();
    });
}
/// Calls one of these with the number of the group's row, and whether there is such a row.
template <class Group, class E, int K>
void choose_row(const RowPlaces& places, auto&& kept, auto&& streamed) {
    const auto row = Group::row();
    const auto active = value(row < places.rows);
    choose_rows<Group, E, K>(
        places, [&] { kept(row, active); }, [&] { streamed(row, active); });
}

}  // namespace detail

/// Calls body(row) with the row of x that this thread's group works on, a KeptRow of K vectors per thread or a
/// StreamedRow; groups beyond the last row get an empty one, so that all come through the same barriers. Blocks have
/// Group::block threads.
template <class Group, class E, int K>
void with_row(const In<E>& x, const RowPlaces& places, auto&& body) {
    const auto kept = [&](const auto& row, const auto& active) { body(KeptRow<Group, E, K>(x, places, row, active)); };
    const auto streamed = [&](const auto& row, const auto& active) {
        body(StreamedRow<Group, E>(x, places, row, active));
    };
    detail::choose_row<Group, E, K>(places, kept, streamed);
}
/// Of a row-major matrix.
template <class Group, class E, int K>
void with_row(const In<E>& x, const u32& rows, const u32& columns, auto&& body) {
    with_row<Group, E, K>(x, RowPlaces(rows, columns), body);
}

/// Calls body(row of x, row of `second`), two rows of one kind.
template <class Group, class E, int K>
void with_row_pair(const In<E>& x, const In<E>& second, const RowPlaces& places, auto&& body) {
    const auto kept = [&](const auto& row, const auto& active) {
        using Row = KeptRow<Group, E, K>;
        body(Row(x, places, row, active), Row(second, places, row, active, RowPlaces::Second));
    };
    const auto streamed = [&](const auto& row, const auto& active) {
        using Row = StreamedRow<Group, E>;
        body(Row(x, places, row, active), Row(second, places, row, active, RowPlaces::Second));
    };
    detail::choose_row<Group, E, K>(places, kept, streamed);
}

/// The same for the rows of total + x, which total becomes first.
template <class Group, class E, int K>
void with_sum_of_rows(const In<E>& x, const InOut<E>& total, const RowPlaces& places, auto&& body) {
    const auto kept = [&](const auto& row, const auto& active) {
        KeptRow<Group, E, K> sums(x, places, row, active);
        sums.add_to(total);
        body(sums);
    };
    const auto streamed = [&](const auto& row, const auto& active) {
        StreamedRow<Group, E>(x, places, row, active).add_to(total);
        body(StreamedRow<Group, E, InOut<E>>(total, places, row, active, RowPlaces::Second));
    };
    detail::choose_row<Group, E, K>(places, kept, streamed);
}

/// What the library's kernels give with_row(): 32 elements of a row are kept in registers of each thread.
template <class T>
inline constexpr int kept_vectors = 32 / lanes_of<T>;
/// ... and 16 of each of two rows.
template <class T>
inline constexpr int kept_vectors_of_pair = 16 / lanes_of<T>;
/// Blocks to a multiprocessor, by which each thread has 64 registers: without this launch bound ptxas spills some of
/// these kernels to fit one more block.
template <class Group>
inline constexpr std::uint32_t blocks_with_64_registers = 1024 / Group::block;

/// The launch of a kernel that calls with_row<Group>.
template <class Group>
runtime::Grid row_grid(std::uint64_t rows) {
    return {.blocks = {std::uint32_t((rows + Group::rows_of_block - 1) / Group::rows_of_block), 1, 1},
            .threads = {Group::block, 1, 1}};
}

}  // namespace ikat::stdlib
