// SPDX-License-Identifier: Apache-2.0
// Words of the messages of findings.
#pragma once
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ikat::emulator {

/// "1 byte", "2 bytes"
inline std::string plural(std::uint64_t n, std::string_view unit) {
    return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s");
}

/// Whose words name instructions.
enum class Vocabulary : std::uint8_t { Ptx, Language };
struct Words {
    std::string_view ptx, language;
};
inline constexpr Words words[] = {
#define WORDS(ptx, language) {ptx, language},
#include "runtime/emulator/core/checks/words.def"
#undef WORDS
};
/// The text with what is between backquotes in these words; what is in none of them is left as it is.
std::string in_words(Vocabulary vocabulary, std::string_view text);

/// "warps 0-15, 20" of a set of numbers below 32.
std::string number_list(std::string_view noun, std::uint32_t set);
inline std::string lane_list(std::uint32_t mask) { return number_list("lane", mask); }

/// "(1,2,3)"
inline std::string tuple(const std::array<std::uint32_t, 3>& v) { return fmt::format("({},{},{})", v[0], v[1], v[2]); }

}  // namespace ikat::emulator
