// SPDX-License-Identifier: Apache-2.0
// Which targets a test with many cases takes for one of them.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace ikat::tests {

/// Whether case `number` is for target `which` of `count`: for one of them in turn, but not in step with lists of
/// types; for all where IKAT_ALL_TARGETS is set, as it is in `scripts/test --all`.
inline bool is_for_target(std::size_t number, std::size_t which, std::size_t count) {
    return std::getenv("IKAT_ALL_TARGETS") || (number + number / count) % count == which;
}

}  // namespace ikat::tests
