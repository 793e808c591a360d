// SPDX-License-Identifier: Apache-2.0
// Where the rows of a kernel's arrays begin. Either they follow each other, or the host gives their pitches:
//
//     template <class T>
//     void body(const RowPlaces& places, const In<T>& x, const Out<T>& y) { ... }
//
//     kernel("f", params("x", "y", "rows", "columns"), [](In<T> x, Out<T> y, u32 rows, u32 columns) {
//         body(RowPlaces(rows, columns), x, y);
//     });
//     pitched_kernel<body<T>>("f_pitched", threads, 0, "x", "y");
#pragma once
#include <array>
#include <optional>

#include "dsl/memory/structs.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

/// Of up to three arrays, all in elements. Row r of an array begins at element r / inner * outer + r % inner * pitch.
/// The elements of a row follow each other.
struct RowPitches {
    BOOST_HANA_DEFINE_STRUCT(RowPitches,
                             /// A power of 2. All rows are whole pieces of `unit` elements, and begin at multiples of
                             /// the bytes of a piece, up to 16.
                             (std::uint32_t, unit), (std::uint32_t, inner), (std::uint32_t, x_outer),
                             (std::uint32_t, x_pitch), (std::uint32_t, second_outer), (std::uint32_t, second_pitch),
                             (std::uint32_t, y_outer), (std::uint32_t, y_pitch));
};

/// Where the rows of up to three arrays begin, in a kernel that is being captured.
class RowPlaces {
public:
    /// The arrays of a kernel: the one that is read, another one, and the one that is written.
    enum Array : std::size_t { X, Second, Y };
    /// An element or a vector of each.
    using Index = std::array<Leaf<std::uint32_t>, 3>;

    /// Rows that follow each other. The parameters must outlive this.
    RowPlaces(const u32& rows, const u32& columns) : rows(rows), columns(columns) {}
    RowPlaces(const u32& rows, const u32& columns, const Struct<RowPitches>& pitches)
        : rows(rows), columns(columns), pitches_(&pitches), unit_(pitches[&RowPitches::unit]) {}

    const u32 &rows, &columns;

    bool has_pitches() const { return pitches_ != nullptr; }
    /// What N divides where all rows are whole vectors of N elements.
    const u32& unit() const { return unit_ ? *unit_ : columns; }

    /// Where a row begins in each array, in vectors of N elements, of which a row has `length`.
    template <int N>
    Index starts(const auto& row, const auto& length) const {
        if (!pitches_) {
            const auto first = value(row * length);
            return {first, first, first};
        }
        const auto inner = value((*pitches_)[&RowPitches::inner]);
        const auto plane = value(row / inner), line = value(row - plane * inner);
        const auto start = [&](auto outer, auto pitch) {
            const auto vectors = [&](auto field) { return (*pitches_)[field] / std::uint32_t(N); };
            return value(plane * vectors(outer) + line * vectors(pitch));
        };
        return {start(&RowPitches::x_outer, &RowPitches::x_pitch),
                start(&RowPitches::second_outer, &RowPitches::second_pitch),
                start(&RowPitches::y_outer, &RowPitches::y_pitch)};
    }

    /// This many vectors further.
    Index further(const Index& from, const auto& column) const {
        const auto x = value(from[X] + column);
        if (!pitches_) return {x, x, x};
        return {x, value(from[Second] + column), value(from[Y] + column)};
    }

private:
    const Struct<RowPitches>* pitches_ = nullptr;
    std::optional<u32> unit_{};
};

/// body(Width<N>, i, column) for the elements of one row, shared by `threads` threads of which this is number `thread`:
/// i counts vectors of N elements in each array, column those of the row, which has `columns` elements or none.
template <class E, class Body>
void for_each_in_row(const RowPlaces& places, const auto& row, const u32& columns, const auto& thread,
                     const auto& threads, Body&& body) {
    with_width<E>(places.has_pitches() ? places.unit() : columns, [&]<int N>(Width<N> width) {
        const auto length = value(columns / std::uint32_t(N));
        const auto first = places.starts<N>(row, length);
        for (auto column : columns_of<N, E>(first[RowPlaces::X], length, thread, threads))
            body(width, places.further(first, column), column);
    });
}

/// body(Width<N>, i, column, number) for the elements of all rows, shared by the threads of the grid in blocks of one
/// dimension; number counts the vectors of all rows.
template <class E, class Body>
void for_each_of_rows(const RowPlaces& places, Body&& body) {
    require_linear_blocks();
    with_width<E>(places.unit(), [&]<int N>(Width<N> width) {
        const auto length = value(places.columns / std::uint32_t(N));
        for (auto i : grid_stride(places.rows * length)) {
            const auto row = value(i / length), column = value(i - row * length);
            body(width, places.further(places.starts<N>(row, length), column), column, i);
        }
    });
}

namespace detail {

template <class... P>
auto make_pitched(void (*body)(const RowPlaces&, const P&...), const char* name, auto... names) {
    return kernel(name, params(names..., "rows", "columns", "pitches"),
                  [=](P... p, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      body(RowPlaces(rows, columns, pitches), p...);
                  });
}

}  // namespace detail

/// The kernel of a function void(const RowPlaces&, const P&...), for rows at pitches: its parameters are P, of these
/// names, then rows, columns, pitches. There is one for each body.
template <auto* body>
const auto& pitched_kernel(const char* name, std::uint32_t threads, std::uint32_t min_blocks, auto... names) {
    static const auto made = detail::make_pitched(body, name, names...).launch_bounds(threads, min_blocks);
    return made;
}

/// The elements of arrays, by themselves: n that follow each other, or those of rows at pitches.
class Elements {
public:
    /// What it is made of must outlive it.
    explicit Elements(const u32& n) : n_(&n) {}
    explicit Elements(const RowPlaces& places) : places_(&places) {}

    /// body(Width<N>, i, number): i counts vectors in each array, number those of all elements.
    template <class E, class Body>
    void each(Body&& body) const {
        if (places_)
            for_each_of_rows<E>(*places_,
                                [&](auto width, const auto& at, const auto&, const auto& i) { body(width, at, i); });
        else
            for_each_vec<E>(*n_, [&](auto width, const auto& i) {
                const Leaf<std::uint32_t> at = value(i);
                body(width, RowPlaces::Index{at, at, at}, at);
            });
    }

private:
    const u32* n_ = nullptr;
    const RowPlaces* places_ = nullptr;
};

}  // namespace ikat::stdlib
