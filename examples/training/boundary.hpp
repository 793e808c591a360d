// SPDX-License-Identifier: Apache-2.0
// Which of two classes each place of a plane belongs to, as text, as PPM or as SVG.
#pragma once
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "examples/training/two_moons.hpp"

namespace ikat::training {

/// Columns x rows places in the middle of as many equal cells, by rows from the top.
struct Plane {
    std::uint32_t columns, rows;
    double left = -1.5, right = 2.5, bottom = -1.1, top = 1.6;

    std::vector<float> places() const {
        std::vector<float> out;
        for (std::uint32_t r = 0; r < rows; ++r)
            for (std::uint32_t c = 0; c < columns; ++c) {
                out.push_back(float(left + (right - left) * (c + 0.5) / columns));
                out.push_back(float(top - (top - bottom) * (r + 0.5) / rows));
            }
        return out;
    }
    /// The cell that a place is in, as a fraction of columns and rows.
    double column(double x) const { return (x - left) / (right - left) * columns; }
    double row(double y) const { return (top - y) / (top - bottom) * rows; }
};

/// Letters where the points are, 'o' and 'x', and '.' where the plane belongs to the second class.
inline std::string text_picture(const Plane& plane, const std::vector<bool>& is_second, const Points& points) {
    std::string out;
    for (std::uint32_t r = 0; r < plane.rows; ++r) {
        for (std::uint32_t c = 0; c < plane.columns; ++c) out += is_second[r * plane.columns + c] ? '.' : ' ';
        out += '\n';
    }
    for (std::uint32_t p = 0; p < points.count(); ++p) {
        const double c = plane.column(points.at[2 * p]), r = plane.row(points.at[2 * p + 1]);
        if (c >= 0 && r >= 0 && c < plane.columns && r < plane.rows)
            out[std::size_t(r) * (plane.columns + 1) + std::size_t(c)] = points.classes[p] ? 'x' : 'o';
    }
    return out;
}

/// Cells of 4 x 4 pixels, and points of 4 x 4.
inline std::string ppm(const Plane& plane, const std::vector<bool>& is_second, const Points& points) {
    constexpr std::uint32_t scale = 4;
    const std::uint32_t width = plane.columns * scale, height = plane.rows * scale;
    std::string pixels;
    const auto put = [&](std::size_t at, bool second, bool is_point) {
        const unsigned char colours[2][2][3] = {{{214, 228, 246}, {250, 222, 202}}, {{31, 95, 180}, {200, 80, 20}}};
        for (int k = 0; k < 3; ++k) pixels[at * 3 + std::size_t(k)] = char(colours[is_point][second][k]);
    };
    pixels.resize(std::size_t(width) * height * 3);
    for (std::uint32_t y = 0; y < height; ++y)
        for (std::uint32_t x = 0; x < width; ++x)
            put(y * width + x, is_second[y / scale * plane.columns + x / scale], false);
    for (std::uint32_t p = 0; p < points.count(); ++p) {
        const double x = plane.column(points.at[2 * p]) * scale, y = plane.row(points.at[2 * p + 1]) * scale;
        if (x < 2 || y < 2 || x > width - 2 || y > height - 2) continue;
        for (std::uint32_t i = 0; i < 16; ++i)
            put((std::size_t(y) - 2 + i / 4) * width + std::size_t(x) - 2 + i % 4, points.classes[p], true);
    }
    return "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n" + pixels;
}

/// A rectangle for each run of cells of one class in a row, and a circle for each point.
inline std::string svg(const Plane& plane, const std::vector<bool>& is_second, const Points& points) {
    char line[160];
    std::snprintf(line, sizeof line, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\">\n",
                  plane.columns, plane.rows);
    std::string out = line;
    out += "<rect width=\"100%\" height=\"100%\" fill=\"#d6e4f6\"/>\n";
    for (std::uint32_t r = 0; r < plane.rows; ++r)
        for (std::uint32_t c = 0, end = 0; c < plane.columns; c = end + 1) {
            for (end = c; end < plane.columns && is_second[r * plane.columns + end]; ++end) {}
            if (end == c) continue;
            std::snprintf(line, sizeof line,
                          "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"1.02\" fill=\"#fadeca\"/>\n", c, r, end - c);
            out += line;
        }
    for (std::uint32_t p = 0; p < points.count(); ++p) {
        std::snprintf(line, sizeof line, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"0.6\" fill=\"%s\"/>\n",
                      plane.column(points.at[2 * p]), plane.row(points.at[2 * p + 1]),
                      points.classes[p] ? "#c85014" : "#1f5fb4");
        out += line;
    }
    return out + "</svg>\n";
}

}  // namespace ikat::training
