// SPDX-License-Identifier: Apache-2.0
// Layouts: how the elements of a tile are arranged in memory, computed on the host. The definitions are CuTe's.
//
//     Layout rows({4, 8}, {8, 1});         (4,8):(8,1)           element (i, j) is at 8 i + j
//     rows(2, 3) == 19
//     rows(14) == 19                       a single coordinate counts the first extent fastest: 14 = 2 + 4 * 3
//     compose(rows, Layout(8, 4))          (8):(1)               the elements 0, 4, 8 ... : row 0
//     complement(Layout(4, 2), 24)         (2,3):(1,8)           what 0, 2, 4, 6 leave out of 24 places
//     logical_divide(Layout(24), Layout(4, 2))     (4,(2,3)):(2,(1,8))   24 elements in tiles of four, of which each is
//     like 0, logical_product(Layout(4, 2), Layout(6))     (4,(2,3)):(2,(1,8))   2, 4, 6; six such tiles
//
// A mode of a layout is one extent with its stride, or several of them counted as one: ((2,2),3):((24,2),8) has rank 2.
// A swizzle permutes offsets by XOR of their bits, so that the elements of a column are in different banks.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ikat {

/// Extents and strides, in nested modes: a function from the indices of an element to its place. Throws Error for what
/// does not fit.
class Layout {
public:
    using Number = std::uint64_t;
    /// One extent and its stride.
    struct Step {
        Number extent = 1, stride = 0;
        bool operator==(const Step&) const = default;
    };
    using Mode = std::vector<Step>;  // the first counts fastest

    /// A layout of one mode, extent : stride.
    explicit Layout(Number extent, Number stride = 1);
    /// (4,8):(8,1). Throws Error if their numbers differ, or an extent is 0.
    Layout(std::vector<Number> extents, std::vector<Number> strides);
    explicit Layout(std::vector<Mode> modes);

    const std::vector<Mode>& modes() const { return modes_; }
    std::size_t rank() const { return modes_.size(); }
    /// The number of elements of a mode.
    Number extent(std::size_t mode) const;
    /// The number of elements.
    Number size() const;
    /// One more than the largest offset.
    Number places() const;

    /// The offset of a coordinate: one number below size(), or one for each mode. Throws Error if out of range.
    Number at(const std::vector<Number>& coordinate) const;
    Number operator()(std::integral auto... coordinate) const { return at({Number(coordinate)...}); }
    /// The same in a kernel, of u32 values, see layout_places.hpp.
    template <class... I>
    requires(!(std::integral<I> && ...)) auto operator()(const I&... coordinate) const {
        return place_on_device(*this, coordinate...);
    }
    /// Throws Error unless it is the number of modes.
    void check_rank(std::size_t coordinates) const;

    /// The same function of one number in a single mode, with as few steps as possible.
    Layout coalesced() const;
    /// (4,8):(8,1)
    std::string text() const;
    /// For rank 1 or 2: a table of the offsets, with a row for each index of the first mode.
    std::string drawn() const;

    bool operator==(const Layout&) const = default;

private:
    std::vector<Mode> modes_;
};

/// The layout c -> outer(inner(c)), with the modes of the inner one. Throws Error if that is not a layout, or reaches
/// beyond the outer one.
Layout compose(const Layout& outer, const Layout& inner);

/// What the layout leaves out of the first `size` places, or of more, up to a whole number of its repetitions: the
/// layout, repeated by its complement, has each of these places once. Strides of the complement ascend, and extents and
/// strides of 0 in the layout do not matter. Throws Error unless each stride, in ascending order, is a multiple of the
/// one before times its extent. CuTe: complement.
Layout complement(const Layout& layout, Layout::Number size);

/// The layout in tiles: mode 0 has the elements that `tiler` picks, mode 1 is from tile to tile. Throws Error where
/// tiles do not divide the layout..
Layout logical_divide(const Layout& layout, const Layout& tiler);

/// The layout, repeated: mode 0 is the layout, mode 1 has repetition number other(c) for c, beside each other without
/// overlaps..
Layout logical_product(const Layout& layout, const Layout& other);

/// Swizzle(bits, base, shift): `bits` bits of an offset, from bit base + shift on, are XORed into those from bit `base`
/// on (with a negative shift the other way round). It is its own inverse. Throws Error unless |shift| is at least
/// `bits`, because the two would overlap.
class Swizzle {
public:
    Swizzle(unsigned bits, unsigned base, int shift);
    std::uint64_t operator()(std::uint64_t place) const;
    struct Numbers {
        unsigned bits, base;
        int shift;
    };
    Numbers numbers() const { return {bits_, base_, shift_}; }
    /// Sw<3,4,3>
    std::string text() const;
    bool operator==(const Swizzle&) const = default;

private:
    unsigned bits_, base_;
    int shift_;
};

/// A layout whose offsets are swizzled.
struct SwizzledLayout {
    Swizzle swizzle;
    Layout layout;

    std::uint64_t operator()(std::integral auto... coordinate) const { return swizzle(layout(coordinate...)); }
    template <class... I>
    requires(!(std::integral<I> && ...)) auto operator()(const I&... coordinate) const {
        return place_on_device(*this, coordinate...);
    }
    std::string text() const { return swizzle.text() + " o " + layout.text(); }
    std::string drawn() const;
    bool operator==(const SwizzledLayout&) const = default;
};
inline SwizzledLayout compose(const Swizzle& outer, const Layout& inner) { return {outer, inner}; }
inline SwizzledLayout compose(const SwizzledLayout& outer, const Layout& inner) {
    return {outer.swizzle, compose(outer.layout, inner)};
}

/// What text() writes: (4,8):(8,1), 8:1, ((2,2),3):((24,2),8), Sw<3,4,3> o (8,64):(64,1). Without a swizzle, it is one
/// that changes nothing. Tuples inside of a mode become one. Throws Error with the column of what is wrong.
SwizzledLayout parse_layout(std::string_view text);

}  // namespace ikat
