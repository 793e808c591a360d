// SPDX-License-Identifier: Apache-2.0
// A curve as text, of any number of values: each column is the mean of those that it stands for.
//
//     loss
//           0.69 |*
//                | **
//           0.02 |   ***************
//                 1..............150
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ikat::training {

/// The curve with its name above, and the numbers of the first and the last value below; values that are not finite
/// have no mark. "" where there are no values.
inline std::string text_plot(const std::string& name, std::span<const double> values, std::size_t width = 60,
                             std::size_t height = 10) {
    if (values.empty()) return {};
    width = std::min(width, values.size());
    std::vector<double> columns(width, 0);
    for (std::size_t c = 0; c < width; ++c) {
        const std::size_t from = c * values.size() / width, to = (c + 1) * values.size() / width;
        for (std::size_t i = from; i < to; ++i) columns[c] += values[i] / double(to - from);
    }
    double low = INFINITY, high = -INFINITY;
    for (const double x : columns)
        if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
    if (low > high) low = high = 0;
    std::vector<std::string> rows(height, std::string(width, ' '));
    for (std::size_t c = 0; c < width; ++c) {
        if (!std::isfinite(columns[c])) continue;
        const double share = high > low ? (columns[c] - low) / (high - low) : 0;
        rows[height - 1 - std::size_t(std::lround(share * double(height - 1)))][c] = '*';
    }
    std::string out = name + "\n";
    for (std::size_t r = 0; r < height; ++r) {
        char label[16] = "";
        if (r == 0 || r == height - 1) std::snprintf(label, sizeof label, "%.4g", r == 0 ? high : low);
        char line[32];
        std::snprintf(line, sizeof line, "%10s |", label);
        rows[r].erase(rows[r].find_last_not_of(' ') + 1);
        out += line + rows[r] + "\n";
    }
    const std::string last = std::to_string(values.size());
    out +=
        std::string(12, ' ') + "1" + (width > last.size() + 1 ? std::string(width - last.size() - 1, '.') + last : "");
    return out + "\n";
}

}  // namespace ikat::training
