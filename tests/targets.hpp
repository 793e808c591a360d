// SPDX-License-Identifier: Apache-2.0
// Which targets a test with many cases takes for one of them.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

namespace ikat::tests {

/// One of them for each case, in turn, but not in step with lists of types; all where IKAT_ALL_TARGETS is set, as it is
/// in `scripts/test --all`.
inline std::vector<std::string> targets_of(std::size_t number, std::initializer_list<const char*> targets) {
    if (std::getenv("IKAT_ALL_TARGETS")) return {targets.begin(), targets.end()};
    return {targets.begin()[(number + number / targets.size()) % targets.size()]};
}

}  // namespace ikat::tests
