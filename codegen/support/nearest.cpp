// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/nearest.hpp"

#include <algorithm>
#include <vector>

namespace ikat {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row[b.size()];
}

std::string_view nearest(std::string_view wanted, std::span<const std::string> known) {
    std::string_view best;
    std::size_t shortest = std::max<std::size_t>(2, wanted.size() / 3) + 1;
    for (const std::string& name : known)
        if (const std::size_t distance = edit_distance(wanted, name); distance < shortest && distance < name.size())
            best = name, shortest = distance;
    return best;
}

}  // namespace ikat
