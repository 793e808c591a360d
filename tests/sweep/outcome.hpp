// SPDX-License-Identifier: Apache-2.0
// Common to all sweeps: how a result is counted.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tests/sweep/sweep.hpp"

namespace ikat::test {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// The contribution of one result to the checksum; `place` is the argument's bits or number. All NaNs are equal.
template <class T>
std::uint64_t digest_of(std::uint64_t place, T result) {
    const std::uint64_t bits = std::isnan(result) ? 0x7fffffffu : std::bit_cast<BitsOf<T>>(result);
    return (2 * place + 1) * bits;
}

/// Counts a result; returns whether it is correctly rounded. `error()` is called only if it may matter.
template <class T>
bool note(Outcome<T>& outcome, T x, T y, T got, WideOf<T> want, auto&& error) {
    const bool rounded = correctly_rounded(got, want);
    outcome.misrounded += !rounded;
    if (rounded && outcome.error > 0.5) return true;
    const double found = error();
    if (found > outcome.error) outcome.error = found, outcome.at = x, outcome.y = y, outcome.got = got;
    return rounded;
}

}  // namespace ikat::test
