// SPDX-License-Identifier: Apache-2.0
// What the commands that draw have in common: tables of numbers as text, and pictures of boxes as SVG.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ikat::cli {

/// A number for each place of a table of rows and columns.
using NumberAt = std::function<std::uint64_t(std::uint64_t row, std::uint64_t column)>;

/// The table, with the numbers of the rows and columns at its edges and `name` in its corner.
std::string number_table(const std::string& name, std::uint64_t rows, std::uint64_t columns, const NumberAt& at);

/// A light colour of its own for each of 32 numbers: neighbours are close, and alternately lighter.
std::string light_colour(std::uint64_t number);

/// A picture with a title at its top, in pixels from its left upper corner.
class Svg {
public:
    Svg(std::uint64_t width, std::uint64_t height, const std::string& title);

    void box(std::uint64_t x, std::uint64_t y, std::uint64_t width, std::uint64_t height, const std::string& colour);
    /// Around x, its foot at y.
    void text(std::uint64_t x, std::uint64_t y, unsigned size, const std::string& what);
    /// From x on.
    void text_from(std::uint64_t x, std::uint64_t y, unsigned size, const std::string& what);
    std::string str() const { return out_ + "</svg>\n"; }

private:
    std::string out_;
};

}  // namespace ikat::cli
