// SPDX-License-Identifier: Apache-2.0
// The targets, the seeds and the sample of a test with many cases.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace ikat::tests {

/// Whether case `number` takes turn `which` of `count`: each takes one, but not in step with lists of types.
inline bool is_in_turn(std::size_t number, std::size_t which, std::size_t count) {
    return (number + number / count) % count == which;
}
/// Whether case `number` runs for target `which` of `count`: for one of them in turn; for all if IKAT_ALL_TARGETS is
/// set, as in `scripts/test --all`.
inline bool is_for_target(std::size_t number, std::size_t which, std::size_t count) {
    return std::getenv("IKAT_ALL_TARGETS") || is_in_turn(number, which, count);
}

/// The same of the emulator's orders of threads: one of `count` in turn, or all with IKAT_ALL_SEEDS. On the stand-in
/// for the CUDA driver, which has one order, only the cases whose turn is the first.
inline bool is_for_seed(std::size_t number, std::size_t which, std::size_t count) {
    if (which > 0 && std::getenv("IKAT_CUDA_DRIVER")) return false;
    return std::getenv("IKAT_ALL_SEEDS") || is_in_turn(number, which, count);
}

/// Counts the cases of a test that has more than the default run has time for: next() is true for each `every`th of
/// them, or for all if IKAT_ALL_CASES is set. An `every` without factors in common with the lists that a case is made
/// of takes each value of each list.
class Sample {
public:
    explicit Sample(std::size_t every) : every_(std::getenv("IKAT_ALL_CASES") ? 1 : every) {}
    bool next() { return number_++ % every_ == 0; }

private:
    std::size_t every_, number_ = 0;
};

}  // namespace ikat::tests
