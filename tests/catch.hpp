// SPDX-License-Identifier: Apache-2.0
// The one place that knows which Catch2 is installed: Debian has 2.13, others have 3.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>
#include <utility>

namespace ikat::tests {

/// The matcher for a substring, whose name differs between the two versions: CHECK_THAT(text, contains("caret"));
inline auto contains(std::string part) {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Matchers::ContainsSubstring(std::move(part));
#else
    return Catch::Matchers::Contains(std::move(part));
#endif
}

}  // namespace ikat::tests
