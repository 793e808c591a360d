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

/// "(1,2,3)"
inline std::string tuple(const std::array<std::uint32_t, 3>& v) { return fmt::format("({},{},{})", v[0], v[1], v[2]); }

}  // namespace ikat::emulator
