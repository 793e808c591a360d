// SPDX-License-Identifier: Apache-2.0
// The targets, and the seeds, for each case of a test with many cases.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace ikat::tests {

/// Whether case `number` runs for target `which` of `count`: for one of them in turn, but not in step with lists of
/// types; for all if IKAT_ALL_TARGETS is set, as in `scripts/test --all`.
inline bool is_for_target(std::size_t number, std::size_t which, std::size_t count) {
    return std::getenv("IKAT_ALL_TARGETS") || (number + number / count) % count == which;
}

/// The same of the emulator's orders of threads: one of `count` in turn, or all with IKAT_ALL_SEEDS.
inline bool is_for_seed(std::size_t number, std::size_t which, std::size_t count) {
    return std::getenv("IKAT_ALL_SEEDS") || (number + number / count) % count == which;
}

}  // namespace ikat::tests
