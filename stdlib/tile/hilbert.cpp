// SPDX-License-Identifier: Apache-2.0
#include "stdlib/tile/hilbert.hpp"

namespace ikat::stdlib {
namespace {

using Number = Leaf<std::uint32_t>;

/// A step by one tile, down and to the right: one of them is 0, the other 1 or -1 (which wraps).
struct Step {
    u32 row, column;

    void turn_round() {
        row = 0u - row;
        column = 0u - column;
    }
};

/// The part of a curve from one corner of a rectangle to the next: `along` steps of `forward`, `across` of `sideward`.
/// It begins at (row, column), and ends at the other end of the side that goes forward. The tile that is looked for is
/// number `rest` of it.
class Curve {
public:
    Curve(const Number& number, const Number& rows, const Number& columns)
        : rest_(number),
          along_(max(rows, columns)),
          across_(min(rows, columns)),
          forward_{select(columns < rows, 1u, 0u), select(columns < rows, 0u, 1u)},
          sideward_{forward_.column, forward_.row} {}

    /// The place of the tile on its plane.
    std::pair<Number, Number> place() {
        while_([&] { return (along_ > 1u) & (across_ > 1u); },
               [&] { if_(along_ * 2u > across_ * 3u, [&] { halve(); }).else_([&] { part_in_three(); }); });
        const auto is_forward = value(across_ == 1u);
        return {value(row_ + rest_ * select(is_forward, forward_.row, sideward_.row)),
                value(column_ + rest_ * select(is_forward, forward_.column, sideward_.column))};
    }

private:
    /// Half of a side, and one more where this is odd, so that the curve ends in the right corner of what is even.
    static Number half_of(const Number& side) {
        const auto half = value(side / 2u);
        return value(half + select(side > 2u, half & 1u, 0u));
    }
    void move(const Step& by, const Number& times) {
        row_ += by.row * times;
        column_ += by.column * times;
    }
    void exchange_sides() {
        const auto row = value(forward_.row), column = value(forward_.column);
        forward_.row = sideward_.row;
        forward_.column = sideward_.column;
        sideward_.row = row;
        sideward_.column = column;
    }

    /// A long rectangle: one half after the other.
    ///
    ///     a a b b
    void halve() {
        const auto half = half_of(value(along_));
        const auto first = value(half * across_);
        if_(rest_ < first, [&] { along_ = half; }).else_([&] {
            rest_ -= first;
            move(forward_, half);
            along_ -= half;
        });
    }

    /// Up on the left, from left to right, and down on the right.
    ///
    ///     b b b b
    ///     a a c c
    void part_in_three() {
        const auto up = half_of(value(across_)), left = value(along_ / 2u), right = value(along_ - left);
        const auto first = value(up * left), second = value(along_ * (across_ - up));
        if_(rest_ < first,
            [&] {
                along_ = up;
                across_ = left;
                exchange_sides();
            })
            .else_if([&] { return rest_ < first + second; },
                     [&] {
                         rest_ -= first;
                         move(sideward_, up);
                         across_ -= up;
                     })
            .else_([&] {
                rest_ -= first + second;
                move(forward_, value(along_ - 1u));
                move(sideward_, value(up - 1u));
                along_ = up;
                across_ = right;
                exchange_sides();
                forward_.turn_round();
                sideward_.turn_round();
            });
    }

    u32 rest_, along_, across_, row_ = 0, column_ = 0;
    Step forward_, sideward_;
};

}  // namespace

TilePlace hilbert_raster(const Word& number, const Word& rows, const Word& columns) {
    const auto down = word(rows), across = word(columns), tiles = value(down * across), all = word(number);
    const auto [row, column] = Curve(value(all % tiles), down, across).place();
    return {row, column, value(all / tiles)};
}

}  // namespace ikat::stdlib
