// SPDX-License-Identifier: Apache-2.0
#include "stdlib/tile/conflicts.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "dsl/kernel/expect.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

std::uint32_t wavefronts(std::span<const std::uint64_t> places, std::uint32_t bytes) {
    constexpr std::uint64_t banks = 32, bank_bytes = 4;
    const std::size_t together = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
    std::uint32_t out = 0;
    for (std::size_t first = 0; first < places.size(); first += together) {
        std::array<std::vector<std::uint64_t>, banks> words;
        for (const std::uint64_t place : places.subspan(first, std::min(together, places.size() - first)))
            for (std::uint64_t word = place / bank_bytes; word <= (place + bytes - 1) / bank_bytes; ++word)
                if (auto& bank = words[word % banks]; !std::ranges::count(bank, word)) bank.push_back(word);
        out += std::uint32_t(std::ranges::max(words, {}, &std::vector<std::uint64_t>::size).size());
    }
    return out;
}

void require_no_conflicts(const SwizzledLayout& tile, std::uint32_t element_bytes, const Where& where) {
    const std::uint64_t columns = tile.layout.extent(1), per_piece = 16 / element_bytes;
    std::uint32_t max_wavefronts = 1;
    for (std::uint64_t column = 0; column < columns; column += per_piece) {
        std::array<std::uint64_t, 8> rows{};
        for (std::uint64_t r = 0; r < rows.size(); ++r) rows[r] = tile(r, column) * element_bytes;
        max_wavefronts = std::max(max_wavefronts, wavefronts(rows, 16));
    }
    if (max_wavefronts == 1) return;
    const std::uint32_t swizzle = swizzle_of_rows(columns * element_bytes);
    complain("eight rows of a matrix of this SharedTile, " + tile.text() + ", are read in " +
                 std::to_string(max_wavefronts) + " accesses to shared memory instead of one: they share banks",
             "swizzle " + std::to_string(swizzle) + " bytes: SharedTile<T, stages, rows, columns, " +
                 std::to_string(swizzle) + ">, the default; or say tile.conflicts_allowed()",
             where);
}

void check_stages(std::uint32_t stages, const StageNumber& given, const Where& where) {
    const auto numbered = [](std::uint32_t count) {
        return std::to_string(count) + (count == 1 ? " stage" : " stages");
    };
    complain("a SharedTile of " + numbered(stages) + " in a " + given.what + " of " + numbered(given.count),
             "both have the same number: SharedTile<T, " + std::to_string(given.count) + ", rows, columns>", where,
             {{Location::of(given.where), std::string("the ") + given.what + " is here"}});
}

}  // namespace ikat::stdlib
