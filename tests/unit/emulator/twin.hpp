// SPDX-License-Identifier: Apache-2.0
// Two kernels in one text.
#pragma once
#include <string>
#include <string_view>

#include "tests/catch.hpp"

namespace ikat::tests {

/// The text with a of each <a|b> for the right one, and with b for the wrong one.
inline std::string twin(std::string_view body, bool is_right) {
    std::string out;
    while (true) {
        const std::size_t open = body.find('<');
        out += body.substr(0, open);
        if (open == body.npos) return out;
        const std::size_t bar = body.find('|', open), close = body.find('>', bar);
        REQUIRE(close != body.npos);
        out += is_right ? body.substr(open + 1, bar - open - 1) : body.substr(bar + 1, close - bar - 1);
        body.remove_prefix(close + 1);
    }
}

}  // namespace ikat::tests
