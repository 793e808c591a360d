// SPDX-License-Identifier: Apache-2.0
// The value of a pure instruction on constants: the line of semantics.hpp, applied to raw bits.
#pragma once
#include <bit>
#include <span>

#include "codegen/ir/op/form.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

namespace detail {
template <std::size_t bytes>
using BitsOf = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
}

template <class T>
constexpr T from_word(Word word) {
    if constexpr (std::is_same_v<T, bool>)
        return word & 1;
    else
        return std::bit_cast<T>(detail::BitsOf<sizeof(T)>(word));
}

template <class T>
constexpr Word to_word(T x) {
    if constexpr (std::is_same_v<T, bool>)
        return x;
    else
        return std::bit_cast<detail::BitsOf<sizeof(T)>>(x);
}

/// The floating-point attributes of an instruction.
struct FloatInfo {
    Rounding rounding = Rounding::Nearest;
    bool ftz = false;       // subnormal inputs and results are zeros
    bool sat = false;       // the result is clamped to [0, 1]
    bool approx = false;    // within the error of the op's ulp column, not correctly rounded
    bool contract = false;  // a product may be fused with a following addition
    bool operator==(const FloatInfo&) const = default;
};

/// The result of a pure op (not a leaf) at `type`, converting from `from`. The op must be in its domain. `attribute`:
/// the mode or table, where the op has one. For an op with two results, `result` says which.
Word evaluate(Op op, Type type, Type from, const FloatInfo& fp, std::span<const Word> arguments, Form attribute = 0,
              std::uint32_t result = 0);

/// Whether evaluate gives the device's result: pure, not approximate, rounding to nearest (conversions: any), without
/// ftz and sat, and no division by zero.
bool folds(Op op, Type type, const FloatInfo& fp, std::span<const Word> arguments);

}  // namespace ikat::ir
