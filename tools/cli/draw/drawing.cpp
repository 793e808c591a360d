// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/draw/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ikat::cli {
namespace {

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
}

}  // namespace

std::string number_table(const std::string& name, std::uint64_t rows, std::uint64_t columns, const NumberAt& at) {
    std::uint64_t largest = columns - 1;
    for (std::uint64_t i = 0; i < rows; ++i)
        for (std::uint64_t j = 0; j < columns; ++j) largest = std::max(largest, at(i, j));
    const std::size_t width = std::to_string(largest).size();
    const std::size_t first = std::max(name.size(), std::to_string(rows - 1).size());
    std::string out = fmt::format("{:<{}} |", name, first);
    for (std::uint64_t j = 0; j < columns; ++j) out += fmt::format(" {:>{}}", j, width);
    out += '\n' + std::string(first + 1, '-') + '+' + std::string(columns * (width + 1), '-') + '\n';
    for (std::uint64_t i = 0; i < rows; ++i) {
        out += fmt::format("{:>{}} |", i, first);
        for (std::uint64_t j = 0; j < columns; ++j) out += fmt::format(" {:>{}}", at(i, j), width);
        out += '\n';
    }
    return out;
}

std::string light_colour(std::uint64_t number) {
    const double turn = 2 * std::numbers::pi * double(number % 32) / 32, strength = number % 2 ? 35 : 55;
    const auto channel = [&](double part) {
        return int(std::lround(255 - strength + strength * std::cos(turn - part * 2 * std::numbers::pi / 3)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2));
}

Svg::Svg(std::uint64_t width, std::uint64_t height, const std::string& title)
    : out_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
          "font-family=\"monospace\" text-anchor=\"middle\" style=\"background: white\">\n<title>{2}</title>\n",
          width, height, escaped(title))) {
    text_from(10, 20, 14, title);
}

void Svg::box(std::uint64_t x, std::uint64_t y, std::uint64_t width, std::uint64_t height, const std::string& colour) {
    out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666666\"/>\n", x, y,
                        width, height, colour);
}

void Svg::text(std::uint64_t x, std::uint64_t y, unsigned size, const std::string& what) {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n", x, y, size, escaped(what));
}

void Svg::text_from(std::uint64_t x, std::uint64_t y, unsigned size, const std::string& what) {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"start\">{}</text>\n", x, y, size,
                        escaped(what));
}

}  // namespace ikat::cli
